//! A secret that the project does not define.

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, Nearest, codes, few_of_many};
use crate::language::{Action, Project};
use crate::program::template::{Template, ValueEscape};
use crate::syntax::token;

/// The prefix of the key of a secret.
const MARK: &str = "orgconfig:";

/// The most unknown secrets that are reported for one text.
const MAX_KEYS: usize = 50;

pub const RULE: Rule = Rule { code: codes::UNKNOWN_SECRET, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project().filter(|_| subject.knows_project("/orgconfig")) else { return };
    let mut search = SecretSearch { subject, project, nearest: Nearest::default() };
    for used in subject.actions() {
        if let Action::Db(db) = &*used.action {
            search.in_text(&used.at("/datasource"), &db.datasource, found);
        }
    }
    for sent in subject.sent_texts().iter().filter(|sent| sent.takes_secrets && sent.text.contains(MARK)) {
        if let Some(field) = sent.compiled() {
            search.keys(&sent.cursor, sent.text, &field.secrets(), found);
        }
        few_of_many(found);
    }
    for (name, datasource) in &project.datasources {
        let password = datasource.password.as_deref().unwrap_or_default();
        for (field, text) in [("url", datasource.url.as_str()), ("password", password)] {
            if let Some(cursor) = subject.in_project(&format!("/datasources/{}/{field}", token(name))) {
                search.in_text(&cursor, text, found);
            }
        }
    }
    for (name, target) in &project.notify {
        for (field, text) in [("url", &target.url), ("username", &target.username), ("password", &target.password)] {
            let cursor = subject.in_project(&format!("/notify/{}/{field}", token(name)));
            if let (Some(cursor), Some(text)) = (cursor, text) {
                search.in_text(&cursor, text, found);
            }
        }
    }
    for (name, model) in &project.models {
        for (header, source) in &model.headers {
            let Some(text) = source.written().filter(|text| text.starts_with(MARK)) else { continue };
            let place = format!("/models/{}/headers/{}", token(name), token(header));
            if let (Some(cursor), Some(key)) = (subject.in_project(&place), text.strip_prefix(MARK)) {
                search.keys(&cursor, text, &[key.to_owned()], found);
            }
        }
    }
}

/// Looks for secrets that the project does not have.
struct SecretSearch<'s, 'a> {
    subject: &'s Subject<'a>,
    project: &'s Project,
    nearest: Nearest,
}

impl SecretSearch<'_, '_> {
    fn in_text(&mut self, cursor: &Cursor<'_>, text: &str, found: &mut Vec<Diagnostic>) {
        if let Some(template) = text.contains(MARK).then(|| Template::compile(text, ValueEscape::Plain).ok()).flatten()
        {
            self.keys(cursor, text, template.secrets(), found);
        }
    }

    fn keys(&mut self, cursor: &Cursor<'_>, text: &str, keys: &[String], found: &mut Vec<Diagnostic>) {
        let keys = keys.iter().filter(|key| !self.project.orgconfig.contains_key(*key));
        for key in keys.take(MAX_KEYS) {
            let Some(at) = text.find(&format!("{MARK}{key}")).map(|at| at + MARK.len()) else { continue };
            let cursor = cursor.clone().inside(at..at + key.len());
            let fault = cursor.report(&RULE, format!("the project has no secret `{key}`"));
            let known = self.project.orgconfig.keys().map(String::as_str);
            found.push(match self.nearest.of(key, known) {
                Some(near) => fault.help(format!("the nearest one in its `orgconfig` is `{near}`")).suggest(near),
                None => fault.help(add(key, self.subject)),
            });
        }
    }
}

fn add(key: &str, subject: &Subject<'_>) -> String {
    let variable: String =
        key.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let entry = format!("{{\"orgconfig\": {{\"{key}\": \"env:{variable}\"}}}}");
    match subject.in_project("") {
        Some(cursor) => format!("say in {} where it is: {entry}", cursor.place().file),
        None => format!("no `loopctl.json` stands beside the document or above it; make one: {entry}"),
    }
}
