//! A secret that is written out, by the name that it is sent under.

use std::ops::Range;

use crate::check::secret_spelling::{credential, is_secret_place};
use crate::check::{Rule, SentText, Subject};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::language::action::TextKind;
use crate::policy::secret_names::{Secrecy, is_password, secrecy};
use crate::policy::secret_shapes::url_passwords;
use crate::program::reference::as_path;

pub const RULE: Rule = Rule { code: codes::SECRET, check };

/// Words that are no secret where one is expected.
const HARMLESS: [&str; 24] = [
    "none",
    "null",
    "true",
    "false",
    "undefined",
    "anonymous",
    "public",
    "guest",
    "demo",
    "demo_key",
    "test",
    "example",
    "optional",
    "required",
    "fetch",
    "no-check",
    "nocheck",
    "basic",
    "bearer",
    "default",
    "disabled",
    "enabled",
    "oauth2",
    "negotiate",
];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for sent in subject.sent_texts() {
        let Some((name, range)) = written_out(sent) else { continue };
        let cursor = sent.cursor.clone().inside(range.clone());
        let misspelt = || {
            sent.spelled_secrets(subject)
                .iter()
                .any(|secret| secret.range.start < range.end && range.start < secret.range.end)
        };
        if misspelt() || subject.is_reported(&sent.cursor.place()) || subject.is_reported(&cursor.place()) {
            continue;
        }
        // The secret itself is not repeated.
        let fault = cursor.report(&RULE, format!("`{name}` holds its secret, written out"));
        found.push(fault.help(
            "name it in the project's `orgconfig` (`\"my_key\": \"env:MY_KEY\"`), write `orgconfig:my_key` here, and make \
             the one that was written out invalid",
        ));
        few_of_many(found);
    }
}

/// The name of a secret that a text holds, and the secret's place.
fn written_out(sent: &SentText<'_>) -> Option<(String, Range<usize>)> {
    match sent.kind {
        TextKind::Prompt | TextKind::Hint | TextKind::Question => return None,
        TextKind::Url => return pair(sent.text, &['?', '&'], &['&', '#']),
        TextKind::Query if is_key(&sent.field, sent.text) && as_path(sent.text).is_none() => {
            return is_literal(sent.text).then(|| (sent.field.clone(), 0..sent.text.len()));
        }
        TextKind::Header if sent.field.eq_ignore_ascii_case("cookie") => return pair(sent.text, &[';', ' '], &[';']),
        _ => {}
    }
    if is_secret_place(sent) {
        let (begin, value) = credential(sent);
        let name = sent.field.as_str();
        // What a scheme announces is a credential, whatever it looks like.
        let sure = begin > 0 && name.eq_ignore_ascii_case("authorization");
        let fits = is_secret(name, value, sure) && as_path(sent.text).is_none();
        return fits.then(|| (name.to_owned(), begin..begin + value.len()));
    }
    let password = url_passwords(sent.text).into_iter().find(|range| {
        let value = sent.text.get(range.clone()).unwrap_or_default();
        is_literal(value) && !matches!(value, "password" | "pass" | "***")
    });
    if let Some(range) = password {
        return Some(("the address".to_owned(), range));
    }
    match sent.kind {
        TextKind::Variable => pair(sent.text, &[';'], &[';']),
        TextKind::Argument => pair(sent.text, &['-', ';'], &[';']),
        _ => None,
    }
}

/// The first `name=value` of a list whose name is a secret's.
fn pair(text: &str, before: &[char], after: &[char]) -> Option<(String, Range<usize>)> {
    for (at, _) in text.match_indices('=') {
        let head = text.get(..at)?;
        let begin = head.rfind(before).map_or(0, |mark| mark + 1);
        let name = head.get(begin..)?.trim();
        let rest = text.get(at + 1..)?;
        let value = rest.get(..rest.find(after).unwrap_or(rest.len()))?;
        let is_secret_name = secrecy(name) != Secrecy::None || is_key(name, value);
        let named = is_secret_name && name.len() < 40 && !name.contains(['{', '/', '"']);
        if named && is_secret(name, value.trim(), false) {
            return Some((name.to_owned(), at + 1..at + 1 + value.len()));
        }
    }
    None
}

/// Whether `key` is that of an API here, and not that of a record: by what is written for it.
fn is_key(name: &str, value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_placeholder = lower.contains("api_key") || lower.contains("api-key") || lower.contains("apikey");
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_random = value.len() >= 30
        && value.chars().all(is_word)
        && value.contains(|c: char| c.is_ascii_digit())
        && value.contains(|c: char| c.is_ascii_uppercase());
    name.eq_ignore_ascii_case("key") && (is_placeholder || is_random)
}

fn is_literal(value: &str) -> bool {
    !value.contains("{{") && !value.contains("orgconfig:") && !value.contains(['<', '>', '$'])
}

/// Whether a value is a secret that is written out under this name.
fn is_secret(name: &str, value: &str, sure: bool) -> bool {
    let lower = value.to_ascii_lowercase();
    let spoken = value.trim().is_empty() || value.contains(char::is_whitespace);
    if spoken || !is_literal(value) || HARMLESS.contains(&&*lower) || lower.starts_with("pk_") {
        return false;
    }
    let has_digit = value.contains(|c: char| c.is_ascii_digit());
    let says_so = ["secret", "token", "passw", "key"].iter().any(|word| lower.contains(word));
    let long = value.len() >= 6 && (has_digit || says_so || value.len() >= 20);
    sure || long || (is_password(name) && value.len() >= 4)
}
