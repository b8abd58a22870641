//! Reads the answer of a server, within limits.

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Method, Response};
use serde_json::{Map, Value, json};

use super::network;
use crate::drive::tool::output::{fault, value};
use crate::engine::event::ToolFault;

/// The most bytes of an answer's body.
pub(super) const MAX_BODY: usize = 10 * 1024 * 1024;

/// The most bytes that are read of the body of an error answer.
const MAX_REFUSAL: usize = 64 * 1024;

/// The headers of an answer to HEAD that are passed on.
const REPORTED_HEADERS: &[&str] =
    &["content-length", "content-type", "etag", "last-modified", "location", "retry-after"];

/// A successful answer as a value.
///
/// # Errors
/// When it is too large, compressed, cut off, or binary.
pub(super) async fn read(response: Response, method: &Method) -> Result<Value, ToolFault> {
    let status = response.status().as_u16();
    if *method == Method::HEAD {
        return Ok(json!({ "status": status, "headers": reported(response.headers()) }));
    }
    if let Some(encoding) = encoding(response.headers()) {
        return Err(fault("compressed answer, not asked for", format!("content-encoding: {encoding}")));
    }
    let content_type = text(response.headers(), CONTENT_TYPE.as_str());
    let (bytes, whole) = body(response, MAX_BODY).await?;
    if !whole {
        return Err(fault("response too large", format!("more than {MAX_BODY} bytes")));
    }
    if bytes.is_empty() {
        return Ok(json!({ "status": status }));
    }
    value(bytes, content_type.as_deref())
}

/// An error answer: its status for the model, its beginning for the operator.
pub(super) async fn refused(response: Response) -> ToolFault {
    let class = format!("http {}", response.status().as_u16());
    let mut detail = text(response.headers(), RETRY_AFTER.as_str())
        .map_or_else(String::new, |wait| format!("retry-after: {wait}\n"));
    match encoding(response.headers()) {
        Some(encoding) => detail.push_str(&format!("content-encoding: {encoding}")),
        None => {
            if let Ok((bytes, _)) = body(response, MAX_REFUSAL).await {
                detail.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }
    fault(class, detail)
}

/// The body's bytes up to `limit`, and whether that is all of it. At the limit the connection is dropped; the
/// length header is not trusted.
async fn body(mut response: Response, limit: usize) -> Result<(Vec<u8>, bool), ToolFault> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(network)? {
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
