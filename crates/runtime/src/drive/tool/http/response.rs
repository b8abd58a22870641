//! Reads the answer of a server, within limits.

use std::borrow::Cow;

use ::http::Method;
use ::http::header::{CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use serde_json::{Map, Value, json};

use super::{network, server};
use crate::drive::clock;
use crate::drive::http_client::Response;
use crate::drive::retry::{self, Transient};
use crate::drive::tool::charset;
use crate::drive::tool::output::{MAX_BODY, MAX_DETAIL, fault, read_json, too_large, value};
use crate::drive::tool::runner::RawFault;
use loopctl_engine::event::ToolFault;

/// The most bytes that are read of the body of an error answer.
const MAX_REFUSAL: usize = 64 * 1024;

/// The status of an answer that is a part, which no request of ours asks for.
const PARTIAL: u16 = 206;

/// The headers of an answer to HEAD that are passed on.
const REPORTED_HEADERS: &[&str] =
    &["content-length", "content-type", "etag", "last-modified", "location", "retry-after"];

/// What of the answers of an action counts as success, and what of the others the model reads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AnswerPolicy<'a> {
    /// The statuses that count as success; the default is 200 to 299 without 206, and without what says that it is a part.
    pub(super) ok_status: Option<&'a [u16]>,
    /// Whether the model reads the body of every other answer.
    pub(super) error_body: bool,
    /// Whether it is a text for a target: a redirect that would make a GET of the request is a failure, because nothing would be sent
    /// then; and what was sent is delivered, whatever the answer is.
    pub(super) is_notice: bool,
    /// Whether the answer is the value of a step, and no text for a model.
    pub(super) is_step: bool,
}

/// A successful answer as a value.
///
/// # Errors
/// When it is too large, compressed, cut off, binary, or a part that the action does not take for the whole.
pub(super) async fn read(response: Response, method: &Method, policy: AnswerPolicy<'_>) -> Result<Value, RawFault> {
    let status = response.status().as_u16();
    if *method == Method::HEAD {
        return Ok(json!({ "status": status, "headers": reported(response.headers()) }));
    }
    let range = text(response.headers(), CONTENT_RANGE.as_str());
    let is_part = status == PARTIAL || range.as_deref().is_some_and(is_part);
    if is_part && policy.ok_status.is_none() {
        return Err(partial(status, range).into());
    }
    if let Some(encoding) = encoding(response.headers()) {
        return Err(fault("compressed answer, not asked for", format!("content-encoding: {encoding}")).into());
    }
    let content_type = text(response.headers(), CONTENT_TYPE.as_str());
    let (bytes, whole) = body(response, MAX_BODY).await?;
    if !whole {
        return Err(too_large().into());
    }
    if bytes.is_empty() {
        return Ok(json!({ "status": status }));
    }
    Ok(value(&bytes, content_type.as_deref(), policy.is_step)?)
}

/// The fault of an answer that is a part of what was asked for.
fn partial(status: u16, range: Option<String>) -> ToolFault {
    let range = range.map(|range| format!("content-range: {range}\n")).unwrap_or_default();
    let detail = format!("{range}an action whose `ok_status` has {status} takes it as the answer");
    fault(format!("http {status}: a part of the answer"), detail)
}

/// Whether a `Content-Range` counts more than the answer has: `bytes 0-99/1000`, also without a unit, as some servers write it. Of
/// `0-24/*` nobody knows.
fn is_part(range: &str) -> bool {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let read = || {
        let (range, all) = range.rsplit(' ').next()?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let held = number(last)?.checked_sub(number(first)?)?.checked_add(1)?;
        Some(number(all)? > held)
    };
    read().unwrap_or(false)
}

/// An error answer: its status for the model, its beginning for the operator. The model reads the body, too, where it is
/// short JSON that says what is wrong with the request; with `error_body`, it reads every text.
pub(super) async fn refused(response: Response, error_body: bool) -> RawFault {
    let status = response.status().as_u16();
    let header = |name: &str| response.headers().get(name).and_then(|text| text.to_str().ok());
    let transient = Transient { status: Some(status), after: retry::asked(status, header, clock::wall_ms()) };
    let content_type = text(response.headers(), CONTENT_TYPE.as_str());
    let (mut answer, mut rest) = (None, String::new());
    let mut detail = text(response.headers(), RETRY_AFTER.as_str())
        .map_or_else(String::new, |wait| format!("retry-after: {wait}\n"));
    match encoding(response.headers()) {
        Some(encoding) => detail.push_str(&format!("content-encoding: {encoding}")),
        None => {
            if let Ok((bytes, whole)) = body(response, MAX_REFUSAL).await {
                let text = charset::decode(&bytes, content_type.as_deref())
                    .map_or_else(|_| String::from_utf8_lossy(&bytes), Cow::Owned);
                let is_short = whole && bytes.len() <= MAX_DETAIL && (400..=499).contains(&status);
                answer = match read_json(&text, content_type.as_deref()).filter(|_| is_short || whole && error_body) {
                    None if error_body && !text.trim().is_empty() => Some(Value::from(text.as_ref())),
                    value => value,
                };
                // What the model reads is not said twice.
                rest = if answer.is_some() { String::new() } else { text.into_owned() };
            }
        }
    }
    detail.push_str(&rest);
    let answer = answer.map(Box::new);
    let fault = fault(format!("http {status}"), detail);
    RawFault { fault, answer, transient: Some(transient), is_uncertain: is_lost(status), asks: None }
}

/// Whether a status says that a proxy lost what became of the request: it passed it on and got no answer.
pub(in crate::drive::tool) fn is_lost(status: u16) -> bool {
    matches!(status, 502 | 504 | 520 | 524 | 598)
}

/// The body's bytes up to `limit`, and whether that is all of it. At the limit the connection is dropped; the
/// length header is not trusted.
async fn body(mut response: Response, limit: usize) -> Result<(Vec<u8>, bool), RawFault> {
    let mut bytes = Vec::new();
    let server = server(response.url());
    while let Some(chunk) = response.chunk().await.map_err(|error| network(error, &server))? {
        if chunk.len() > limit.saturating_sub(bytes.len()) {
            bytes.extend(chunk.iter().take(limit.saturating_sub(bytes.len())));
            return Ok((bytes, false));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, true))
}

fn encoding(headers: &HeaderMap) -> Option<String> {
    text(headers, CONTENT_ENCODING.as_str()).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
}

/// A whole header: a cut one could end in half of a secret, which nobody would find.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned())
}

fn reported(headers: &HeaderMap) -> Map<String, Value> {
    REPORTED_HEADERS.iter().filter_map(|name| Some(((*name).to_owned(), Value::String(text(headers, name)?)))).collect()
}
