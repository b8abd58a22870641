//! The bytes of a connection, through the whole router, in this process.
#![no_main]

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use libfuzzer_sys::fuzz_target;
use loopctl::journal::memory::MemoryJournal;
use loopctl::serve::folder::Folder;
use loopctl::serve::authorizer::Authorizer;
use loopctl::serve::middleware::HostNames;
use loopctl::serve::route;
use loopctl::serve::app::{App, AppParts, BodyLimits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

/// What runs in a server grows with the requests: after so many there is a new one.
const REQUESTS: u32 = 500;

thread_local! {
    static SERVER: RefCell<Option<(Runtime, Arc<App>, u32)>> = const { RefCell::new(None) };
}

fuzz_target!(|bytes: &[u8]| {
    SERVER.with_borrow_mut(|server| {
        if server.as_ref().is_none_or(|(_, _, left)| *left == 0) {
            *server = Some(started());
        }
        if let Some((runtime, served, left)) = server {
            *left -= 1;
            runtime.block_on(connection(served, bytes));
        }
    });
});

fn started() -> (Runtime, Arc<App>, u32) {
    let folder = std::env::temp_dir().join("loopctl-fuzz-folder");
    std::fs::create_dir_all(&folder).expect("a folder of its own");
    std::fs::write(folder.join("loopctl.json"), "{}").expect("a project file");
    let folder = Folder::read(&folder).unwrap_or_else(|_| panic!("it is sound"));
    let served = App::new(AppParts {
        authorizer: Authorizer::new(&folder.project.serve).expect("no tokens"),
        names: HostNames::new(Ipv4Addr::LOCALHOST.into(), &[]),
        body: BodyLimits { bytes: 1 << 20, time: Duration::from_secs(1) },
        max_concurrent_runs: 1,
        callback_key: None,
        folder,
        journal: Arc::new(MemoryJournal::default()),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    (runtime, Arc::new(served), REQUESTS)
}

async fn connection(served: &Arc<App>, bytes: &[u8]) {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(server), TowerToHyperService::new(route::router(served)));
    let asking = async {
        drop(client.write_all(bytes).await);
        drop(client.shutdown().await);
        let mut answer = Vec::new();
        // A stream of events has no end.
        drop(tokio::time::timeout(Duration::from_millis(200), client.read_to_end(&mut answer)).await);
        drop(client);
        answer
    };
    let (_, answer) = tokio::join!(serving, asking);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{answer}");
    assert!(!answer.starts_with("HTTP/1.1 500"), "{answer}");
}
