//! Requests to models that are signed with AWS's credentials: the signature, and where the credentials come from.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::{digest, hmac};
use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::streams::streamed;
use crate::common::{Place, Ran, answering, complete, look, with};

const KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const OTHER_KEY: &str = "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY";
const TOKEN: &str = "IQoJb3JpZ2luX2VjEXAMPLETOKEN//////////0471";

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encoded(text: &str) -> String {
    const RESERVED: &percent_encoding::AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    utf8_percent_encode(text, RESERVED).to_string()
}

/// What is said of a request's credentials: the id of the key, the region and the service. The signature is made once
/// more, from the request as it came.
fn verified(request: &Request, key: &str) -> Result<[String; 3], String> {
    let authorization = request.header("authorization").ok_or("no signature")?;
    let rest = authorization.strip_prefix("AWS4-HMAC-SHA256 Credential=").ok_or("another scheme")?;
    let (credential, rest) = rest.split_once(", SignedHeaders=").ok_or("no headers")?;
    let (names, signature) = rest.split_once(", Signature=").ok_or("no signature")?;
    let parts: Vec<&str> = credential.split('/').collect();
    let [id, day, region, service, "aws4_request"] = parts[..] else { return Err(credential.to_owned()) };
    let moment = request.header("x-amz-date").ok_or("no moment")?;
    assert!(moment.starts_with(day) && moment.len() == 16, "{moment}");
    assert!(["content-type", "host", "x-amz-date"].iter().all(|name| names.split(';').any(|known| known == *name)));
    assert_eq!(request.header("x-amz-security-token").is_some(), names.contains("x-amz-security-token"));
    let headers: String =
        names.split(';').map(|name| format!("{name}:{}\n", request.header(name).unwrap_or_default())).collect();
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let body = hex(digest::digest(&digest::SHA256, &request.body));
    let canonical = format!("{}\n{}\n{query}\n{headers}\n{names}\n{body}", request.method, encoded(path));
    let canonical = hex(digest::digest(&digest::SHA256, canonical.as_bytes()));
    let to_sign = format!("AWS4-HMAC-SHA256\n{moment}\n{day}/{region}/{service}/aws4_request\n{canonical}");
    let sign = |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
    let mut derived = sign(format!("AWS4{key}").as_bytes(), day);
    for part in [region, service, "aws4_request", &to_sign] {
        derived = sign(derived.as_ref(), part);
    }
    if hex(derived) != signature {
        return Err(format!("another signature than {signature}"));
    }
    Ok([id.to_owned(), region.to_owned(), service.to_owned()])
}

fn says(reply: &Value) -> Answer {
    Answer::openai(&reply.to_string())
}

/// What Bedrock says of a token that has expired, with all that it was sent.
fn expired(request: &Request) -> Answer {
    let message = format!("The security token included in the request is expired: {:?}", request.headers);
    Answer::json(&json!({ "message": message })).status(403).header("x-amzn-errortype", "ExpiredTokenException")
}

/// A place whose model `m` is asked with signatures at the address in `BEDROCK_URL`.
fn place(more: Value) -> Place {
    let place = answering(&json!({ "retry": { "attempts": 1, "base_ms": 1, "max_ms": 1 } }), "{\"seen\":1}");
    let mut model = with(json!({ "provider": "openai", "base_url": "env:BEDROCK_URL", "auth": "sigv4" }), more);
    model.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    place.json("loopctl.json", &json!({ "allow": { "commands": ["echo"] }, "model": "m", "models": { "m": model } }));
    place
}

fn run(place: &Place, model: &Server, more: &[(&str, &str)]) -> Ran {
    let url = format!("{}/openai/v1", model.url());
    let env = [&[("BEDROCK_URL", url.as_str()), ("AWS_REGION", "eu-central-1")], more].concat();
    place.call_with(&["run", "loop.json", "--run-id", "r", "--output", "json"], &env)
}

/// The credentials of a container or a machine, as their endpoints give them.
fn given(id: &str, key: &str, end: &str) -> Answer {
    Answer::json(&json!({ "Code": "Success", "AccessKeyId": id, "SecretAccessKey": key,
        "Token": format!("{TOKEN}{id}"), "Expiration": end }))
}

/// Nothing that is shown or kept has a secret.
fn hidden(place: &Place, ran: &Ran, server: &Server) {
    let mut secrets = vec![KEY.to_owned(), OTHER_KEY.to_owned(), TOKEN.to_owned()];
    for request in server.requests() {
        let signature =
            request.header("authorization").and_then(|value| Some(value.split_once("Signature=")?.1.to_owned()));
        secrets.extend(signature);
    }
    let trace = ["text", "json", "html"].map(|form| format!("{:?}", place.call(&["trace", "r", "--format", form])));
    for secret in secrets {
        assert!(!format!("{ran:?}{trace:?}").contains(&secret), "{secret}: {ran:#?}");
        for (path, bytes) in place.files().into_iter().filter(|(path, _)| path.to_string_lossy().contains(".loopctl")) {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", path.display());
        }
    }
}

#[test]
fn requests_are_signed_with_the_credentials_of_the_environment_in_every_protocol() {
    for (provider, token, streams) in [
        ("openai", "", false),
        ("openai", TOKEN, true),
        ("anthropic", TOKEN, false),
        ("anthropic", "", true),
        ("gemini", TOKEN, true),
        ("openai-responses", "", true),
    ] {
        let server = Server::reading(move |_, request| match verified(request, KEY) {
            Ok(_) if streams => Answer::events(streamed(provider, &[complete(json!("done")).to_string().as_str()])),
            Ok(_) if provider == "anthropic" => Answer::anthropic(&complete(json!("done")).to_string()),
            Ok(_) => says(&complete(json!("done"))),
            Err(why) => Answer::json(&json!({ "message": why })).status(403),
        });
        // Its id is a part of Gemini's address.
        let place = place(json!({ "provider": provider, "model": "anthropic.claude-v1:0" }));
        let form = if streams { "ndjson" } else { "json" };
        // The path has what is encoded once more.
        let url = format!("{}/a%3Ab/v1", server.url());
        let env = [
            ("BEDROCK_URL", url.as_str()),
            ("AWS_DEFAULT_REGION", "us-gov-west-1"),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", KEY),
            ("AWS_SESSION_TOKEN", token),
        ];
        let ran = place.call_with(&["run", "loop.json", "--run-id", "r", "--output", form], &env);
        assert_eq!((ran.code, server.requests().len()), (0, 1), "{provider}: {ran:#?}");
        let request = server.requests().remove(0);
        let expected = ["AKIDEXAMPLE", "us-gov-west-1", "bedrock"].map(str::to_owned);
        assert_eq!(verified(&request, KEY), Ok(expected), "{provider}");
        assert_eq!(request.header("x-amz-security-token").unwrap_or_default(), token, "{provider}");
        assert_eq!(request.header("x-api-key").or(request.header("x-goog-api-key")), None, "{provider}");
        hidden(&place, &ran, &server);
    }
}

#[test]
fn credentials_that_expired_are_asked_for_again_once_and_that_is_no_attempt() {
    let container = Server::with(|number, request| match (request.path.as_str(), request.header("authorization")) {
        ("/role", Some("the-container-token")) if number == 0 => given("ASIA1", KEY, "2999-01-01T00:00:00Z"),
        ("/role", Some("the-container-token")) => given("ASIA2", OTHER_KEY, "2999-01-01T00:00:00Z"),
        _ => Answer::json("{}").status(404),
    });
    let server = Server::reading(|number, request| match verified(request, OTHER_KEY) {
        Ok(_) if number < 2 => says(&look("a")),
        Ok(_) => says(&complete(json!("done"))),
        Err(_) => expired(request),
    });
    let place = place(json!({}));
    place.file("token.txt", "the-container-token\n");
    let url = format!("{}/role", container.url());
    let env =
        [("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "token.txt")];
    let ran = run(&place, &server, &env);
    assert_eq!((ran.code, server.requests().len(), container.requests().len()), (0, 3, 2), "{ran:#?}");
    assert_eq!(ran.json()["metadata"]["model_retries"], json!(0), "{ran:#?}");
    let token = server.requests()[2].header("x-amz-security-token").map(str::to_owned);
    assert_eq!(token, Some(format!("{TOKEN}ASIA2")));
    hidden(&place, &ran, &server);
    // Those that stay the same are not sent again, and what the server repeats is not shown.
    let same = Server::with(|_, _| given("ASIA1", KEY, "2999-01-01T00:00:00Z"));
    let refusing = Server::reading(|_, request| expired(request));
    let place = self::place(json!({}));
    let url = format!("{}/role", same.url());
    let ran = run(&place, &refusing, &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url)]);
    assert_eq!((ran.code, refusing.requests().len(), same.requests().len()), (1, 1, 2), "{ran:#?}");
    assert_eq!(ran.json()["error"]["retryable"], json!(true), "{ran:#?}");
    assert!(ran.stdout.contains("[secret") && ran.stdout.contains("is expired"), "{ran:#?}");
    hidden(&place, &ran, &refusing);
}

#[test]
fn the_role_of_a_machine_is_asked_for_in_a_session_and_again_before_it_ends() {
    for (end, asked) in [("2999-01-01T00:00:00Z", 1), ("2020-01-01T00:00:00Z", 2)] {
        let metadata = Server::with(move |_, request| {
            let is_of_session = request.header("x-aws-ec2-metadata-token") == Some("the-session");
            match (request.method.as_str(), request.path.as_str()) {
                ("PUT", "/latest/api/token") if request.header("x-aws-ec2-metadata-token-ttl-seconds").is_some() => {
                    Answer::new("text/plain", "the-session")
                }
                ("GET", "/latest/meta-data/iam/security-credentials/") if is_of_session => {
                    Answer::new("text/plain", "the-role\n")
                }
                ("GET", "/latest/meta-data/iam/security-credentials/the-role") if is_of_session => {
                    given("ASIA1", KEY, end)
                }
                _ => Answer::json("{}").status(401),
            }
        });
        let server = Server::reading(|number, request| match verified(request, KEY) {
            Ok(_) if number == 0 => says(&look("a")),
            Ok(_) => says(&complete(json!("done"))),
            Err(why) => Answer::json(&json!({ "message": why })).status(403),
        });
        let place = place(json!({}));
        let ran = run(&place, &server, &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &metadata.url())]);
        assert_eq!((ran.code, server.requests().len(), metadata.requests().len()), (0, 2, 3 * asked), "{ran:#?}");
        hidden(&place, &ran, &server);
    }
}

#[test]
fn a_token_of_a_web_identity_is_exchanged_for_credentials() {
    let sts = Server::reading(|_, request| {
        let form = request.text();
        let has = |part: &str| form.split('&').any(|known| known == part);
        assert!(has("Action=AssumeRoleWithWebIdentity") && has("WebIdentityToken=the%2Dweb%2Dtoken"), "{form}");
        assert!(has("RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fmodels"), "{form}");
        let xml = format!(
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
             <SessionToken>{TOKEN}</SessionToken><SecretAccessKey>{KEY}</SecretAccessKey>\
             <Expiration>2999-01-01T00:00:00Z</Expiration><AccessKeyId>ASIA1</AccessKeyId></Credentials>\
             </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        );
        Answer::new("text/xml", xml)
    });
    let server = Server::reading(|_, request| match verified(request, KEY) {
        Ok(_) => says(&complete(json!("done"))),
        Err(why) => Answer::json(&json!({ "message": why })).status(403),
    });
    let place = place(json!({}));
    place.file("web.txt", "the-web-token\n");
    let role = "arn:aws:iam::123456789012:role/models";
    let url = sts.url();
    let env = [("AWS_WEB_IDENTITY_TOKEN_FILE", "web.txt"), ("AWS_ROLE_ARN", role), ("AWS_ENDPOINT_URL_STS", &url)];
    let ran = run(&place, &server, &env);
    assert_eq!((ran.code, server.requests().len(), sts.requests().len()), (0, 1, 1), "{ran:#?}");
    hidden(&place, &ran, &server);
}

#[test]
fn credentials_go_to_bedrock_and_to_addresses_of_the_environment_only() {
    let server = Server::with(|_, _| says(&complete(json!("done"))));
    let keys = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", KEY)];
    for host in [server.url(), "https://bedrock-runtime.us-east-1.amazonaws.com.example.com/v1".to_owned()] {
        let place = place(json!({ "base_url": host }));
        let checked = place.call(&["check", "loop.json"]);
        assert!(checked.code != 0 && checked.stderr.contains("L186"), "{checked:#?}");
        let ran = run(&place, &server, &keys);
        assert!(ran.code == 2 && ran.stderr.contains("is no host of Bedrock"), "{ran:#?}");
    }
    // The provider's own server is none either.
    let place = place(json!({ "base_url": null }));
    let ran = run(&place, &server, &keys);
    assert!(ran.code == 2 && ran.stderr.contains("api.openai.com is no host of Amazon Bedrock"), "{ran:#?}");
    let url = server.url();
    let by_variable = [&keys[..], &[("OPENAI_BASE_URL", &url), ("OPENAI_API_KEY", "sk-1")]].concat();
    let ran = run(&place, &server, &by_variable);
    assert_eq!((ran.code, server.requests().len()), (0, 1), "{ran:#?}");
    assert!(server.requests()[0].header("authorization").unwrap().starts_with("AWS4-HMAC-SHA256 "));
}

#[test]
fn what_is_missing_of_the_credentials_is_said_before_anything_is_sent() {
    let server = Server::with(|_, _| says(&complete(json!("done"))));
    for (env, expected) in [
        (vec![("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")], "AWS_SECRET_ACCESS_KEY is not"),
        (vec![("AWS_SECRET_ACCESS_KEY", KEY)], "AWS_ACCESS_KEY_ID is not"),
        (vec![("AWS_WEB_IDENTITY_TOKEN_FILE", "web.txt")], "AWS_ROLE_ARN is not"),
        (vec![("AWS_EC2_METADATA_DISABLED", "true")], "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (vec![("AWS_REGION", ""), ("AWS_ACCESS_KEY_ID", "A1"), ("AWS_SECRET_ACCESS_KEY", KEY)], "set AWS_REGION"),
    ] {
        let place = place(json!({}));
        let ran = run(&place, &server, &env);
        assert!(ran.code == 2 && ran.stderr.contains(expected), "{expected}: {ran:#?}");
        assert!(!format!("{ran:?}").contains(KEY), "{ran:#?}");
    }
    // What is known only once it was asked for ends a run as one that may be retried.
    let broken = Server::with(|_, _| Answer::json(&json!({ "SecretAccessKey": OTHER_KEY })));
    for (name, url, expected) in [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", broken.url(), "no `AccessKeyId`"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://models.example.com/role".to_owned(), "must be https"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9".to_owned(), "no answer from 127.0.0.1"),
    ] {
        let place = place(json!({}));
        let ran = run(&place, &server, &[(name, &url)]);
        assert_eq!((ran.code, &ran.json()["error"]["retryable"]), (1, &json!(true)), "{ran:#?}");
        assert!(ran.stdout.contains(expected), "{expected}: {ran:#?}");
        hidden(&place, &ran, &broken);
    }
    assert!(server.requests().is_empty());
}
