//! An MCP server that can't be reached as it is written, or that would be given what it may not have.

mod oauth;

use std::collections::BTreeMap;

use serde_json::json;

use crate::check::{Cursor, Rule, Subject};
use crate::compile::locked_tools::LockedTools;
use crate::diagnostic::{Diagnostic, Severity, codes, nearest};
use crate::language::Project;
use crate::language::mcp::McpServer;
use crate::policy::host::{AllowedHost, WrittenHost, is_private};
use crate::policy::model_header;
use crate::policy::secret_names::{Secrecy, secrecy};
use crate::policy::secret_shapes;
use crate::program::mcp::sent_texts;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::MCP_SERVER, check };

/// Headers that the protocol has for itself.
const OF_PROTOCOL: [&str; 2] = ["accept", "content-type"];

/// A server, with its place in the project file.
struct WrittenServer<'s, 'a> {
    subject: &'s Subject<'a>,
    project: &'s Project,
    name: &'s str,
    server: &'s McpServer,
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, server) in &project.mcp {
        let written = WrittenServer { subject, project, name, server };
        found.extend(written.kind());
        found.extend(written.program());
        found.extend(server.url.as_deref().and_then(|url| written.address("/url", url)));
        written.folder(found);
        written.texts("env", &server.env, found);
        written.texts("headers", &server.headers, found);
        written.oauth(found);
        written.arguments(found);
        written.tools(found);
    }
}

impl<'a> WrittenServer<'_, 'a> {
    fn at(&self, field: &str) -> Option<Cursor<'a>> {
        self.subject.in_project(&format!("/mcp/{}{field}", token(self.name)))
    }

    /// Whether it is a program or an address, and has only the fields of one.
    fn kind(&self) -> Option<Diagnostic> {
        const HELP: &str = "a program has `command`, an address `url`";
        let McpServer { command, url, args, cwd, env, headers, oauth, .. } = self.server;
        let name = self.name;
        let (message, field) = match (command, url) {
            (None, None) => (format!("the MCP server `{name}` is neither a program nor an address"), ""),
            (Some(_), Some(_)) => (format!("the MCP server `{name}` is a program and an address"), "/url"),
            (Some(_), None) if !headers.is_empty() => {
                (format!("the program of `{name}` is sent no headers"), "/headers")
            }
            (Some(_), None) if oauth.is_some() => (format!("the program of `{name}` is sent no token"), "/oauth"),
            (None, Some(_)) if !args.is_empty() => (format!("`{name}` is an address, and takes no arguments"), "/args"),
            (None, Some(_)) if !env.is_empty() => (format!("`{name}` is an address, and has no environment"), "/env"),
            (None, Some(_)) if cwd.is_some() => (format!("`{name}` is an address, and has no folder"), "/cwd"),
            _ => return None,
        };
        let cursor = self.at(field)?;
        let cursor = if field.is_empty() { cursor } else { cursor.key() };
        Some(cursor.report(&RULE, message).help(HELP))
    }

    fn program(&self) -> Option<Diagnostic> {
        let program = self.server.command.as_deref()?;
        let allowed = &self.project.allow.commands;
        // `npx -y @scope/server`; a path may have spaces.
        let is_line =
            program.trim().split_once(char::is_whitespace).is_some_and(|(first, _)| !first.contains(['/', '\\']));
        if is_line {
            let message = format!("`{program}` is no name of a program: it has a space");
            let mut words = program.split_whitespace();
            let first = words.next().unwrap_or_default();
            let args = json!(words.collect::<Vec<_>>());
            let help =
                format!("write \"command\": {}, and the other words at the start of `args`: {args}", json!(first));
            let fault = self.at("/command")?.report(&RULE, message).help(help);
            // A program may have such a name; one that is not allowed is never started.
            let is_allowed = allowed.iter().any(|entry| entry == program);
            return Some(if is_allowed { Diagnostic { severity: Severity::Warning, ..fault } } else { fault });
        }
        if allowed.iter().any(|entry| entry == program) || !self.subject.knows_project("/allow/commands") {
            return None;
        }
        let message = format!("the project does not allow the program `{program}`");
        let fault = self.at("/command")?.report(&RULE, message);
        Some(match nearest(program, allowed.iter().map(String::as_str)) {
            Some(near) => fault.help(format!("the nearest one that it allows is `{near}`")),
            None => fault.help(format!("say that it may start: {}", json!({ "allow": { "commands": [program] } }))),
        })
    }

    /// An address that requests are sent to.
    fn address(&self, field: &str, url: &str) -> Option<Diagnostic> {
        let cursor = self.at(field)?;
        let fault = |message: String| cursor.report(&RULE, message);
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let host = WrittenHost::of(url).filter(|_| is_web);
        let Some((port, name)) = host.and_then(|host| Some((host.port, host.name()?))) else {
            let fault = fault(format!("{url:?} is no address of a server"));
            return Some(fault.help("write it out: https://mcp.example.com/mcp; secrets are in `headers`"));
        };
        if url.contains("orgconfig:") || !secret_shapes::url_passwords(url).is_empty() {
            return Some(fault("an address holds no secret: servers log it".to_owned()).help("send it in `headers`"));
        }
        if is_private(&name) {
            let help = "`allow.private_addresses` allows such hosts";
            let message = format!("the host `{name}` is private, local or reserved");
            return (!self.project.allow.private_addresses).then(|| fault(message).help(help));
        }
        if url.starts_with("http://") {
            let message = "what is sent would go over the network in the clear".to_owned();
            return Some(fault(message).help("write https://"));
        }
        let listed = self.project.allow.hosts.as_ref()?;
        let entries: Vec<AllowedHost> = listed.iter().filter_map(|text| AllowedHost::parse(text)).collect();
        if entries.iter().any(|entry| entry.allows(&name, port)) {
            return None;
        }
        let message = format!("the host `{name}` is not in the project's `allow.hosts`: each request is refused");
        Some(fault(message).help(format!("add it: {}", json!({ "allow": { "hosts": [name] } }))))
    }

    fn folder(&self, found: &mut Vec<Diagnostic>) {
        let Some(cwd) = &self.server.cwd else { return };
        let is_outside = cwd.starts_with('/') || cwd.split(['/', '\\']).any(|part| part == "..");
        if let Some(cursor) = self.at("/cwd").filter(|_| is_outside) {
            let message = format!("the folder `{cwd}` is not inside of the project's");
            found.push(cursor.report(&RULE, message).help("write it relative to the project file"));
        }
    }

    /// The texts of `env`, of `headers` or of `oauth`.
    fn texts(&self, field: &str, written: &BTreeMap<String, String>, found: &mut Vec<Diagnostic>) {
        for (name, text) in written {
            let Some(cursor) = self.at(&format!("/{field}/{}", token(name))) else { continue };
            let one = [(name.clone(), text.clone())].into();
            let keys = match sent_texts(&one) {
                Ok(texts) => texts.into_iter().flat_map(|(_, text)| text.secrets().to_vec()).collect::<Vec<_>>(),
                Err(why) => {
                    let help = "write the text out, or `orgconfig:KEY` for a secret";
                    found.push(cursor.report(&RULE, why).help(help));
                    continue;
                }
            };
            if let Some(form) = foreign_form(text) {
                let fault =
                    cursor.report(&RULE, format!("nothing reads `{form}` here: it would be sent as it is written"));
                found.push(fault.help(format!(
                    "name the secret: {}, and write `orgconfig:my_key` here",
                    json!({ "orgconfig": { "my_key": "env:MY_KEY" } })
                )));
                continue;
            }
            if let Some(why) = name_fault(field, name) {
                found.push(cursor.key().report(&RULE, why).help("take it out, or write the name in another way"));
                continue;
            }
            if let Some(key) = keys.iter().find(|key| !self.project.orgconfig.contains_key(*key)) {
                let fault = cursor.report(&RULE, format!("there is no secret `{key}` in `orgconfig`"));
                let near = nearest(key, self.project.orgconfig.keys().map(String::as_str));
                found.push(match near {
                    Some(near) => fault.help(format!("the nearest name is `{near}`")),
                    None => fault.help(format!("name it: {}", json!({ "orgconfig": { key: "env:VARIABLE" } }))),
                });
            } else if keys.is_empty() && is_secret(name, text) {
                // The secret itself is not repeated.
                let help = "name it in `orgconfig` (`\"my_key\": \"env:MY_KEY\"`), write `orgconfig:my_key` here, and make the one \
                            that was written out invalid";
                found.push(cursor.report(&RULE, format!("`{name}` holds its secret, written out")).help(help));
            }
        }
    }

    /// Settings of tools that the pinned server does not have: nothing follows from them, and an approval may be among them.
    fn tools(&self, found: &mut Vec<Diagnostic>) {
        let LockedTools::File(file) = &self.subject.texts.locked else { return };
        let Some(locked) = file.lock().ok().and_then(|lock| lock.servers.get(self.name)) else { return };
        for tool in self.server.tools.keys().filter(|tool| !locked.tools.contains_key(*tool)) {
            let Some(cursor) = self.at(&format!("/tools/{}", token(tool))) else { continue };
            let message = format!("the MCP server `{}` has no tool `{tool}`, as it was pinned", self.name);
            let fault = cursor.key().report(&RULE, message);
            found.push(match nearest(tool, locked.tools.keys().map(String::as_str)) {
                Some(near) => fault.help(format!("the nearest name is `{near}`")),
                None => fault.help(format!("`loopctl mcp list {}` shows those that it has", self.name)),
            });
        }
    }

    fn arguments(&self, found: &mut Vec<Diagnostic>) {
        for (index, arg) in self.server.args.iter().enumerate() {
            let Some(cursor) = self.at(&format!("/args/{index}")) else { continue };
            if !secret_shapes::find(arg).is_empty() {
                let fault =
                    cursor.report(&RULE, "every user of the machine can see arguments, and this one holds a secret");
                found.push(fault.help("give it to the program in `env`: `orgconfig:KEY`"));
            } else if arg.contains("orgconfig:") {
                let fault = cursor.report(&RULE, "nothing reads `orgconfig:` in an argument");
                found.push(fault.help("give the secret to the program in `env`"));
            }
        }
    }
}

/// The form in which other places, or other programs, take a value of the environment or a file.
fn foreign_form(text: &str) -> Option<&'static str> {
    let begins = ["env:", "file:"].into_iter().find(|form| {
        // An address of a file is a text as others are.
        text.strip_prefix(form).is_some_and(|rest| !rest.is_empty() && !rest.starts_with("//"))
    });
    begins.or_else(|| text.contains("${").then_some("${"))
}

/// Why a variable or a header can't have this name.
fn name_fault(field: &str, name: &str) -> Option<String> {
    if field == "env" {
        let is_odd = name.is_empty() || name.contains(['=', '\0']);
        return is_odd.then(|| format!("{name:?} is no name of a variable"));
    }
    if field == "oauth" {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    if OF_PROTOCOL.contains(&&*lower) || lower.starts_with("mcp-") {
        return Some(format!("the header `{name}` is the protocol's own"));
    }
    model_header::name_fault(name).map(|why| format!("the header `{name}` can't be sent: {why}"))
}

/// Whether a text is a secret that is written out.
fn is_secret(name: &str, text: &str) -> bool {
    let is_long = text.len() >= 8 && !text.contains(char::is_whitespace) || text.contains("Bearer ");
    !secret_shapes::find(text).is_empty()
        || is_long && (secrecy(name) != Secrecy::None || name.eq_ignore_ascii_case("authorization"))
}
