//! A program that the project does not allow.

use std::collections::HashSet;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Nearest, Severity, codes};
use crate::language::Action;
use crate::syntax::quoted;

/// The rule.
pub const RULE: Rule = Rule {
    code: codes::PROGRAM_NOT_ALLOWED,
    name: "program-not-allowed",
    severity: Severity::Error,
    page: include_str!("program_not_allowed.md"),
    look: Some(look),
};

fn look(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let allowed = &project.allow.commands;
    let entries: HashSet<&str> = allowed.iter().map(String::as_str).collect();
    let mut nearest = Nearest::default();
    for used in subject.actions() {
        let Action::Command(command) = &used.action else { continue };
        let program = command.program.as_str();
        let spot = used.at("/program");
        if entries.contains(program) || subject.is_told(&spot.place()) {
            continue;
        }
        let fault = spot.tell(&RULE, format!("the project does not allow the program `{program}`"));
        found.push(match (nearest.of(program, allowed.iter().map(String::as_str)), subject.in_project("")) {
            (Some(near), _) => fault.help(format!("the nearest one that it allows is `{near}`")).suggest(quoted(near)),
            (None, Some(spot)) if !allowed.is_empty() => {
                let shown: Vec<&str> = allowed.iter().take(8).map(String::as_str).collect();
                fault.help(format!("`allow.commands` of {} has: {}", spot.place().file, shown.join(", ")))
            }
            (None, at) => {
                let entry = serde_json::json!({ "allow": { "commands": [program] } });
                fault.help(match at {
                    Some(spot) => format!("say in {} that it may start: {entry}", spot.place().file),
                    None => format!("no `loopctl.json` stands beside the document or above it; make one: {entry}"),
                })
            }
        });
    }
}
