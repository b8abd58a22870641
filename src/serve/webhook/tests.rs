//! Signatures, with the vectors that the services publish, and what is read of deliveries.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Value, json};

use super::delivery::{AddressTest, address_test, body_of, headers_of, id_of};
use super::scheme::SignatureScheme;
use super::signature::{NotVerified, REPLAY_WINDOW_SECONDS, verify};
use crate::language::webhook::{HmacAlgorithm, HmacSettings, SignatureEncoding, Webhook};
use crate::program::webhook::FlowWebhook;

/// A delivery that a service publishes, with its signature.
struct PublishedDelivery {
    verify: &'static str,
    hmac: Value,
    secret: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    /// The second of the signature.
    at_s: Option<i64>,
    id: &'static str,
}

/// Of `docs.github.com`, "Validating webhook deliveries".
const GITHUB: PublishedDelivery = PublishedDelivery {
    verify: "github",
    hmac: Value::Null,
    secret: "It's a Secret to Everybody",
    headers: &[
        ("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
        ("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
    ],
    body: "Hello, World!",
    at_s: None,
    id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
};

/// Of `docs.slack.dev`, "Verifying requests from Slack".
const SLACK: PublishedDelivery = PublishedDelivery {
    verify: "slack",
    hmac: Value::Null,
    secret: "8f742231b10e8888abcd99yyyzzz85a5",
    headers: &[
        ("X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
        ("X-Slack-Request-Timestamp", "1531420618"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ],
    body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    at_s: Some(1_531_420_618),
    id: "sha256:",
};

/// Of the tests of Stripe's own library for .NET: its documentation publishes no secret.
const STRIPE: PublishedDelivery = PublishedDelivery {
    verify: "stripe",
    hmac: Value::Null,
    secret: "webhook_secret",
    headers: &[(
        "Stripe-Signature",
        "t=1533204620,v1=2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7,v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef",
    )],
    body: r#"{
  "id": "evt_123",
  "object": "event",
  "account": "acct_123",
  "api_version": "2017-05-25",
  "created": 1533204620,
  "data": {
    "object": {
      "id": "cus_123",
      "object": "customer",
      "created": 123456789,
      "email": "test@stripe.com",
      "livemode": false,
      "metadata": {}
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": "req_123",
    "idempotency_key": "idempotency-key-123"
  },
  "type": "customer.created"
}
"#,
    at_s: Some(1_533_204_620),
    id: "evt_123",
};

/// Case 2 of RFC 4231.
const HMAC: PublishedDelivery = PublishedDelivery {
    verify: "hmac",
    hmac: Value::Null,
    secret: "Jefe",
    headers: &[("X-Signature", "5BDCC146BF60754E6A042426089575C75A003F089D2739839DEC58B964EC3843")],
    body: "what do ya want for nothing?",
    at_s: None,
    id: "sha256:",
};

fn webhook(verify: &str, hmac: &Value) -> FlowWebhook {
    let written = json!({ "verify": verify, "secret": "orgconfig:hook" });
    let mut written = written.as_object().cloned().unwrap();
    if !hmac.is_null() {
        written.insert("hmac".to_owned(), hmac.clone());
    }
    let written: Webhook = serde_json::from_value(Value::Object(written)).unwrap();
    FlowWebhook::of(&written, "payments").unwrap()
}

fn headers(all: &[(&str, &str)]) -> HeaderMap {
    let header =
        |(name, value): &(&str, &str)| (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    all.iter().map(header).collect()
}

/// What comes of a published delivery with another body, secret, header or moment.
fn judged(
    delivery: &PublishedDelivery,
    sent: &HeaderMap,
    body: &str,
    secrets: &[&str],
    now_s: i64,
) -> Result<(), NotVerified> {
    let webhook = webhook(delivery.verify, &delivery.hmac);
    let secrets: Vec<&[u8]> = secrets.iter().map(|secret| secret.as_bytes()).collect();
    verify(&SignatureScheme::of(&webhook), sent, body.as_bytes(), &secrets, now_s)
}

#[test]
fn the_signatures_that_the_services_publish_are_right_and_no_others() {
    for delivery in [GITHUB, SLACK, STRIPE, HMAC] {
        let PublishedDelivery { verify, secret, body, at_s, id, .. } = delivery;
        let (sent, now_s) = (headers(delivery.headers), at_s.unwrap_or(1_800_000_000));
        let judged =
            |sent: &HeaderMap, body: &str, secrets: &[&str], now_s| judged(&delivery, sent, body, secrets, now_s);
        assert_eq!(judged(&sent, body, &[secret], now_s), Ok(()), "{verify}");
        assert_eq!(judged(&sent, body, &["another", secret], now_s), Ok(()), "{verify}: while a secret is replaced");
        assert_eq!(judged(&sent, body, &["another"], now_s), Err(NotVerified::Wrong), "{verify}");
        assert_eq!(judged(&sent, body, &[], now_s), Err(NotVerified::Wrong), "{verify}: no secret can be read");
        assert_eq!(judged(&sent, body, &["no key"], now_s), Err(NotVerified::Wrong), "{verify}");
        assert_eq!(judged(&sent, &format!("{body} "), &[secret], now_s), Err(NotVerified::Wrong), "{verify}");
        assert!(judged(&HeaderMap::new(), body, &[secret], now_s).is_err(), "{verify}: unsigned");
        let mut twice = sent.clone();
        let first = HeaderName::try_from(delivery.headers[0].0).unwrap();
        twice.append(&first, HeaderValue::from_static("sha256=00"));
        assert!(judged(&twice, body, &[secret], now_s).is_err(), "{verify}: two signatures");
        for text in ["", "sha256=", "v0=", "t=,v1=", "t=1533204620", "v1=00", "t=x,v1=00", ",,", "zz", "sha256=zz", "é"]
        {
            let mut other = sent.clone();
            other.insert(&first, HeaderValue::from_bytes(text.as_bytes()).unwrap());
            assert!(judged(&other, body, &[secret], now_s).is_err(), "{verify}: {text}");
        }
        if let Some(at_s) = at_s {
            for away_s in [-REPLAY_WINDOW_SECONDS, REPLAY_WINDOW_SECONDS] {
                assert_eq!(judged(&sent, body, &[secret], at_s + away_s), Ok(()), "{verify}");
                let beyond = judged(&sent, body, &[secret], at_s + away_s + away_s.signum());
                assert_eq!(beyond, Err(NotVerified::Stale(at_s)), "{verify}");
                // Nobody without the secret learns that the time is wrong.
                assert_eq!(judged(&sent, body, &["x"], at_s + 2 * away_s), Err(NotVerified::Wrong), "{verify}");
            }
        }
        let webhook = webhook(verify, &delivery.hmac);
        let parsed = body_of(&sent, body.as_bytes()).unwrap_or_default();
        let given = id_of(&SignatureScheme::of(&webhook), &sent, &parsed, body.as_bytes());
        assert!(given == id || (id == "sha256:" && given.len() == 71 && given.starts_with(id)), "{verify}: {given}");
    }
}

#[test]
fn an_hmac_is_that_of_the_declared_header_hash_and_encoding() {
    // Made with `openssl dgst -HASH -hmac k -binary`, of `{"id":1}`, and of `1800000000.{"id":1}` with the time.
    for (settings, header, value) in [
        (json!({}), "X-Signature", "sha256=e6b9ba55d2ee8a4c4f1c7f3fd4a0b5f9"),
        (json!({ "header": "X-Shop-Hmac" }), "X-Other", "00"),
    ] {
        let webhook = webhook("hmac", &settings);
        let sent = headers(&[(header, value)]);
        assert!(verify(&SignatureScheme::of(&webhook), &sent, br#"{"id":1}"#, &[b"k"], 0).is_err(), "{settings}");
    }
    for (settings, value) in made_signatures() {
        let settings_json = serde_json::to_value(&settings).unwrap();
        let webhook = webhook("hmac", &settings_json);
        let sent = headers(&[("X-Sig", value), ("X-Time", "1800000000")]);
        let judged = |now_s| verify(&SignatureScheme::of(&webhook), &sent, br#"{"id":1}"#, &[b"k"], now_s);
        assert_eq!(judged(1_800_000_000), Ok(()), "{settings_json}");
        let later = judged(1_800_000_301);
        let is_dated = settings.timestamp.is_some();
        assert_eq!(later, if is_dated { Err(NotVerified::Stale(1_800_000_000)) } else { Ok(()) }, "{settings_json}");
    }
}

fn made_signatures() -> Vec<(HmacSettings, &'static str)> {
    let settings = |algorithm, encoding, timestamp: Option<&str>| HmacSettings {
        header: Some("X-Sig".to_owned()),
        algorithm: Some(algorithm),
        encoding: Some(encoding),
        timestamp: timestamp.map(str::to_owned),
        id: None,
    };
    let (hex, base64) = (SignatureEncoding::Hex, SignatureEncoding::Base64);
    vec![
        (settings(HmacAlgorithm::Sha1, hex, None), "9c0673e7087d8b1a227e56b8f00188c3bab84998"),
        (settings(HmacAlgorithm::Sha1, hex, None), "sha1=9c0673e7087d8b1a227e56b8f00188c3bab84998"),
        (settings(HmacAlgorithm::Sha256, base64, None), "1VB1oHttB+ixAW/9te/WkDGW99qVMMxQXJuniMBwypY="),
        (
            settings(HmacAlgorithm::Sha512, base64, None),
            "2G/yBGi28DdCIJPd1fnHRKbNHBmt9bwBjJ9vOmZWzd3dqoipqtQDZQoJ7sdM3Xxgozei41xBb6S5Zj0s7JjPlw==",
        ),
        (
            settings(HmacAlgorithm::Sha256, hex, Some("x-time")),
            "afe602d50615cab28db3884a7f0e5f647287f8a311b7849063d75a082a349130",
        ),
    ]
}

#[test]
fn a_body_is_json_or_a_form_and_nothing_else() {
    let form = headers(&[("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")]);
    let json = headers(&[("Content-Type", "application/json")]);
    let read = |headers: &HeaderMap, body: &[u8]| body_of(headers, body).map_err(|problem| problem.detail);
    assert_eq!(read(&json, br#"{"a": 1.50}"#).unwrap().to_string(), r#"{"a":1.50}"#);
    assert_eq!(read(&HeaderMap::new(), b"[1]").unwrap(), json!([1]), "a body without a type");
    assert_eq!(read(&form, b"text=a+b%26c&text=d&n=7").unwrap(), json!({ "text": ["a b&c", "d"], "n": "7" }));
    assert_eq!(read(&form, b"payload=%7B%22type%22%3A%22x%22%7D").unwrap(), json!({ "type": "x" }));
    assert_eq!(read(&form, b"payload=%7B%7D&more=1").unwrap(), json!({ "payload": "{}", "more": "1" }));
    for (headers, body) in [
        (&json, &b""[..]),
        (&json, b"text=1"),
        (&json, br#"{"a": 1, "a": 2}"#),
        (&json, b"\xff"),
        (&form, b"payload=%7B"),
        (&form, b"a=\xff"),
    ] {
        assert!(read(headers, body).is_err(), "{body:?}");
    }
}

#[test]
fn a_workflow_reads_headers_by_their_lower_names_and_no_credentials() {
    let mut sent = headers(&[
        ("X-GitHub-Event", "push"),
        ("Authorization", "Bearer t"),
        ("Cookie", "s=1"),
        ("Proxy-Authorization", "Basic x"),
        ("X-Twice", "1"),
    ]);
    sent.append("x-twice", HeaderValue::from_static("2"));
    sent.insert("x-bytes", HeaderValue::from_bytes(b"\xff").unwrap());
    assert_eq!(Value::Object(headers_of(&sent)), json!({ "x-github-event": "push" }));
    assert!(sent.contains_key(header::AUTHORIZATION));
}

#[test]
fn an_id_that_is_no_plain_text_is_none() {
    let webhook = webhook("hmac", &json!({ "id": "X-Id" }));
    let scheme = SignatureScheme::of(&webhook);
    let id = |value: &str, body: &[u8]| id_of(&scheme, &headers(&[("X-Id", value)]), &Value::Null, body);
    assert_eq!(id("a-1", b"x"), "a-1");
    let long = "x".repeat(201);
    for other in ["", "a b", long.as_str()] {
        assert_eq!(id(other, b"x"), id("", b"x"), "{other}");
    }
    assert_ne!(id("", b"x"), id("", b"y"));
}

#[test]
fn what_only_tries_the_address_is_known() {
    let test = |verify: &str, sent: &[(&str, &str)], body: Value| {
        address_test(&SignatureScheme::of(&webhook(verify, &Value::Null)), &headers(sent), &body)
    };
    let challenge = json!({ "type": "url_verification", "challenge": "c", "token": "t" });
    assert_eq!(test("slack", &[], challenge.clone()), Some(AddressTest::Challenge("c".to_owned())));
    assert_eq!(test("stripe", &[], challenge), None);
    assert_eq!(test("slack", &[], json!({ "ssl_check": "1", "token": "t" })), Some(AddressTest::Ping));
    assert_eq!(test("slack", &[], json!({ "type": "event_callback" })), None);
    assert_eq!(test("github", &[("X-GitHub-Event", "ping")], json!({ "zen": "z" })), Some(AddressTest::Ping));
    assert_eq!(test("github", &[("X-GitHub-Event", "push")], json!({})), None);
}
