//! The steps of a workflow that wait are posted each with a token of its own, which decides about that step only.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think, web, with};
use crate::serve::client::{Reply, Serving, scripted};
use crate::serve::workflows::{STORES, act, asks, each, place, tools};

/// A server whose workflow `pay` posts its pauses to a hook.
struct Posting {
    place: Place,
    server: Option<Serving>,
    hook: Server,
    store: &'static [&'static str],
}

impl Posting {
    fn start(place: Place, store: &'static [&'static str], replies: Value) -> Self {
        place.file("hook.key", "s3cret-of-the-hook\n");
        scripted(&place, &[], json!({ "serve": { "callback_secret": "file:hook.key" } }));
        place.json("script.json", &json!({ "replies": [], "loops": replies }));
        let hook = Server::with(|_, _| Answer::json("{}"));
        let mut posting = Self { place, server: None, hook, store };
        posting.restart();
        posting
    }

    fn restart(&mut self) {
        self.server = None;
        self.server = Some(Serving::start(&self.place, self.store));
    }

    fn server(&self) -> &Serving {
        self.server.as_ref().unwrap()
    }

    fn begin(&self, query: &str, input: Value) -> String {
        let body = json!({ "input": input, "callback_url": self.hook.url() });
        let reply = self.server().post(&format!("/workflows/pay/execute{query}"), &body);
        assert!(reply.status < 300, "{reply:?}");
        reply.json()["run_id"].as_str().unwrap().to_owned()
    }

    /// What was posted of the pause of this number.
    fn pause(&self, number: usize) -> Value {
        self.hook.wait_for(number);
        let envelope = self.hook.requests()[number - 1].json();
        assert_eq!(envelope["event"], "agent_run_paused", "{envelope:#}");
        envelope["payload"]["pause"].clone()
    }

    fn answer(&self, run: &str, link: &Value, decision: Value) -> Reply {
        assert_eq!(link["url"], format!("/agents/{run}/answer"));
        self.server().post(&format!("/agents/{run}/answer"), &with(decision, json!({ "token": link["token"] })))
    }

    fn taken(&self, run: &str, link: &Value, decision: Value) {
        let reply = self.answer(run, link, decision);
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    fn refused(&self, run: &str, link: &Value, decision: Value, expected: (u16, &str)) {
        let reply = self.answer(run, link, decision);
        assert_eq!((reply.status, reply.code().as_str()), expected, "{reply:?}");
    }

    fn ended(&self, run: &str) -> Value {
        self.server().events(run, &[]);
        self.server().get(&format!("/runs/{run}/status")).json()
    }
}

#[test]
fn each_step_has_a_token_that_stays_good_while_others_are_decided() {
    for store in STORES {
        let tools = tools();
        let approved = json!({ "equal": ["@__approved", true] });
        let steps = json!([asks(json!({})), act("@one.id", Some(approved))]);
        let settings = json!({ "max_concurrency": 4, "collect": "@__approved" });
        let place = place(&tools, json!({ "output": "@all", "actions": [each(settings, steps)] }));
        let posting = Posting::start(place, store, json!({}));
        let run = posting.begin("", json!({ "items": [{ "id": "a" }, { "id": "b\u{202e}" }, { "id": "c" }] }));
        let first = posting.pause(1);
        assert!(
            first.get("calls").is_none() && first.get("answer").is_none() && first.get("choices").is_none(),
            "{first:#}"
        );
        let steps = first["steps"].as_array().unwrap();
        let shown: Vec<(&str, &str)> =
            steps.iter().map(|step| (step["at"].as_str().unwrap(), step["question"].as_str().unwrap())).collect();
        assert_eq!(shown, [("each.0.ask", "Pay a?"), ("each.1.ask", "Pay b\u{202e}?"), ("each.2.ask", "Pay c?")]);
        assert_eq!(
            (&steps[0]["choices"], &steps[0]["action_input"]),
            (&json!(["approve", "deny", "edit"]), &json!({ "id": "a" }))
        );
        assert!(steps[1]["concerns"].is_array() && steps[0].get("concerns").is_none(), "{first:#}");
        let link = |at: usize| &first["steps"][at]["answer"];

        posting.refused(&run, link(1), json!({ "approve": true, "at": "each.0.ask" }), (409, "refused"));
        posting.refused(&run, link(1), json!({ "approve": true, "hash": steps[0]["hash"] }), (409, "refused"));
        posting.refused(&run, link(1), json!({ "answer": "yes" }), (409, "refused"));
        posting.taken(&run, link(1), json!({ "approve": true, "comment": "fine" }));
        posting.refused(&run, link(1), json!({ "approve": true }), (410, "answer_is_over"));
        let second = posting.pause(2);
        assert_eq!((second["number"].as_u64(), second["steps"].as_array().unwrap().len()), (Some(2), 2));
        // The token of the first post is as good as that of the second, until one of them is used.
        posting.taken(&run, link(0), json!({ "deny": true, "reason": "no" }));
        posting.refused(&run, &second["steps"][0]["answer"], json!({ "approve": true }), (410, "answer_is_over"));
        posting.taken(&run, &second["steps"][1]["answer"], json!({ "approve": true }));
        posting.refused(&run, link(2), json!({ "approve": true }), (410, "answer_is_over"));
        let ended = posting.ended(&run);
        let outputs: Vec<&Value> =
            ended["final_answer"].as_array().unwrap().iter().map(|item| &item["output"]).collect();
        assert_eq!(outputs, [&json!(false), &json!(true), &json!(true)], "{ended:#}");
        let decisions = ended["result"]["decisions"].as_array().unwrap();
        assert!(decisions.iter().all(|decision| decision["by"] == "callback"), "{decisions:?}");
        assert_eq!(tools.requests().len(), 2);
    }
}

#[test]
fn many_answers_at_once_are_each_taken_by_their_step() {
    let tools = tools();
    let steps = json!([asks(json!({})), act("@one.id", None)]);
    let place = place(&tools, json!({ "output": "@all", "actions": [each(json!({ "max_concurrency": 64 }), steps)] }));
    let posting = Posting::start(place, STORES[0], json!({}));
    let items: Vec<Value> = (0..60).map(|id| json!({ "id": id })).collect();
    let run = posting.begin("", json!({ "items": items }));
    let pause = posting.pause(1);
    assert_eq!((pause["steps"].as_array().unwrap().len(), &pause["steps_waiting"]), (50, &json!(60)));
    std::thread::scope(|scope| {
        for at in 0..4 {
            let (posting, run, link) = (&posting, &run, &pause["steps"][at]["answer"]);
            scope.spawn(move || posting.taken(run, link, json!({ "approve": true })));
        }
    });
    loop {
        let status = posting.server().get(&format!("/runs/{run}/status")).json();
        let left = crate::serve::workflows::waiting(&status).len();
        if left == 56 && status["status"] == "paused" {
            break;
        }
        crate::common::wait_poll_interval();
    }
    assert_eq!(tools.requests().len(), 4);
}

#[test]
fn a_form_is_filled_in_with_its_token() {
    for store in STORES {
        let tools = tools();
        let form = json!({ "id": "fill", "type": "PbotForm", "properties": { "expected_keys": ["amount"], "ttl_seconds": 3600 } });
        let place = place(&tools, json!({ "output": "@amount", "actions": [form, act("@amount", None)] }));
        let posting = Posting::start(place, store, json!({}));
        let run = posting.begin("", json!({}));
        let step = posting.pause(1)["steps"][0].clone();
        assert_eq!((&step["choices"], &step["expected_keys"]), (&json!(["data"]), &json!(["amount"])));
        assert_eq!(step["answer"]["expires_at"], step["expires_at"]);
        posting.refused(&run, &step["answer"], json!({ "data": { "sum": 1 } }), (409, "refused"));
        posting.refused(&run, &step["answer"], json!({ "approve": true }), (409, "refused"));
        posting.refused(&run, &step["answer"], json!({ "data": {}, "answer": "{}" }), (400, "bad_request"));
        posting.taken(&run, &step["answer"], json!({ "data": { "amount": 12 } }));
        assert_eq!(posting.ended(&run)["final_answer"], 12);
    }
}

/// A form with typed fields and what is shown beside them, whose amount is passed to `act`.
fn typed_form() -> Value {
    json!({ "id": "fill", "type": "PbotForm", "properties": {
        "question": "How much of <b>{{input.id}}</b>?", "show": { "claim": "@input" },
        "fields": [
            { "name": "amount", "type": "number", "min": 0, "max": "@input.amount", "label": "Amount" },
            { "name": "reason", "type": "choice", "choices": ["damage", "delay"], "default": "delay" },
            { "name": "until", "type": "date", "required": false },
            { "name": "note", "type": "long_text", "required": false }] } })
}

#[test]
fn a_form_with_fields_is_refused_at_its_field_by_each_route_and_stays_open() {
    let tools = tools();
    let output = json!({ "amount": "@amount", "reason": "@reason", "until": "@until" });
    let place = place(&tools, json!({ "output": output, "actions": [typed_form(), act("@amount", None)] }));
    let posting = Posting::start(place, STORES[0], json!({}));
    let run = posting.begin("", json!({ "id": "C-7", "amount": 120 }));
    let step = posting.pause(1)["steps"][0].clone();
    assert_eq!((&step["choices"], &step["show"]["claim"]["id"]), (&json!(["data"]), &json!("C-7")));
    assert_eq!(step["answer_schema"]["properties"]["amount"]["maximum"], 120);
    let status = posting.server().get(&format!("/runs/{run}/status")).json();
    assert_eq!(status["result"]["pause"]["steps"][0]["answer_schema"], step["answer_schema"], "{status:#}");
    let server = posting.server();
    let fault = |reply: &Reply| {
        let problem = reply.json();
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_answer"), "{problem:#}");
        problem["fields"].clone()
    };
    let blank = json!([{ "field": "amount", "message": "\"7 \" is no number, and has blanks around it; digits with a point: 12.50" }]);
    let wrong = json!({ "amount": "7 " });
    let submit = format!("/forms/{run}/fill/submit");
    assert_eq!(fault(&server.post(&submit, &wrong)), blank);
    assert_eq!(fault(&server.post(&format!("/agents/{run}/resume"), &json!({ "answer": wrong.to_string() }))), blank);
    assert_eq!(fault(&posting.answer(&run, &step["answer"], json!({ "data": wrong }))), blank);
    let several = fault(&server.post(&submit, &json!({ "amount": 121, "until": "2026-02-30", "resaon": "x" })));
    let fields: Vec<&str> = several.as_array().unwrap().iter().map(|one| one["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["amount", "until", "resaon"], "{several:#}");
    let twice = server.send("POST", &submit, &[("content-type", "application/json")], br#"{"amount": 1, "amount": 2}"#);
    assert_eq!((twice.status, twice.code().as_str()), (400, "bad_request"), "{twice:?}");
    let reserved = br#"{"amount": {"$serde_json::private::Number": "5"}}"#;
    let reserved = server.send("POST", &submit, &[("content-type", "application/json")], reserved);
    assert_eq!((reserved.status, reserved.code().as_str()), (400, "bad_request"), "{reserved:?}");

    // The page of the link, without a script.
    let token = step["answer"]["token"].as_str().unwrap();
    let html = |reply: &Reply| String::from_utf8(reply.body.clone()).unwrap();
    let page = server.get(&format!("/agents/{run}/answer?token={token}"));
    for words in [
        "How much of &lt;b&gt;C-7&lt;/b&gt;?",
        "<label for=\"key.0\">Amount (required)</label>",
        "a number from 0 to 120",
        "<option value=\"damage\">",
        "type=\"date\"",
    ] {
        assert!(html(&page).contains(words), "{words}: {}", html(&page));
    }
    assert!(!html(&page).contains("<script"), "{}", html(&page));
    let send = |fields: &str| {
        let origin = format!("http://{}", server.address);
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("origin", origin.as_str())];
        let body = format!("token={token}&decision=data&{fields}");
        server.send("POST", &format!("/agents/{run}/answer"), &headers, body.as_bytes())
    };
    // A long text of any script is taken whole.
    let long = "%C3%BC".repeat(20_000);
    let refused = send(&format!("key.0=7+&key.1=damage&key.2=&key.3={long}"));
    assert_eq!(refused.status, 400, "{}", html(&refused));
    assert!(html(&refused).contains(&"ü".repeat(20_000)));
    for words in ["has blanks around it", "value=\"7 \"", "<option value=\"damage\" selected>", "aria-invalid=\"true\""]
    {
        assert!(html(&refused).contains(words), "{words}: {}", html(&refused));
    }
    assert!(tools.requests().is_empty(), "nothing was decided");
    let taken = send("key.0=7.50&key.1=&key.2=2026-03-01");
    assert_eq!(taken.status, 200, "{}", html(&taken));
    let ended = posting.ended(&run);
    assert_eq!(ended["final_answer"].to_string(), r#"{"amount":7.50,"reason":"delay","until":"2026-03-01"}"#);
}

#[test]
fn a_question_of_a_steps_run_is_answered_once_and_not_the_next_one() {
    for store in STORES {
        let tools = tools();
        let react = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "tools": [],
            "objective": "Judge it.", "result_key": "finding" } });
        let place = place(&tools, json!({ "output": "@finding.answer", "actions": [react] }));
        let ask = think("__pause_for_human__", json!({ "question": "Which one?", "options": ["x", "y"] }));
        let posting = Posting::start(place, store, json!({ "judge": [ask, ask, complete(json!("taken"))] }));
        let run = posting.begin("", json!({}));
        let first = posting.pause(1)["steps"][0].clone();
        assert_eq!((&first["choices"], &first["run_id"]), (&json!(["answer"]), &json!(format!("{run}.judge"))));
        // Answered elsewhere: the same question comes again, and the token is not for it.
        let resume = format!("/agents/{run}/resume");
        assert_eq!(posting.server().post(&resume, &json!({ "answer": "x" })).json()["status"], "paused");
        posting.refused(&run, &first["answer"], json!({ "answer": "x" }), (410, "answer_is_over"));
        let second = posting.pause(2)["steps"][0].clone();
        posting.taken(&run, &second["answer"], json!({ "answer": "y" }));
        assert_eq!(posting.ended(&run)["final_answer"], "taken");
    }
}

#[test]
fn a_call_of_unknown_outcome_is_settled_with_its_token() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = place(&tools, json!({ "actions": [with(act("@input.n", None), json!({ "outputKey": "did" }))] }));
    let more = json!({ "http_method": "POST", "parameters": { "type": "object", "properties": { "id": {} } } });
    place.json("actions/act.json", &json!([web("act", &format!("{}/act", tools.url()), more)]));
    let mut posting = Posting::start(place, STORES[0], json!({}));
    let run = posting.begin("?async=true", json!({ "n": 1 }));
    tools.wait_for(1);
    posting.restart();
    let step = posting.pause(1)["steps"][0].clone();
    assert_eq!(
        (&step["kind"], &step["choices"]),
        (&json!("uncertain"), &json!(["happened", "fail", "retry"])),
        "{step:#}"
    );
    posting.taken(&run, &step["answer"], json!({ "happened": { "paid": true } }));
    assert_eq!(posting.ended(&run)["context"]["did"], json!({ "paid": true }));
    gate.open();
    assert_eq!(tools.requests().len(), 1);
}
