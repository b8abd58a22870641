//! A private host, where the project does not allow such.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::policy::host::{AllowedHost, WrittenHost, is_private};

pub const RULE: Rule = Rule { code: codes::PRIVATE_HOST, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let allow = subject.project().map(|project| &project.allow).filter(|allow| !allow.private_addresses);
    let Some(allow) = allow.filter(|_| subject.knows_project("/allow/private_addresses")) else { return };
    let entries =
        allow.hosts.as_ref().map(|hosts| hosts.iter().filter_map(|text| AllowedHost::parse(text)).collect::<Vec<_>>());
    for used in subject.actions() {
        let Action::Http(http) = &*used.action else { continue };
        let Some(host) = WrittenHost::of(&http.url).filter(|host| !host.is_template()) else { continue };
        let Some(name) = host.name().filter(|name| is_private(name)) else { continue };
        // A host that is not in the list is reported as such.
        if entries.as_ref().is_some_and(|entries| !entries.iter().any(|entry| entry.allows(&name, host.port))) {
            continue;
        }
        let message = format!("the host `{}` is private, local or reserved: each call is refused", host.text);
        let fault = used.at("/url").inside(host.range).report(&RULE, message);
        found.push(fault.help(
            "when tools shall reach such hosts, say so in `loopctl.json`: {\"allow\": {\"private_addresses\": true}}",
        ));
    }
}
