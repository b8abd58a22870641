//! Steps whose type is a tool that no action registers: one of an MCP server (`files.read_text_file`), or of the program around
//! the engine.

use super::{Declare, KnownServer, KnownTool};
use crate::compile::effort;
use crate::compile::locked_tools::LockedTools;
use crate::compile::steps::ProvidedStep;
use crate::compile::tool;
use crate::compile::tool::served::{ServedDeclaration, UnfitTool};
use crate::compile::{Texts, ToolSignature};
use crate::diagnostic::{Diagnostic, Nearest, codes};
use crate::language::tool::{ActionTool, McpTool};
use crate::program::Tool;
use crate::syntax::quoted;

/// The most servers that a name is compared with.
const MAX_SERVERS: usize = 200;

/// A tool of a server, as the type of a step names it.
#[derive(Debug, Clone, Copy)]
pub(in crate::compile) struct ServedName<'n> {
    /// The server, by its name in the project.
    pub server: &'n str,
    /// The tool, by the name that models see after the server's.
    pub tool: &'n str,
}

/// A tool that no action registers, as the type of a step names it.
#[derive(Debug, Clone, Copy)]
pub(in crate::compile) enum ProvidedTool<'n> {
    /// One of a server.
    Served(ServedName<'n>),
    /// One of the program around the engine.
    Embedded(&'n ToolSignature),
}

impl ProvidedTool<'_> {
    /// What it is a tool of, in a sentence.
    pub(in crate::compile::declare) fn of(self) -> &'static str {
        match self {
            Self::Served(_) => "an MCP server",
            Self::Embedded(_) => "the program around the engine",
        }
    }
}

/// What a step says of its call.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::compile) struct StepTerms {
    /// How long it may take, in milliseconds.
    pub timeout_ms: Option<u64>,
}

impl<'a> Declare<'a> {
    /// The tool of a server, or of the program, that the type of a step names; none where it names no server that there is. A
    /// registered action of this name comes first.
    pub(in crate::compile) fn provided<'n>(&self, kind: &'n str) -> Option<ProvidedTool<'n>>
    where
        'a: 'n,
    {
        if !self.catalog.find(kind).is_empty() {
            return None;
        }
        let texts: &'a Texts = self.texts;
        let embedded = || texts.embedded_tool(kind).map(ProvidedTool::Embedded);
        self.served_name(kind).map(ProvidedTool::Served).or_else(embedded)
    }

    fn served_name<'n>(&self, kind: &'n str) -> Option<ServedName<'n>> {
        if !kind.contains('.') {
            return None;
        }
        let is_server = |name: &str| match &self.texts.locked {
            LockedTools::Recorded(servers) => servers.contains_key(name),
            LockedTools::Withheld => false,
            LockedTools::Absent | LockedTools::Unread(_) | LockedTools::File(_) => {
                self.project.as_ref().is_some_and(|project| project.mcp.contains_key(name))
            }
        };
        // The name of a server may have a point itself: the longest one is meant.
        kind.rmatch_indices('.').find_map(|(at, _)| {
            let (server, tool) = (kind.get(..at)?, kind.get(at.saturating_add(1)..)?);
            is_server(server).then_some(ServedName { server, tool })
        })
    }

    /// What is known of a step whose type is such a tool. What is wrong with it is reported at `at`.
    pub(in crate::compile) fn provided_step(&mut self, tool: ProvidedTool<'_>, at: &str) -> Option<ProvidedStep> {
        match tool {
            ProvidedTool::Served(name) => self.served_step(name, at),
            ProvidedTool::Embedded(signature) => self.embedded_step(signature, at),
        }
    }

    fn embedded_step(&mut self, signature: &ToolSignature, at: &str) -> Option<ProvidedStep> {
        if !self.effort.spend(effort::weight(&signature.parameters)) {
            self.faults.extend(self.effort.too_much(&self.main.tree.source));
            return None;
        }
        match tool::embedded(signature, &declared(signature, StepTerms::default()), self.properties) {
            Ok(tool) => {
                self.keep(signature.text());
                Some(ProvidedStep::of(&tool, &signature.name, None))
            }
            Err(faults) => {
                self.unfit_embedded(signature, faults, at);
                None
            }
        }
    }

    fn served_step(&mut self, name: ServedName<'_>, at: &str) -> Option<ProvidedStep> {
        let known = self.known_server(name.server, at)?;
        let Some((own_name, known_tool)) = known.seen(name.tool) else {
            self.unknown_served(name, &known, at);
            return None;
        };
        if !self.effort.spend(effort::weight(&known_tool.locked.input_schema)) {
            self.faults.extend(self.effort.too_much(&self.main.tree.source));
            return None;
        }
        let declaration = McpTool { server: name.server.to_owned(), ..McpTool::default() };
        let described = describe(&declaration, name, own_name, &known, known_tool);
        let is_undecided = described.is_undecided();
        match tool::served::made(&described, self.properties) {
            Ok((tool, parts)) => {
                self.record(name.server, own_name, (known.protocol, known_tool));
                let mut warn = |code, message: String, help: String| {
                    let fault = Diagnostic::warning(code, message, at, self.main.tree.place(at));
                    self.faults.push(fault.help(help));
                };
                if !parts.is_empty() {
                    let message = format!("the schema of `{}` is not held whole: {}", name.tool, parts.join("; "));
                    warn(codes::LEFT_OUT_TOOL, message, "the server judges the part that is left out".to_owned());
                }
                if is_undecided {
                    let message =
                        format!("`{}` says that it may destroy things: each call waits for a human", name.tool);
                    let entry = serde_json::json!({ "mcp": { name.server: { "tools": { own_name: { "requires_approval": false } } } } });
                    let help = format!("say in loopctl.json who approves it: {entry}, or true to keep it");
                    warn(codes::DESTRUCTIVE_TOOL, message, help);
                }
                Some(ProvidedStep::of(&tool, name.tool, known_tool.locked.output_schema.as_ref()))
            }
            Err(why) => {
                let why = match why {
                    UnfitTool::Schema(why) => why,
                    UnfitTool::Approval(faults) => {
                        faults.into_iter().map(|fault| fault.message).collect::<Vec<_>>().join("; ")
                    }
                };
                let message =
                    format!("the tool `{}` of the MCP server `{}` can't be called: {why}", name.tool, name.server);
                let help = "the schema of its input is the server's: report it there, or call another tool";
                self.report_served(codes::MCP_TOOL, message, at, help);
                None
            }
        }
    }

    /// The tool that a step calls. The walk through the steps has reported what is wrong.
    pub(in crate::compile) fn tool_of_step(&mut self, tool: ProvidedTool<'_>, terms: StepTerms) -> Option<Tool> {
        let name = match tool {
            ProvidedTool::Embedded(signature) => {
                return tool::embedded(signature, &declared(signature, terms), self.properties).ok();
            }
            ProvidedTool::Served(name) => name,
        };
        let known = self.known_server(name.server, "")?;
        let (own_name, known_tool) = known.seen(name.tool)?;
        let declaration =
            McpTool { server: name.server.to_owned(), timeout_ms: terms.timeout_ms, ..McpTool::default() };
        let described = describe(&declaration, name, own_name, &known, known_tool);
        tool::served::made(&described, self.properties).ok().map(|(tool, _)| tool)
    }

    fn unknown_served(&mut self, name: ServedName<'_>, known: &KnownServer<'_>, at: &str) {
        let ServedName { server, tool } = name;
        let message = format!("the MCP server `{server}` has no tool `{tool}`, as it was pinned");
        let fault = Diagnostic::error(codes::MCP_TOOL, message, at, self.main.tree.place(at));
        // A tool may be called otherwise here than by its server.
        let renamed = known.tools.get(tool).map(|known| known.seen_as(tool));
        let near = renamed.or_else(|| {
            let names = known.tools.iter().map(|(own, known)| known.seen_as(own));
            Nearest::default().of(tool, names)
        });
        self.faults.push(match near {
            Some(near) => {
                fault.help(format!("the nearest name is `{near}`")).suggest(quoted(&format!("{server}.{near}")))
            }
            None => fault.help(format!(
                "`loopctl mcp list {server}` shows those that it has; `loopctl mcp pin {server}` reads them anew"
            )),
        });
    }

    /// That a step names a tool of a server that there is not, and the name of another server is near.
    pub(in crate::compile::declare) fn is_of_server(&self, kind: &str, at: &str) -> Option<Diagnostic> {
        let (server, tool) = kind.split_once('.').filter(|_| !matches!(self.texts.locked, LockedTools::Withheld))?;
        let names = self.project.as_ref()?.mcp.keys().map(String::as_str);
        let near = Nearest::default().of(server, names.take(MAX_SERVERS))?;
        let message = format!("the project has no MCP server `{server}`");
        let fault = Diagnostic::error(codes::MCP_TOOL, message, at, self.main.tree.place(at));
        Some(fault.help(format!("the nearest one is `{near}`")).suggest(quoted(&format!("{near}.{tool}"))))
    }
}

/// What the step says of a tool of the program, as a loop would declare it.
fn declared(signature: &ToolSignature, terms: StepTerms) -> ActionTool {
    ActionTool { name: signature.name.clone(), timeout_ms: terms.timeout_ms, ..ActionTool::default() }
}

fn describe<'d>(
    declaration: &'d McpTool,
    name: ServedName<'_>,
    own_name: &'d str,
    known: &'d KnownServer<'_>,
    tool: &'d KnownTool<'_>,
) -> ServedDeclaration<'d> {
    ServedDeclaration {
        declaration,
        name: format!("{}.{}", name.server, name.tool),
        own_name,
        terms: &tool.terms,
        protocol: known.protocol,
        locked: tool.locked,
        says_approval: false,
        is_request: false,
        is_step: true,
    }
}

impl<'t> KnownServer<'t> {
    /// The tool that models see by this name, with its own.
    fn seen(&self, name: &str) -> Option<(&'t str, &KnownTool<'t>)> {
        self.tools.iter().find(|(own, tool)| tool.seen_as(own) == name).map(|(own, tool)| (*own, tool))
    }
}

impl KnownTool<'_> {
    /// The name that models see after the server's.
    fn seen_as<'n>(&'n self, own: &'n str) -> &'n str {
        self.terms.settings.as_ref().and_then(|settings| settings.name.as_deref()).unwrap_or(own)
    }
}
