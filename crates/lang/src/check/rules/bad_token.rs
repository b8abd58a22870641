//! A bearer token of `serve.tokens` that the server refuses to start with.

use std::collections::HashMap;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes, nearest};
use crate::language::serving::TokenScope;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::BAD_TOKEN, check };

/// What comes before the digits of a hash.
const MARK: &str = "sha256:";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let mut known: HashMap<String, usize> = HashMap::new();
    for (index, token) in project.serve.tokens.iter().enumerate() {
        let at = |field: &str| subject.in_project(&format!("/serve/tokens/{index}/{field}"));
        let name = &token.name;
        let hash = token.hash.strip_prefix(MARK).filter(|digits| is_digest(digits));
        if let Some(cursor) = at("hash").filter(|_| hash.is_none()) {
            let fault =
                cursor.report(&RULE, format!("`hash` of the token `{name}` is not `{MARK}` and 64 hexadecimal digits"));
            found.push(if is_digest(&token.hash) {
                fault
                    .help(format!("`{MARK}` stands before the digits"))
                    .suggest(quoted(&format!("{MARK}{}", token.hash)))
            } else {
                fault.help("`loopctl token` prints a new token and its `hash`: the token itself is in no file")
            });
        }
        if let Some(digits) = hash {
            let digits = digits.to_ascii_lowercase();
            if let (Some(other), Some(cursor)) = (known.get(&digits), at("hash")) {
                let fault = cursor.report(&RULE, format!("the token `{name}` has the hash of another one"));
                let fault = fault.help("make a token for each holder with `loopctl token`");
                let other = subject.in_project(&format!("/serve/tokens/{other}/hash"));
                found.push(match other {
                    Some(other) => fault.related(&other.place(), "the other one is here"),
                    None => fault,
                });
            }
            known.entry(digits).or_insert(index);
        }
        if let Some(cursor) = at("scopes").filter(|_| token.scopes.is_empty()) {
            let fault = cursor.report(&RULE, format!("the token `{name}` may do nothing: `scopes` is empty"));
            found.push(fault.help("write one or more of `run`, `compose`, `read`, `decide`"));
        }
        for (place, scope) in token.scopes.iter().enumerate() {
            let TokenScope::Unknown(word) = scope else { continue };
            let Some(cursor) = at(&format!("scopes/{place}")) else { continue };
            let fault =
                cursor.report(&RULE, format!("the token `{name}` has the scope {}, which there is not", quoted(word)));
            let known: Vec<String> = TokenScope::ALL.iter().map(TokenScope::name).collect();
            found.push(match nearest(word, known.iter().map(String::as_str)) {
                Some(near) => fault.help(format!("the nearest one is `{near}`")).suggest(quoted(near)),
                None => fault.help("the scopes: `run`, `compose`, `read`, `decide`, `decide:LOOP`, `decide:escalated`"),
            });
        }
        let bad_org = token.org.as_deref().is_some_and(|org| {
            !org.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        });
        if let Some(cursor) = at("org").filter(|_| bad_org) {
            let fault = cursor.report(&RULE, format!("`org` of the token `{name}` has other signs than it may have"));
            found.push(fault.help("an organisation is named by ASCII letters, digits, `_`, `-` and `.`"));
        }
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
