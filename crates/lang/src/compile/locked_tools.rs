//! What the tools of MCP servers are: the lock file beside the project file, or what the journal of a run kept of it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Source};
use crate::language::mcp::{LockedTool, McpLock, McpProtocol};
use crate::syntax::token;

/// What the names of texts have in common that a journal keeps of a lock file.
const RECORDED: &str = "mcp.lock.json#";

/// What is known of the tools of MCP servers.
#[derive(Debug, Clone, Default)]
pub enum LockedTools {
    /// Nothing: there is no lock file.
    #[default]
    Absent,
    /// The lock file can't be read.
    Unread(Box<Diagnostic>),
    /// The lock file.
    File(Arc<LockFile>),
    /// The tools that the documents of a run declared when it began.
    Recorded(Arc<BTreeMap<String, RecordedTools>>),
}

/// The lock file of a project.
#[derive(Debug)]
pub struct LockFile {
    /// Its text.
    pub source: Source,
    read: OnceLock<Result<McpLock, String>>,
}

/// The tools of a server that a journal keeps.
#[derive(Debug, Clone)]
pub struct RecordedTools {
    /// The revision of the protocol that the server is spoken to in.
    pub protocol: McpProtocol,
    /// The tools by name.
    pub tools: BTreeMap<String, LockedTool>,
}

/// The text of one locked tool, as a journal keeps it.
#[derive(Serialize, Deserialize)]
struct ToolText {
    mcp_server: String,
    mcp_tool: String,
    protocol: McpProtocol,
    locked: LockedTool,
}

impl LockFile {
    /// The file of a text.
    pub fn new(source: Source) -> Self {
        Self { source, read: OnceLock::new() }
    }

    /// What it says.
    ///
    /// # Errors
    /// Why it can't be read, in a sentence without a final stop.
    pub fn lock(&self) -> Result<&McpLock, &str> {
        let read = || {
            let lock: McpLock = serde_json::from_str(&self.source.text).map_err(|error| error.to_string())?;
            match lock.version {
                McpLock::VERSION => Ok(lock),
                other => Err(format!("it has the form {other}, and this version reads {}", McpLock::VERSION)),
            }
        };
        self.read.get_or_init(read).as_ref().map_err(String::as_str)
    }
}

impl LockedTools {
    /// Takes what is of locked tools out of the texts of a journal.
    pub fn recorded(sources: &mut Vec<Source>) -> Self {
        let texts: Vec<Source> = sources.extract_if(.., |source| source.name.starts_with(RECORDED)).collect();
        let mut servers: BTreeMap<String, RecordedTools> = BTreeMap::new();
        for text in &texts {
            let Ok(ToolText { mcp_server, mcp_tool, protocol, locked }) = serde_json::from_str(&text.text) else {
                continue;
            };
            let server = servers.entry(mcp_server);
            server.or_insert(RecordedTools { protocol, tools: BTreeMap::new() }).tools.insert(mcp_tool, locked);
        }
        if texts.is_empty() { Self::Absent } else { Self::Recorded(Arc::new(servers)) }
    }

    /// Its text, where a diagnostic may refer to it.
    pub fn source(&self) -> Option<&Source> {
        match self {
            Self::File(file) => Some(&file.source),
            Self::Absent | Self::Unread(_) | Self::Recorded(_) => None,
        }
    }
}

/// The text of a locked tool, as a journal keeps it. What else the lock file says is not in it: another tool's change must not
/// stop a run.
pub(super) fn tool_text(server: &str, name: &str, protocol: McpProtocol, locked: &LockedTool) -> Option<Source> {
    let (mcp_server, mcp_tool, locked) = (server.to_owned(), name.to_owned(), locked.clone());
    let text = serde_json::to_string(&ToolText { mcp_server, mcp_tool, protocol, locked }).ok()?;
    // No two tools have one name, whatever signs theirs have.
    Some(Source::new(format!("{RECORDED}{}/{}", token(server), token(name)), text))
}
