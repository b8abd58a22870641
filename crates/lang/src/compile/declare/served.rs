//! The tools of an MCP server: what a declaration names, with what the lock file and the project say of it. No server is asked.

pub(super) mod of_step;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{Declare, MAX_TOOLS};
use crate::compile::effort;
use crate::compile::locked_tools::{LockFile, LockedTools, McpToolTerms, RecordedTool, RecordedTools, tool_text};
use crate::compile::names;
use crate::compile::tool::{self, served::ServedDeclaration};
use crate::diagnostic::{Diagnostic, Nearest, codes, few_of_many};
use crate::language::mcp::{LockedServer, LockedTool, McpConnection, McpLock, McpProtocol, McpServer};
use crate::language::tool::McpTool;
use crate::policy::name_pattern::{is_pattern, matches_pattern};
use crate::syntax::document::DocumentKind;
use crate::syntax::{quoted, value_at};

/// The tools of a server: those of its lock, under what the project says, or those that a run began with.
struct KnownServer<'t> {
    protocol: McpProtocol,
    tools: BTreeMap<&'t str, KnownTool<'t>>,
    /// Whether a run began with them: then nothing else counts.
    is_recorded: bool,
}

/// A tool of a server, and what the project says of it.
struct KnownTool<'t> {
    locked: &'t LockedTool,
    terms: Cow<'t, McpToolTerms>,
}

/// A tool that a declaration names.
struct NamedTool<'n> {
    /// By the name that the server has for it.
    name: &'n str,
    /// Its place in the document.
    at: String,
    /// Whether it is written out: one of all the others is left out when it can't be used.
    is_written: bool,
}

/// A warning about a tool of a server.
struct ServedNote {
    code: &'static str,
    at: String,
    message: String,
    help: String,
}

/// How many warnings of one kind at one place are written out.
const MAX_SAID: usize = 5;

impl ServedNote {
    fn new(code: &'static str, named: &NamedTool<'_>, message: String, help: &str) -> Self {
        Self { code, at: named.at.clone(), message, help: help.to_owned() }
    }
}

impl<'a> Declare<'a> {
    /// Makes the tools of a server that the declaration at `pointer` names.
    pub(super) fn served(&mut self, declaration: &McpTool, pointer: &str) {
        let Some(known) = self.known_server(&declaration.server, &format!("{pointer}/server")) else { return };
        self.description_of_one(declaration, &known, pointer);
        let mut notes = Vec::new();
        for named in self.named_tools(declaration, &known, pointer) {
            if self.tools.len() >= MAX_TOOLS {
                let message = format!("a loop may have at most {MAX_TOOLS} tools; the rest is not looked at");
                self.report_served(codes::TOO_MUCH, message, pointer, "name the tools that the loop needs: `tools`");
                break;
            }
            if let Some(tool) = known.tools.get(named.name) {
                notes.extend(self.one_served(declaration, (known.protocol, tool), &named));
                few_of_many(&mut self.faults);
            }
        }
        self.warn_of(notes);
    }

    /// Reports notes: those of one kind at one place as one fault, with the first of them.
    fn warn_of(&mut self, notes: Vec<ServedNote>) {
        let mut at_place: BTreeMap<(&'static str, String), Vec<ServedNote>> = BTreeMap::new();
        for note in notes {
            at_place.entry((note.code, note.at.clone())).or_default().push(note);
        }
        for ((code, at), notes) in at_place {
            let Some(first) = notes.first() else { continue };
            let said: Vec<&str> = notes.iter().take(MAX_SAID).map(|note| note.message.as_str()).collect();
            let more = notes.len().saturating_sub(said.len());
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let message = format!("{}{more}", said.join("; "));
            let fault = Diagnostic::warning(code, message, at.as_str(), self.main.tree.place(&at));
            self.faults.push(fault.help(first.help.clone()));
        }
    }

    /// The server, by what a run began with or by what the project and its lock file say.
    fn known_server(&mut self, name: &str, at: &str) -> Option<KnownServer<'a>> {
        let texts = self.texts;
        if let LockedTools::Recorded(servers) = &texts.locked {
            return Some(KnownServer::recorded(servers.get(name)));
        }
        if matches!(texts.locked, LockedTools::Withheld) {
            // Nor which servers there are.
            let help = "bring actions along: `actions`";
            let message = "a request may use no MCP server here".to_owned();
            self.report_served(codes::MCP_TOOL, message, at, help);
            return None;
        }
        let server = self.server_of(name, at)?;
        let locked = self.locked_server(name, &server, at, &texts.locked)?;
        Some(KnownServer::pinned(locked, &server))
    }

    /// What the project says of the server.
    fn server_of(&mut self, name: &str, at: &str) -> Option<McpServer> {
        // A project file that can't be read is reported by itself.
        let project = self.project.clone()?;
        if let Some(server) = project.mcp.get(name) {
            return Some(server.clone());
        }
        let message = format!("the project has no MCP server `{name}`");
        let fault = Diagnostic::error(codes::MCP_TOOL, message, at, self.main.tree.place(at));
        let names = || project.mcp.keys().map(String::as_str);
        let entry = serde_json::json!({ "mcp": { name: { "command": "npx", "args": ["-y", "PACKAGE@VERSION"] } } });
        self.faults.push(match Nearest::default().of(name, names()) {
            Some(near) => fault.help(format!("the nearest one is `{near}`")).suggest(quoted(near)),
            None if project.mcp.is_empty() => fault.help(format!("name it in loopctl.json: {entry}")),
            None => fault.help(format!("loopctl.json has: {}", names().take(8).collect::<Vec<_>>().join(", "))),
        });
        None
    }

    fn lock_file<'t>(&mut self, name: &str, at: &str, locks: &'t LockedTools) -> Option<&'t LockFile> {
        match locks {
            LockedTools::Unread(fault) => self.faults.push(Diagnostic::clone(fault)),
            LockedTools::File(file) => return Some(file),
            LockedTools::Absent | LockedTools::Withheld | LockedTools::Recorded(_) => {
                let message = format!("the MCP server `{name}` is not pinned: there is no {}", McpLock::FILE);
                self.report_served(codes::MCP_TOOL, message, at, &pin_help(name));
            }
        }
        None
    }

    fn locked_server<'t>(
        &mut self,
        name: &str,
        server: &McpServer,
        at: &str,
        locks: &'t LockedTools,
    ) -> Option<&'t LockedServer> {
        let help = pin_help(name);
        let file = self.lock_file(name, at, locks)?;
        let lock = match file.lock() {
            Ok(lock) => lock,
            Err(why) => {
                let message = format!("the lock file can't be read: {why}");
                let fault = Diagnostic::error(codes::MCP_TOOL, message, "", file.source.whole());
                self.faults.push(fault.help("`loopctl mcp pin` writes it again"));
                return None;
            }
        };
        let Some(locked) = lock.servers.get(name) else {
            self.report_served(codes::MCP_TOOL, format!("the MCP server `{name}` is not pinned"), at, &help);
            return None;
        };
        let other = differences(&locked.connection, &server.connection());
        let other_protocol = server.protocol.is_some_and(|protocol| protocol != locked.protocol);
        let fields = other.into_iter().chain(other_protocol.then_some("`protocol`")).collect::<Vec<_>>().join(", ");
        if !fields.is_empty() {
            let message =
                format!("the MCP server `{name}` was pinned with other settings than loopctl.json has: {fields}");
            self.report_served(codes::MCP_TOOL, message, at, &help);
            return None;
        }
        Some(locked)
    }

    /// A description is that of one tool.
    fn description_of_one(&mut self, declaration: &McpTool, known: &KnownServer<'_>, pointer: &str) {
        let of_entry = |name: &String| match is_pattern(name) && !known.tools.contains_key(name.as_str()) {
            true => known.tools.keys().filter(|tool| matches_pattern(name, tool)).count(),
            false => 1,
        };
        let count = declaration.tools.as_ref().map_or(known.tools.len(), |names| names.iter().map(of_entry).sum());
        if declaration.description.is_some() && count != 1 {
            let message = format!("a `description` is that of one tool, and this declaration has {count}");
            let help = format!("write it in loopctl.json, under `mcp.{}.tools`", declaration.server);
            self.report_served(codes::MCP_TOOL, message, &format!("{pointer}/description"), &help);
        }
    }

    /// The tools that a declaration names, without those that are not there: they are reported.
    fn named_tools<'n>(
        &mut self,
        declaration: &'n McpTool,
        server: &KnownServer<'n>,
        pointer: &str,
    ) -> Vec<NamedTool<'n>> {
        let Some(written) = &declaration.tools else {
            let all = server.tools.keys().copied();
            return all.map(|name| NamedTool { name, at: format!("{pointer}/server"), is_written: false }).collect();
        };
        let (mut named, mut known) = (Vec::new(), BTreeSet::new());
        let mut nearest = Nearest::default();
        for (index, name) in written.iter().enumerate().take(MAX_TOOLS) {
            let at = format!("{pointer}/tools/{index}");
            if is_pattern(name) && !server.tools.contains_key(name.as_str()) {
                let matching = server.tools.keys().copied().filter(|tool| matches_pattern(name, tool));
                let before = named.len();
                named.extend(matching.map(|name| NamedTool { name, at: at.clone(), is_written: false }));
                if named.len() == before && !server.is_recorded {
                    let message =
                        format!("no tool of the MCP server `{}` has a name like `{name}`", declaration.server);
                    let help = format!("`loopctl mcp list {}` shows those that it has", declaration.server);
                    self.report_served(codes::MCP_TOOL, message, &at, &help);
                }
            } else if !known.insert(name) {
                let message = format!("`{name}` stands here twice");
                self.report_served(codes::DUPLICATE_TOOL, message, &at, "keep one of the two");
            } else if server.tools.contains_key(name.as_str()) {
                named.push(NamedTool { name, at, is_written: true });
            } else if !server.is_recorded {
                // One that a run began without was left out.
                let message = format!("the MCP server `{}` has no tool `{name}`, as it was pinned", declaration.server);
                let fault = Diagnostic::error(codes::MCP_TOOL, message, at.as_str(), self.main.tree.place(&at));
                self.faults.push(match nearest.of(name, server.tools.keys().copied()) {
                    Some(near) => fault.help(format!("the nearest name is `{near}`")).suggest(quoted(near)),
                    None => fault.help(format!("`loopctl mcp list {}` shows those that it has", declaration.server)),
                });
            }
        }
        // One that is written out, or that another pattern has named, is declared once.
        let written: BTreeSet<&str> = named.iter().filter(|tool| tool.is_written).map(|tool| tool.name).collect();
        let mut once = BTreeSet::new();
        named.retain(|tool| tool.is_written || !written.contains(tool.name) && once.insert(tool.name));
        named
    }

    fn one_served(
        &mut self,
        declaration: &McpTool,
        known: (McpProtocol, &KnownTool<'_>),
        named: &NamedTool<'_>,
    ) -> Vec<ServedNote> {
        let (protocol, KnownTool { locked, terms }) = known;
        let own = terms.settings.as_ref().and_then(|settings| settings.name.as_deref()).unwrap_or(named.name);
        let name = format!("{}.{own}", declaration.server);
        if let Some(why) = names::fault_of(&name) {
            let message = format!("the model can't see this tool as {}: {why}", quoted(&name));
            let help = format!(
                "give it another name in loopctl.json: {}",
                serde_json::json!({ "mcp": { &declaration.server: { "tools": { named.name: { "name": "NAME" } } } } })
            );
            return self.unfit(codes::BAD_NAME, &message, named, &help);
        }
        if self.is_twice(&name, &named.at) {
            return Vec::new();
        }
        if !self.effort.spend(effort::weight(&locked.input_schema)) {
            self.faults.extend(self.effort.too_much(&self.main.tree.source));
            return Vec::new();
        }
        let of_entry = || named.at.rsplit_once("/tools/").map(|(pointer, _)| pointer);
        let pointer = named.at.strip_suffix("/server").or_else(of_entry).unwrap_or_default();
        let says_approval =
            value_at(&self.main.value, pointer).is_some_and(|written| written.get("requires_approval").is_some());
        let described = ServedDeclaration {
            declaration,
            name,
            own_name: named.name,
            terms,
            protocol,
            locked,
            says_approval,
            is_request: self.main.kind == Some(DocumentKind::AgentRequest),
            is_step: false,
        };
        let note = |code, message: String, help: &str| ServedNote::new(code, named, message, help);
        match tool::served::made(&described, self.properties) {
            Ok((tool, parts)) => {
                self.tools.push(tool);
                self.record(&declaration.server, named.name, (protocol, known.1));
                let is_partial = !parts.is_empty();
                let held = format!("the schema of `{}` is not held whole: {}", named.name, parts.join("; "));
                let held = note(codes::LEFT_OUT_TOOL, held, "the part is left out here, and the server judges it");
                let destroys = format!("`{}` says that it may destroy things: each call waits for a human", named.name);
                let is_alone = named.is_written && declaration.tools.as_ref().is_some_and(|tools| tools.len() < 2);
                let help = if is_alone {
                    "write `requires_approval` here, or in loopctl.json: true to keep it, false to let it be called"
                        .to_owned()
                } else {
                    format!(
                        "write it for this tool in loopctl.json: {}, or false to let it be called; what a declaration says holds for \
                         each tool that it names",
                        serde_json::json!({ "mcp": { &declaration.server: { "tools": { named.name: { "requires_approval": true } } } } })
                    )
                };
                let destroys = note(codes::DESTRUCTIVE_TOOL, destroys, &help);
                let said = [is_partial.then_some(held), described.is_undecided().then_some(destroys)];
                said.into_iter().flatten().collect()
            }
            Err(tool::served::UnfitTool::Schema(why)) => {
                let message = format!("`{}` can't be called, and is left out: {why}", named.name);
                let help =
                    "the schema of its input is the server's: report it there, or name the tools that are needed";
                vec![note(codes::LEFT_OUT_TOOL, message, help)]
            }
            Err(tool::served::UnfitTool::Approval(faults)) => {
                let at = format!("{pointer}/requires_approval");
                self.faults.extend(faults.into_iter().map(|fault| fault.placed(&self.main.tree, &at)));
                Vec::new()
            }
        }
    }

    /// Adds what a tool is, and what the project says of it, to the texts of the program.
    fn record(&mut self, server: &str, name: &str, known: (McpProtocol, &KnownTool<'_>)) {
        let (protocol, KnownTool { locked, terms }) = known;
        let began = RecordedTool { locked: LockedTool::clone(locked), terms: McpToolTerms::clone(terms) };
        self.keep(tool_text(server, name, protocol, began));
    }

    /// A tool that can't be used: an error where it is written out, and left out otherwise.
    fn unfit(&mut self, code: &'static str, message: &str, named: &NamedTool<'_>, help: &str) -> Vec<ServedNote> {
        if named.is_written {
            self.report_served(code, message.to_owned(), &named.at, help);
            return Vec::new();
        }
        let message = format!("`{}` is left out: {message}", named.name);
        vec![ServedNote::new(codes::LEFT_OUT_TOOL, named, message, help)]
    }

    fn report_served(&mut self, code: &'static str, message: String, at: &str, help: &str) {
        let fault = Diagnostic::error(code, message, at, self.main.tree.place(at));
        self.faults.push(fault.help(help.to_owned()));
    }
}

impl<'t> KnownServer<'t> {
    fn recorded(server: Option<&'t RecordedTools>) -> Self {
        let known = |tool: &'t RecordedTool| KnownTool { locked: &tool.locked, terms: Cow::Borrowed(&tool.terms) };
        let tools = server.into_iter().flat_map(|server| &server.tools);
        let tools = tools.map(|(name, tool)| (name.as_str(), known(tool))).collect();
        // A server without a tool is spoken to by nobody.
        let protocol = server.map_or(McpProtocol::July2026, |server| server.protocol);
        Self { protocol, tools, is_recorded: true }
    }

    fn pinned(locked: &'t LockedServer, server: &McpServer) -> Self {
        let known = |name: &str, locked| KnownTool { locked, terms: Cow::Owned(McpToolTerms::of(server, name)) };
        let tools = locked.tools.iter().map(|(name, locked)| (name.as_str(), known(name, locked))).collect();
        Self { protocol: locked.protocol, tools, is_recorded: false }
    }
}

/// How a server is pinned.
fn pin_help(server: &str) -> String {
    format!("`loopctl mcp pin {server}` asks the server, shows what it says, and writes {}", McpLock::FILE)
}

/// The fields in which two connections differ.
fn differences(one: &McpConnection, other: &McpConnection) -> Vec<&'static str> {
    let differs = [
        ("`command`", one.command != other.command),
        ("`args`", one.args != other.args),
        ("`cwd`", one.cwd != other.cwd),
        ("`env`", one.env != other.env),
        ("`url`", one.url != other.url),
        ("`headers`", one.headers != other.headers),
        ("`oauth`", one.oauth != other.oauth),
    ];
    differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}
