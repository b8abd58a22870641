//! A secret that the project does not define.

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, Nearest, codes, few_of_many};
use crate::program::template::{Template, ValueEscape};
use crate::syntax::token;

/// The prefix of the key of a secret.
const MARK: &str = "orgconfig:";

/// The most unknown secrets that are reported for one text.
const MAX_KEYS: usize = 50;

/// The rule.
pub const RULE: Rule = Rule { code: codes::UNKNOWN_SECRET, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project().filter(|_| subject.knows_project("/orgconfig")) else { return };
    let mut nearest = Nearest::default();
    for used in subject.actions() {
        used.each_secret_string(&mut |pointer, text| {
            if text.contains(MARK) {
                unknown(&used.at(pointer), text, subject, &mut nearest, found);
            }
        });
        few_of_many(found);
    }
    for (name, datasource) in &project.datasources {
        if let Some(cursor) = subject.in_project(&format!("/datasources/{}/url", token(name))) {
            unknown(&cursor, &datasource.url, subject, &mut nearest, found);
        }
        let password = datasource.password.as_deref().unwrap_or_default();
        if let Some(cursor) = subject.in_project(&format!("/datasources/{}/password", token(name))) {
            unknown(&cursor, password, subject, &mut nearest, found);
        }
    }
}

fn unknown(cursor: &Cursor<'_>, text: &str, subject: &Subject<'_>, nearest: &mut Nearest, found: &mut Vec<Diagnostic>) {
    let (Some(project), true) = (subject.project(), text.contains(MARK)) else { return };
    let Ok(template) = Template::compile(text, ValueEscape::Plain) else { return };
    let keys = template.secrets().iter().filter(|key| !project.orgconfig.contains_key(*key));
    for key in keys.take(MAX_KEYS) {
        let Some(at) = text.find(&format!("{MARK}{key}")).map(|at| at + MARK.len()) else { continue };
        let cursor = cursor.clone().inside(at..at + key.len());
        let fault = cursor.report(&RULE, format!("the project has no secret `{key}`"));
        let keys = || project.orgconfig.keys().map(String::as_str);
        found.push(match nearest.of(key, keys()) {
            Some(near) => fault.help(format!("the nearest one in its `orgconfig` is `{near}`")).suggest(near),
            None => fault.help(add(key, subject)),
        });
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
