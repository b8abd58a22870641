//! The link of a posted pause: a page that needs no script, whose forms decide once, and which decides nothing by itself.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{complete, think, with};
use crate::serve::answers::Hooked;
use crate::serve::browser::Browser;
use crate::serve::client::{Reply, Serving, scripted};
use crate::serve::page::PHONE;
use crate::serve::workflows;

const STORES: [&str; 2] = ["sqlite:runs.db", "memory"];
const PUBLIC_URL: &str = "https://loops.example.com/desk";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn public() -> Value {
    json!({ "public_url": PUBLIC_URL })
}

fn ask(question: &str) -> Value {
    think("__pause_for_human__", json!({ "question": question, "options": ["the first", "the second"] }))
}

fn pay() -> Value {
    think("act", json!({ "what": "pay", "api_key": "k-0123456789" }))
}

/// The target of a link at the server itself.
fn target(link: &Value) -> String {
    let link = link["link"].as_str().unwrap_or_else(|| panic!("no link: {link:#}"));
    link.strip_prefix(PUBLIC_URL).unwrap_or_else(|| panic!("{link}")).to_owned()
}

fn text(reply: &Reply) -> String {
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{reply:?}");
    String::from_utf8(reply.body.clone()).unwrap()
}

/// What a browser sends of a form with these fields.
fn form(fields: &[(&str, &str)]) -> String {
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let pairs = fields.iter().map(|(name, text)| format!("{}={}", encoded(name), encoded(text)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Sends the form of a link.
fn send(server: &Serving, link: &Value, fields: &[(&str, &str)]) -> Reply {
    let (path, query) = target(link).split_once('?').map(|(path, query)| (path.to_owned(), query.to_owned())).unwrap();
    let body = format!("{query}&{}", form(fields));
    let origin = format!("http://{}", server.address);
    server.send("POST", &path, &[FORM, ("origin", &origin), ("sec-fetch-site", "same-origin")], body.as_bytes())
}

/// The `answer` of the only call, or of the question, in the post of this number.
fn posted(hooked: &Hooked, number: usize) -> Value {
    answer_in(&hooked.post(number).json())
}

fn answer_in(post: &Value) -> Value {
    let pause = &post["payload"]["pause"];
    if pause["answer"].is_object() { pause["answer"].clone() } else { pause["calls"][0]["answer"].clone() }
}

/// The `answer` in the first post of a pause of this run.
fn posted_of(hooked: &Hooked, run: &str) -> Value {
    for number in 1.. {
        let post = hooked.post(number).json();
        if post["payload"]["agent_run_id"] == run && post["event"] == "agent_run_paused" {
            return answer_in(&post);
        }
    }
    unreachable!("posts are waited for");
}

#[test]
fn a_link_shows_the_call_and_its_form_decides_once() {
    for store in STORES {
        let act = json!({ "requires_approval": true });
        let hooked = Hooked::start(store, &[pay(), complete(json!("ok"))], act, public());
        let run = hooked.run();
        let link = posted(&hooked, 1);
        assert_eq!(link["url"], format!("{PUBLIC_URL}/agents/{run}/answer"));
        let page = hooked.server().get(&target(&link));
        let shown = text(&page);
        assert_eq!(page.status, 200, "{page:?}");
        for words in ["Your approval is asked for", "<code>act</code>", "[hidden]", "Approve", "Deny", "1 value hidden"]
        {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("<script") && !shown.contains("k-0123456789"), "{shown}");
        assert!(!shown.contains("Change the input"), "a hidden value would be lost: {shown}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("script-src"), "{policy}");
        for (name, value) in
            [("referrer-policy", "strict-origin"), ("cache-control", "no-store"), ("x-frame-options", "DENY")]
        {
            assert_eq!(page.header(name), Some(value), "{name}");
        }
        // What opens the links of mails, with the names that it adds to them.
        for method in ["GET", "HEAD"] {
            let opened = hooked.server().send(method, &format!("{}&utm_source=mail", target(&link)), &[], b"");
            assert_eq!(opened.status, 200, "{method} {opened:?}");
        }
        assert_eq!(hooked.status(&run)["status"], "paused");
        let taken = send(hooked.server(), &link, &[("comment", "fine,\r\nAda"), ("decision", "approve")]);
        assert_eq!(taken.status, 200, "{taken:?}");
        assert!(text(&taken).contains("<h1>Approved</h1>"), "{}", text(&taken));
        let done = hooked.until(&run, |now| now["status"] == "completed");
        let decision = &done["result"]["decisions"][0];
        assert_eq!(
            (&decision["decision"], &decision["by"], &decision["comment"]),
            (&json!("approve"), &json!("callback"), &json!("fine,\nAda"))
        );
        for reply in [hooked.server().get(&target(&link)), send(hooked.server(), &link, &[("decision", "deny")])] {
            assert_eq!(reply.status, 410, "{reply:?}");
            assert!(text(&reply).contains("This link was used"), "{}", text(&reply));
        }
        assert_eq!(hooked.status(&run)["result"]["decisions"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn one_of_two_approvals_is_recorded_and_the_page_does_not_say_that_the_run_continues() {
    let act = json!({ "requires_approval": true, "approval": { "approvers": 2 } });
    let hooked = Hooked::start(STORES[0], &[pay(), complete(json!("ok"))], act, public());
    let run = hooked.run();
    let taken = send(hooked.server(), &posted(&hooked, 1), &[("decision", "approve")]);
    let page = text(&taken);
    assert_eq!(taken.status, 200, "{taken:?}");
    for words in
        ["<h1>Your approval is recorded</h1>", "2 different people must approve it, and it waits until they have."]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("continues"), "{page}");
    let decided = |now: &Value| now["result"]["decisions"].as_array().map_or(0, Vec::len);
    hooked.until(&run, |now| decided(now) == 1 && now["status"] == "paused");
}

#[test]
fn a_question_is_answered_by_a_button_or_by_a_text() {
    for store in STORES {
        let replies = [ask("Which <b>account</b>\u{202e}?"), ask("And then?"), complete(json!("ok"))];
        let hooked = Hooked::start(store, &replies, json!({}), public());
        let run = hooked.run();
        let link = posted(&hooked, 1);
        let shown = text(&hooked.server().get(&target(&link)));
        assert!(shown.contains("Which &lt;b&gt;account&lt;/b&gt;\\u{202E}?"), "{shown}");
        assert!(shown.contains("<button name=\"option\" value=\"1\">the second</button>"), "{shown}");
        for fields in [&[("option", "2")][..], &[("decision", "answer"), ("answer", " ")], &[("decision", "approve")]] {
            let refused = send(hooked.server(), &link, fields);
            assert_eq!(refused.status, 400, "{fields:?} {refused:?}");
            let shown = text(&refused);
            assert!(shown.contains("Nothing was decided: ") && shown.contains("<form"), "{shown}");
        }
        assert_eq!(hooked.status(&run)["result"]["pause"]["number"], 1);
        assert!(text(&send(hooked.server(), &link, &[("option", "1")])).contains("<h1>Sent</h1>"));
        let second = posted(&hooked, 2);
        let own = [("decision", "answer"), ("answer", "neither & nor")];
        assert_eq!(send(hooked.server(), &second, &own).status, 200);
        let done = hooked.until(&run, |now| now["status"] == "completed");
        let trace = hooked.server().get(&format!("/agents/{run}/status?include_trace=true")).json().to_string();
        assert!(trace.contains("the second") && trace.contains("neither & nor"), "{trace}");
        assert_eq!(done["result"]["decisions"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_link_that_is_wrong_expired_or_decided_elsewhere_says_so_and_decides_nothing() {
    for store in STORES {
        let act =
            json!({ "requires_approval": true, "approval": { "expires_after_ms": 3_600_000, "on_expiry": "deny" } });
        let hooked = Hooked::start(store, &[pay(), complete(json!("ok"))], act, public());
        let (run, other) = (hooked.run(), hooked.run());
        let link = posted_of(&hooked, &run);
        let (path, query) =
            target(&link).split_once('?').map(|(path, query)| (path.to_owned(), query.to_owned())).unwrap();
        let token = query.strip_prefix("token=").unwrap().to_owned();
        let shown = |reply: Reply, status: u16, words: &str| {
            let page = text(&reply);
            assert_eq!(reply.status, status, "{page}");
            assert!(page.contains(words) && !page.contains("<form"), "{words}: {page}");
            page
        };
        let wrong: Vec<String> = [
            path.clone(),
            format!("{path}?token={}", &token[..token.len() - 1]),
            format!("{path}?token={token}&token={token}"),
            format!("{}?{query}", path.replace(&run, &other)),
            format!("/agents/no-such-run/answer?{query}"),
            format!("/agents/%ff/answer?{query}"),
        ]
        .iter()
        .map(|target| shown(hooked.server().get(target), 403, "This link is not valid"))
        .collect();
        assert!(wrong.iter().all(|page| *page == wrong[0]), "who guesses learns nothing: {wrong:#?}");
        let guessed = hooked.server().send("POST", &path, &[FORM], b"token=loopctl-answer-x&decision=approve");
        shown(guessed, 403, "This link is not valid");
        // A page of another site sends no form, even with the token.
        let body = format!("{query}&decision=approve");
        for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("origin", "null")]
        {
            let reply = hooked.server().send("POST", &path, &[FORM, (name, value)], body.as_bytes());
            assert_eq!((reply.status, reply.code()), (403, "foreign_origin".to_owned()), "{name}: {value}");
        }
        let long = hooked.server().send("POST", &path, &[FORM], &vec![b'a'; 300 * 1_024]);
        shown(long, 413, "longer than 305536 bytes");
        // Decided elsewhere, and expired.
        let denied = hooked.server().post(&format!("/agents/{run}/resume"), &json!({ "deny": true }));
        assert_eq!(denied.status, 200, "{denied:?}");
        shown(hooked.server().get(&target(&link)), 410, "Nothing waits for this decision any more");
        shown(send(hooked.server(), &link, &[("decision", "approve")]), 410, "Nothing waits");
        let last = posted_of(&hooked, &other);
        hooked.place.file("clock", "3660000");
        shown(hooked.server().get(&target(&last)), 410, "This link has expired");
    }
}

#[test]
fn a_changed_input_that_does_not_fit_is_refused_with_what_was_typed() {
    let act = json!({ "requires_approval": true });
    let first = think("act", json!({ "what": "10000000000000000000000.50 </textarea>\u{200b}" }));
    let hooked = Hooked::start(STORES[0], &[first, complete(json!("ok"))], act, public());
    let run = hooked.run();
    let link = posted(&hooked, 1);
    let shown = text(&hooked.server().get(&target(&link)));
    assert!(shown.contains("10000000000000000000000.50 &lt;/textarea&gt;\\u{200B}"), "{shown}");
    assert!(shown.contains("10000000000000000000000.50 &lt;/textarea&gt;\\u200b"), "JSON that can be sent: {shown}");
    for (typed, status) in [("{\"what\": 7}", 409), ("{\"what\": ", 400), ("{\"what\": \"a\", \"what\": \"b\"}", 400)] {
        let reply = send(hooked.server(), &link, &[("decision", "edit"), ("edit", typed), ("comment", "<i>")]);
        let shown = text(&reply);
        assert_eq!(reply.status, status, "{shown}");
        assert!(shown.contains("<details open>") && shown.contains("role=\"alert\""), "{shown}");
        assert!(shown.contains(&format!(">\n{}</textarea>", typed.replace('"', "&quot;"))), "{shown}");
        assert!(shown.contains("&lt;i&gt;") && !shown.contains("<i>"), "{shown}");
    }
    assert_eq!(hooked.status(&run)["status"], "paused");
    let taken = send(hooked.server(), &link, &[("decision", "edit"), ("edit", "{\"what\": \"less\"}")]);
    assert!(text(&taken).contains("Approved with the changed input"), "{taken:?}");
    let done = hooked.until(&run, |now| now["status"] == "completed");
    assert_eq!(done["result"]["decisions"][0]["decision"], "edit");
}

#[test]
fn steps_of_a_workflow_have_pages_of_their_own_and_no_token_is_in_the_log() {
    let hook = Server::with(|_, _| Answer::json("{}"));
    let tools = workflows::tools();
    let form = json!({ "id": "fill", "type": "PbotForm", "properties": { "expected_keys": ["amount", "why_late"],
        "ttl_seconds": 3_600 } });
    let definition = json!({ "output": "@amount", "actions": [workflows::asks(json!({ "comment": "Pay <b>it</b>?",
        "request_payload": { "id": 7 } })), form] });
    let place = workflows::place(&tools, definition);
    place.file("hook.key", "s3cret-of-the-hook\n");
    let serve = with(json!({ "callback_secret": "file:hook.key" }), public());
    scripted(&place, &[], json!({ "serve": serve }));
    let log = place.path().join("log");
    let server = Serving::start_logged_with(&place, workflows::STORES[0], &log, &[("LOOPCTL_LOG", "debug")]);
    let body = json!({ "input": {}, "callback_url": hook.url() });
    let run = server.post("/workflows/pay/execute?async=true", &body).json()["run_id"].as_str().unwrap().to_owned();
    hook.wait_for(1);
    let step = hook.requests()[0].json()["payload"]["pause"]["steps"][0].clone();
    let shown = text(&server.get(&target(&step["answer"])));
    for words in
        ["Pay &lt;b&gt;it&lt;/b&gt;?", "What is to be approved", "&quot;id&quot;: 7", "After a no the next steps run"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(send(&server, &step["answer"], &[("decision", "deny"), ("reason", "too much")]).status, 200);
    hook.wait_for(2);
    let step = hook.requests()[1].json()["payload"]["pause"]["steps"][0].clone();
    let shown = text(&server.get(&target(&step["answer"])));
    assert!(shown.contains("A form to fill in") && shown.contains(">why_late</label>"), "{shown}");
    let broken = [("key.0", "12"), ("key.1", "{"), ("kind.1", "json"), ("decision", "data")];
    let refused = text(&send(&server, &step["answer"], &broken));
    assert!(refused.contains(">\n12</textarea>") && refused.contains("<option value=\"json\" selected>"), "{refused}");
    let filled = [("key.0", "12.50"), ("key.1", "12"), ("kind.1", "text"), ("decision", "data")];
    assert_eq!(send(&server, &step["answer"], &filled).status, 200);
    server.events(&run, &[]);
    let ended = server.get(&format!("/runs/{run}/status")).json();
    assert_eq!((ended["final_answer"].to_string().as_str(), &ended["context"]["why_late"]), ("12.50", &json!("12")));
    let decision = &ended["result"]["decisions"][0];
    assert_eq!((&decision["decision"], &decision["comment"]), (&json!("deny"), &json!("too much")), "{ended:#}");
    let log = server.whole_log(&log);
    assert!(log.contains(&format!("/agents/{run}/answer")), "{log}");
    assert!(!log.contains("loopctl-answer-") && !log.contains("token="), "{log}");
}

#[test]
fn a_person_decides_on_a_phone_without_a_script() {
    for dark in [false, true] {
        let Some(browser) = Browser::open(PHONE, dark) else { return };
        let act = json!({ "requires_approval": true });
        let first = think("act", json!({ "what": "Pay 1,250.00 EUR to ACME GmbH, IBAN DE89 3704 0044 0532 0130 00" }));
        let hooked = Hooked::start(STORES[0], &[first, ask("Which account?"), complete(json!("ok"))], act, public());
        let run = hooked.run();
        let here = |link: &Value| format!("http://{}{}", hooked.server().address, target(link));
        browser.go(&here(&posted(&hooked, 1)));
        browser.shows(&["Your approval is asked for", "with exactly this input", "IBAN DE89", "Deny"]);
        assert_eq!(browser.run("return document.documentElement.scrollWidth", json!([])), PHONE.0);
        assert_eq!(
            browser.run("return document.scripts.length + document.querySelectorAll('link').length", json!([])),
            0
        );
        let tall =
            "return [...document.querySelectorAll('button')].every((b) => !b.offsetHeight || b.offsetHeight >= 44)";
        assert_eq!(browser.run(tall, json!([])), true, "a finger hits each button");
        browser.picture(if dark { "answer-phone-dark" } else { "answer-phone" });
        browser.write("Comment (optional)", "fine");
        browser.click("Approve");
        browser.shows(&["Approved", "Your decision was taken."]);
        let second = posted(&hooked, 2);
        browser.go(&here(&second));
        browser.shows(&["A question", "Which account?", "Another answer"]);
        browser.picture(if dark { "question-phone-dark" } else { "question-phone" });
        browser.click("the second");
        browser.shows(&["Sent"]);
        hooked.until(&run, |now| now["status"] == "completed");
        browser.go(&here(&second));
        browser.shows(&["This link was used"]);
        browser.picture(if dark { "used-phone-dark" } else { "used-phone" });
        // A page of this status is a complaint of the browser by itself.
        let complaints = browser.complaints();
        let others: Vec<&String> = complaints.iter().filter(|line| !line.contains("410")).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}
