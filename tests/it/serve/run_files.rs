//! Runs that are written to a file, and read into another store: shown as they were, refused when the file is damaged, and
//! continued only if that is asked for.

use loopctl::drive::run_file::{RunLineReader, RunLineWriter};
use loopctl::engine::event::EDITION;
use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, look, think};
use crate::serve::client::{Serving, place as loop_place, scripted};
use crate::serve::workflows;

const KEY: &str = "k-0123456789abcdef";

/// A workflow `pay` with a sub-run, that has run as `r1` in the store `a.db`.
fn workflow(tools: &Server) -> Place {
    let judge = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "tools": [],
        "objective": "Judge {{input.id}}.", "result_key": "finding" } });
    let definition = json!({ "output": "@finding.answer", "actions": [judge, workflows::act("@input.id", None)] });
    let place = workflows::place(tools, definition);
    place.json("script.json", &json!({ "replies": [], "loops": { "judge": [complete(json!("fine"))] } }));
    let input = json!({ "id": "7", "api_key": KEY }).to_string();
    let args = ["run", "workflows/pay.json", "--run-id", "r1", "--store", "sqlite:a.db", "--input", &input];
    let ran = place.call(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    place
}

fn text(place: &Place, file: &str) -> String {
    std::fs::read_to_string(place.path().join(file)).unwrap()
}

/// What a command that must succeed prints.
fn printed(place: &Place, args: &[&str]) -> String {
    let ran = place.call(args);
    assert_eq!(ran.code, 0, "{args:?} {ran:?}");
    ran.stdout
}

#[test]
fn a_run_is_shown_in_another_store_as_in_its_own_without_its_secrets() {
    let place = workflow(&workflows::tools());
    let export = ["export", "r1", "--store", "sqlite:a.db"];
    let ran = place.call(&[&export[..], &["--output", "run.jsonl"]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "2 runs written to run.jsonl\n"), "{ran:?}");
    let file = text(&place, "run.jsonl");
    assert!(!file.contains(KEY) && file.contains("[hidden]"), "{file}");
    assert_eq!(printed(&place, &export), file, "the same to stdout");
    assert!(printed(&place, &[&export[..], &["--with-secrets"]].concat()).contains(KEY));
    assert!(file.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "lines of JSON");
    let import = ["import", "run.jsonl", "--store", "sqlite:b.db"];
    assert_eq!(printed(&place, &import), "2 runs imported into b.db, 0 were there\n");
    assert_eq!(printed(&place, &import), "0 runs imported into b.db, 2 were there\n");
    for run in ["r1", "r1.judge"] {
        let shown = |store: &str| printed(&place, &["trace", run, "--format", "json", "--store", store]);
        assert_eq!(shown("sqlite:a.db"), shown("sqlite:b.db"), "{run}");
        printed(&place, &["explain", run, "--store", "sqlite:b.db"]);
    }
    assert!(printed(&place, &["replay", "r1.judge", "--store", "sqlite:b.db"]).contains("r1.judge"));
    let listed = |store: &str| {
        let runs: Value =
            serde_json::from_str(&printed(&place, &["runs", "--called", "--output", "json", "--store", store]))
                .unwrap();
        let row = |row: &Value| ["run_id", "status", "tokens", "cost_usd", "started_at"].map(|name| row[name].clone());
        runs.as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(listed("sqlite:a.db"), listed("sqlite:b.db"));
    // A copy is written as the run that it is a copy of.
    assert_eq!(printed(&place, &["export", "r1", "--store", "sqlite:b.db"]), file);
    // Many at once, and into the store that has them.
    assert_eq!(printed(&place, &["export", "--loop", "pay", "--store", "sqlite:a.db"]), file);
    let own = place.call(&["import", "run.jsonl", "--store", "sqlite:a.db"]);
    assert_eq!((own.code, own.stdout.as_str()), (0, "0 runs imported into a.db, 2 were there\n"), "{own:?}");
    assert_eq!(printed(&place, &export), file, "nothing of it was changed");
    let called = place.call(&["export", "r1.judge", "--store", "sqlite:a.db"]);
    assert!(called.code == 2 && called.stderr.contains("was called by run r1: export that one"), "{called:?}");
    let there = place.call(&["export", "r1", "--output", "run.jsonl", "--store", "sqlite:a.db"]);
    assert_eq!(there.code, 2, "a file that is there is not written over: {there:?}");
    assert_eq!(text(&place, "run.jsonl"), file);
}

#[test]
fn a_run_that_a_secret_decides_is_written_only_with_its_secrets() {
    let is_go = json!({ "equal": ["@input.password", "go"] });
    let definition = json!({ "actions": [workflows::act("@input.id", Some(is_go))] });
    let tools = workflows::tools();
    let place = workflows::place(&tools, definition);
    let input = json!({ "id": "7", "password": "go" }).to_string();
    let args = ["run", "workflows/pay.json", "--run-id", "r1", "--store", "sqlite:a.db", "--input", &input];
    let ran = place.call(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let export = ["export", "r1", "--store", "sqlite:a.db", "--output", "run.jsonl"];
    let refused = place.call(&export);
    assert!(refused.code == 2 && refused.stderr.contains("a value that is hidden decides"), "{refused:?}");
    assert!(refused.stderr.contains("--with-secrets") && !place.path().join("run.jsonl").exists(), "{refused:?}");
    let whole = place.call(&[&export[..], &["--with-secrets"]].concat());
    assert_eq!(whole.code, 0, "{whole:?}");
    printed(&place, &["import", "run.jsonl", "--store", "sqlite:b.db"]);
    let shown = |store: &str| printed(&place, &["trace", "r1", "--format", "json", "--store", store]);
    assert_eq!(shown("sqlite:a.db"), shown("sqlite:b.db"));
}

#[test]
fn a_file_that_is_damaged_cut_or_changed_is_refused_with_its_line_and_nothing_is_written() {
    let place = workflow(&workflows::tools());
    printed(&place, &["export", "r1", "--store", "sqlite:a.db", "--output", "run.jsonl"]);
    let file = text(&place, "run.jsonl");
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let refused = |text: &str, line: usize, words: &str| {
        place.file("other.jsonl", text);
        let ran = place.call(&["import", "other.jsonl", "--store", "sqlite:c.db"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(
            ran.stderr.contains(&format!("line {line}: ")) && ran.stderr.contains(words),
            "{line} {words}: {ran:?}"
        );
        assert!(!place.path().join("c.db").exists(), "a file that is refused makes no store");
    };
    let last = lines.len();
    refused(&file.replace("fine", "FINE"), at(&lines, "fine"), "checksum does not fit");
    refused(&lines[..last - 1].concat(), last, "cut off");
    refused(&file[..file.len() - 1], last, "cut off");
    refused(&format!("{file}{}", lines[last - 1]), last + 1, "checksum");
    refused(&[&lines[..3], &lines[4..]].concat().concat(), 4, "checksum");
    refused("", 1, "empty");
    refused("{}\n", 1, "loopctl export");
    assert_eq!(place.call(&["import", ".", "--store", "sqlite:c.db"]).code, 2);
    // What no run of this loopctl has, with checksums that are right.
    let changed = |old: &str, new: &str| {
        let (mut reader, mut writer) = (RunLineReader::new(file.as_bytes()), RunLineWriter::default());
        let mut text = String::new();
        while let Some(line) = reader.next_line().unwrap() {
            let line = serde_json::to_string(&line).unwrap().replacen(old, new, 1);
            text.push_str(&writer.line(&serde_json::from_str(&line).unwrap()).unwrap());
        }
        assert_ne!(text, file, "{old}");
        text
    };
    let edition = format!("\"edition\":{EDITION}");
    refused(&changed(&edition, "\"edition\":99"), 2, "a later loopctl started the run (edition 99");
    refused(&changed("\"run_id\":\"r1\"", "\"run_id\":\"a\u{202e}b\""), 2, "one that is not seen");
    refused(
        &changed("\"called_by\":\"r1\"", "\"called_by\":\"r2\""),
        at(&lines, "called_by"),
        "calls no run of this id",
    );
    // The whole file is sound.
    place.file("other.jsonl", &file);
    assert_eq!(
        printed(&place, &["import", "other.jsonl", "--store", "sqlite:c.db"]),
        "2 runs imported into c.db, 0 were there\n"
    );
}

/// The number of the first line that has this text.
fn at(lines: &[&str], text: &str) -> usize {
    lines.iter().position(|line| line.contains(text)).unwrap() + 1
}

#[test]
fn an_imported_run_that_waits_takes_no_decision_unless_it_is_continued() {
    let place = loop_place(
        json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] }),
        &[think("act", json!({ "what": "pay" })), complete(json!("ok"))],
    );
    let ran = place.call(&["run", "loop.json", "--run-id", "r1", "--store", "sqlite:a.db"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    printed(&place, &["export", "r1", "--store", "sqlite:a.db", "--output", "run.jsonl"]);
    let imported = place.call(&["import", "run.jsonl", "--store", "sqlite:b.db"]);
    assert!(imported.stderr.contains("1 of them has not ended: nobody continues it here"), "{imported:?}");
    let resumed = |store: &str| place.call(&["resume", "r1", "--deny", "--store", store]);
    let refused = resumed("sqlite:b.db");
    assert!(refused.code != 0 && refused.stderr.contains("came in a file"), "{refused:?}");
    let server = Serving::start(&place, &["--store", "sqlite:b.db"]);
    let reply = server.post("/agents/r1/resume", &json!({ "deny": true }));
    assert_eq!((reply.status, reply.code()), (409, "read_only_copy".to_owned()), "{reply:?}");
    assert_eq!(server.get("/agents/r1/status").json()["status"], "paused");
    let bulk = server.post("/agents/bulk", &json!({ "action": "cancel", "dry_run": true })).json();
    assert_eq!((&bulk["matched"], &bulk["done"]), (&json!(0), &json!([])), "nobody ends a copy: {bulk:#}");
    drop(server);
    let prune = ["runs", "prune", "--older-than", "0s", "--store", "sqlite:b.db"];
    assert_eq!(printed(&place, &[&prune[..], &["--status", "failed"]].concat()), "0 runs deleted\n");
    assert_eq!(printed(&place, &prune), "1 run deleted\n");
    let continued = ["import", "run.jsonl", "--continue", "--store", "sqlite:c.db"];
    assert_eq!(printed(&place, &continued), "1 run imported into c.db, 0 were there\n");
    let done = resumed("sqlite:c.db");
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn a_server_continues_an_imported_run_only_if_that_is_asked_for() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({ "seen": 1 })).behind(&held));
    let place =
        loop_place(json!({ "tools": [{ "type": "action", "name": "look" }] }), &[look("a"), complete(json!("ok"))]);
    let mut document = crate::common::document(&json!({ "tools": [{ "type": "action", "name": "look" }] }));
    document["actions"][0]["url"] = json!(format!("{}/look/{{{{at}}}}", tools.url()));
    place.json("loop.json", &document);
    scripted(&place, &[look("a"), complete(json!("ok"))], json!({}));
    let server = Serving::start(&place, &["--store", "sqlite:a.db"]);
    let run =
        server.execute("?async=true", json!({ "loop": "test" })).json()["agent_run_id"].as_str().unwrap().to_owned();
    tools.wait_for(1);
    drop(server);
    gate.open();
    printed(&place, &["export", &run, "--store", "sqlite:a.db", "--output", "run.jsonl"]);
    printed(&place, &["import", "run.jsonl", "--store", "sqlite:b.db"]);
    printed(&place, &["import", "run.jsonl", "--continue", "--store", "sqlite:c.db"]);
    let copies = Serving::start(&place, &["--store", "sqlite:b.db"]);
    // The server takes what waits for a driver: a run of its own.
    let other = copies.execute("", json!({ "loop": "test" })).json();
    assert_eq!(other["status"], "completed", "{other:#}");
    let copy = copies.get(&format!("/agents/{run}/status")).json();
    assert!(copy["result"]["finished_at"].is_null(), "{copy:#}");
    let listed = copies.get("/agents").json();
    let row = listed["agents"].as_array().unwrap().iter().find(|row| row["agent_run_id"] == run.as_str()).unwrap();
    assert_eq!((&copy["status"], &copy["copy"]), (&row["status"], &json!(true)), "{copy:#} {row:#}");
    assert_eq!(copy["status"], "cancelled");
    assert_eq!(tools.requests().len(), 2, "that of the run of its own is the only new one");
    drop(copies);
    let continuing = Serving::start(&place, &["--store", "sqlite:c.db"]);
    assert_eq!(continuing.settled(&run)["status"], "completed");
    assert_eq!(tools.requests().len(), 3);
}

#[test]
fn an_imported_run_that_waits_for_an_event_gets_none() {
    let place = loop_place(json!({ "tools": [] }), &[]);
    let steps = json!([
        { "type": "wait_for_event", "properties": { "event": "paid", "match": { "order": 1 } } },
        { "type": "wait_for_event", "properties": { "event": "other" } }
    ]);
    place.json("flow.json", &json!({ "name": "flow", "definition": { "actions": steps } }));
    let ran = place.call(&["run", "flow.json", "--run-id", "r1", "--store", "sqlite:a.db"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    printed(&place, &["export", "r1", "--store", "sqlite:a.db", "--output", "run.jsonl"]);
    let sent = |store: &str| {
        let event = ["event", "paid", "--id", "e1", "--data", "{\"order\": 1}", "--store", store];
        let ran = place.call(&event);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout + &ran.stderr
    };
    place.call(&["import", "run.jsonl", "--store", "sqlite:b.db"]);
    assert!(sent("sqlite:b.db").contains("no run"), "{}", sent("sqlite:b.db"));
    let continued = ["import", "run.jsonl", "--continue", "--store", "sqlite:c.db"];
    assert_eq!(printed(&place, &continued), "1 run imported into c.db, 0 were there\n");
    assert!(sent("sqlite:c.db").contains("1 run gets it"), "{}", sent("sqlite:c.db"));
}

/// A workflow whose loop has run, and that waits for an approval with a secret, as `r1` in `a.db`.
fn waiting(tools: &Server) -> Place {
    let judge = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "tools": [],
        "objective": "Judge {{input.id}}.", "result_key": "finding" } });
    let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Pay {{input.id}}?" } });
    let definition =
        json!({ "output": "@finding.answer", "actions": [judge, ask, workflows::act("@input.password", None)] });
    let place = workflows::place(tools, definition);
    place.json("script.json", &json!({ "replies": [], "loops": { "judge": [complete(json!("fine"))] } }));
    let input = json!({ "id": "7", "password": "hunter2hunter2" }).to_string();
    let args = ["run", "workflows/pay.json", "--run-id", "r1", "--store", "sqlite:a.db", "--input", &input];
    let ran = place.call(&args);
    assert_eq!(ran.code, 3, "{ran:?}");
    place
}

#[test]
fn a_run_with_hidden_values_is_shown_and_nothing_continues_with_them() {
    let tools = workflows::tools();
    let place = waiting(&tools);
    printed(&place, &["export", "r1", "--store", "sqlite:a.db", "--output", "run.jsonl"]);
    let file = text(&place, "run.jsonl");
    assert!(!file.contains("hunter2") && file.contains("\"hidden\":true"), "{file}");
    let refused = |args: &[&str], words: &str| {
        let ran = place.call(args);
        assert!(ran.code != 0 && ran.stderr.contains(words), "{args:?} {ran:?}");
        assert!(ran.stderr.contains("with its secrets"), "{ran:?}");
    };
    let continued = ["import", "run.jsonl", "--continue", "--store", "sqlite:b.db"];
    refused(&continued, "line 2: run r1 has values that are hidden, and would go on with `[hidden]`");
    assert!(!place.path().join("b.db").exists());
    printed(&place, &["import", "run.jsonl", "--store", "sqlite:b.db"]);
    refused(&["rerun", "r1", "--store", "sqlite:b.db"], "a new run would go on with `[hidden]`");
    refused(&["fork", "r1", "--at", "1", "--store", "sqlite:b.db"], "a new run would go on with `[hidden]`");
    // What was exported from the copy has no secret either, whatever is asked for.
    printed(&place, &["export", "r1", "--store", "sqlite:b.db", "--with-secrets", "--output", "again.jsonl"]);
    place.call(&["import", "again.jsonl", "--continue", "--store", "sqlite:b.db"]);
    let again = ["import", "again.jsonl", "--continue", "--store", "sqlite:c.db"];
    refused(&again, "would go on with `[hidden]`");
    // A file of an earlier version does not say it of the run.
    let server = Serving::start(&place, &["--store", "sqlite:b.db"]);
    let reply = server.post("/agents/r1/rerun", &json!({}));
    assert!(reply.status == 409 && reply.json()["detail"].as_str().unwrap().contains("[hidden]"), "{reply:?}");
    drop(server);
    // With its secrets, it is continued as it was.
    printed(&place, &["export", "r1", "--store", "sqlite:a.db", "--with-secrets", "--output", "whole.jsonl"]);
    printed(&place, &["import", "whole.jsonl", "--continue", "--store", "sqlite:d.db"]);
    let there = place.call(&["import", "whole.jsonl", "--continue", "--store", "sqlite:a.db"]);
    assert_eq!(there.stdout, "0 runs imported into a.db, 2 were there\n", "{there:?}");
    printed(&place, &["import", "whole.jsonl", "--store", "sqlite:e.db"]);
    let copy = place.call(&["import", "whole.jsonl", "--continue", "--store", "sqlite:e.db"]);
    assert!(copy.code == 2 && copy.stderr.contains("as a copy that nobody continues"), "{copy:?}");
}

#[test]
fn an_import_that_is_killed_at_any_event_leaves_nothing_that_somebody_drives() {
    let tools = workflows::tools();
    let place = waiting(&tools);
    printed(&place, &["export", "r1", "--store", "sqlite:a.db", "--with-secrets", "--output", "run.jsonl"]);
    let mut kills = 0;
    for event in 0..64 {
        let (to, fail) = (format!("sqlite:to{event}.db"), format!("journal:{event}:after-sync"));
        let import = ["import", "run.jsonl", "--continue", "--store", &to];
        let killed = place.call_with(&import, &[("LOOPCTL_FAIL", &fail)]);
        if killed.code == 0 {
            break;
        }
        kills += 1;
        for call in [&["resume", "r1", "--approve"][..], &["export", "r1"], &["rerun", "r1"], &["cancel", "r1"]] {
            let taken = place.call(&[call, &["--store", &to]].concat());
            assert!(
                taken.code != 0 && taken.stderr.contains("is not whole here"),
                "killed at {event}: {call:?} {taken:?}"
            );
        }
        let listed = printed(&place, &["runs", "--store", &to]);
        assert!(listed.contains("not whole"), "{listed}");
        printed(&place, &import);
        let done = place.call(&["resume", "r1", "--approve", "--store", &to]);
        assert_eq!(done.code, 0, "{done:?}");
    }
    assert!(kills > 2, "{kills} kills");
}

#[test]
fn an_imported_run_that_is_continued_waits_in_the_line_of_its_workflow() {
    for rule in ["wait", "refuse", "replace"] {
        let place = loop_place(json!({ "tools": [] }), &[]);
        let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Pay?" } });
        let input = json!({ "type": "object", "properties": { "id": { "type": "string" } } });
        let definition = json!({ "concurrency": { "key": "@input.id", "when_full": rule }, "actions": [ask], "output": "@input.id" });
        place.json("flow.json", &json!({ "name": "flow", "input": input, "definition": definition }));
        let begin = |id: &str, store: &str| {
            let ran = place.call(&["run", "flow.json", "--run-id", id, "--input", "id=c9", "--store", store]);
            assert_eq!(ran.code, 3, "{rule}: {ran:?}");
        };
        begin("r1", "sqlite:a.db");
        begin("own", "sqlite:b.db");
        printed(&place, &["export", "r1", "--store", "sqlite:a.db", "--output", "run.jsonl"]);
        let again = place.call(&["import", "run.jsonl", "--store", "sqlite:a.db"]);
        assert!(again.code == 0 && !again.stderr.contains("nobody continues"), "its own servers do: {again:?}");
        printed(&place, &["import", "run.jsonl", "--continue", "--store", "sqlite:b.db"]);
        let listed = || place.call(&["runs", "--store", "sqlite:b.db", "--output", "json"]).json();
        let row = |id: &str| listed().as_array().unwrap().iter().find(|run| run["run_id"] == id).unwrap().clone();
        let imported = row("r1");
        assert_eq!((&imported["behind"], imported.get("waiting")), (&json!("own"), None), "{rule}: {imported:#}");
        assert_eq!((&row("own")["status"], &row("own")["waiting"]), (&json!("paused"), &json!(true)), "{rule}");
        let resume = |id: &str| place.call(&["resume", id, "--approve", "--store", "sqlite:b.db"]);
        let early = resume("r1");
        assert!(early.code != 0 && early.stderr.contains("waits for run own to end"), "{rule}: {early:?}");
        assert_eq!(resume("own").code, 0, "{rule}");
        let ended = resume("r1");
        assert_eq!(ended.code, 0, "{rule}: {ended:?}");
    }
}

#[test]
fn a_copy_is_none_of_the_runs_that_wait_for_people() {
    let place = loop_place(
        json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] }),
        &[think("act", json!({ "what": "pay" })), complete(json!("ok"))],
    );
    let ran = place.call(&["run", "loop.json", "--run-id", "r1", "--store", "sqlite:a.db"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    printed(&place, &["export", "r1", "--store", "sqlite:a.db", "--output", "run.jsonl"]);
    printed(&place, &["import", "run.jsonl", "--store", "sqlite:b.db"]);
    for (store, copy) in [("sqlite:a.db", false), ("sqlite:b.db", true)] {
        let server = Serving::start(&place, &["--store", store]);
        let waiting = server.get("/agents?waiting=true").json()["agents"].as_array().unwrap().len();
        assert_eq!(waiting, usize::from(!copy), "{store}");
        let row = server.get("/agents").json()["agents"][0].clone();
        let yes = json!(true);
        assert_eq!((&row["status"], row.get("waiting")), (&json!("paused"), (!copy).then_some(&yes)), "{row:#}");
        let status = server.get("/agents/r1/status").json();
        for shown in [&row, &status] {
            assert_eq!(shown.get("copy"), copy.then_some(&json!(true)), "{shown:#}");
        }
        let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
        let waits = metrics.lines().any(|line| line.starts_with("loopctl_runs_waiting{") && !line.ends_with(" 0"));
        assert_eq!(waits, !copy, "{metrics}");
    }
}
