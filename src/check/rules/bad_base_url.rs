//! A model's `base_url` that can't be an address.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::token;

/// The rule.
pub const RULE: Rule = Rule { code: codes::BAD_BASE_URL, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        let Some(url) = model.base_url.as_deref().map(str::trim) else { continue };
        let Some(cursor) = subject.in_project(&format!("/models/{}/base_url", token(name))) else { continue };
        let scheme = |begin: &str| url.get(..begin.len()).is_some_and(|text| text.eq_ignore_ascii_case(begin));
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // What may hold a password is not repeated.
        let (message, help) = if !(scheme("http://") || scheme("https://")) {
            ("does not begin with `http://` or `https://`", "write it whole: \"https://models.example.com/v1\"")
        } else if authority.contains('@') {
            ("holds a user name or a password", "give the key as `api_key`: \"api_key\": \"env:MODEL_KEY\"")
        } else if authority.is_empty() {
            ("names no host", "write it whole: \"https://models.example.com/v1\"")
        } else {
            continue;
        };
        found.push(cursor.report(&RULE, format!("the `base_url` of the model `{name}` {message}")).help(help));
    }
}
