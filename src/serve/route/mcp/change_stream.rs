//! The stream of changes: who listens hears that the list of the tools has changed, when the folder is read again.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::watch;

use super::stream::{COMMENT, KEEP_ALIVE_INTERVAL, event, events, refusal, taken_now};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::mcp::client_message::answer;
use crate::serve::mcp::offered_tools::McpTools;
use crate::serve::mcp::protocol::{self, ClientEra};
use crate::serve::quotas::Permit;

/// A client that listens.
pub(super) struct ListeningClient {
    pub app: Arc<App>,
    pub caller: Caller,
    pub era: ClientEra,
    pub id: Value,
    /// Whether it wants to hear that the list of the tools has changed.
    pub tools: bool,
    /// Held as long as it listens.
    pub _permit: Permit,
}

struct ChangeStream {
    client: ListeningClient,
    replacements: watch::Receiver<()>,
    /// The tools that the client may call, as it last knew them.
    known: Vec<Value>,
    is_open: bool,
    is_over: bool,
}

/// The stream stays open until the client closes it, its token is not taken any more, or the server stops.
pub(super) async fn of_changes(client: ListeningClient) -> Response {
    // First the receiver: a folder that is replaced in between is seen.
    let replacements = client.app.runs.current.replacements();
    let known = if client.tools { client.listed().await } else { Vec::new() };
    let stream = ChangeStream { client, replacements, known, is_open: false, is_over: false };
    let pieces = stream::unfold(stream, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Ok::<String, Infallible>(piece), stream))
    });
    events(Body::from_stream(pieces))
}

impl ListeningClient {
    /// The tools that it may call. While the store can't be read, a loop counts as switched on.
    async fn listed(&self) -> Vec<Value> {
        let switches = self.app.switches.all(&*self.app.runs.journal).await.unwrap_or_default();
        let is_on = |name: &str| !switches.get(name).is_some_and(|switch| switch.is_off);
        McpTools::of(&self.app.folder().loops, |name| is_on(name) && self.caller.may_run(name).is_ok()).listed()
    }
}

impl ChangeStream {
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let id = self.client.id.clone();
        if !self.is_open {
            self.is_open = true;
            return Some(event(&protocol::listening(&id, self.client.tools)));
        }
        let mut quiet = std::pin::pin!(tokio::time::sleep(KEEP_ALIVE_INTERVAL));
        loop {
            let is_replaced = tokio::select! {
                biased;
                replaced = self.replacements.changed(), if self.client.tools => replaced.is_ok(),
                () = &mut quiet => false,
            };
            match taken_now(&self.client.app, &self.client.caller) {
                Ok(caller) => self.client.caller = caller,
                Err(problem) => {
                    self.is_over = true;
                    return Some(event(&refusal(&self.client.app, problem).answer(&id)));
                }
            }
            if self.client.app.scheduler.is_draining() {
                self.is_over = true;
                return Some(event(&answer(&id, &self.client.era.result(protocol::listened(&id)))));
            }
            if !is_replaced {
                return Some(COMMENT.to_owned());
            }
            let listed = self.client.listed().await;
            if listed != self.known {
                self.known = listed;
                return Some(event(&protocol::tools_changed(&id)));
            }
        }
    }
}
