//! A program that the project does not allow.

use std::collections::HashSet;

use super::bad_secret_command::secret_commands;
use super::shell_syntax::is_line;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Nearest, codes};
use crate::language::Action;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::PROGRAM_NOT_ALLOWED, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project().filter(|_| subject.knows_project("/allow/commands")) else { return };
    let allowed = &project.allow.commands;
    let entries: HashSet<&str> = allowed.iter().map(String::as_str).collect();
    let mut nearest = Nearest::default();
    let actions = subject.actions().iter().filter_map(|used| match &*used.action {
        Action::Command(command) => Some((used.at("/program"), command.program.as_str())),
        _ => None,
    });
    let of_secrets = secret_commands(project)
        .into_iter()
        .filter_map(|(place, command)| Some((subject.in_project(&format!("{place}/command/0"))?, command.program())));
    for (cursor, program) in actions.chain(of_secrets) {
        if entries.contains(program) || is_line(program) || subject.is_reported(&cursor.place()) {
            continue;
        }
        let fault = cursor.report(&RULE, format!("the project does not allow the program `{program}`"));
        found.push(match (nearest.of(program, allowed.iter().map(String::as_str)), subject.in_project("")) {
            (Some(near), _) => fault.help(format!("the nearest one that it allows is `{near}`")).suggest(quoted(near)),
            (None, Some(cursor)) if !allowed.is_empty() => {
                let shown: Vec<&str> = allowed.iter().take(8).map(String::as_str).collect();
                fault.help(format!("`allow.commands` of {} has: {}", cursor.place().file, shown.join(", ")))
            }
            (None, at) => {
                let entry = serde_json::json!({ "allow": { "commands": [program] } });
                fault.help(match at {
                    Some(cursor) => format!("say in {} that it may start: {entry}", cursor.place().file),
                    None => format!("no `loopctl.json` stands beside the document or above it; make one: {entry}"),
                })
            }
        });
    }
}
