//! A variable of the environment that a value fills and the project does not allow.

use crate::check::{Rule, Subject};
use crate::compile::tool::is_value;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;
use crate::policy::variables::{self, Refusal};
use crate::program::template::{Template, ValueEscape};
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::FILLED_VARIABLE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    never_allowed(subject, found);
    let Some(project) = subject.project().filter(|_| subject.knows_project("/allow/env")) else { return };
    for used in subject.actions() {
        let Action::Command(command) = &*used.action else { continue };
        for (name, text) in &command.env {
            // What is no template, and what steers programs, was reported by the compiler.
            let Ok(template) = Template::compile(text, ValueEscape::Plain) else { continue };
            let Some(value) = template.variables().iter().find(|variable| is_value(variable)) else { continue };
            if variables::refusal(name, true, &project.allow.env) != Some(Refusal::NotAllowed) {
                continue;
            }
            let cursor = used.at(&format!("/env/{}", token(name))).inside(value.range.clone());
            let message =
                format!("`{}` fills the variable `{name}`, which the project does not allow", value.path.join("."));
            let entry = serde_json::json!([name]);
            let help = match subject.in_project("") {
                Some(project) => {
                    format!("add `\"env\": {entry}` to `allow` in {}, or write the value out", project.place().file)
                }
                None => format!("make a loopctl.json with {{\"allow\": {{\"env\": {entry}}}}}, or write the value out"),
            };
            found.push(cursor.report(&RULE, message).help(help));
        }
    }
}

/// Names in `allow.env` that a value may never fill.
fn never_allowed(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let allowed = subject.project().map(|project| project.allow.env.as_slice()).unwrap_or_default();
    for (index, name) in allowed.iter().enumerate().filter(|(_, name)| variables::steers(name)) {
        let Some(cursor) = subject.in_project(&format!("/allow/env/{index}")) else { continue };
        let message = format!("`{name}` can steer a program: no value may fill it, and the entry has no effect");
        let fault = cursor.report(&RULE, message).help("take it out; a value that is written out needs no permission");
        found.push(Diagnostic { severity: Severity::Warning, ..fault });
    }
}
