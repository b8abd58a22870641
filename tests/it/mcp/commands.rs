//! `loopctl mcp`: what is pinned, compared, listed and called.

use serde_json::{Value, json};

use super::{notes, pin, project, read, relocked};

#[test]
fn a_pin_shows_each_text_and_writes_nothing_without_a_yes() {
    let place = notes("legacy");
    let asked = place.call(&["mcp", "pin"]);
    assert_eq!(asked.code, 2, "{asked:#?}");
    assert!(asked.stderr.contains("--yes") && !place.path().join("mcp.lock.json").exists(), "{asked:#?}");
    for shown in [
        "notes 1, protocol 2025-11-25, 19 tools",
        "new      read",
        "Reads a note.",
        "left out: \"bad\"",
        "Ask me first.",
    ] {
        assert!(asked.stderr.contains(shown), "{shown}: {}", asked.stderr);
    }
    let pinned = pin(&place);
    assert!(pinned.stderr.contains("is written"), "{pinned:#?}");
    let lock: Value = serde_json::from_str(&read(&place, "mcp.lock.json")).unwrap();
    assert_eq!(lock["servers"]["notes"]["tools"]["read"]["description"], "Reads a note.");
    // Pinned again, nothing is new.
    let again = place.call(&["mcp", "pin"]);
    assert_eq!((again.code, again.stderr.contains("up to date")), (0, true), "{again:#?}");
    assert!(!again.stderr.contains("Reads a note."), "{again:#?}");
}

#[test]
fn what_has_changed_is_a_drift_with_a_class_and_an_exit_code() {
    let place = notes("legacy");
    assert_eq!(place.call(&["mcp", "verify"]).code, 1);
    pin(&place);
    let same = place.call(&["mcp", "verify"]);
    assert_eq!((same.code, same.stdout.contains("as pinned")), (0, true), "{same:#?}");
    for (how, class) in [("reworded", "text"), ("changed", "input"), ("gone", "gone")] {
        relocked(&place, how);
        project(&place, how, json!({}));
        let ran = place.call(&["mcp", "verify", "notes"]);
        assert_eq!(ran.code, 1, "{how}: {ran:#?}");
        let line = ran.stdout.lines().find(|line| line.trim_start().starts_with(class) && line.ends_with("read"));
        assert!(line.is_some(), "{how}: {ran:#?}");
    }
    // No call is made of a tool that says now that it may destroy things.
    relocked(&place, "destroys");
    project(&place, "destroys", json!({}));
    let called = place.call(&["mcp", "call", "notes.read", r#"{"path":"a"}"#]);
    assert_eq!(
        (called.code, called.stderr.contains("changed since it was pinned: annotations")),
        (1, true),
        "{called:#?}"
    );
    assert_eq!(read(&place, "calls.txt"), "");
    // It is said what was, and what is now.
    project(&place, "reworded", json!({}));
    let again = place.call(&["mcp", "pin", "--yes"]);
    assert!(
        again.stderr.contains("changed  read (text)") && again.stderr.contains("Reads, it says now a note."),
        "{again:#?}"
    );
}

#[test]
fn servers_that_say_one_thing_and_do_another_are_found_out() {
    for (how, note) in
        [("claims", "does not speak it"), ("hangs", "does not answer"), ("bom", ""), ("noisy", "no message")]
    {
        let place = notes(how);
        if how == "hangs" {
            project(&place, how, json!({ "start_timeout_ms": 6000 }));
        }
        let ran = pin(&place);
        assert!(ran.stderr.contains(note), "{how}: {ran:#?}");
        assert!(read(&place, "mcp.lock.json").contains("\"protocol\": \"2025-11-25\""), "{how}");
    }
    let place = notes("exits");
    let ran = place.call(&["mcp", "pin", "--yes"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("could not be started") && ran.stderr.contains("no licence"), "{ran:#?}");
    assert!(ran.stderr.contains("status 3"), "{ran:#?}");
    let unknown = place.call(&["mcp", "pin", "note"]);
    assert_eq!((unknown.code, unknown.stderr.contains("`notes`")), (2, true), "{unknown:#?}");
}

#[test]
fn a_tool_is_listed_and_called_by_hand() {
    let place = notes("legacy");
    pin(&place);
    let starts = read(&place, "starts.txt");
    let listed = place.call(&["mcp", "list"]);
    assert!(listed.stdout.contains("read") && listed.stdout.contains("Reads a note."), "{listed:#?}");
    for (tool, input, said) in [
        ("notes.read", "{\"path\": 7}", "does not match the schema"),
        ("notes.raed", "{}", "`read`"),
        ("nots.read", "{}", "`notes`"),
        ("read", "{}", "SERVER.TOOL"),
    ] {
        let ran = place.call(&["mcp", "call", tool, input]);
        assert_eq!((ran.code, ran.stderr.contains(said)), (2, true), "{tool}: {ran:#?}");
    }
    assert_eq!(read(&place, "starts.txt"), starts);
    let called = place.call(&["mcp", "call", "notes.read", "{\"path\": \"a\"}"]);
    assert_eq!((called.code, called.stdout.trim()), (0, "\"a note\""), "{called:#?}");
    // The name that loops use is taken, too, and said.
    project(&place, "legacy", json!({ "tools": { "read": { "name": "look" } } }));
    let renamed = place.call(&["mcp", "call", "notes.look", "{\"path\": \"a\"}"]);
    assert_eq!((renamed.code, renamed.stdout.trim()), (0, "\"a note\""), "{renamed:#?}");
    assert!(renamed.stderr.contains("`notes.look` is the server's `read`"), "{renamed:#?}");
    assert!(place.call(&["mcp", "list"]).stdout.contains("in loops: look"));
    // No call is made by a schema that is not the server's any more.
    let calls = read(&place, "calls.txt");
    project(&place, "changed", json!({}));
    let other = place.call(&["mcp", "call", "notes.read", "{\"path\": \"a\"}"]);
    assert_eq!((other.code, other.stderr.contains("pinned with other settings")), (2, true), "{other:#?}");
    relocked(&place, "changed");
    let changed = place.call(&["mcp", "call", "notes.read", "{\"path\": \"a\"}"]);
    assert_eq!(
        (changed.code, changed.stderr.contains("changed since it was pinned: input")),
        (1, true),
        "{changed:#?}"
    );
    assert_eq!(read(&place, "calls.txt"), calls);
    relocked(&place, "legacy");
    project(&place, "legacy", json!({}));
    let failed = place.call(&["mcp", "call", "notes.errs"]);
    assert_eq!((failed.code, failed.stderr.contains("no such note")), (1, true), "{failed:#?}");
}

#[test]
fn a_lock_of_another_form_is_written_again() {
    let place = notes("legacy");
    pin(&place);
    let written = read(&place, "mcp.lock.json");
    for broken in [written.replace("\"version\": 1", "\"version\": 2"), format!("<<<<<<< ours\n{written}")] {
        place.file("mcp.lock.json", &broken);
        for other in [&["mcp", "list"][..], &["mcp", "verify"], &["mcp", "call", "notes.read", "{}"]] {
            let refused = place.call(other);
            assert_eq!((refused.code, refused.stderr.contains("can't be read")), (2, true), "{refused:#?}");
        }
        pin(&place);
        assert_eq!(read(&place, "mcp.lock.json"), written);
    }
}

#[test]
fn a_server_that_can_t_be_asked_is_not_pinned() {
    let place = notes("legacy");
    let mut settings: Value = serde_json::from_str(&read(&place, "loopctl.json")).unwrap();
    settings["mcp"]["gone"] = json!({ "command": "no-such-program-here" });
    settings["allow"]["commands"].as_array_mut().unwrap().push(json!("no-such-program-here"));
    place.json("loopctl.json", &settings);
    let alone = place.call(&["mcp", "pin", "gone", "--yes"]);
    assert!(alone.code == 1 && alone.stderr.contains("stays as it is: gone is not pinned"), "{alone:#?}");
    let both = place.call(&["mcp", "pin", "--yes"]);
    assert!(
        both.code == 1 && both.stderr.contains("is written") && both.stderr.contains("; gone is not pinned"),
        "{both:#?}"
    );
    let again = place.call(&["mcp", "pin", "gone"]);
    assert!(again.code == 1 && !again.stderr.contains("up to date"), "{again:#?}");
}
