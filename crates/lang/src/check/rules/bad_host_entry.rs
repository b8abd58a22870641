//! An entry of `allow.hosts` that is no host.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::policy::host::AllowedHost;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::BAD_HOST_ENTRY, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let hosts = subject.project().and_then(|project| project.allow.hosts.as_ref()).into_iter().flatten();
    for (at, text) in hosts.enumerate().filter(|(_, text)| AllowedHost::parse(text).is_none()) {
        let Some(cursor) = subject.in_project(&format!("/allow/hosts/{at}")) else { continue };
        let fault = cursor.report(&RULE, format!("`{text}` is no host: it lets nothing pass"));
        let host = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        found.push(if text.trim().trim_start_matches("*.") == "*" {
            fault.help("to allow every public host, take the list `hosts` out")
        } else if AllowedHost::parse(host).is_none() {
            fault.help("write a name, `*.example.com` for all names below one, and `:PORT` for one port only")
        } else {
            fault.help("write the host alone, without scheme and path").suggest(quoted(host))
        });
    }
}
