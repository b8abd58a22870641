//! The page at `/` in a real browser: runs are seen as they go on and decided, and what models and
//! tools write is text.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, look, think};
use crate::serve::browser::Browser;
use crate::serve::client::{Serving, place, scripted};

pub const DESKTOP: (u32, u32) = (1280, 900);
pub const PHONE: (u32, u32) = (390, 844);
/// Markup, a terminal's orders, text turned round, and what is not seen.
const BOMB: &str = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>\
                    \u{1b}[2J\u{1b}]0;owned\u{7} \u{202e}live\u{202c} zero\u{200b}width \u{e0041}";

pub fn id(run: &Value) -> &str {
    run["agent_run_id"].as_str().unwrap()
}

/// A loop whose tools a server answers; `act` wants approval.
pub fn with_tools(tools: &Server, replies: &[Value]) -> Place {
    let place = place(json!({}), replies);
    let mut document = crate::common::document(&json!({ "tools": [
        { "type": "action", "name": "look" }, { "type": "action", "name": "act", "requires_approval": true }] }));
    document["actions"][0]["url"] = json!(format!("{}/look/{{{{at}}}}", tools.url()));
    document["actions"][1]["url"] = json!(format!("{}/act", tools.url()));
    document["actions"][1]["parameters"] = json!({ "type": "object" });
    place.json("loop.json", &document);
    scripted(&place, replies, json!({}));
    place
}

fn question() -> Value {
    think(
        "__pause_for_human__",
        json!({ "question": "Which account is it?", "context": "Two have this name.",
        "options": ["The first one", "The second one"] }),
    )
}

#[test]
fn a_run_is_followed_answered_and_approved_in_the_page() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "sum": 12.50, "note": BOMB })));
    // A number that JavaScript would round, and characters that hide.
    let input = r#"{"to":"Ada\u202e\u200b\u00a0\u2800\ufe0f","amount":12345678901234567890.10,"note":"<b>now</b>"}"#;
    let input: Value = serde_json::from_str(input).unwrap();
    let replies = [look("invoices"), question(), think("act", input), complete(json!("Paid."))];
    let place = with_tools(&tools, &replies);
    let server = Serving::start(&place, &[]);
    browser.go(&format!("http://{}/", server.address));
    browser.shows(&["There are no such runs."]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    browser.until("return document.title === '(1) loopctl'");
    let before = browser.run("return document.querySelectorAll('script, img, b').length", json!([]));
    browser.until("const row = document.querySelector('#waiting a'); row?.click(); return !!row");
    let seen = browser.shows(&["A question", "Which account is it?", "Two have this name.", "<script>document.title"]);
    // All of the bomb is there to be read.
    for part in [
        "<img src=x onerror=",
        r"\u001b[2J\u001b]0;owned\u0007",
        r"\u202elive\u202c",
        r"zero\u200bwidth",
        r"\udb40\udc41",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    assert!(!seen.contains(['\u{1b}', '\u{202e}', '\u{200b}']));
    let after = browser.run("return document.querySelectorAll('#run script, #run img').length", json!([]));
    assert_eq!(after, 0, "no element came of it; {before} before");
    browser.picture("question");
    browser.click("The second one");
    let seen = browser.shows(&["Wants your approval", "Approve", "Deny", "12345678901234567890.10"]);
    assert!(
        seen.contains(r#""to": "Ada\u202e\u200b\u00a0\u2800\ufe0f""#) && seen.contains(r#""note": "<b>now</b>""#),
        "{seen}"
    );
    assert_eq!(tools.requests().len(), 1, "nothing is made before it is approved");
    browser.picture("approval");
    browser.click("Approve");
    browser.shows_completed(&["Paid.", "tokens in"]);
    browser.until("return document.title === 'loopctl'");
    browser.picture("completed");
    assert!(tools.requests().last().unwrap().text().contains("12345678901234567890.10"));
    assert_eq!(server.get(&format!("/agents/{}/status", id(&run))).json()["status"], "completed");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // The twin: the same text as markup does make elements, so that their count would show it; and in
    // the page itself the browser refuses to make any.
    let markup = "try { const at = document.createElement('p'); at.innerHTML = arguments[0]; \
                  return at.querySelectorAll('script, img').length } catch (why) { return String(why) }";
    let refused = browser.run(markup, json!([BOMB]));
    assert!(refused.as_str().is_some_and(|why| why.contains("TrustedHTML")), "{refused}");
    browser.go("about:blank");
    assert_eq!(browser.run(markup, json!([BOMB])), 2);
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_phone_in_the_dark_denies_with_a_reason_edits_and_needs_a_token() {
    let Some(browser) = Browser::open(PHONE, true) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "done": true })));
    let call = think(
        "act",
        json!({ "what": "refund", "amount": 40, "to": "acct_0042_of_a_customer_with_a_long_name@example.com" }),
    );
    let replies = [call.clone(), call, complete(json!({ "refunded": 20 }))];
    let place = with_tools(&tools, &replies);
    let made = place.call(&["token", "ops", "--scope", "run", "--scope", "read", "--scope", "decide"]);
    let token = made.stdout.trim().to_owned();
    let known: Value = serde_json::from_str(
        made.stderr.get(made.stderr.find('{').unwrap()..=made.stderr.rfind('}').unwrap()).unwrap(),
    )
    .unwrap();
    scripted(&place, &replies, json!({ "serve": { "tokens": [known] } }));
    let server = Serving::start(&place, &[]);
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let run = server.send("POST", "/agents/execute", &headers, br#"{"loop":"test"}"#).json();
    browser.go(&format!("http://{}/#{}", server.address, id(&run)));
    browser.shows(&["Token", "Only this tab keeps it."]);
    browser.picture("token-phone-dark");
    browser.write("Token", "loopctl-wrong");
    browser.click("Go on");
    browser.shows(&["The server does not know this token."]);
    browser.write("Token", &token);
    browser.click("Go on");
    browser.shows(&["Wants your approval", "acct_0042"]);
    let wide = browser.run("return document.documentElement.scrollWidth", json!([]));
    assert_eq!(wide, PHONE.0, "nothing is wider than the phone");
    browser.picture("approval-phone-dark");
    browser.write("Why not (the model reads it)", "Half is enough.");
    browser.click("Deny");
    browser.shows(&["Half is enough.", "call 2.0"]);
    browser.click("Change the input");
    browser.run(
        "const field = document.querySelector('details textarea'); field.value = field.value.replace('40', '20 000')",
        json!([]),
    );
    browser.click("Approve this input");
    browser.shows(&["This is no JSON"]);
    browser.run(
        "const field = document.querySelector('details textarea'); field.value = field.value.replace('20 000', '20')",
        json!([]),
    );
    browser.click("Approve this input");
    browser.shows_completed(&["\"refunded\": 20"]);
    browser.picture("completed-phone-dark");
    assert_eq!(tools.requests().len(), 1);
    assert_eq!(tools.requests()[0].json()["amount"], 20);
    browser.click("All runs");
    browser.shows(&["Runs", "completed"]);
    browser.picture("list-phone-dark");
    let kept =
        browser.run("return [localStorage.length, document.cookie, Object.keys(sessionStorage).join()]", json!([]));
    assert_eq!(kept, json!([0, "", "token"]));
    browser.click("Forget the token");
    browser.shows(&["Only this tab keeps it."]);
    assert_eq!(browser.run("return sessionStorage.length", json!([])), 0);
}

#[test]
fn the_page_asks_nobody_else_and_holds_no_markup_of_its_own_in_scripts() {
    let place = place(json!({}), &[]);
    let server = Serving::start(&place, &[]);
    let document = String::from_utf8(server.get("/").body).unwrap();
    let files: Vec<&str> = document.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let files = files.iter().filter(|name| name.ends_with(".js") || name.ends_with(".css"));
    let mut targets: Vec<String> = files.map(|name| format!("/{name}")).collect();
    assert!(
        targets.len() > 10,
        "the document names all of its files, which a browser so asks for at once: {targets:?}"
    );
    targets.push("/".to_owned());
    for target in &targets {
        let kind = match target.rsplit('.').next() {
            Some("js") => "text/javascript",
            Some("css") => "text/css",
            _ => "text/html",
        };
        let reply = server.get(target);
        assert_eq!(reply.status, 200, "{target}");
        assert!(reply.header("content-type").unwrap().starts_with(kind), "{target}");
        let policy = reply.header("content-security-policy").unwrap();
        for word in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.contains(word), "{target}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{target}: {policy}");
        let text = String::from_utf8(reply.body).unwrap();
        for word in [
            "http://",
            "https://",
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "style=",
            "onclick",
        ] {
            assert!(!text.contains(word), "{target}: {word}");
        }
        for import in text.split(" from \"./").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(targets.contains(&format!("/{import}")), "{target}: {import} is not asked for at once");
        }
        assert!(text.lines().count() < 400, "{target}");
    }
}
