//! A secret among a program's arguments.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::program::template::{Template, ValueEscape};

pub const RULE: Rule = Rule { code: codes::SECRET_IN_ARGS, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions() {
        let Action::Command(command) = &*used.action else { continue };
        for (at, text) in command.args.iter().enumerate().filter(|(_, text)| text.contains("orgconfig:")) {
            let Ok(template) = Template::compile(text, ValueEscape::Plain) else { continue };
            let Some(name) = template.secrets().first().map(|key| format!("orgconfig:{key}")) else { continue };
            let Some(start) = text.find(&name) else { continue };
            let cursor = used.at(&format!("/args/{at}")).inside(start..start + name.len());
            let fault = cursor.report(&RULE, "a secret among the arguments: every user of the machine could read it");
            found.push(fault.help(format!(
                "give it in the environment, when the program can read it there: \"env\": {{\"TOKEN\": \"{name}\"}}; or in `stdin`"
            )));
        }
    }
}
