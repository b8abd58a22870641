//! A model's key that is sent in the clear.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::{ModelAuth, SecretSource};
use crate::policy::host::{WrittenHost, is_private};
use crate::policy::model_header;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::KEY_IN_THE_CLEAR, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        let signs = model.auth == Some(ModelAuth::Sigv4);
        let sends = signs || model.api_key.is_some() || model.headers.values().any(is_secret);
        let Some(url) = model.base_url.as_deref().filter(|_| sends) else { continue };
        let clear = url.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("http://"));
        let public = WrittenHost::of(url).and_then(|host| host.name()).is_some_and(|name| !is_private(&name));
        let Some(cursor) = subject.in_project(&format!("/models/{}/base_url", token(name))) else { continue };
        if clear && public {
            let message = format!("the key of the model `{name}` would go over the network in the clear");
            found.push(cursor.inside(0..7).report(&RULE, message).help("write https://"));
        }
    }
}

/// Whether the value of a header is a secret.
fn is_secret(source: &SecretSource) -> bool {
    source.written().is_none_or(|text| model_header::is_source(text) || text.starts_with("orgconfig:"))
}
