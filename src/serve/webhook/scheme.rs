//! How services sign their deliveries: one row for each, and what `hmac` of a document says.

use std::borrow::Cow;

use crate::language::webhook::{HmacAlgorithm, HmacSettings, SignatureEncoding, WebhookScheme};
use crate::program::webhook::FlowWebhook;

/// How a service signs its deliveries.
#[derive(Debug, Clone)]
pub struct SignatureScheme<'s> {
    /// The header with the signature.
    pub header: Cow<'s, str>,
    /// How the signature stands in it.
    pub form: SignatureForm,
    /// The hash of the HMAC.
    pub algorithm: HmacAlgorithm,
    /// How its bytes are written.
    pub encoding: SignatureEncoding,
    /// Where the time of the signature is.
    pub time: SignedTime<'s>,
    /// What is signed, one after the other.
    pub signed: &'static [SignedPart],
    /// Where the id of a delivery is.
    pub id: DeliveryId<'s>,
    /// What the service sends to try the address, and which starts no run.
    pub handshake: Handshake,
}

/// How a signature stands in its header.
#[derive(Debug, Clone, Copy)]
pub enum SignatureForm {
    /// Alone, behind this text.
    Behind(&'static str),
    /// Alone; the name of the hash and `=` may be before it.
    BehindHash,
    /// In pairs with commas between them, once or several times under this name.
    Pairs(&'static str),
}

/// Where the time of a signature is, in seconds since 1970.
#[derive(Debug, Clone)]
pub enum SignedTime<'s> {
    /// Nowhere: a delivery can be sent again at any time.
    None,
    /// In this header.
    Header(Cow<'s, str>),
    /// In the pairs of the signature, under this name.
    Pair(&'static str),
}

/// A part of what is signed.
#[derive(Debug, Clone, Copy)]
pub enum SignedPart {
    /// This text.
    Text(&'static str),
    /// The time, as it was sent.
    Time,
    /// The body, as it was sent.
    Body,
}

/// Where the id of a delivery is.
#[derive(Debug, Clone)]
pub enum DeliveryId<'s> {
    /// In this header.
    Header(Cow<'s, str>),
    /// In this member of the body.
    Member(&'static str),
    /// Nowhere.
    None,
}

/// What a service sends to try an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// Nothing.
    None,
    /// A delivery with this header and value.
    Header(&'static str, &'static str),
    /// A body of `"type": "url_verification"`, whose `challenge` is the answer; or a form with `ssl_check=1`.
    Challenge,
}

/// The services, in the order of their words.
static SERVICES: [(WebhookScheme, SignatureScheme<'static>); 3] = [
    (
        WebhookScheme::Github,
        SignatureScheme {
            header: Cow::Borrowed("x-hub-signature-256"),
            form: SignatureForm::Behind("sha256="),
            algorithm: HmacAlgorithm::Sha256,
            encoding: SignatureEncoding::Hex,
            time: SignedTime::None,
            signed: &[SignedPart::Body],
            id: DeliveryId::Header(Cow::Borrowed("x-github-delivery")),
            handshake: Handshake::Header("x-github-event", "ping"),
        },
    ),
    (
        WebhookScheme::Slack,
        SignatureScheme {
            header: Cow::Borrowed("x-slack-signature"),
            form: SignatureForm::Behind("v0="),
            algorithm: HmacAlgorithm::Sha256,
            encoding: SignatureEncoding::Hex,
            time: SignedTime::Header(Cow::Borrowed("x-slack-request-timestamp")),
            signed: &[SignedPart::Text("v0:"), SignedPart::Time, SignedPart::Text(":"), SignedPart::Body],
            id: DeliveryId::Member("event_id"),
            handshake: Handshake::Challenge,
        },
    ),
    (
        WebhookScheme::Stripe,
        SignatureScheme {
            header: Cow::Borrowed("stripe-signature"),
            form: SignatureForm::Pairs("v1"),
            algorithm: HmacAlgorithm::Sha256,
            encoding: SignatureEncoding::Hex,
            time: SignedTime::Pair("t"),
            signed: &[SignedPart::Time, SignedPart::Text("."), SignedPart::Body],
            id: DeliveryId::Member("id"),
            handshake: Handshake::None,
        },
    ),
];

impl<'s> SignatureScheme<'s> {
    /// How the deliveries to a webhook are signed.
    pub fn of(webhook: &'s FlowWebhook) -> Self {
        let known = SERVICES.iter().find(|(scheme, _)| *scheme == webhook.scheme);
        known.map_or_else(|| Self::of_settings(&webhook.hmac), |(_, scheme)| scheme.clone())
    }

    /// The same for `hmac`. By default it is that of an address that nobody has: a request to it takes as long.
    pub fn of_settings(settings: &'s HmacSettings) -> Self {
        let HmacSettings { header, algorithm, encoding, timestamp, id } = settings;
        let lower = |name: &String| Cow::Owned(name.to_ascii_lowercase());
        Self {
            header: header.as_ref().map_or(Cow::Borrowed("x-signature"), lower),
            form: SignatureForm::BehindHash,
            algorithm: algorithm.unwrap_or_default(),
            encoding: encoding.unwrap_or_default(),
            time: timestamp.as_ref().map_or(SignedTime::None, |name| SignedTime::Header(lower(name))),
            signed: match timestamp {
                Some(_) => &[SignedPart::Time, SignedPart::Text("."), SignedPart::Body],
                None => &[SignedPart::Body],
            },
            id: id.as_ref().map_or(DeliveryId::None, |name| DeliveryId::Header(lower(name))),
            handshake: Handshake::None,
        }
    }
}
