//! A kill at each boundary of the events of approvals: one of two approvals, and an expiry.

use serde_json::{Value, json};

use crate::common::sweep::{kill_everywhere, least};
use crate::common::{Place, Ran, complete, document, think};

const AN_HOUR: i64 = 3_600_000;

/// A run `r` whose call waits for an approval with these settings.
fn waiting(settings: Value) -> Place {
    let place = Place::on_disk();
    let tool = json!({ "type": "action", "name": "act", "requires_approval": true, "approval": settings });
    place.json("loop.json", &document(&json!({ "tools": [tool] })));
    place.script(&[think("act", json!({ "what": "pay" })), complete(json!("done"))]);
    place.file("clock", "0");
    let ran = call(&place, &["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"], "");
    assert_eq!(ran.code, 3, "{ran:#?}");
    place
}

fn call(place: &Place, args: &[&str], fail: &str) -> Ran {
    let mut command = place.command(args);
    command.env("LOOPCTL_CLOCK", "clock");
    crate::common::killed(command, fail)
}

fn resume(place: &Place, how: &[&str], fail: &str) -> Ran {
    call(place, &[&["resume", "r", "--script", "script.json", "--output", "json"], how].concat(), fail)
}

#[test]
fn an_approval_of_two_is_there_or_not_and_never_counts_twice() {
    let kills = kill_everywhere(|_, at| {
        let place = waiting(json!({ "approvers": 2 }));
        if resume(&place, &["--approve"], at).code != -9 {
            return false;
        }
        let shown = resume(&place, &[], "").json();
        let given = shown["decisions"].as_array().map_or(0, Vec::len);
        let again = resume(&place, &["--approve"], "");
        assert_eq!(again.code, if given == 0 { 3 } else { 2 }, "{at}: {again:#?}");
        let denied = resume(&place, &["--deny"], "").json();
        assert_eq!(denied["status"], "completed", "{at}: {denied:#}");
        let kinds: Vec<&str> =
            denied["decisions"].as_array().into_iter().flatten().filter_map(|one| one["decision"].as_str()).collect();
        assert_eq!(kinds, ["approve", "deny"], "{at}");
        true
    });
    assert!(kills.iter().sum::<usize>() >= least(3), "{kills:?}");
}

#[test]
fn an_expiry_is_applied_once_wherever_the_process_dies() {
    for (on_expiry, code, status) in [("deny", 0, "completed"), ("fail", 1, "failed"), ("escalate", 3, "paused")] {
        let kills = kill_everywhere(|_, at| {
            let place = waiting(json!({ "expires_after_ms": AN_HOUR, "on_expiry": on_expiry }));
            place.file("clock", (2 * AN_HOUR).to_string());
            if resume(&place, &[], at).code != -9 {
                return false;
            }
            let ran = resume(&place, &[], "");
            assert_eq!(ran.code, code, "{on_expiry} {at}: {ran:#?}");
            let result = ran.json();
            assert_eq!(result["status"], status, "{on_expiry} {at}");
            let expired = result["decisions"].as_array().into_iter().flatten();
            assert_eq!(expired.filter(|one| one["decision"] == "expired").count(), 1, "{on_expiry} {at}: {result:#}");
            true
        });
        assert!(kills.iter().sum::<usize>() >= least(3), "{on_expiry}: {kills:?}");
    }
}
