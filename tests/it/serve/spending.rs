//! Spending limits at a server: a run that waits for room takes no slot and continues by itself, and the limits are shown.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::common::complete;
use crate::serve::client::{Serving, place, scripted};

const DAY_MS: u128 = 24 * 3_600_000;

#[test]
fn a_run_that_waits_for_room_takes_no_slot_and_continues_when_the_day_is_over() {
    let said = json!({ "text": complete(json!("done")).to_string(), "usage": { "input": 290, "output": 10 } });
    let place = place(json!({ "max_tokens": 100 }), &[]);
    let limit = json!({ "every": "day", "tokens": 1_000, "on_limit": "wait" });
    scripted(&place, &[said], json!({ "limits": [limit] }));
    // Noon.
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let noon_ms = DAY_MS + DAY_MS / 2 - now_ms % DAY_MS;
    place.file("clock", noon_ms.to_string());
    let clock = place.path().join("clock").to_str().unwrap().to_owned();
    let server = Serving::start_with(&place, &["--max-concurrent-runs", "1"], &[("LOOPCTL_CLOCK", &clock)]);
    let run = |words: &str| server.execute(words, json!({ "loop": "test" })).json();
    // 300 tokens each, and a request reserves more than 400.
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let started = run("?async=true");
        let id = started["agent_run_id"].as_str().unwrap().to_owned();
        let settled = server.settled(&id);
        if settled["status"] == "paused" {
            assert_eq!(settled["result"]["termination"], "spending_limit", "{settled:#}");
            waiting.push(id);
        }
    }
    assert_eq!(waiting.len(), 2, "two had room");
    let listed = server.get("/agents?status=paused").json();
    assert_eq!(listed["agents"][0]["waiting"], Value::Null, "no human is asked: {listed:#}");
    let report = server.get("/usage?journals=0&by=model").json();
    let limits = &report["limits"];
    assert_eq!((&limits[0]["of"], &limits[0]["every"]), (&json!("all runs"), &json!("a day")), "{report:#}");
    assert_eq!(
        (&limits[0]["tokens"], &limits[0]["reserved_tokens"], &limits[0]["used"]),
        (&json!(600), &json!(0), &json!(0.6)),
        "{report:#}"
    );
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    let line = r#"loopctl_limit_used_ratio{of="all runs",every="a day"} 0.6"#;
    assert!(metrics.lines().any(|of| of == line), "{metrics}");
    place.file("clock", (noon_ms + DAY_MS).to_string());
    for id in &waiting {
        while server.get(&format!("/agents/{id}/status")).json()["status"] != "completed" {
            crate::common::wait_poll_interval();
        }
    }
}
