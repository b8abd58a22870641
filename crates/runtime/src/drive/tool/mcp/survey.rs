//! Servers outside of runs: what they say, for who pins, compares and tries their tools.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};

use super::fault::{McpFault, Unanswered};
use super::oauth::AccessTokens;
use super::session::{CallExtras, McpReach, McpSession};
use super::stdio::ServerMark;
use super::{DriftClass, compare_tools, http, is_stricter, result};
use crate::drive::egress::Egress;
use crate::drive::secret::Vault;
use crate::drive::tool::command::AllowedPrograms;
use loopctl_engine::event::{MAY_HAVE_HAPPENED, ToolFault};
use loopctl_lang::language::Project;
use loopctl_lang::language::mcp::{LockedServer, LockedTool, McpProtocol, McpServer, OnDrift};
use loopctl_lang::program::mcp::ServedTool;

/// The servers of a project.
pub struct McpServers {
    project: Arc<Project>,
    reach: McpReach,
}

/// What a server says.
#[derive(Debug)]
pub struct SurveyedServer {
    /// What is locked of it.
    pub server: LockedServer,
    /// What was left out of its list, and why.
    pub left_out: Vec<String>,
    /// What it wrote that is no message.
    pub noise: Option<String>,
}

impl McpServers {
    /// The servers of a project in its folder.
    pub fn new(project: &Arc<Project>, root: &Path) -> Self {
        let programs = AllowedPrograms::new(&project.allow.commands, root);
        let vault = Arc::new(Vault::new(project.orgconfig.clone(), root).with_programs(Arc::new(programs)));
        let (allow, egress) = (project.allow.clone(), Egress::new(&project.allow));
        let reach = McpReach { allow, root: root.into(), vault, egress, tokens: AccessTokens::default() };
        Self { project: Arc::clone(project), reach }
    }

    /// Asks a server what tools it has. `protocol`: the revision that it is spoken to in, where it is known.
    ///
    /// # Errors
    /// Why it does not say it: for people, and what the operator reads beside it.
    pub async fn survey(&self, name: &str, protocol: Option<McpProtocol>) -> Result<SurveyedServer, ToolFault> {
        let server = self.server(name)?;
        let session = self.session(name, server, protocol).await?;
        let list = session.list.read().await;
        let surveyed = LockedServer {
            connection: server.connection(),
            name: session.facts.name.clone(),
            version: session.facts.version.clone(),
            protocol: session.protocol,
            protocol_note: session.protocol_note.clone(),
            instructions: session.facts.instructions.clone(),
            tools: list.tools.clone(),
        };
        let vault = &self.reach.vault;
        vault.find_all();
        if let Some(place) = self.secret_in(&surveyed) {
            let detail = format!("at {place}: the file would keep it, and models would read it");
            return Err(ToolFault::new(format!("server {name}: what it says of itself holds a secret"), detail));
        }
        let left_out = list.left_out.iter().map(|why| vault.scrub_cut(why.clone())).collect();
        Ok(SurveyedServer {
            server: surveyed,
            left_out,
            noise: session.noise_since(ServerMark::default()).map(|noise| vault.scrub_cut(noise)),
        })
    }

    /// Where the texts of a server hold a secret. How it is reached is the project's, and names secrets only.
    fn secret_in(&self, server: &LockedServer) -> Option<String> {
        let LockedServer { connection: _, name, version, protocol: _, protocol_note, instructions, tools } = server;
        let vault = &self.reach.vault;
        let holds = |text: &str| vault.scrub(text.to_owned()) != text;
        let texts = [("name", name), ("version", version), ("protocol", protocol_note), ("instructions", instructions)];
        let text = texts.into_iter().find(|(_, text)| text.as_deref().is_some_and(holds)).map(|(at, _)| at.to_owned());
        let is_secret = |tool: &LockedTool| {
            // What can't be looked at is not kept.
            serde_json::to_value(tool).map_or(true, |value| vault.scrub_value(value.clone()) != value)
        };
        text.or_else(|| {
            let (name, _) = tools.iter().find(|(name, tool)| holds(name) || is_secret(tool))?;
            Some(format!("the tool {}", vault.scrub(name.clone())))
        })
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// Why it failed, with what the server answered.
    pub async fn call(&self, name: &str, tool: &str, input: &Value, locked: &LockedServer) -> Result<Value, ToolFault> {
        let server = self.server(name)?;
        let session = self.session(name, server, Some(locked.protocol)).await?;
        let known = locked.tools.get(tool);
        let headers = known
            .map(|tool| &tool.input_schema)
            .and_then(|schema| ServedTool::headers_of(schema).ok())
            .unwrap_or_default();
        let (sent, mirrored) = (AtomicBool::new(false), http::mirrored(tool, &headers, input));
        let mark = session.mark();
        let limit = Duration::from_millis(server.call_ms());
        let called = tokio::time::timeout(limit, async {
            let now = session.tool_now(tool).await.map_err(Unanswered::unsent)?;
            if let Some(known) = known.filter(|_| server.on_drift == OnDrift::Refuse) {
                refuse_changed(known, now.as_ref(), server.trust_annotations).map_err(Unanswered::unsent)?;
            }
            session.call(tool, input, &CallExtras { params: &Map::new(), hears: None }, &mirrored, &sent).await
        });
        let answer = called.await.unwrap_or_else(|_| {
            let was_sent = sent.load(Ordering::SeqCst);
            Err(Unanswered { why: session.late(mark, limit), was_sent })
        });
        let read = answer.map_err(|unanswered| unanswered.raw(name));
        let read =
            read.and_then(|answer| result::read(name, tool, result::ResultForm::All { is_step: false }, &answer));
        read.map(|value| self.reach.vault.scrub_value(value)).map_err(|raw| {
            let answer = raw.answer.map(|answer| answer.to_string()).unwrap_or_default();
            let mut fault = ToolFault { answer, ..raw.fault };
            if raw.is_uncertain {
                fault.class.push_str(MAY_HAVE_HAPPENED);
            }
            self.scrubbed(fault)
        })
    }

    fn server(&self, name: &str) -> Result<&McpServer, ToolFault> {
        let found = self.project.mcp.get(name);
        found.ok_or_else(|| ToolFault::new(format!("loopctl.json names no MCP server `{name}`"), ""))
    }

    async fn session(
        &self,
        name: &str,
        server: &McpServer,
        protocol: Option<McpProtocol>,
    ) -> Result<McpSession, ToolFault> {
        self.reach.begin(server, protocol).await.map_err(|why| {
            let (class, detail) = why.words(name, false);
            self.scrubbed(ToolFault::new(class, detail))
        })
    }

    fn scrubbed(&self, fault: ToolFault) -> ToolFault {
        let vault = &self.reach.vault;
        let (class, detail) = (vault.scrub(fault.class), vault.scrub_cut(fault.detail));
        ToolFault { class, detail, answer: vault.scrub_cut(fault.answer) }
    }
}

/// Refuses a call by a schema that is not the server's any more, and of a tool that may do more than the pinned one.
fn refuse_changed(locked: &LockedTool, now: Option<&LockedTool>, trusts: bool) -> Result<(), McpFault> {
    let drift = compare_tools(locked, now);
    if !drift.iter().any(|class| class.stops_calls()) && !now.is_some_and(|now| is_stricter(locked, now, trusts)) {
        return Ok(());
    }
    Err(McpFault::Changed(drift.into_iter().map(DriftClass::word).collect::<Vec<_>>().join(", ")))
}
