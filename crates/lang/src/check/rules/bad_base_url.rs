//! A model's `base_url` that can't be an address.

use super::written_secret::is_source;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::BAD_BASE_URL, check };

/// The routes of models' servers. The longest of those with one end comes first.
const ROUTES: [&str; 4] = ["/chat/completions", "/completions", "/messages", "/responses"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        let Some(url) = model.base_url.as_deref().map(str::trim) else { continue };
        if is_held(url) {
            continue;
        }
        let Some(cursor) = subject.in_project(&format!("/models/{}/base_url", token(name))) else { continue };
        let scheme = |begin: &str| url.get(..begin.len()).is_some_and(|text| text.eq_ignore_ascii_case(begin));
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // What may hold a password is not repeated.
        let (message, help) = if !(scheme("http://") || scheme("https://")) {
            (
                "does not begin with `http://` or `https://`",
                "write it whole: \"https://models.example.com/v1\"; or name the variable that holds it: \"env:MODEL_URL\"",
            )
        } else if authority.contains('@') {
            ("holds a user name or a password", "give the key as `api_key`: \"api_key\": \"env:MODEL_KEY\"")
        } else if authority.is_empty() {
            ("names no host", "write it whole: \"https://models.example.com/v1\"")
        } else if let Some((base, route)) = split_route(url) {
            // The provider's own route is taken off when the request is made; another one stays, and is not found.
            let own = model.provider.facts().server.as_ref().is_some_and(|server| server.path == route);
            let message =
                format!("the `base_url` of the model `{name}` holds the route `{route}`, which is added to it");
            let fault = cursor.report(&RULE, message);
            let severity = if own { Severity::Warning } else { Severity::Error };
            found.push(
                Diagnostic { severity, ..fault }.help("write the address before the route").suggest(quoted(base)),
            );
            continue;
        } else {
            continue;
        };
        found.push(cursor.report(&RULE, format!("the `base_url` of the model `{name}` {message}")).help(help));
    }
}

/// Whether a variable of the environment holds the address.
fn is_held(url: &str) -> bool {
    url.starts_with("env:") && is_source(url)
}

/// An address that ends with a route: what comes before it, and the route.
fn split_route(url: &str) -> Option<(&str, &'static str)> {
    let url = url.trim_end_matches('/');
    ROUTES.into_iter().find_map(|route| Some((url.strip_suffix(route)?, route)))
}
