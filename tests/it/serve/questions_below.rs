//! What a workflow that is a step asks is shown and decided while other steps of it are under way.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::with;
use crate::serve::client::Serving;
use crate::serve::workflows::{STORES, act, asks, each, place};

#[test]
fn a_question_below_a_step_under_way_is_shown_and_decided_at_any_server() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |number, _| {
        let answer = Answer::json(&json!({ "done": true }));
        if number == 0 { answer.behind(&held) } else { answer }
    });
    let asked = json!({ "equal": ["@one.asks", true] });
    let ask = with(asks(json!({})), json!({ "filter": { "condition": asked } }));
    let items = each(json!({ "max_concurrency": 3 }), json!([ask, act("@one.id", None)]));
    let called = |name: &str| {
        let step = json!({ "id": "below", "type": "workflow", "name": name, "properties": { "items": "@input.items" },
            "outputKey": "all" });
        json!({ "output": "@all", "actions": [step] })
    };
    let place = place(&tools, called("middle"));
    let input = json!({ "type": "object", "properties": { "items": { "type": "array" } }, "required": ["items"] });
    let document = |name: &str, definition: Value| json!({ "name": name, "input": input, "definition": definition });
    place.json("workflows/middle.json", &document("middle", called("inner")));
    place.json("workflows/inner.json", &document("inner", json!({ "output": "@all", "actions": [items] })));
    let (driver, other) = (Serving::start(&place, STORES[0]), Serving::start(&place, STORES[0]));
    let input = json!({ "items": [{ "id": "slow" }, { "id": "a", "asks": true }, { "id": "b", "asks": true }] });
    let started = driver.post("/workflows/pay/execute?async=true", &json!({ "input": input })).json();
    let run = started["run_id"].as_str().unwrap();
    tools.wait_for(1);
    let waiting = |server: &Serving| -> Vec<String> {
        let status = server.get(&format!("/agents/{run}/status")).json();
        let waiting = status["result"]["waiting"].as_array().cloned().unwrap_or_default();
        let shown = |step: &Value| format!("{} {}", step["at"].as_str().unwrap(), step["question"].as_str().unwrap());
        waiting.iter().map(shown).collect()
    };
    let both = ["below/below/each.1.ask Pay a?", "below/below/each.2.ask Pay b?"];
    while waiting(&driver).len() < 2 {
        crate::common::wait_poll_interval();
    }
    assert_eq!(
        (waiting(&driver), waiting(&other)),
        (both.map(str::to_owned).to_vec(), both.map(str::to_owned).to_vec())
    );
    let resume = format!("/agents/{run}/resume?async=true");
    let decide = |server: &Serving, item: u32, what: Value| {
        server.post(&resume, &with(json!({ "at": format!("below/below/each.{item}.ask") }), what))
    };
    let refused = decide(&driver, 0, json!({ "approve": true }));
    assert_eq!((refused.status, refused.code().as_str()), (409, "refused"), "{refused:?}");
    let reply = decide(&driver, 1, json!({ "approve": true }));
    assert_eq!(reply.status, 202, "{reply:?}");
    tools.wait_for(2);
    assert_eq!(decide(&other, 1, json!({ "approve": true })).code(), "refused", "it is decided");
    let reply = decide(&other, 2, json!({ "deny": true }));
    assert_eq!(reply.status, 202, "{reply:?}");
    tools.wait_for(3);
    assert_eq!(waiting(&driver), Vec::<String>::new());
    gate.open();
    let ended = driver.settled(run);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let asked: Vec<Value> = tools.requests().iter().map(|request| request.json()["id"].clone()).collect();
    assert_eq!(asked, ["slow", "a", "b"], "each call was made once");
    let below = driver.get(&format!("/agents/{run}.below.below/status")).json();
    let decisions = below["result"]["decisions"].as_array().unwrap().iter();
    let decided: Vec<(&Value, &Value)> = decisions.map(|one| (&one["step"], &one["decision"])).collect();
    let expected = [(json!("each.1.ask"), json!("approve")), (json!("each.2.ask"), json!("deny"))];
    assert_eq!(decided, expected.iter().map(|(step, what)| (step, what)).collect::<Vec<_>>());
}
