//! A host that comes from a value, where no list bounds it.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::policy::host::WrittenHost;
use crate::program::reference::RESERVED;
use crate::program::template::{Template, ValueEscape};

pub const RULE: Rule = Rule { code: codes::HOST_FROM_VALUE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.project().is_none_or(|project| project.allow.hosts.is_some()) || !subject.knows_project("/allow/hosts") {
        return;
    }
    for used in subject.actions() {
        let Action::Http(http) = &*used.action else { continue };
        let cursor = used.at("/url");
        let (Some(host), Ok(template)) = (WrittenHost::of(&http.url), Template::compile(&http.url, ValueEscape::Url))
        else {
            continue;
        };
        // A name that is written out at its end bounds it: values can't bring a `/` or `@`.
        if host.end().strip_prefix('.').is_some_and(|end| end.contains('.')) {
            continue;
        }
        let Some(variable) = template.variables().iter().find(|variable| host.range.contains(&variable.range.start))
        else {
            continue;
        };
        // With a secret in the request this is an error with a code of its own.
        let wanders = |fault: &Diagnostic| fault.code == codes::WANDERING_SECRET && fault.path == cursor.path();
        if subject.compiled.diagnostics.iter().any(wanders) {
            continue;
        }
        let named = variable.path.join(".");
        let whose = if RESERVED.contains(&variable.path.first().map_or("", String::as_str)) {
            format!("`{named}`")
        } else {
            format!("`{named}`, which the model writes")
        };
        let fault =
            cursor.inside(host.range).report(&RULE, format!("the host comes from {whose}, and may be any public one"));
        found.push(fault.help(
            "write the host out, or say in `loopctl.json` which ones are meant: \
             {\"allow\": {\"hosts\": [\"*.example.com\"]}}",
        ));
    }
}
