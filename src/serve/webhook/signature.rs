//! Whether the signature of a delivery is right: judged over the bytes of its body, before anything of it is read.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use subtle::{Choice, ConstantTimeEq as _};

use super::scheme::{SignatureForm, SignatureScheme, SignedPart, SignedTime};
use crate::language::webhook::{HmacAlgorithm, SignatureEncoding};

/// How many seconds the time of a signature may be away from now.
pub const REPLAY_WINDOW_SECONDS: i64 = 300;
/// The most signatures of one delivery that are compared.
const MAX_SIGNATURES: usize = 8;
/// The longest header with a signature, in bytes.
const MAX_HEADER_BYTES: usize = 4096;
/// What stands for the key where there is none, so that such an answer takes as long as others.
const NO_KEY: &[u8] = b"no key";

/// Why a delivery is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotVerified {
    /// No header has its signature, or none that can be read.
    Unsigned,
    /// The signature has no time.
    Undated,
    /// The signature is that of another secret or another body.
    Wrong,
    /// The signature is right, and was made at this second.
    Stale(i64),
}

impl NotVerified {
    /// For the log.
    pub fn why(self) -> &'static str {
        match self {
            Self::Unsigned => "it has no signature that can be read",
            Self::Undated => "its signature has no time",
            Self::Wrong => "its signature is not made with the secret, or its body was changed",
            Self::Stale(_) => "its signature is of another time",
        }
    }
}

/// Checks the signature of a delivery with each of these secrets. All are compared, in constant time.
///
/// # Errors
/// Why it is not right.
pub fn verify(
    scheme: &SignatureScheme<'_>,
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[&[u8]],
    now_s: i64,
) -> Result<(), NotVerified> {
    let header = one(headers, &scheme.header).filter(|header| header.len() <= MAX_HEADER_BYTES);
    let header = header.ok_or(NotVerified::Unsigned);
    let time = match &scheme.time {
        SignedTime::None => Ok(""),
        SignedTime::Header(name) => one(headers, name).ok_or(NotVerified::Undated),
        SignedTime::Pair(name) => header.and_then(|header| pairs(header, name).next().ok_or(NotVerified::Undated)),
    };
    let signatures = header.map(|header| signatures(scheme, header)).unwrap_or_default();
    let is_known = !secrets.is_empty();
    let secrets = if is_known { secrets } else { &[NO_KEY] };
    let mut is_right = Choice::from(0);
    for secret in secrets {
        let made = made(scheme, secret, time.unwrap_or_default(), body);
        for signature in &signatures {
            is_right |= made.as_ref().ct_eq(signature);
        }
    }
    // What is signed with the key that stands for none is not taken.
    if !is_known {
        return Err(NotVerified::Wrong);
    }
    let time = time?;
    header?;
    if signatures.is_empty() {
        return Err(NotVerified::Unsigned);
    }
    if !bool::from(is_right) {
        return Err(NotVerified::Wrong);
    }
    if matches!(scheme.time, SignedTime::None) {
        return Ok(());
    }
    let signed_s = seconds(time).ok_or(NotVerified::Undated)?;
    if now_s.abs_diff(signed_s) > REPLAY_WINDOW_SECONDS.unsigned_abs() {
        return Err(NotVerified::Stale(signed_s));
    }
    Ok(())
}

/// The text of a header that comes once.
pub fn one<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(header), None) => header.to_str().ok().map(str::trim),
        _ => None,
    }
}

fn pairs<'h>(header: &'h str, name: &'static str) -> impl Iterator<Item = &'h str> {
    let pairs = header.split(',').filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

/// The bytes of the signatures in a header. One that can't be read is none.
fn signatures(scheme: &SignatureScheme<'_>, header: &str) -> Vec<Vec<u8>> {
    let written: Vec<&str> = match scheme.form {
        SignatureForm::Behind(prefix) => header.strip_prefix(prefix).into_iter().collect(),
        SignatureForm::BehindHash => {
            let hash = match scheme.algorithm {
                HmacAlgorithm::Sha1 => "sha1=",
                HmacAlgorithm::Sha256 => "sha256=",
                HmacAlgorithm::Sha512 => "sha512=",
            };
            vec![header.strip_prefix(hash).unwrap_or(header)]
        }
        SignatureForm::Pairs(name) => pairs(header, name).collect(),
    };
    let bytes = |text: &str| match scheme.encoding {
        SignatureEncoding::Hex => hex(text),
        SignatureEncoding::Base64 => STANDARD.decode(text).ok(),
    };
    written.into_iter().take(MAX_SIGNATURES).filter_map(bytes).filter(|bytes| !bytes.is_empty()).collect()
}

/// The signature that a secret gives.
fn made(scheme: &SignatureScheme<'_>, secret: &[u8], time: &str, body: &[u8]) -> hmac::Tag {
    let algorithm = match scheme.algorithm {
        HmacAlgorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        HmacAlgorithm::Sha256 => hmac::HMAC_SHA256,
        HmacAlgorithm::Sha512 => hmac::HMAC_SHA512,
    };
    let mut context = hmac::Context::with_key(&hmac::Key::new(algorithm, secret));
    for part in scheme.signed {
        context.update(match part {
            SignedPart::Text(text) => text.as_bytes(),
            SignedPart::Time => time.as_bytes(),
            SignedPart::Body => body,
        });
    }
    context.sign()
}

/// A time in seconds since 1970: digits and nothing else.
fn seconds(text: &str) -> Option<i64> {
    let is_plain = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok())?
}

/// The bytes of hexadecimal digits, in upper or lower case.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let pair = |[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    if rest.is_empty() { pairs.iter().map(pair).collect() } else { None }
}
