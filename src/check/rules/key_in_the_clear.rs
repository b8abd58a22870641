//! A model's key that is sent in the clear.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::policy::host::{WrittenHost, is_private};
use crate::syntax::token;

/// The rule.
pub const RULE: Rule = Rule { code: codes::KEY_IN_THE_CLEAR, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        let (Some(url), Some(_)) = (model.base_url.as_deref(), &model.api_key) else { continue };
        let clear = url.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("http://"));
        let public = WrittenHost::of(url).and_then(|host| host.name()).is_some_and(|name| !is_private(&name));
        let Some(cursor) = subject.in_project(&format!("/models/{}/base_url", token(name))) else { continue };
        if clear && public {
            let message = format!("the key of the model `{name}` would go over the network in the clear");
            found.push(cursor.inside(0..7).report(&RULE, message).help("write https://"));
        }
    }
}
