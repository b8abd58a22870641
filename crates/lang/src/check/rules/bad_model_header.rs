//! A header of a model that can't be sent.

use std::collections::BTreeMap;

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ModelAuth;
use crate::language::project::Model;
use crate::policy::aws_host::{self, BedrockHost};
use crate::policy::host::WrittenHost;
use crate::policy::model_header;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::BAD_MODEL_HEADER, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        let place = format!("/models/{}", token(name));
        let is_at_odds = matches!(model.auth, Some(ModelAuth::None | ModelAuth::Sigv4)) && model.api_key.is_some();
        if let Some(cursor) = subject.in_project(&format!("{place}/auth")).filter(|_| is_at_odds) {
            let message = format!("`auth` of the model `{name}` says that no key is sent, and `api_key` gives one");
            let help = "take `api_key` out, or say how it is sent: \"bearer\", \"x-api-key\", \"api-key\"";
            found.push(cursor.report(&RULE, message).help(help));
        }
        let base_url = subject.in_project(&format!("{place}/base_url"));
        if let (Some(cursor), Some(host)) = (base_url, foreign_host(model)) {
            let message =
                format!("the requests of the model `{name}` are signed for AWS, and `{host}` is no host of Bedrock");
            let help = "write an address such as \"https://bedrock-runtime.REGION.amazonaws.com/openai/v1\", or \
                        \"env:VAR\" for an address of your own";
            found.push(cursor.report(&RULE, message).help(help));
        }
        let mut known = BTreeMap::new();
        for (header, source) in &model.headers {
            let Some(cursor) = subject.in_project(&format!("{place}/headers/{}", token(header))) else { continue };
            let twin = known.insert(header.to_ascii_lowercase(), header);
            if let Some((message, help)) = fault(model, header, twin) {
                found.push(cursor.key().report(&RULE, message).help(help));
            } else if let Some(text) = source.written().filter(|text| !model_header::is_sendable(text)) {
                found.push(unsendable(&cursor, header, text));
            }
        }
    }
}

/// The host of a model whose requests are signed, if AWS's credentials are not sent there.
fn foreign_host(model: &Model) -> Option<String> {
    let url = model.base_url.as_deref().filter(|_| model.auth == Some(ModelAuth::Sigv4))?;
    let host = WrittenHost::of(url.trim())?.name()?;
    BedrockHost::of(&host).is_none().then_some(host)
}

/// Why a header can't be sent, and what to do.
fn fault(model: &Model, header: &str, twin: Option<&String>) -> Option<(String, String)> {
    if let Some(why) = model_header::name_fault(header) {
        return Some((format!("the header `{header}` can't be sent: {why}"), "take it out".to_owned()));
    }
    if let Some(twin) = twin {
        let message = format!("the header `{header}` stands here twice: `{twin}` is the same one");
        return Some((message, "keep one of them".to_owned()));
    }
    let sends = |name: &str| header.eq_ignore_ascii_case(name);
    if model.auth == Some(ModelAuth::Sigv4) && aws_host::SIGNATURE_HEADERS.into_iter().any(sends) {
        let message = format!("the header `{header}` is a part of the signature that \"auth\": \"sigv4\" makes");
        return Some((message, "take it out".to_owned()));
    }
    if model.api_key.is_some() && key_header(model).is_some_and(sends) {
        let message = format!("`api_key` is sent as the header `{header}`, which is given here too");
        return Some((message, "keep one of them, or let `auth` say that the key is another header".to_owned()));
    }
    None
}

/// The header that carries the key of a model.
fn key_header(model: &Model) -> Option<&'static str> {
    let own = model.provider.facts().server.as_ref().map(|server| server.key_header);
    model.auth.map_or(own, ModelAuth::header)
}

fn unsendable(cursor: &Cursor<'_>, header: &str, text: &str) -> Diagnostic {
    let sign = text.chars().find(|c| !model_header::is_sendable(&c.to_string())).unwrap_or_default();
    let message = format!("the value of the header `{header}` has a sign that no header can carry: {sign:?}");
    cursor.report(&RULE, message).help("write it in printable ASCII")
}
