//! Deliveries of other services: the same one starts one run, and nothing is said without the right signature.

use ring::hmac;
use serde_json::{Value, json};

use crate::common::Place;
use crate::serve::client::{Reply, Serving};
use crate::test_server::PostgresServer;

const SECRET: &str = "whsec_5f1c8e0b7a";
const OLD_SECRET: &str = "whsec_0ld0000000";

fn signature(secret: &str, text: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), text.as_bytes());
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A workflow that asks whether to go on, with this webhook and the schema of its input.
fn workflow(name: &str, webhook: Value, input: Value) -> Value {
    let ask = json!({ "type": "PbotApproval", "properties": { "comment": "Ship?" } });
    json!({ "name": name, "input": input, "definition": { "trigger": { "webhook": webhook }, "actions": [ask] } })
}

/// A place with a webhook of each service. Two workflows have `orders`, and one of them takes large ones only.
fn place() -> Place {
    let place = Place::new();
    let orgconfig = json!({ "hook": "env:HOOK", "old": "env:HOOK_OLD" });
    place.json("loopctl.json", &json!({ "orgconfig": orgconfig }));
    let order = json!({ "type": "object", "properties": { "order": { "type": "string" }, "amount": { "type": "number" } },
        "required": ["order"], "additionalProperties": false });
    let orders = |more: Value| {
        let mut webhook = json!({ "verify": "hmac", "secret": ["orgconfig:hook", "orgconfig:old"], "name": "orders",
            "hmac": { "header": "X-Sig", "id": "X-Id" },
            "input": { "order": "@body.id", "amount": "@body.amount?" } });
        let members = webhook.as_object_mut().expect("an object");
        members.extend(more.as_object().cloned().unwrap_or_default());
        webhook
    };
    place.json("workflows/ship.json", &workflow("ship", orders(json!({})), order.clone()));
    let large = json!({ "when": { "greaterThan": ["@body.amount", 100] }, "org": "acme" });
    place.json("workflows/review.json", &workflow("review", orders(large), order));
    let any = json!({ "type": "object" });
    let github = json!({ "verify": "github", "secret": "orgconfig:hook",
        "input": { "event": "@headers.x-github-event", "ref": "@body.ref" } });
    place.json("workflows/pushed.json", &workflow("pushed", github, any.clone()));
    let stripe = json!({ "verify": "stripe", "secret": "orgconfig:hook", "input": { "of": "@body.data.object.id" } });
    place.json("workflows/paid.json", &workflow("paid", stripe, any.clone()));
    let slack = json!({ "verify": "slack", "secret": "orgconfig:hook", "input": { "text": "@body.text?" } });
    place.json("workflows/said.json", &workflow("said", slack, any));
    place
}

fn start(place: &Place, store: &str) -> Serving {
    let log = place.path().join("log");
    let env = [("HOOK", SECRET), ("HOOK_OLD", OLD_SECRET)];
    Serving::start_logged_with(place, &["--store", store], &log, &env)
}

/// An order, signed.
fn ordered(server: &Serving, secret: &str, id: &str, body: &str) -> Reply {
    let signature = signature(secret, body);
    server.send("POST", "/hooks/orders", &[("x-sig", &signature), ("x-id", id)], body.as_bytes())
}

/// A delivery that Stripe or Slack signed at this second.
fn signed_at(server: &Serving, path: &str, at_s: i64, kind: &str, body: &str) -> Reply {
    let at = at_s.to_string();
    let of_slack = format!("v0={}", signature(SECRET, &format!("v0:{at}:{body}")));
    let of_stripe = format!("t={at},v1={}", signature(SECRET, &format!("{at}.{body}")));
    let headers = [
        ("stripe-signature", of_stripe.as_str()),
        ("x-slack-signature", &of_slack),
        ("x-slack-request-timestamp", &at),
        ("content-type", kind),
    ];
    server.send("POST", path, &headers, body.as_bytes())
}

#[expect(clippy::disallowed_methods, reason = "a delivery is signed at the time of the server that takes it")]
fn now_s() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(now.as_secs()).expect("a time")
}

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// The workflows and runs of an answer, and whether they were known.
fn runs(reply: &Reply) -> Vec<(String, String, bool)> {
    let text = |run: &Value, name: &str| run[name].as_str().expect("a text").to_owned();
    let run = |run: &Value| (text(run, "workflow"), text(run, "agent_run_id"), run["known"] == true);
    reply.json()["runs"].as_array().unwrap_or_else(|| panic!("{reply:?}")).iter().map(run).collect()
}

#[test]
fn a_delivery_starts_each_workflow_of_its_webhook_once_however_often_it_comes() {
    let test = "a_delivery_starts_each_workflow_of_its_webhook_once_however_often_it_comes";
    let postgres = crate::test_server::server(test).map(PostgresServer::store);
    for store in ["memory".to_owned(), "sqlite:runs.db".to_owned()].into_iter().chain(postgres) {
        let place = place();
        let mut server = start(&place, &store);
        let first = ordered(&server, SECRET, "d-1", r#"{"id": "o-1", "amount": 250.50}"#);
        assert_eq!(first.status, 202, "{store}: {first:?}");
        assert_eq!(first.json()["delivery"], "d-1");
        let started = runs(&first);
        let [review, ship] = started.as_slice() else { panic!("{started:?}") };
        assert_eq!((review.0.as_str(), review.2, ship.0.as_str(), ship.2), ("review", false, "ship", false));
        let run = server.settled(&ship.1);
        assert_eq!(run["result"]["webhook"], json!({ "name": "orders", "delivery": "d-1" }), "{run:#}");
        if store.starts_with("sqlite") {
            for format in ["text", "html"] {
                let shown = place.call(&["trace", &ship.1, "--format", format, "--store", &store]).stdout;
                assert!(shown.contains("started by the webhook orders, delivery d-1"), "{format}: {shown}");
            }
        }
        let context = server.get(&format!("/runs/{}/status", ship.1)).json();
        assert_eq!(context["context"]["input"].to_string(), r#"{"order":"o-1","amount":250.50}"#);
        // Sent again, also with another secret, another body, or after a restart.
        let again = ordered(&server, OLD_SECRET, "d-1", r#"{"id": "o-2"}"#);
        let known: Vec<_> = started.iter().map(|(name, id, _)| (name.clone(), id.clone(), true)).collect();
        assert_eq!((again.status, runs(&again)), (202, known.clone()), "{store}: {again:?}");
        if store != "memory" {
            drop(server);
            server = start(&place, &store);
            assert_eq!(runs(&ordered(&server, SECRET, "d-1", r#"{"id": "o-1"}"#)), known, "{store}");
        }
        // `when` does not hold for one of them.
        let small = ordered(&server, SECRET, "d-2", r#"{"id": "o-3", "amount": 7}"#);
        assert_eq!((small.status, &small.json()["skipped"]), (202, &json!(["review"])), "{small:?}");
        assert_eq!(runs(&small).len(), 1);
        let audit = server.get("/audit").json();
        assert!(audit.to_string().contains("by the delivery d-1 to the webhook orders"), "{audit:#}");
        let metrics = String::from_utf8(server.get("/metrics").body).expect("UTF-8");
        assert!(
            metrics.contains(r#"loopctl_webhook_deliveries_total{webhook="orders",outcome="skipped"} 1"#),
            "{metrics}"
        );
        let loops = server.get("/loops").json();
        let ship = loops["loops"].as_array().expect("loops").iter().find(|row| row["name"] == "ship").expect("ship");
        assert_eq!(ship["webhook"], json!({ "path": "/hooks/orders", "verify": "hmac" }));
    }
}

#[test]
fn without_the_right_signature_nothing_is_said_or_started() {
    let place = place();
    let server = start(&place, "sqlite:runs.db");
    let body = r#"{"id": "o-1"}"#;
    let right = signature(SECRET, body);
    let send = |path: &str, headers: &[(&str, &str)], body: &[u8]| server.send("POST", path, headers, body);
    let refused = [
        send("/hooks/orders", &[], body.as_bytes()),
        send("/hooks/orders", &[("x-sig", &signature("other", body))], body.as_bytes()),
        send("/hooks/orders", &[("x-sig", &right)], br#"{"id": "o-2"}"#),
        send("/hooks/orders", &[("x-sig", &right), ("x-sig", &right)], body.as_bytes()),
        send("/hooks/orders", &[("x-sig", "zz")], b"no JSON"),
        send("/hooks/ship", &[("x-sig", &right)], body.as_bytes()),
        send("/hooks/nobody", &[("x-signature", &signature("no key", body))], body.as_bytes()),
        send("/hooks/%ff", &[], body.as_bytes()),
        send("/hooks/paid", &[("x-sig", &right)], body.as_bytes()),
        send("/hooks/pushed", &[("x-sig", &right)], body.as_bytes()),
        send("/hooks/said", &[("x-sig", &right)], body.as_bytes()),
    ];
    for reply in &refused {
        assert_eq!((reply.status, reply.code().as_str()), (401, "unverified"), "{reply:?}");
        assert_eq!(reply.body, refused[0].body);
    }
    // Not read, whoever sends it.
    let large = vec![b' '; 3 << 20];
    assert_eq!(send("/hooks/orders", &[("x-sig", &right)], &large).code(), "body_too_large");
    assert_eq!(send("/hooks/orders", &[("content-encoding", "gzip")], b"x").code(), "encoded_body");
    assert_eq!(server.get("/hooks/orders").code(), "other_method");
    // With the right signature, the reason is said.
    let orders = |id: &str, body: &str| ordered(&server, SECRET, id, body);
    let unread = orders("b-1", "no JSON");
    assert_eq!((unread.status, unread.code().as_str()), (400, "bad_request"), "{unread:?}");
    let missing = orders("b-2", r#"{"amount": 500}"#);
    assert_eq!((missing.status, missing.code().as_str()), (422, "delivery_does_not_fit"), "{missing:?}");
    assert!(missing.json()["detail"].as_str().expect("a sentence").contains("`body` has no `id`"), "{missing:?}");
    let wrong = orders("b-3", r#"{"id": 7}"#);
    assert_eq!((wrong.status, wrong.code().as_str()), (422, "delivery_does_not_fit"), "{wrong:?}");
    assert!(wrong.json()["detail"].as_str().expect("a sentence").contains("`order` must be a string"), "{wrong:?}");
    let unordered = orders("b-4", r#"{"id": "o-9", "amount": "much"}"#);
    assert_eq!(unordered.status, 422, "{unordered:?}");
    let stale = signed_at(&server, "/hooks/paid", 1_533_204_620, JSON, r#"{"id": "evt_1"}"#);
    assert_eq!((stale.status, stale.code().as_str()), (401, "stale_delivery"), "{stale:?}");
    assert_eq!(server.get("/agents").json()["agents"], json!([]));
    // One that was refused starts its run when it fits.
    assert_eq!(orders("b-2", r#"{"id": "o-5", "amount": 1}"#).status, 202);
    let log = std::fs::read_to_string(place.path().join("log")).expect("a log");
    assert!(log.contains("a delivery is not taken") && !log.contains(SECRET) && !log.contains(&right), "{log}");
}

#[test]
fn the_services_try_the_address_and_send_in_their_own_forms() {
    let place = place();
    let server = start(&place, "memory");
    let github = |event: &str, id: &str, body: &str| {
        let signature = format!("sha256={}", signature(SECRET, body));
        let headers =
            [("x-hub-signature-256", signature.as_str()), ("x-github-event", event), ("x-github-delivery", id)];
        server.send("POST", "/hooks/pushed", &headers, body.as_bytes())
    };
    let ping = github("ping", "g-1", r#"{"zen": "Keep it logically awesome."}"#);
    assert_eq!((ping.status, runs(&ping)), (200, Vec::new()), "{ping:?}");
    let pushed = github("push", "g-2", r#"{"ref": "refs/heads/main"}"#);
    assert_eq!((pushed.status, pushed.json()["delivery"].clone()), (202, json!("g-2")));
    let input = |reply: &Reply| {
        let id = runs(reply)[0].1.clone();
        server.settled(&id);
        server.get(&format!("/runs/{id}/status")).json()["context"]["input"].clone()
    };
    assert_eq!(input(&pushed), json!({ "event": "push", "ref": "refs/heads/main" }));
    let paid = r#"{"id": "evt_1", "data": {"object": {"id": "pi_1"}}}"#;
    let stripe = signed_at(&server, "/hooks/paid", now_s(), JSON, paid);
    assert_eq!((input(&stripe), stripe.json()["delivery"].clone()), (json!({ "of": "pi_1" }), json!("evt_1")));
    assert!(runs(&signed_at(&server, "/hooks/paid", now_s() - 60, JSON, paid))[0].2, "a repeat is signed anew");
    let slack = |body: &str, kind: &str| signed_at(&server, "/hooks/said", now_s(), kind, body);
    let challenge = slack(r#"{"type": "url_verification", "challenge": "3eZbrw1a"}"#, JSON);
    assert_eq!((challenge.status, challenge.json()), (200, json!({ "challenge": "3eZbrw1a" })));
    // The answer to a command is shown to who gave it.
    let command = slack("command=%2Fship&text=two+of+them&user_id=U1", FORM);
    assert_eq!((command.status, command.body.as_slice()), (200, &b""[..]), "{command:?}");
    let event = slack(r#"{"type": "event_callback", "event_id": "Ev1", "text": "hi"}"#, JSON);
    assert_eq!((event.json()["delivery"].clone(), input(&event)), (json!("Ev1"), json!({ "text": "hi" })));
    let said = server.get("/agents?loop=said").json();
    assert_eq!(said["agents"].as_array().expect("runs").len(), 2, "{said:#}");
}

#[test]
fn a_folder_is_not_served_without_the_secret_or_with_webhooks_that_exclude_each_other() {
    let place = place();
    let ran = place.call(&["serve", ".", "--listen", "127.0.0.1:0", "--store", "memory"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("`HOOK` is not set") && ran.stderr.contains("the webhook `orders` needs it"),
        "{ran:?}"
    );
    let other = json!({ "verify": "github", "secret": "orgconfig:hook", "name": "orders" });
    place.json("workflows/more.json", &workflow("more", other, json!({ "type": "object" })));
    let ran = place.call(&["serve", ".", "--listen", "127.0.0.1:0", "--store", "memory"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("have the webhook `orders`, and say differently how it is verified"), "{ran:?}");
    let checked = place.call(&["check", "--format", "json"]);
    let faults = checked.json();
    let clash = faults.as_array().expect("faults").iter().find(|fault| fault["code"] == "L220").expect("a clash");
    assert_eq!((checked.code, &clash["path"]), (1, &json!("/definition/trigger/webhook")), "{faults:#}");
}
