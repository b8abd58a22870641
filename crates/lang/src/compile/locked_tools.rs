//! What the tools of MCP servers are: the lock file beside the project file, or what the journal of a run kept of it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Source};
use crate::language::mcp::{LockedTool, McpLock, McpProtocol, McpServer, McpToolSettings};
use crate::policy::json_text;
use crate::syntax::token;

/// How each text begins that a journal keeps of a tool: no other document has this member.
const RECORDED: &str = "{\"mcp_server\":";

/// What is known of the tools of MCP servers.
#[derive(Debug, Clone, Default)]
pub enum LockedTools {
    /// Nothing: there is no lock file.
    #[default]
    Absent,
    /// Those of the project are not for the document: it came with a request, and brings its own actions.
    Withheld,
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
    pub tools: BTreeMap<String, RecordedTool>,
}

/// A tool that a journal keeps.
#[derive(Debug, Clone)]
pub struct RecordedTool {
    /// What the lock file said of it.
    pub locked: LockedTool,
    /// What the project said of it.
    pub terms: McpToolTerms,
}

/// What a project says of a tool of a server. It decides how calls are made and who approves them, so a run keeps it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct McpToolTerms {
    /// Whether what the server says of the tool may make a call repeatable.
    pub trust_annotations: bool,
    /// How long a call may take, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether it is called over HTTP.
    pub is_http: bool,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<McpToolSettings>,
}

/// The text of one tool, as a journal keeps it.
#[derive(Serialize, Deserialize)]
struct ToolText {
    // The first member: texts are known by it.
    mcp_server: String,
    mcp_tool: String,
    protocol: McpProtocol,
    locked: LockedTool,
    #[serde(default)]
    terms: McpToolTerms,
}

impl McpToolTerms {
    /// What a server's settings are for one of its tools.
    pub(super) fn of(server: &McpServer, tool: &str) -> Self {
        Self {
            trust_annotations: server.trust_annotations,
            timeout_ms: server.timeout_ms,
            is_http: server.url.is_some(),
            settings: server.tools.get(tool).cloned(),
        }
    }
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
            let lock: McpLock = json_text::read(&self.source.text).map_err(|error| error.to_string())?;
            match lock.version {
                McpLock::VERSION => Ok(lock),
                other => Err(format!("it has the form {other}, and this version reads {}", McpLock::VERSION)),
            }
        };
        self.read.get_or_init(read).as_ref().map_err(String::as_str)
    }
}

impl LockedTools {
    /// Takes what is of tools of MCP servers out of the texts of a journal. A run has those that it began with, whatever the
    /// project and its lock file say today.
    pub fn recorded(sources: &mut Vec<Source>) -> Self {
        let texts = sources.extract_if(.., |source| source.text.starts_with(RECORDED));
        let mut servers: BTreeMap<String, RecordedTools> = BTreeMap::new();
        for text in texts {
            let Ok(ToolText { mcp_server, mcp_tool, protocol, locked, terms }) = json_text::read(&text.text) else {
                continue;
            };
            let server = servers.entry(mcp_server).or_insert(RecordedTools { protocol, tools: BTreeMap::new() });
            server.tools.insert(mcp_tool, RecordedTool { locked, terms });
        }
        Self::Recorded(Arc::new(servers))
    }

    /// Its text, where a diagnostic may refer to it.
    pub fn source(&self) -> Option<&Source> {
        match self {
            Self::File(file) => Some(&file.source),
            Self::Absent | Self::Withheld | Self::Unread(_) | Self::Recorded(_) => None,
        }
    }
}

/// The text of a tool, as a journal keeps it. What else the lock file and the project say is not in it: another tool's change
/// must not stop a run.
pub(super) fn tool_text(server: &str, name: &str, protocol: McpProtocol, tool: RecordedTool) -> Option<Source> {
    let RecordedTool { locked, terms } = tool;
    let (mcp_server, mcp_tool) = (server.to_owned(), name.to_owned());
    let text = serde_json::to_string(&ToolText { mcp_server, mcp_tool, protocol, locked, terms }).ok()?;
    // Two files decide it, so it is named after neither. No two tools have one name, whatever signs theirs have.
    Some(Source::new(format!("MCP tool {}/{}", token(server), token(name)), text))
}
