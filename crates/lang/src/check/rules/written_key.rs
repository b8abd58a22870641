//! A model's key, or the value of a secret header, that does not say where it is.

use super::written_secret::{is_misspelt_source, is_source, with_help};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::policy::model_header;
use crate::policy::secret_names::{Secrecy, secrecy};
use crate::policy::secret_shapes;
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::WRITTEN_KEY, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        let key = model.api_key.as_ref().and_then(|source| source.written());
        if let Some(source) = key.filter(|source| !is_source(source)) {
            let Some(cursor) = subject.in_project(&format!("/models/{}/api_key", token(name))) else { continue };
            if subject.is_reported(&cursor.place()) {
                continue;
            }
            let message = format!("`api_key` of the model `{name}` must say where the key is, and not what it is");
            let fault = cursor.report(&RULE, message);
            let key = source.strip_prefix("orgconfig:").and_then(|key| project.orgconfig.get(key)?.written());
            found.push(match key.filter(|source| is_source(source)) {
                Some(source) => fault.help(format!("it takes the source itself: `{source}`")).suggest(quoted(source)),
                None => with_help(fault, source),
            });
        }
        for (header, source) in &model.headers {
            let Some(text) = source.written().filter(|text| is_written_out(header, text)) else { continue };
            let place = format!("/models/{}/headers/{}", token(name), token(header));
            let Some(cursor) = subject.in_project(&place) else { continue };
            // The value may be the secret itself: it is not repeated.
            let message = format!("the header `{header}` of the model `{name}` must say where its value is");
            found.push(with_help(cursor.report(&RULE, message), text));
        }
    }
}

/// Whether the text of a header is a secret, or was meant to say where one is.
fn is_written_out(header: &str, text: &str) -> bool {
    if model_header::is_source(text) {
        return !is_source(text);
    }
    if text.strip_prefix("orgconfig:").is_some_and(|key| !key.is_empty()) {
        return false;
    }
    secrecy(header) != Secrecy::None || is_misspelt_source(text) || !secret_shapes::find(text).is_empty()
}
