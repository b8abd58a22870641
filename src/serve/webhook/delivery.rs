//! What is read of a delivery once its signature is right: its body, its id, and whether it only tries the address.

use axum::http::HeaderMap;
use reqwest::Url;
use ring::digest;
use serde_json::{Map, Value};

use super::scheme::{DeliveryId, Handshake, SignatureScheme};
use super::signature::one;
use crate::program::webhook::CREDENTIAL_HEADERS;
use crate::serve::middleware::has_kind;
use crate::serve::problem::ProblemDetails;
use crate::serve::request;

/// The longest id of a delivery that is taken as it is, in bytes.
const MAX_ID_BYTES: usize = 200;
/// The type of a body that is a form.
const FORM: &str = "application/x-www-form-urlencoded";
/// The field of a form that has the whole body as JSON, as Slack and GitHub send it.
const PAYLOAD: &str = "payload";

/// Whether a delivery is a form.
pub fn is_form(headers: &HeaderMap) -> bool {
    has_kind(headers, FORM)
}

/// The body of a delivery: JSON, or the fields of a form as texts.
///
/// # Errors
/// 400 for a body that is neither.
pub fn body_of(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, ProblemDetails> {
    if !is_form(headers) {
        return request::body(bytes);
    }
    let (Ok(text), Ok(mut url)) = (std::str::from_utf8(bytes), Url::parse("http://localhost/")) else {
        return Err(ProblemDetails::bad_request("the form is no UTF-8"));
    };
    url.set_query(Some(text));
    let mut fields = Map::new();
    for (name, value) in url.query_pairs() {
        let value = Value::from(value);
        match fields.get_mut(&*name) {
            None => drop(fields.insert(name.into_owned(), value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    match (fields.len(), fields.get(PAYLOAD)) {
        (1, Some(Value::String(payload))) => request::body(payload.as_bytes()),
        _ => Ok(Value::Object(fields)),
    }
}

/// The headers of a delivery as a workflow reads them: by their names in lower case, without credentials.
pub fn headers_of(headers: &HeaderMap) -> Map<String, Value> {
    let plain = headers.keys().filter(|name| !CREDENTIAL_HEADERS.contains(&name.as_str()));
    let texts = plain.filter_map(|name| Some((name.as_str().to_owned(), Value::from(one(headers, name.as_str())?))));
    texts.collect()
}

/// The id of a delivery: that of the service, or else the digest of its body. The time is no part of it: a service that sends a
/// delivery again signs it anew.
pub fn id_of(scheme: &SignatureScheme<'_>, headers: &HeaderMap, body: &Value, bytes: &[u8]) -> String {
    let given = match &scheme.id {
        DeliveryId::Header(name) => one(headers, name),
        DeliveryId::Member(name) => body.get(*name).and_then(Value::as_str),
        DeliveryId::None => None,
    };
    let is_id = |id: &&str| (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(id) = given.filter(is_id) {
        return id.to_owned();
    }
    let digits: String =
        digest::digest(&digest::SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// A delivery that only tries the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressTest {
    /// It wants this text back.
    Challenge(String),
    /// Any answer of success is enough.
    Ping,
}

/// Whether a delivery only tries the address.
pub fn address_test(scheme: &SignatureScheme<'_>, headers: &HeaderMap, body: &Value) -> Option<AddressTest> {
    match scheme.handshake {
        Handshake::None => None,
        Handshake::Header(name, value) => (one(headers, name) == Some(value)).then_some(AddressTest::Ping),
        Handshake::Challenge => {
            if body.get("ssl_check").is_some_and(|check| check == "1") {
                return Some(AddressTest::Ping);
            }
            let is_it = body.get("type").is_some_and(|kind| kind == "url_verification");
            let challenge = body.get("challenge").and_then(Value::as_str);
            challenge.filter(|_| is_it).map(|challenge| AddressTest::Challenge(challenge.to_owned()))
        }
    }
}
