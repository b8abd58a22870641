//! Secrets that were pasted into a document: a document is kept in journals and shown to others.

use super::document::{Document, DocumentKind};
use super::parse::{Kind, MAX_FAULTS, Node, token};
use crate::diagnostic::{Diagnostic, codes};

/// An error for each string that looks like a key or token; what it says never shows the secret.
pub(super) fn secrets(document: &Document) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    // Most documents have none: the places are looked for only where there is something to tell.
    if is_anywhere(&document.tree.root) {
        visit(document, &document.tree.root, &mut String::new(), &mut faults);
    }
    faults
}

fn is_anywhere(node: &Node) -> bool {
    match &node.kind {
        Kind::String(text) => looks_like(text).is_some(),
        Kind::Array(items) => items.iter().any(is_anywhere),
        Kind::Object(members) => members.iter().any(|member| is_anywhere(&member.value)),
        _ => false,
    }
}

fn visit(document: &Document, node: &Node, pointer: &mut String, faults: &mut Vec<Diagnostic>) {
    let length = pointer.len();
    if faults.len() >= MAX_FAULTS {
        return;
    }
    match &node.kind {
        Kind::String(text) => {
            if let Some(what) = looks_like(text) {
                let place = document.tree.place(pointer);
                let message = format!("this text looks like {what}, written out");
                let fault = Diagnostic::error(codes::SECRET, message, pointer.as_str(), place);
                let help = if document.kind == Some(DocumentKind::Project) {
                    "write `env:MY_KEY` or `file:PATH` here, and make the one that was written out invalid"
                } else {
                    "name it in the project's `orgconfig` (`\"my_key\": \"env:MY_KEY\"`), write \
                     `orgconfig:my_key` here, and make the one that was written out invalid"
                };
                faults.push(fault.help(help));
            }
        }
        Kind::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                visit(document, item, pointer, faults);
                pointer.truncate(length);
            }
        }
        Kind::Object(members) => {
            for member in members {
                pointer.push('/');
                pointer.push_str(&token(&member.key));
                visit(document, &member.value, pointer, faults);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

/// The prefixes that providers give to their keys, how many characters must follow at least, and
/// what such a key is called.
const PREFIXES: [(&str, usize, &str); 12] = [
    ("sk-", 20, "an API key"),
    ("sk_live_", 16, "an API key"),
    ("pk_live_", 16, "an API key"),
    ("AKIA", 16, "an AWS access key"),
    ("ASIA", 16, "an AWS access key"),
    ("ghp_", 30, "a GitHub token"),
    ("gho_", 30, "a GitHub token"),
    ("ghs_", 30, "a GitHub token"),
    ("github_pat_", 30, "a GitHub token"),
    ("glpat-", 20, "a GitLab token"),
    ("AIza", 35, "a Google API key"),
    ("xoxb-", 20, "a Slack token"),
];

fn looks_like(text: &str) -> Option<&'static str> {
    // Every key has digits but a private one, which stands between lines of dashes.
    let digits = || text.bytes().any(|byte| byte.is_ascii_digit());
    let dashes = || text.contains('-') && text.contains("-----");
    if text.len() < 16 || !(digits() || dashes()) {
        return None;
    }
    if dashes() && text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    let key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    for word in text.split(|c: char| !key(c)).filter(|word| word.len() >= 16) {
        let found = PREFIXES.iter().find(|(prefix, least, _)| {
            word.strip_prefix(prefix).is_some_and(|rest| rest.len() >= *least && is_random(rest))
        });
        if let Some((_, _, called)) = found {
            return Some(called);
        }
    }
    let (_, token) = text.split_once("Bearer ")?;
    let token = token.split(|c: char| !(key(c) || matches!(c, '.' | '+' | '/' | '=' | '~'))).next()?;
    (token.len() >= 20 && !token.starts_with("orgconfig") && is_random(token)).then_some("a bearer token")
}

/// Whether a text has digits and many different characters, as keys have and examples have not.
fn is_random(text: &str) -> bool {
    let mut characters: Vec<char> = text.chars().collect();
    characters.sort_unstable();
    characters.dedup();
    characters.len() >= 10 && text.contains(|c: char| c.is_ascii_digit())
}
