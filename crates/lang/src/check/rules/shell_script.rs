//! A script that an action gives to a shell; an error where the model writes a part of it.

use crate::check::{Rule, Subject, shell};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;
use crate::program::reference::RESERVED;
use crate::program::template::{Template, ValueEscape, Variable};

pub const RULE: Rule = Rule { code: codes::SHELL_SCRIPT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions() {
        let Action::Command(command) = &*used.action else { continue };
        let Some(shell) = shell::of(command) else { continue };
        let scripts = command.args.iter().enumerate().skip(shell.script).take(if shell.all { usize::MAX } else { 1 });
        let written = scripts.filter_map(|(at, text)| {
            let template = Template::compile(text, ValueEscape::Plain).ok()?;
            let argument =
                |variable: &&Variable| variable.path.first().is_some_and(|name| !RESERVED.contains(&&**name));
            let variable = template.variables().iter().find(argument)?.clone();
            Some((at, variable))
        });
        let written: Vec<(usize, Variable)> = written.collect();
        let name = &shell.name;
        for (at, variable) in &written {
            let cursor = used.at(&format!("/args/{at}")).inside(variable.range.clone());
            let message = format!("`{name}` runs what the model writes in `{}`", variable.path.join("."));
            let fault = Diagnostic { severity: Severity::Error, ..cursor.report(&RULE, message) };
            found.push(fault.help(
                "start the program itself, with the value as one of its arguments; a script that must be takes \
                 the value as \"$1\"",
            ));
        }
        if written.is_empty() {
            let fault = used.at("/program").report(&RULE, format!("the action gives a script to the shell `{name}`"));
            found.push(fault.help("start the program itself: its arguments are then only arguments"));
        }
    }
}
