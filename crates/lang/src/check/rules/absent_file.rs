//! A file that the project names and that is not there.

use super::folder_outside::leaves;
use crate::check::{Rule, Subject};
use crate::compile::documents;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::document_file::DocumentFile;
use crate::program::file_value::is_name;
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::ABSENT_FILE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let outside = &subject.texts.outside;
    let report = |found: &mut Vec<Diagnostic>, pointer: String, file: Option<&String>, what: String, help: &str| {
        if let Some(file) = file.filter(|file| outside.beyond.contains(*file)) {
            if let Some(cursor) = subject.in_project(&pointer) {
                let message = format!("{what} is outside of the project's folder, and is not opened: `{file}`");
                let help = "a run opens only files in the folder of the project file, and no links that lead out of it";
                let fault = cursor.report(&RULE, message).help(help);
                found.push(Diagnostic { code: codes::FORBIDDEN_PATH, severity: Severity::Error, ..fault });
            }
            return;
        }
        let Some(file) = file.filter(|file| outside.absent.contains(*file)) else { return };
        if let Some(cursor) = subject.in_project(&pointer) {
            found.push(cursor.report(&RULE, format!("{what} is not there: `{file}`")).help(help));
        }
    };
    for (name, model) in &project.models {
        let pointer = format!("/models/{}/script", token(name));
        let help = "paths start in the folder of the project file; without its script no run can begin with this model";
        report(found, pointer, model.script.as_ref(), format!("the script of the model `{name}`"), help);
    }
    for (name, datasource) in &project.datasources {
        let pointer = format!("/datasources/{}/init", token(name));
        let help = "paths start in the folder of the project file; each call fails until the database is there";
        report(found, pointer, datasource.init.as_ref(), format!("the text that makes the database `{name}`"), help);
    }
    let reported = documents::unreadable(subject.document(), project, &subject.texts.outside);
    // Where a text takes it, that is reported.
    let unreported = project.documents.iter().filter(|(name, _)| !reported.iter().any(|text| text.name == **name));
    for (name, file) in unreported {
        let place = match file {
            DocumentFile::Path(_) => format!("/documents/{}", token(name)),
            DocumentFile::Table(_) => format!("/documents/{}/file", token(name)),
        };
        let file = file.path().to_owned();
        let file = &file;
        if (leaves(file) || outside.beyond.contains(file))
            && let Some(cursor) = subject.in_project(&place)
        {
            let message = format!("the document `{name}` is outside of the project's folder: `{file}`");
            found.push(cursor.report(&RULE, message).help("a run reads only files in the folder of the project file"));
            continue;
        }
        if !is_name(name)
            && let Some(cursor) = subject.in_project(&place)
        {
            let message = format!("no text can name the document {}", quoted(name));
            found.push(cursor.key().report(&RULE, message).help("its name has letters, digits, `_` and `-`"));
            continue;
        }
        let help = "paths start in the folder of the project file; a run that reads it fails at its start";
        report(found, place, Some(file), format!("the document `{name}`"), help);
    }
}
