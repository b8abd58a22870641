//! Runs as workflows of a Restate server: the driver of every run, with Restate's journal in place of a store. See
//! `docs/restate.md`.

mod attempt;
mod attempt_journal;
mod handover;
mod journal_bound;
mod record;
mod served_folder;
mod services;
mod store_copy;
mod workflow;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use restate_sdk::prelude::{Endpoint, HttpServer, IntoServiceDefinition as _, ServiceOptions};
use tokio::net::{TcpListener, TcpSocket};

use self::attempt::AttemptContext;
pub use self::journal_bound::JournalBound;
use self::served_folder::ServedFolder;
use self::services::{LoopctlCopy, LoopctlPart, LoopctlSession, LoopctlWorkflow};
use self::store_copy::CopyStore;
use self::workflow::ServedRuns;
use crate::drive::run_meter::RunMeters;
use crate::journal::Journal;
use crate::serve::Folder;

/// A service endpoint that listens, and serves nothing yet.
pub struct RestateEndpoint {
    endpoint: Endpoint,
    listener: TcpListener,
    address: SocketAddr,
    /// How many loops and workflows it serves.
    pub documents: usize,
}

impl RestateEndpoint {
    /// Listens for a Restate server. `identity_key`: its public key; requests of others are refused. `bound`: what each run may have in
    /// Restate's journal. `store`: the store for read-only copies of runs.
    /// `meters`: what counts the runs.
    ///
    /// # Errors
    /// Why it can't be served, in a sentence.
    pub fn bind(
        folder: Folder,
        listen: SocketAddr,
        identity_key: Option<&str>,
        bound: JournalBound,
        store: Option<Arc<dyn Journal>>,
        meters: Option<Arc<dyn RunMeters>>,
    ) -> Result<Self, String> {
        if identity_key.is_none() && !listen.ip().is_loopback() {
            return Err(format!(
                "without --identity-key, everyone who reaches {listen} could start loops: give the public key of the \
                 Restate server, or listen on 127.0.0.1"
            ));
        }
        let served = ServedFolder::new(folder, meters)?;
        let documents = served.count();
        // Restate takes an invocation that says nothing for dead. It would make a second attempt beside a slow call.
        let silence = served.longest_silence();
        let options = || ServiceOptions::new().inactivity_timeout(silence).abort_timeout(silence);
        let store = store.map(|store| Arc::new(CopyStore::new(store)));
        let runs = Arc::new(ServedRuns::new(AttemptContext { served: Arc::new(served), bound, store }));
        let copy = LoopctlCopy(Arc::clone(&runs)).into_service_definition();
        let copy = copy.options(ServiceOptions::new().ingress_private(true));
        let workflow = LoopctlWorkflow(Arc::clone(&runs)).into_service_definition().options(options());
        let part = LoopctlPart(runs).into_service_definition().options(options().ingress_private(true));
        let session = LoopctlSession.into_service_definition();
        let session = session.options(ServiceOptions::new().ingress_private(true));
        let mut endpoint = Endpoint::builder().bind(workflow).bind(part).bind(copy).bind(session);
        if let Some(key) = identity_key {
            endpoint = endpoint.identity_key(key).map_err(|why| format!("--identity-key: {why}"))?;
        }
        let listener = listener(listen).map_err(|why| format!("{listen} can't be listened on: {why}"))?;
        let address = listener.local_addr().map_err(|why| why.to_string())?;
        Ok(Self { endpoint: endpoint.build(), listener, address, documents })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the signal. Runs that are under way then are gone on with by the next process.
    pub async fn serve(self, signal: impl Future<Output = ()>) {
        HttpServer::new(self.endpoint).serve_with_cancel(self.listener, signal).await;
    }
}

/// A listener whose connections send at once: they inherit that. The SDK leaves it off, which costs 40 ms a step.
fn listener(listen: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_nodelay(true)?;
    socket.bind(listen)?;
    socket.listen(1_024)
}
