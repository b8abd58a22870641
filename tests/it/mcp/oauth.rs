//! Servers that take access tokens only: how a client asks for one, and to whom its credentials never go.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use percent_encoding::percent_decode_str;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};

use super::pin;
use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, observed, think};

const SECRET: &str = "s3cr3t of the desk+";

/// An authorization server, and the server that takes its tokens: what they say, and what was given.
#[derive(Default)]
struct Guarded {
    /// Members of the metadata of the server, and of the authorization server; null takes one out.
    resource: Value,
    issuer: Value,
    /// Members of the answer with a token, and its status.
    token: Value,
    refuses: Option<(u16, &'static str)>,
    /// Whether there is no metadata of the server.
    is_silent: bool,
    given: Mutex<Vec<GivenToken>>,
}

#[derive(Clone)]
struct GivenToken {
    text: String,
    scope: String,
    is_revoked: bool,
}

/// A field of a form; empty where it is not sent.
fn field(request: &Request, name: &str) -> String {
    let text = request.text().replace('+', " ");
    let of = |pair: &str| pair.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
    let coded = text.split('&').find_map(of).unwrap_or_default();
    percent_decode_str(&coded).decode_utf8().unwrap().into_owned()
}

/// An object with other members in the place of its own; null takes one out.
fn with(mut object: Value, more: &Value) -> Value {
    let members = object.as_object_mut().unwrap();
    for (name, value) in more.as_object().into_iter().flatten() {
        match value {
            Value::Null => drop(members.remove(name)),
            value => drop(members.insert(name.clone(), value.clone())),
        }
    }
    object
}

impl Guarded {
    fn answer(&self, request: &Request) -> Answer {
        let here = format!("http://{}", request.header("host").unwrap_or_default());
        match &*request.path {
            "/.well-known/oauth-protected-resource/mcp" if !self.is_silent => Answer::json(&with(
                json!({ "resource": format!("{here}/mcp"), "authorization_servers": [format!("{here}/as")] }),
                &self.resource,
            )),
            "/.well-known/oauth-authorization-server/as" => Answer::json(&with(
                json!({ "issuer": format!("{here}/as"), "token_endpoint": format!("{here}/as/token") }),
                &self.issuer,
            )),
            "/as/token" => self.token(request),
            "/mcp" => self.message(request, &here),
            _ => Answer::json("{}").status(404),
        }
    }

    fn token(&self, request: &Request) -> Answer {
        if let Some((status, error)) = self.refuses {
            return Answer::json(&json!({ "error": error, "error_description": "as it must" })).status(status);
        }
        // Each part is written as in a form, before both are in base64.
        let basic = format!("Basic {}", BASE64_STANDARD.encode("desk+client:s3cr3t+of+the+desk%2B"));
        let is_known = request.header("authorization") == Some(&*basic)
            || field(request, "client_secret") == SECRET && field(request, "client_id") == "desk client"
            || !field(request, "client_assertion").is_empty();
        let is_sound = field(request, "grant_type") == "client_credentials"
            && field(request, "resource").ends_with("/mcp")
            && request.header("content-type") == Some("application/x-www-form-urlencoded");
        if !is_known || !is_sound {
            return Answer::json(&json!({ "error": "invalid_client" })).status(401);
        }
        let mut given = self.given.lock().unwrap();
        let text = format!("access-t0ken-{}-of-the-desk", given.len());
        given.push(GivenToken { text: text.clone(), scope: field(request, "scope"), is_revoked: false });
        Answer::json(&with(json!({ "access_token": text, "token_type": "bearer", "expires_in": 3600 }), &self.token))
    }

    fn message(&self, request: &Request, here: &str) -> Answer {
        let sent = request.header("authorization").and_then(|text| text.strip_prefix("Bearer ")).unwrap_or_default();
        let challenge = format!(
            r#"Bearer error="invalid_token", resource_metadata="{here}/.well-known/oauth-protected-resource/mcp""#
        );
        let refused = || Answer::json("").status(401).header("www-authenticate", &challenge);
        let token = self.given.lock().unwrap().iter().find(|given| given.text == sent && !given.is_revoked).cloned();
        let Some(token) = token else { return refused() };
        let body = request.json();
        let name = body["params"]["name"].as_str().unwrap_or_default();
        match name {
            // The token of its first call, and no other one.
            "revoke" => {
                let mut given = self.given.lock().unwrap();
                if !given.iter().any(|given| given.is_revoked) {
                    given.iter_mut().filter(|given| given.text == sent).for_each(|given| given.is_revoked = true);
                    return refused();
                }
            }
            "never" => return refused(),
            "write" if !token.scope.split(' ').any(|scope| scope == "notes:write") => {
                let wants = r#"Bearer error="insufficient_scope", scope="notes:write""#;
                return Answer::json("").status(403).header("www-authenticate", wants);
            }
            _ => {}
        }
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let result = match body["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} } }),
            "tools/list" => json!({ "tools": [tool("read"), tool("revoke"), tool("never"), tool("write")] }),
            _ => json!({ "content": [{ "type": "text", "text": format!("done with {sent}") }] }),
        };
        Answer::json(&json!({ "jsonrpc": "2.0", "id": body["id"], "result": result }))
    }
}

/// A project with such a server; `more` are members of `oauth`.
fn guarded(guarded: Guarded, more: Value) -> (Server, Place) {
    let guarded = Arc::new(guarded);
    let server = Server::reading(move |_, request| guarded.answer(request));
    let place = Place::new();
    place.file("secret.txt", SECRET);
    let client = json!({ "issuer": format!("{}/as", server.url()), "client_id": "desk client", "client_secret": "orgconfig:desk" });
    place.json(
        "loopctl.json",
        &json!({ "orgconfig": { "desk": "file:secret.txt" }, "allow": { "private_addresses": true },
            "mcp": { "crm": { "url": format!("{}/mcp", server.url()), "oauth": with(client, &more) } } }),
    );
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "reader", "properties": { "mode": "react", "objective": "Read.",
            "tools": [{ "type": "mcp", "server": "crm" }], "on_stuck": { "iterations": 100 } } }),
    );
    (server, place)
}

/// What calls of these tools give.
fn called(place: &Place, names: &[&str]) -> Vec<String> {
    let calls: Vec<Value> = names.iter().map(|name| think(&format!("crm.{name}"), json!({}))).collect();
    // The last entry is the end of the run.
    place.calls(&calls).iter().take(names.len()).map(observed).collect()
}

fn at<'r>(requests: &'r [Request], path: &str) -> Vec<&'r Request> {
    requests.iter().filter(|request| request.path == path).collect()
}

/// How often a tool was called.
fn calls_of(requests: &[Request], name: &str) -> usize {
    at(requests, "/mcp")
        .iter()
        .filter(|request| request.method == "POST" && request.json()["params"]["name"] == name)
        .count()
}

#[test]
fn a_token_is_asked_for_once_and_sent_with_each_request() {
    for (methods, is_basic) in [
        (Value::Null, true),
        (json!(["client_secret_post", "client_secret_basic"]), true),
        (json!(["private_key_jwt", "client_secret_post"]), false),
    ] {
        let says = Guarded {
            issuer: json!({ "token_endpoint_auth_methods_supported": methods }),
            resource: json!({ "scopes_supported": ["notes:read", "notes:list"] }),
            ..Guarded::default()
        };
        let (server, place) = guarded(says, json!({}));
        let pinned = pin(&place);
        let seen = called(&place, &["read", "read"]);
        assert!(seen.iter().all(|seen| seen.starts_with("done with [secret ")), "{seen:?}");
        let requests = server.requests();
        let tokens = at(&requests, "/as/token");
        // One for the pin and one for the run.
        assert_eq!(tokens.len(), 2);
        for token in tokens {
            assert_eq!(token.header("authorization").is_some(), is_basic, "{token:?}");
            assert_eq!(field(token, "resource"), format!("{}/mcp", server.url()));
            assert_eq!(field(token, "scope"), "notes:list notes:read");
            assert_eq!(field(token, "client_secret").is_empty(), is_basic);
        }
        let posts = at(&requests, "/mcp");
        assert!(
            posts.iter().all(|post| post.header("authorization").is_some_and(|text| text.starts_with("Bearer acc")))
        );
        // Neither the secret nor a token is anywhere.
        let mut all = format!("{}{}", pinned.stdout, pinned.stderr).into_bytes();
        for (path, bytes) in place.files() {
            if !path.ends_with("secret.txt") {
                all.extend(bytes);
            }
        }
        let all = String::from_utf8_lossy(&all);
        for hidden in [SECRET, "access-t0ken-"] {
            assert!(!all.contains(hidden), "{hidden}");
        }
    }
}

#[test]
fn a_token_that_is_refused_or_has_ended_is_asked_for_anew_once() {
    let (server, place) = guarded(Guarded::default(), json!({}));
    pin(&place);
    let before = at(&server.requests(), "/as/token").len();
    let seen = called(&place, &["revoke", "never", "read"]);
    assert!(seen[0].starts_with("done with") && seen[2].starts_with("done with"), "{seen:?}");
    assert!(seen[1].contains("not authorised"), "{seen:?}");
    let requests = server.requests();
    assert_eq!((calls_of(&requests, "revoke"), calls_of(&requests, "never")), (2, 2));
    // That of the run, and one for each of the two.
    assert_eq!(at(&requests, "/as/token").len() - before, 3);

    // A token without time left is asked for before each request.
    let (ended, place) = guarded(Guarded { token: json!({ "expires_in": 0 }), ..Guarded::default() }, json!({}));
    pin(&place);
    let requests = ended.requests();
    assert_eq!(at(&requests, "/as/token").len(), at(&requests, "/mcp").len());
}

#[test]
fn more_scopes_are_asked_for_where_a_call_needs_them_unless_they_are_written() {
    let (server, place) = guarded(Guarded::default(), json!({}));
    pin(&place);
    let seen = called(&place, &["read", "write", "write"]);
    assert!(seen.iter().all(|seen| seen.starts_with("done with")), "{seen:?}");
    let requests = server.requests();
    let scopes: Vec<String> = at(&requests, "/as/token").iter().map(|token| field(token, "scope")).collect();
    assert_eq!(scopes, ["", "", "notes:write"]);
    assert_eq!(calls_of(&requests, "write"), 3);

    let (server, place) = guarded(Guarded::default(), json!({ "scopes": ["notes:read"] }));
    pin(&place);
    let seen = called(&place, &["write", "read"]);
    assert!(seen[0].contains("not authorised") && seen[1].contains("done with"), "{seen:?}");
    let requests = server.requests();
    assert!(at(&requests, "/as/token").iter().all(|token| field(token, "scope") == "notes:read"));
    assert_eq!((calls_of(&requests, "write"), at(&requests, "/as/token").len()), (1, 2));
}

#[test]
fn credentials_are_sent_to_the_issuer_and_to_nobody_else() {
    let elsewhere = Server::reading(|_, _| Answer::json(&json!({ "access_token": "x", "token_type": "Bearer" })));
    let other = format!("{}/as", elsewhere.url());
    for (says, more, said) in [
        (
            Guarded { resource: json!({ "authorization_servers": [other] }), ..Guarded::default() },
            json!({}),
            "takes tokens of",
        ),
        (
            Guarded { resource: json!({ "resource": elsewhere.url() }), ..Guarded::default() },
            json!({}),
            "the metadata is of",
        ),
        (Guarded { issuer: json!({ "issuer": other }), ..Guarded::default() }, json!({}), "says that it is"),
        (Guarded { issuer: json!({ "token_endpoint": null }), ..Guarded::default() }, json!({}), "no `token_endpoint`"),
        (
            Guarded { issuer: json!({ "token_endpoint": "http://auth.example.com/token" }), ..Guarded::default() },
            json!({}),
            "in the clear",
        ),
        (
            Guarded { issuer: json!({ "token_endpoint_auth_methods_supported": ["none"] }), ..Guarded::default() },
            json!({}),
            "takes no secrets",
        ),
        (Guarded::default(), json!({ "issuer": elsewhere.url() }), "takes tokens of"),
        (Guarded { is_silent: true, ..Guarded::default() }, json!({ "issuer": elsewhere.url() }), "says that it is"),
    ] {
        let (server, place) = guarded(says, more);
        let pinned = place.call(&["mcp", "pin", "--yes"]);
        let text = format!("{}{}", pinned.stdout, pinned.stderr);
        assert!(pinned.code == 1 && text.contains("no access token") && text.contains(said), "{said}: {text}");
        assert!(!text.contains(SECRET));
        assert!(at(&server.requests(), "/as/token").is_empty(), "{said}");
        assert!(elsewhere.requests().iter().all(|request| request.method == "GET"), "{said}");
    }
}

#[test]
fn an_answer_without_a_token_says_what_the_issuer_says() {
    for (says, said) in [
        (
            Guarded { refuses: Some((401, "invalid_client")), ..Guarded::default() },
            "http 401: invalid_client: as it must",
        ),
        (Guarded { refuses: Some((400, "invalid_scope")), ..Guarded::default() }, "http 400: invalid_scope"),
        (Guarded { refuses: Some((503, "later")), ..Guarded::default() }, "answered with http 503"),
        (Guarded { token: json!({ "access_token": "two words" }), ..Guarded::default() }, "without a token"),
        (Guarded { token: json!({ "access_token": null }), ..Guarded::default() }, "without a token"),
        (Guarded { token: json!({ "token_type": "DPoP" }), ..Guarded::default() }, "of the type \"DPoP\""),
    ] {
        let (_server, place) = guarded(says, json!({}));
        let pinned = place.call(&["mcp", "pin", "--yes"]);
        let text = format!("{}{}", pinned.stdout, pinned.stderr);
        assert!(pinned.code == 1 && text.contains(said), "{said}: {text}");
    }
    // The twin: a server that says nothing of itself, and an authorization server that does.
    let (server, place) = guarded(Guarded { is_silent: true, ..Guarded::default() }, json!({}));
    pin(&place);
    assert_eq!(at(&server.requests(), "/as/token").len(), 1);
}

#[test]
fn a_key_signs_who_the_client_is() {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let public = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap();
    let pem =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", BASE64_STANDARD.encode(key.as_ref()));
    let more = json!({ "client_secret": null, "private_key": "orgconfig:desk", "key_id": "k-1" });
    let (server, place) = guarded(Guarded::default(), more);
    let pinned = place.call(&["mcp", "pin", "--yes"]);
    assert!(pinned.code == 1 && pinned.stderr.contains("no PKCS #8 key in PEM"), "{pinned:#?}");
    assert!(at(&server.requests(), "/as/token").is_empty());
    place.file("secret.txt", &pem);
    pin(&place);
    let requests = server.requests();
    let token = at(&requests, "/as/token")[0];
    let assertion = field(token, "client_assertion");
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let read = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public.public_key().as_ref())
        .verify(signed.as_bytes(), &read(signature))
        .unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let json = |text: &str| serde_json::from_slice::<Value>(&read(text)).unwrap();
    assert_eq!(json(header), json!({ "alg": "ES256", "typ": "JWT", "kid": "k-1" }));
    let claims = json(claims);
    assert_eq!((&claims["iss"], &claims["sub"]), (&json!("desk client"), &json!("desk client")));
    assert_eq!(claims["aud"], format!("{}/as", server.url()));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 60);
    assert!(token.header("authorization").is_none() && field(token, "client_secret").is_empty());
    assert!(field(token, "client_assertion_type").ends_with(":jwt-bearer"));
}
