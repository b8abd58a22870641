//! A bearer token of `serve.tokens` that the server refuses to start with.

use std::collections::HashMap;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes, nearest};
use crate::language::serving::{ALL_ORGS, Token, TokenScope};
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
            found.push(
                fault.help("write one or more of `run`, `compose`, `read`, `metrics`, `cancel`, `decide`, `admin`"),
            );
        }
        for (place, scope) in token.scopes.iter().enumerate() {
            let TokenScope::Unknown(word) = scope else { continue };
            let Some(cursor) = at(&format!("scopes/{place}")) else { continue };
            let fault =
                cursor.report(&RULE, format!("the token `{name}` has the scope {}, which there is not", quoted(word)));
            found.push(match nearest_scope(word) {
                Some(near) => fault.help(format!("the nearest one is `{near}`")).suggest(quoted(&near)),
                None => fault.help(format!("the scopes: {}", TokenScope::LIST)),
            });
        }
        expiry(subject, (index, token), found);
        let for_all = token.scopes.iter().find(|scope| scope.is_for_all_orgs());
        let org = token.org.as_deref().filter(|org| *org != ALL_ORGS);
        if let (Some(scope), Some(cursor)) = (for_all, at("org").filter(|_| org.is_some())) {
            let fault =
                cursor.report(&RULE, format!("the token `{name}` has the scope `{}` and an `org`", scope.name()));
            found.push(fault.help(match scope {
                TokenScope::Metrics => {
                    "`metrics` is for all organisations: leave out `org`, or give `metrics` to a token of its own"
                }
                _ => "`admin` is for all organisations: leave out `org`, or write `read` and `cancel`",
            }));
        }
        let bad_org = org.is_some_and(|org| {
            !org.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        });
        if let Some(cursor) = at("org").filter(|_| bad_org) {
            let fault = cursor.report(&RULE, format!("`org` of the token `{name}` has other signs than it may have"));
            found.push(fault.help("an organisation is named by ASCII letters, digits, `_`, `-` and `.`; `*` is all"));
        }
    }
}

/// The nearest scope to a word: what comes before the name of a loop is misspelt too.
fn nearest_scope(word: &str) -> Option<String> {
    let known: Vec<String> = TokenScope::ALL.iter().map(TokenScope::name).collect();
    if let Some(near) = nearest(word, known.iter().map(String::as_str)) {
        return Some(near.to_owned());
    }
    let (verb, name) = word.split_once(':').filter(|(_, name)| !name.is_empty())?;
    nearest(verb, ["run", "decide"]).map(|near| format!("{near}:{name}"))
}

/// The end of a token that can't be read, or is over.
fn expiry(subject: &Subject<'_>, entry: (usize, &Token), found: &mut Vec<Diagnostic>) {
    let (index, token) = entry;
    let Some(cursor) = subject.in_project(&format!("/serve/tokens/{index}/expires_at")) else { return };
    let name = &token.name;
    match token.expires_at_ms() {
        Err(_) => {
            let fault = cursor.report(&RULE, format!("`expires_at` of the token `{name}` is no time"));
            found.push(fault.help("write the time with its offset, like 2027-01-31T12:00:00Z"));
        }
        Ok(Some(at_ms)) if subject.texts.outside.now_ms.is_some_and(|now_ms| at_ms <= now_ms) => {
            let fault = cursor.report(&RULE, format!("the token `{name}` has expired: the server refuses it"));
            let help = format!("`loopctl token revoke {}` takes it out of the file", quoted(name));
            found.push(Diagnostic { severity: Severity::Warning, ..fault.help(help) });
        }
        Ok(_) => {}
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
