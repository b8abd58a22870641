//! Lists: of runs by pages and filters, of loops; and whether the server is there.

use serde_json::{Value, json};

use crate::common::{complete, document, with};
use crate::serve::client::{Serving, place};

fn ids(page: &Value) -> Vec<String> {
    let agents = page["agents"].as_array().unwrap().iter();
    agents.map(|run| run["agent_run_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn runs_are_listed_by_pages_that_neither_lose_nor_repeat() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    place.json("other.json", &with(document(&json!({})), json!({ "name": "other" })));
    let server = Serving::start(&place, &[]);
    let mut all: Vec<String> = (0..7)
        .map(|n| {
            let name = if n == 3 { "other" } else { "test" };
            let run = server.execute("", json!({ "loop": name, "session": format!("s{n}") }));
            run.json()["agent_run_id"].as_str().unwrap().to_owned()
        })
        .collect();
    all.reverse();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..4 {
        let page = server.get(&format!("/agents?limit=2{cursor}")).json();
        seen.extend(ids(&page));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, all);
    assert_eq!(ids(&server.get("/agents?loop=other").json()), [all[3].clone()]);
    assert_eq!(ids(&server.get("/agents?session=s0").json()), [all[6].clone()]);
    assert_eq!(ids(&server.get("/agents?status=completed").json()), all);
    assert!(ids(&server.get("/agents?status=paused").json()).is_empty());
    assert!(ids(&server.get("/agents?until=2001-01-01T00:00:00Z").json()).is_empty());
    assert_eq!(ids(&server.get("/agents?since=2001-01-01T00:00:00Z").json()), all);
    for wrong in ["?limit=0", "?limit=501", "?status=done", "?cursor=agent-0", "?since=now", "?stats=1"] {
        assert_eq!(server.get(&format!("/agents{wrong}")).code(), "bad_request", "{wrong}");
    }
}

#[test]
fn a_list_takes_several_statuses_and_says_what_each_run_is_about() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json()["agent_run_id"].as_str().unwrap().to_owned();
    let row = |query: &str| server.get(&format!("/agents{query}")).json()["agents"][0].clone();
    let shown = row("?status=failed,completed,queued");
    assert_eq!((&shown["agent_run_id"], &shown["status"]), (&json!(run), &json!("completed")));
    assert!(shown["title"].as_str().is_some_and(|title| !title.is_empty()), "{shown:#}");
    assert!(shown["duration_ms"].as_i64().is_some_and(|ms| ms >= 0), "{shown:#}");
    for none in ["?status=queued", "?status=failed,paused", "?status=running", "?loop=nobody&status=completed"] {
        assert_eq!(row(none), Value::Null, "{none}");
    }
    let wrong = server.get("/agents?status=completed,done").json();
    assert!(wrong["detail"].as_str().unwrap().contains("`status` \"done\" is none of"), "{wrong:#}");
}

#[test]
fn loops_are_listed_with_their_tools() {
    let place = place(json!({}), &[]);
    let server = Serving::start(&place, &[]);
    let loops = server.get("/loops").json();
    assert_eq!(loops["loops"][0]["name"], "test");
    let tools = loops["loops"][0]["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("look")) && tools.contains(&json!("act")), "{loops}");
}

#[test]
fn a_server_says_that_it_lives_and_what_it_does_not_have() {
    let place = place(json!({}), &[]);
    let server = Serving::start(&place, &[]);
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/readyz").json()["status"], "ready");
    assert_eq!(server.get("/nothing").code(), "no_such_route");
    assert_eq!(server.send("PUT", "/agents/execute", &[], b"").code(), "other_method");
    for route in ["status", "trace", "events"] {
        let reply = server.get(&format!("/agents/agent-1/{route}"));
        assert_eq!((reply.status, reply.code()), (404, "no_such_run".to_owned()));
        for odd in ["%FF", "%00", "..%2f..", "%0d%0ax:1", "%F0%9F%90%9D"] {
            assert_eq!(server.get(&format!("/agents/{odd}/{route}")).code(), "no_such_run", "{odd}");
        }
    }
}
