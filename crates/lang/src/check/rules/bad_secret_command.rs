//! A program that prints a secret, and can't be started as it is written.

use super::shell_syntax::is_line;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::{Project, SecretCommand};
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::BAD_SECRET_COMMAND, check };

/// How an argument begins to which only a shell or a document gives a meaning.
const UNREAD: [&str; 3] = ["$(", "${", "orgconfig:"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (place, command) in secret_commands(project) {
        for (index, word) in command.command.iter().enumerate() {
            let Some(cursor) = subject.in_project(&format!("{place}/command/{index}")) else { continue };
            if index == 0 && word.trim().is_empty() {
                let fault = cursor.report(&RULE, "the program of this secret has no name".to_owned());
                found.push(fault.help("write it with its arguments: [\"gcloud\", \"auth\", \"print-access-token\"]"));
            } else if index == 0 && is_line(word) {
                let message = format!("`{word}` is no name of a program: it has a space");
                let words: Vec<String> = word.split_whitespace().map(quoted).collect();
                let help = format!("write each word as an entry of its own: [{}]", words.join(", "));
                found.push(cursor.report(&RULE, message).help(help));
            } else if let Some(mark) = UNREAD.iter().find(|mark| word.starts_with(*mark)) {
                let message = format!("nothing reads `{mark}` here: the program gets this argument as it is written");
                let fault = cursor.report(&RULE, message).help("let the program read what it needs itself");
                found.push(Diagnostic { severity: Severity::Warning, ..fault });
            }
        }
    }
}

/// The programs that print secrets of a project, each with its place.
pub(super) fn secret_commands(project: &Project) -> Vec<(String, &SecretCommand)> {
    let mut all = Vec::new();
    for (key, source) in &project.orgconfig {
        all.extend(source.command().map(|command| (format!("/orgconfig/{}", token(key)), command)));
    }
    for (name, model) in &project.models {
        let place = format!("/models/{}", token(name));
        let key = model.api_key.as_ref().and_then(|source| source.command());
        all.extend(key.map(|command| (format!("{place}/api_key"), command)));
        for (header, source) in &model.headers {
            let command = source.command();
            all.extend(command.map(|command| (format!("{place}/headers/{}", token(header)), command)));
        }
    }
    all
}
