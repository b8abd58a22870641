//! The request of an action, with every value in its place.

use std::collections::BTreeMap;

use ::http::Method;
use ::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value};
use url::Url;

use super::notice;
use super::query_pairs::{FormPairs, RESERVED, encode, media_type, plain};
use crate::drive::http_client::Request;
use crate::drive::run_meter::TraceContext;
use crate::drive::tool::call::ToolCall;
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::compile::tool::strays;
use loopctl_lang::language::action::ValueStyle;
use loopctl_lang::policy::host::names_host;
use loopctl_lang::program::reference::{Scope, Unresolved};
use loopctl_lang::program::{BareValues, Body, HttpTool};

/// Headers that frame the message or name its receiver: the client sets them.
const OURS: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "accept-encoding",
];

/// A request that can be sent, and changed by a redirect.
#[derive(Debug, Clone)]
pub(super) struct HttpRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

impl HttpRequest {
    /// Converts the request for the client.
    pub(super) fn to_wire(&self) -> Request {
        let mut request = Request::new(self.method.clone(), self.url.clone());
        request.headers_mut().clone_from(&self.headers);
        *request.body_mut() = self.body.clone().map(Into::into);
        request
    }
}

/// A schema names a format, and does not compare values with it: those that go into a body as they are must not have its
/// signs.
fn keep_signs_out(bare: Option<&BareValues>, input: &Value) -> Result<(), ToolFault> {
    let Some(BareValues { formats, signs }) = bare else { return Ok(()) };
    let text_of = |name: &String| input.get(name).and_then(Value::as_str);
    let is_wrong =
        |(name, _): &&(String, String)| text_of(name).is_some_and(|text| text.contains(|c| signs.contains(c)));
    formats.iter().find(is_wrong).map_or(Ok(()), |(name, format)| {
        let why = format!("`{name}` is no `{format}`, and its signs would be read as parts of the body");
        Err(fault("a value is missing or can't be used", why))
    })
}

/// The request of a call.
///
/// # Errors
/// When a value is missing, the address is not valid, or a header's value is not allowed in a header.
pub(super) fn build(tool: &HttpTool, call: &ToolCall<'_>, scope: &Scope<'_>) -> Result<HttpRequest, ToolFault> {
    if let Some(why) = strays(tool) {
        return Err(fault("secret not sent", why));
    }
    let action = &tool.action;
    let method = Method::from_bytes(action.http_method.as_str().as_bytes())
        .map_err(|error| fault("request not valid", error.to_string()))?;
    let mut url = parse_url(&tool.url.render(scope).map_err(missing)?)?;
    let mut headers = Vec::new();
    for (name, field) in &tool.headers {
        match field.resolve_member(scope).map_err(missing)?.unwrap_or_default() {
            Value::Null => {}
            value => headers.push((name.clone(), plain(&value))),
        }
    }
    let mut query = FormPairs::default();
    for (name, field) in &tool.query {
        let value = field.resolve_member(scope).map_err(missing)?.unwrap_or_default();
        query.add(name, &value, action.query_style.get(name).copied().unwrap_or_default())?;
    }
    keep_signs_out(tool.bare.as_ref(), call.input)?;
    let declared = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str()));
    let content_type = declared.map_or_else(|| action.content_type.clone(), |(_, value)| value.clone());
    let body = match &tool.body {
        Some(Body::Json(field)) => {
            let value = field.resolve_member(scope).map_err(missing)?;
            value.map(|value| made(&value, &content_type, &action.form_style)).transpose()?
        }
        // An empty text is no body.
        Some(Body::Text(template)) => {
            Some(template.render(scope).map_err(missing)?.into_bytes()).filter(|body| !body.is_empty())
        }
        Some(Body::Notice(kind)) => {
            Some(made(&notice::body(*kind, call.input, &call.key()), &content_type, &action.form_style)?)
        }
        None => {
            let unused = unused(call.input, &tool.used);
            if action.http_method.has_body() {
                Some(made(&Value::Object(unused), &content_type, &action.form_style)?)
            } else {
                let named = query.names();
                for (name, value) in unused.iter().filter(|(name, _)| !named.contains(name)) {
                    query.add(name, value, action.query_style.get(name).copied().unwrap_or_default())?;
                }
                None
            }
        }
    };
    query.add_to(&mut url);
    let content_type = body.is_some().then_some(content_type.as_str());
    let mut headers = header_map(&headers, &call.key(), content_type)?;
    if let Some(trace) = &call.trace {
        join_trace(&mut headers, trace);
    }
    Ok(HttpRequest { method, url, headers, body })
}

fn missing(missing: Unresolved) -> ToolFault {
    fault("a value is missing or can't be used", missing.why)
}

/// Parses a rendered address. Parts that a parser would silently remove or fold (control characters, spaces
/// around it, `..` in the path) are refused: a value must not lead to another path.
pub(super) fn parse_url(text: &str) -> Result<Url, ToolFault> {
    let refuse = |why: &str| fault("address not valid", why);
    if text.chars().any(|c| c.is_control() || c == ' ') {
        return Err(refuse("it has a space or a control character"));
    }
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    if !names_host(text) {
        return Err(refuse("it names no host: the value in the place of the host is empty"));
    }
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let is_dots = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if path.split(['/', '\\']).skip(1).any(is_dots) {
        return Err(refuse("its path has a `.` or `..` part"));
    }
    Url::parse(text).map_err(|error| refuse(&error.to_string()))
}

/// The fields of the input that neither the address nor the headers nor the query use.
fn unused(input: &Value, used: &[String]) -> Map<String, Value> {
    match input {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !used.contains(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        _ => Map::new(),
    }
}

/// A body of the content type that is sent, which a value may have chosen.
///
/// # Errors
/// For a type of several parts, unless the value is the text of them.
fn made(value: &Value, content_type: &str, styles: &BTreeMap<String, ValueStyle>) -> Result<Vec<u8>, ToolFault> {
    match media_type(content_type) {
        kind if kind.starts_with("multipart/") && !value.is_string() => {
            let why = format!("no body of type `{kind}` is made here: it would be sent without its parts");
            Err(fault("request not valid", why))
        }
        _ => encode(value, content_type, styles),
    }
}

/// The headers of a request: the declared ones, then the defaults for those that are missing.
///
/// # Errors
/// For a value with a control character, an invalid name, and a name that the client sets.
pub(super) fn header_map(
    declared: &[(String, String)],
    key: &str,
    content_type: Option<&str>,
) -> Result<HeaderMap, ToolFault> {
    let mut headers = HeaderMap::new();
    for (name, value) in declared {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| fault("header not allowed", format!("`{}` is no header name", name.escape_default())))?;
        if OURS.contains(&name.as_str()) {
            return Err(fault("header not allowed", format!("`{name}` is set by loopctl itself")));
        }
        let value = header_value(name.as_str(), value)?;
        headers.append(name, value);
    }
    let mut default = |name: HeaderName, value: HeaderValue| {
        headers.entry(name).or_insert(value);
    };
    if let Some(content_type) = content_type {
        default(CONTENT_TYPE, header_value("content-type", content_type)?);
    }
    default(ACCEPT, HeaderValue::from_static("application/json"));
    default(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let key = utf8_percent_encode(key, RESERVED).to_string();
    default(HeaderName::from_static("idempotency-key"), header_value("idempotency-key", &key)?);
    Ok(headers)
}

/// Adds the place in the trace, unless the document declares one. What can't be in a header is left out: a trace fails no call.
fn join_trace(headers: &mut HeaderMap, trace: &TraceContext) {
    let names = [HeaderName::from_static("traceparent"), HeaderName::from_static("tracestate")];
    if names.iter().any(|name| headers.contains_key(name)) {
        return;
    }
    for (name, text) in names.into_iter().zip([Some(&trace.parent), trace.state.as_ref()]) {
        if let Some(Ok(value)) = text.map(|text| header_value(name.as_str(), text)) {
            headers.insert(name, value);
        }
    }
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, ToolFault> {
    // The client allows tabs; here no control character of a value is allowed.
    let bad = |c: char| u32::from(c) < 0x20 || c == '\u{7f}';
    if value.contains(bad) {
        return Err(fault("header not allowed", format!("the value of `{name}` has a control character")));
    }
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| fault("header not allowed", format!("the value of `{name}` can't stand in a header")))?;
    // Keeps it out of the client's own debug output: any header may contain a secret.
    value.set_sensitive(true);
    Ok(value)
}
