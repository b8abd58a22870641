//! A server that is connected: it was started in a revision of the protocol, and has listed its tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::RwLock;

use super::era::{self, ServerFacts};
use super::fault::{McpFault, Unanswered};
use super::frame;
use super::http::{HttpPeer, MirroredHeaders};
use super::list::ToolList;
use super::oauth::AccessTokens;
use super::progress::MAX_REPORTS;
use super::stdio::{SeenOfServer, ServerMark, StdioPeer};
use super::{no_values, seconds};
use crate::drive::egress::Egress;
use crate::drive::secret::Vault;
use crate::drive::tool::command::{ServerProcess, ServerProgram};
use loopctl_lang::language::mcp::{LockedTool, McpProtocol, McpServer};
use loopctl_lang::language::project::Allow;
use loopctl_lang::program::mcp::sent_texts;
use loopctl_lang::program::reference::Secrets;

/// The share of the time of a start in which a server must answer what only newer ones know: some never do.
const SHARE_OF_PROBE: u64 = 3;

/// What servers are reached by.
pub(super) struct McpReach {
    pub allow: Allow,
    pub root: Box<Path>,
    pub vault: Arc<Vault>,
    pub egress: Egress,
    pub tokens: AccessTokens,
}

/// A server that is spoken to.
pub(super) struct McpSession {
    peer: McpPeer,
    pub protocol: McpProtocol,
    /// What was odd about how it said so.
    pub protocol_note: Option<String>,
    pub facts: ServerFacts,
    pub list: RwLock<ToolList>,
}

enum McpPeer {
    Stdio(StdioPeer),
    Http(Box<HttpPeer>),
}

/// The program that was started last, so that a start that takes too long says what that wrote.
#[derive(Default)]
struct StartedPeer(Mutex<Option<Arc<SeenOfServer>>>);

impl StartedPeer {
    fn late(&self, limit: Duration) -> McpFault {
        let mut detail = format!("it did not list its tools within {}", seconds(limit));
        if let Some(seen) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            if let Some(noise) = seen.noise_since(ServerMark::default()) {
                detail.push_str("\nit wrote something that is no message: ");
                detail.push_str(&noise);
            }
            let stderr = seen.stderr_text();
            if !stderr.is_empty() {
                detail.push('\n');
                detail.push_str(&stderr);
            }
        }
        McpFault::NotStarted(detail)
    }
}

impl McpReach {
    /// Starts a server, or makes the connection to it.
    async fn peer(&self, server: &McpServer, started: &StartedPeer) -> Result<McpPeer, McpFault> {
        let Some(program) = &server.command else {
            let peer = HttpPeer::new(server, &self.egress, &self.vault, &self.tokens)?;
            return Ok(McpPeer::Http(Box::new(peer)));
        };
        let not_started = |why: String| McpFault::NotStarted(why);
        let texts = sent_texts(&server.env).map_err(not_started)?;
        let keys: Vec<String> = texts.iter().flat_map(|(_, text)| text.secrets().to_vec()).collect();
        self.vault.freshen(&keys).await.map_err(not_started)?;
        let env = self.environment(server)?;
        let program = ServerProgram { program, args: &server.args, cwd: server.cwd.as_deref(), env };
        let process = ServerProcess::start(program, &self.allow.commands, &self.root).await;
        let (process, streams) = process.map_err(|fault| not_started(format!("{}: {}", fault.class, fault.detail)))?;
        let peer = StdioPeer::new(process, streams);
        *started.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer.seen());
        Ok(McpPeer::Stdio(peer))
    }

    /// What a server gets beside the variables that each has.
    fn environment(&self, server: &McpServer) -> Result<BTreeMap<String, String>, McpFault> {
        let texts = sent_texts(&server.env).map_err(McpFault::NotStarted)?;
        let secrets: &dyn Secrets = &*self.vault;
        let scope = no_values(secrets);
        let rendered = |(name, text): (String, loopctl_lang::program::template::Template)| {
            let text = text.render(&scope).map_err(|why| McpFault::NotStarted(why.why))?;
            Ok((name, text))
        };
        texts.into_iter().map(rendered).collect()
    }

    /// Begins to speak to a server, in its time: in the revision that is locked, or in that which it is found to speak.
    ///
    /// # Errors
    /// When it can't be started, does not speak the revision, or lists no tools.
    pub(super) async fn begin(
        &self,
        server: &McpServer,
        protocol: Option<McpProtocol>,
    ) -> Result<McpSession, McpFault> {
        let limit = Duration::from_millis(server.start_ms());
        let started = StartedPeer::default();
        let connected = tokio::time::timeout(limit, async {
            match protocol {
                Some(protocol) => self.connect(server, protocol, &started).await,
                None => self.find_out(server, &started).await,
            }
        });
        connected.await.unwrap_or_else(|_| Err(started.late(limit)))
    }

    /// Speaks to a server in a revision, and has it list its tools.
    async fn connect(
        &self,
        server: &McpServer,
        protocol: McpProtocol,
        started: &StartedPeer,
    ) -> Result<McpSession, McpFault> {
        let peer = self.peer(server, started).await?;
        let began = peer.begin(protocol).await;
        let (spoken, facts) = began.map_err(of_start)?;
        if spoken != protocol {
            let how = format!("it speaks {} and not {}", spoken.word(), protocol.word());
            return Err(McpFault::Changed(how));
        }
        McpSession::listed(peer, spoken, None, facts).await
    }

    /// The same for a server that is not known yet: the shape of its answer to `server/discover` says how it is spoken to, because
    /// some name a revision and speak another.
    async fn find_out(&self, server: &McpServer, started: &StartedPeer) -> Result<McpSession, McpFault> {
        if let Some(protocol) = server.protocol {
            return self.connect(server, protocol, started).await;
        }
        let mut note = None;
        let peer = self.peer(server, started).await?;
        match peer.probe(Duration::from_millis(server.start_ms() / SHARE_OF_PROBE)).await {
            Probed::Newest(protocol, facts) => {
                peer.speaks(protocol);
                match McpSession::listed(peer, protocol, None, facts).await {
                    Ok(session) => return Ok(session),
                    // It said so, and does not do it.
                    Err(why) => {
                        let (why, _) = why.words("", false);
                        note = Some(format!(
                            "it names {} and does not speak it ({})",
                            protocol.word(),
                            why.trim_start_matches("server : ")
                        ));
                    }
                }
            }
            Probed::Silent => note = Some("it does not answer `server/discover`".to_owned()),
            Probed::Older => {}
        }
        // A server that was asked what it does not know may be in any state.
        let peer = self.peer(server, started).await?;
        let began = peer.begin(McpProtocol::November2025).await;
        let (protocol, facts) = began.map_err(of_start)?;
        McpSession::listed(peer, protocol, note, facts).await
    }
}

/// What a server made of a question that only the newest ones know.
enum Probed {
    Newest(McpProtocol, ServerFacts),
    Older,
    Silent,
}

impl McpPeer {
    async fn probe(&self, at_most: Duration) -> Probed {
        let newest = McpProtocol::July2026;
        self.speaks(newest);
        let (sent, params) = (AtomicBool::new(false), era::params(newest, Map::new()));
        let mirrored = MirroredHeaders::default();
        let mut asked_again = false;
        loop {
            let asked = self.ask("server/discover", &params, &mirrored, &sent);
            return match tokio::time::timeout(at_most, asked).await {
                Ok(Ok(result)) => {
                    era::discovered(&result).map_or(Probed::Older, |(protocol, facts)| Probed::Newest(protocol, facts))
                }
                // A newer server may want another revision, and names those that it speaks.
                Ok(Err(Unanswered { why: McpFault::Refused(error), .. })) if era::supports(&error.data, newest) => {
                    if std::mem::replace(&mut asked_again, true) {
                        Probed::Newest(newest, ServerFacts::default())
                    } else {
                        continue;
                    }
                }
                Ok(Err(_)) => Probed::Older,
                Err(_) => Probed::Silent,
            };
        }
    }

    /// Begins in a revision. Returns the one that is spoken.
    async fn begin(&self, protocol: McpProtocol) -> Result<(McpProtocol, ServerFacts), McpFault> {
        if protocol.is_modern() {
            self.speaks(protocol);
            return Ok((protocol, ServerFacts::default()));
        }
        let sent = AtomicBool::new(false);
        let asked = self.ask("initialize", &era::initialize(protocol), &MirroredHeaders::default(), &sent).await;
        let (spoken, facts) = era::initialized(&asked.map_err(|unanswered| unanswered.why)?)?;
        self.speaks(spoken);
        self.notify("notifications/initialized", &json!({})).await;
        Ok((spoken, facts))
    }

    fn speaks(&self, protocol: McpProtocol) {
        if let Self::Http(peer) = self {
            peer.speaks(protocol);
        }
    }

    async fn ask(
        &self,
        method: &str,
        params: &Value,
        mirrored: &MirroredHeaders,
        sent: &AtomicBool,
    ) -> Result<Value, Unanswered> {
        match self {
            Self::Stdio(peer) => peer.ask(method, params, sent).await,
            Self::Http(peer) => peer.ask(method, params, mirrored, sent).await,
        }
    }

    async fn notify(&self, method: &str, params: &Value) {
        match self {
            Self::Stdio(peer) => peer.notify(method, params).await,
            Self::Http(peer) => peer.send(frame::notification(method, params)).await,
        }
    }
}

/// A server that ended at its start could not be started.
fn of_start(why: McpFault) -> McpFault {
    match why {
        McpFault::Ended(how) => McpFault::NotStarted(how),
        other => other,
    }
}

/// What a call says beside the name and the input, and who hears of it.
pub(super) struct CallExtras<'c> {
    /// More of the request.
    pub params: &'c Map<String, Value>,
    /// Takes reports of how far the call is; without it the server is asked for none.
    pub hears: Option<&'c (dyn Fn(&Value) + Sync)>,
}

impl McpSession {
    async fn listed(
        peer: McpPeer,
        protocol: McpProtocol,
        protocol_note: Option<String>,
        facts: ServerFacts,
    ) -> Result<Self, McpFault> {
        let session = Self { peer, protocol, protocol_note, facts, list: RwLock::default() };
        let listed = session.list_tools().await;
        let list = listed.map_err(of_start)?;
        *session.list.write().await = list;
        Ok(session)
    }

    async fn list_tools(&self) -> Result<ToolList, McpFault> {
        let (mut list, mut cursor) = (ToolList::default(), None);
        loop {
            let mut params = Map::new();
            if let Some(cursor) = cursor {
                params.insert("cursor".to_owned(), Value::String(cursor));
            }
            let (sent, params) = (AtomicBool::new(false), era::params(self.protocol, params));
            let page = self.peer.ask("tools/list", &params, &MirroredHeaders::default(), &sent).await;
            cursor = list.take(&page.map_err(|unanswered| unanswered.why)?, self.protocol)?;
            if cursor.is_none() {
                if self.protocol.is_modern() && matches!(self.peer, McpPeer::Http(_)) {
                    list.leave_out_unmirrored();
                }
                for why in &list.left_out {
                    tracing::warn!("a tool of an MCP server is left out: {why}");
                }
                return Ok(list);
            }
        }
    }

    /// The tool as the server has it now. A list that has changed is read again.
    ///
    /// # Errors
    /// When it can't be read.
    pub(super) async fn tool_now(&self, name: &str) -> Result<Option<LockedTool>, McpFault> {
        let has_changed = match &self.peer {
            McpPeer::Stdio(peer) => peer.take_change(),
            McpPeer::Http(peer) => peer.take_change(),
        };
        if has_changed {
            let list = self.list_tools().await?;
            *self.list.write().await = list;
        }
        Ok(self.list.read().await.tools.get(name).cloned())
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) async fn call(
        &self,
        name: &str,
        input: &Value,
        more: &CallExtras<'_>,
        mirrored: &MirroredHeaders,
        sent: &AtomicBool,
    ) -> Result<Value, Unanswered> {
        let mut params = more.params.clone();
        params.insert("name".to_owned(), Value::from(name));
        params.insert("arguments".to_owned(), input.clone());
        let mut params = era::params(self.protocol, params);
        let Some(hears) = more.hears else { return self.peer.ask("tools/call", &params, mirrored, sent).await };
        let board = match &self.peer {
            McpPeer::Stdio(peer) => peer.progress(),
            McpPeer::Http(peer) => peer.progress(),
        };
        let mut reports = board.register();
        if let Some(members) = params.as_object_mut() {
            let meta = members.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert("progressToken".to_owned(), Value::from(reports.token));
            }
        }
        let mut heard = 0_usize;
        let asked = self.peer.ask("tools/call", &params, mirrored, sent);
        tokio::pin!(asked);
        loop {
            tokio::select! {
                biased;
                answer = &mut asked => {
                    // Those that came before the answer, and with it.
                    while let Some(report) = reports.waiting().filter(|_| heard < MAX_REPORTS) {
                        heard = heard.saturating_add(1);
                        hears(&report);
                    }
                    return answer;
                }
                Some(report) = reports.next(), if heard < MAX_REPORTS => {
                    heard = heard.saturating_add(1);
                    hears(&report);
                }
            }
        }
    }

    /// Whether it answers no more.
    pub(super) fn has_ended(&self) -> bool {
        match &self.peer {
            McpPeer::Stdio(peer) => peer.has_ended(),
            McpPeer::Http(peer) => peer.is_gone(),
        }
    }

    /// What it has said up to now.
    pub(super) fn mark(&self) -> ServerMark {
        match &self.peer {
            McpPeer::Stdio(peer) => peer.mark(),
            McpPeer::Http(_) => ServerMark::default(),
        }
    }

    /// What it wrote since a mark that is no message.
    pub(super) fn noise_since(&self, mark: ServerMark) -> Option<String> {
        match &self.peer {
            McpPeer::Stdio(peer) => peer.seen().noise_since(mark),
            McpPeer::Http(_) => None,
        }
    }

    /// A call that began at a mark is given up: why.
    pub(super) fn late(&self, since: ServerMark, after: Duration) -> McpFault {
        if let McpPeer::Stdio(peer) = &self.peer {
            peer.is_late(since);
        }
        McpFault::Late { after: seconds(after), noise: self.noise_since(since) }
    }
}
