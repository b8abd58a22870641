//! A file that the project names and that is not there.

use crate::check::{Rule, Subject};
use crate::compile::documents;
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::token;

/// The rule.
pub const RULE: Rule = Rule { code: codes::ABSENT_FILE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let mut report = |pointer: String, file: Option<&String>, what: String, help: &str| {
        let Some(file) = file.filter(|file| subject.texts.outside.absent.contains(*file)) else { return };
        if let Some(cursor) = subject.in_project(&pointer) {
            found.push(cursor.report(&RULE, format!("{what} is not there: `{file}`")).help(help));
        }
    };
    for (name, model) in &project.models {
        let pointer = format!("/models/{}/script", token(name));
        let help = "paths start in the folder of the project file; without its script no run can begin with this model";
        report(pointer, model.script.as_ref(), format!("the script of the model `{name}`"), help);
    }
    for (name, datasource) in &project.datasources {
        let pointer = format!("/datasources/{}/init", token(name));
        let help = "paths start in the folder of the project file; each call fails until the database is there";
        report(pointer, datasource.init.as_ref(), format!("the text that makes the database `{name}`"), help);
    }
    let reported = documents::unreadable(subject.document(), project, &subject.texts.outside);
    for (name, file) in &project.documents {
        // Where a text takes it, that is reported.
        if !reported.iter().any(|text| text.name == *name) {
            let help = "paths start in the folder of the project file; a run that reads it fails at its start";
            report(format!("/documents/{}", token(name)), Some(file), format!("the document `{name}`"), help);
        }
    }
}
