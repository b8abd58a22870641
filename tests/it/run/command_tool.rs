//! The `command` tool: what a program is given, and that nothing of it is left behind.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::common::{Place, gone, observed, think, with};

/// Prints its arguments, one a line, each between brackets.
const ARGUMENTS: &str = "#!/bin/sh\necho $#\nfor a in \"$@\"; do printf '[%s]\\n' \"$a\"; done\n";

fn place(scripts: &[(&str, &str)], actions: &[Value]) -> Place {
    let place = Place::new();
    for (name, text) in scripts {
        let path = place.file(name, text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    let mut allowed: Vec<String> = scripts.iter().map(|(name, _)| format!("./{name}")).collect();
    allowed.extend(["cat", "env", "pwd"].map(str::to_owned));
    place.actions(actions, &json!({ "allow": { "commands": allowed, "env": ["TICKET"] } }));
    place
}

fn program(name: &str, program: &str, more: Value) -> Value {
    let action = json!({ "action_name": name, "kind": "command", "description": "Runs.", "program": program });
    with(action, more)
}

fn say(text: &str) -> Value {
    think("say", json!({ "text": text }))
}

#[test]
fn an_argument_is_one_argument_whatever_it_holds() {
    let texts = [
        "plain",
        "two words",
        "\"quoted\" 'and' `ticked`",
        "; touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "| touch pwned",
        "&& touch pwned",
        "> pwned",
        "< /etc/passwd",
        "$HOME ${PATH} $0",
        "*",
        "~",
        "a\nb",
        "a\\nb",
        "!history",
        "#comment",
        "{a,b}",
        "%s%n%x",
        "ü 日本 😀",
        "",
        "a=b",
        "{{text}} @text orgconfig:key",
    ];
    let action = program("say", "./arguments", json!({ "args": ["--fixed", "{{text}}", "x{{text}}y"] }));
    let place = place(&[("arguments", ARGUMENTS)], &[action]);
    let trace = place.calls(&texts.map(say));
    for (text, entry) in texts.iter().zip(&trace) {
        assert_eq!(observed(entry), format!("3\n[--fixed]\n[{text}]\n[x{text}y]"), "{text:?}");
    }
    assert!(!place.path().join("pwned").exists());
}

#[test]
fn a_value_between_the_quotes_of_a_json_text_stays_one_text() {
    let name = "Ann\", \"role\": \"admin \\ \n ü";
    let written = "{\"role\": \"guest\", \"name\": \"{{text}}\", \"all\": {{all}}}";
    let by_stdin = program("read", "cat", json!({ "stdin": written }));
    let by_argument = program("say", "./arguments", json!({ "args": ["{\"name\": \"{{text}}\"}", "[{{text}}]"] }));
    let place = place(&[("arguments", ARGUMENTS)], &[by_stdin, by_argument]);
    let trace = place.calls(&[think("read", json!({ "text": name, "all": ["a\"b", 1] })), say("a\"b")]);
    let read = &trace[0]["observation"];
    let read = read.as_str().map_or_else(|| read.clone(), |text| serde_json::from_str(text).unwrap());
    assert_eq!(read, json!({ "role": "guest", "name": name, "all": ["a\"b", 1] }), "{trace:#?}");
    assert_eq!(observed(&trace[1]), "2\n[{\"name\": \"a\\\"b\"}]\n[[a\"b]]");
}

#[test]
fn a_shell_would_have_run_what_the_arguments_hold() {
    let action = program("say", "./shell", json!({ "stdin": "{{text}}" }));
    let place = place(&[("shell", "#!/bin/sh\nexec sh\n")], &[action]);
    place.calls(&[say("touch pwned")]);
    assert!(place.path().join("pwned").exists(), "the text above does harm where a shell reads it");
}

#[test]
fn a_value_that_begins_with_a_dash_is_refused_unless_the_action_allows_it() {
    let actions = [
        program("strict", "./arguments", json!({ "args": ["{{text}}"] })),
        program("loose", "./arguments", json!({ "args": ["{{text}}"], "allow_leading_dash": true })),
        program("inside", "./arguments", json!({ "args": ["--file={{text}}"] })),
    ];
    let place = place(&[("arguments", ARGUMENTS)], &actions);
    let texts = ["-rf", "--output=/etc/passwd", "-", "--"];
    let mut calls = Vec::new();
    for name in ["strict", "loose", "inside"] {
        calls.extend(texts.map(|text| think(name, json!({ "text": text }))));
    }
    let trace = place.calls(&calls);
    for (at, text) in texts.iter().enumerate() {
        assert_eq!(trace[at]["success"], false, "{text}: {:#}", trace[at]);
        assert!(observed(&trace[at]).contains("begins with `-`"), "{text}: {:#}", trace[at]);
        assert_eq!(observed(&trace[at + 4]), format!("1\n[{text}]"));
        assert_eq!(observed(&trace[at + 8]), format!("1\n[--file={text}]"));
    }
}

#[test]
fn a_zero_byte_and_an_argument_of_two_megabytes_are_observations() {
    let action = program("say", "./arguments", json!({ "args": ["{{text}}"] }));
    let place = place(&[("arguments", ARGUMENTS)], &[action]);
    let long = json!({ "thought": "t", "action": "say", "action_input": { "text": "x".repeat(2 * 1024 * 1024) } });
    let trace = place.calls(&[say("a\u{0}b"), long, say("ok")]);
    assert!(observed(&trace[0]).contains("argument not allowed"), "{:#}", trace[0]);
    assert!(observed(&trace[1]).contains("arguments too long"), "{:#}", trace[1]["error"]);
    assert_eq!(observed(&trace[2]), "1\n[ok]");
}

#[test]
fn the_environment_is_what_is_declared_and_nothing_else() {
    let actions = [
        program("bare", "env", json!({})),
        program("declared", "env", json!({ "env": { "HOME": "/nowhere", "TICKET": "{{id}}" } })),
    ];
    let place = place(&[], &actions);
    let declared = think("declared", json!({ "id": "T=1\nX=2" }));
    let env = [("LOOPCTL_OUTSIDE", "seen"), ("AWS_SECRET_ACCESS_KEY", "outside")];
    let trace = place.calls_with(&[think("bare", json!({})), declared], &[], &env);
    let names = |entry: &Value| -> Vec<String> {
        let mut names: Vec<String> =
            observed(entry).lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned()).collect();
        names.sort();
        names
    };
    // `_`, `PWD` and `SHLVL` are set by a shell itself, and no shell is between.
    assert_eq!(names(&trace[0]), ["LANG", "LOOPCTL_CALL", "PATH"], "{:#}", trace[0]);
    assert_eq!(names(&trace[1]), ["HOME", "LANG", "LOOPCTL_CALL", "PATH", "TICKET", "X"], "{:#}", trace[1]);
    assert!(observed(&trace[1]).contains("TICKET=T=1\nX=2"), "a line end in a value is the value's");
}

/// The report on a document whose program has this variable.
fn refused(name: &str, value: &str) -> String {
    let mut env = json!({});
    env[name] = json!(value);
    place(&[], &[program("steered", "env", json!({ "env": env }))]).refused()
}

#[test]
fn a_document_in_which_a_value_chooses_what_is_loaded_does_not_run() {
    for name in
        ["LD_PRELOAD", "PATH", "BASH_ENV", "NODE_OPTIONS", "_JAVA_OPTIONS", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT"]
    {
        for value in ["{{id}}", "{{input.id}}", "/bin:{{input.id}}"] {
            let message = refused(name, value);
            assert!(message.contains("L105") && message.contains(name), "{name} {value}: {message}");
        }
    }
}

#[test]
fn a_value_fills_no_variable_that_the_project_does_not_allow() {
    for value in ["{{id}}", "{{input.id}}", "orgconfig:key {{id}}"] {
        let message = refused("LESSCHARSET_OF_OURS", value);
        assert!(
            message.contains("L129") && message.contains(r#"add `"env": ["LESSCHARSET_OF_OURS"]` to `allow`"#),
            "{message}"
        );
    }
    // Written out, it is the author's.
    let written = program("written", "env", json!({ "env": { "LESSCHARSET_OF_OURS": "utf-8" } }));
    let trace = place(&[], &[written]).calls(&[think("written", json!({}))]);
    assert!(observed(&trace[0]).contains("LESSCHARSET_OF_OURS=utf-8"), "{:#}", trace[0]);
}

#[test]
fn only_programs_of_the_project_are_started() {
    let names = ["sh", "/bin/sh", "/bin/../bin/cat", "./cat", "../cat", "cat ", "CAT"];
    let actions: Vec<Value> =
        names.iter().enumerate().map(|(at, name)| program(&format!("p{at}"), name, json!({}))).collect();
    for (name, action) in names.iter().zip(&actions) {
        let message = place(&[], std::slice::from_ref(action)).refused();
        assert!(message.contains("L110") && message.contains(name), "{name}: {message}");
    }
    let trace = place(&[], &[program("allowed", "cat", json!({ "stdin": "x" }))]).calls(&[think("allowed", json!({}))]);
    assert_eq!(observed(&trace[0]), "x");
}

#[test]
fn the_working_folder_stays_inside_of_the_project() {
    for outside in ["..", "sub/../.."] {
        let message = place(&[("sub/none", "")], &[program("p", "pwd", json!({ "cwd": outside }))]).refused();
        assert!(message.contains("L126"), "{outside}: {message}");
    }
    // What only the disk can show is refused when it is called.
    let folders = ["sub", "/", "link", "missing", "."];
    let actions: Vec<Value> =
        folders.iter().enumerate().map(|(at, cwd)| program(&format!("p{at}"), "pwd", json!({ "cwd": cwd }))).collect();
    let place = place(&[("sub/none", "")], &actions);
    std::os::unix::fs::symlink("/", place.path().join("link")).expect("a link");
    let calls: Vec<Value> = (0..folders.len()).map(|at| think(&format!("p{at}"), json!({}))).collect();
    let trace = place.calls(&calls);
    let root = place.path().canonicalize().expect("it is there");
    assert_eq!(observed(&trace[0]), root.join("sub").display().to_string());
    assert_eq!(observed(&trace[4]), root.display().to_string());
    for (folder, entry) in folders.iter().zip(&trace).take(4).skip(1) {
        assert!(observed(entry).contains("folder not allowed"), "{folder}: {entry:#}");
    }
}

#[test]
fn a_program_that_floods_or_dies_or_speaks_in_bytes_is_an_observation() {
    let scripts = [
        ("flood", "#!/bin/sh\nexec cat /dev/zero\n"),
        ("grumble", "#!/bin/sh\nhead -c 5000000 /dev/zero >&2\necho fine\n"),
        ("die", "#!/bin/sh\necho why >&2\nexit 7\n"),
        ("killed", "#!/bin/sh\nkill -9 $$\n"),
        ("bytes", "#!/bin/sh\nprintf '\\377\\376\\000'\n"),
        ("json", "#!/bin/sh\nprintf '{\"n\": 12345678901234567890123}'\n"),
        ("no_program", "\u{7f}nonsense"),
    ];
    let actions: Vec<Value> = scripts.iter().map(|(name, _)| program(name, &format!("./{name}"), json!({}))).collect();
    let place = place(&scripts, &actions);
    let calls: Vec<Value> = scripts.iter().map(|(name, _)| think(name, json!({}))).collect();
    let trace = place.calls(&calls);
    let words =
        ["output too large", "fine", "status 7", "signal 9", "binary", "12345678901234567890123", "can't be started"];
    for ((name, _), (word, entry)) in scripts.iter().zip(words.iter().zip(&trace)) {
        assert!(observed(entry).contains(word), "{name}: {entry:#}");
    }
    assert_eq!(trace[2]["success"], false);
    assert!(!observed(&trace[2]).contains("why"), "what it grumbles is the operator's: {:#}", trace[2]);
}

#[test]
fn a_program_that_reads_for_ever_comes_to_an_end_of_its_input() {
    let actions = [program("nothing", "cat", json!({})), program("much", "cat", json!({ "stdin": "{{text}}" }))];
    let place = place(&[], &actions);
    let text = "line\n".repeat(100_000);
    let trace = place.calls(&[think("nothing", json!({})), think("much", json!({ "text": text }))]);
    assert_eq!(trace[0]["observation"], json!({ "status": 0 }));
    assert!(observed(&trace[1]).starts_with("line\nline\n"), "{:.200}", observed(&trace[1]));
}

#[test]
fn a_program_that_hangs_is_killed_at_its_deadline_with_its_children() {
    let script = "#!/bin/sh\necho $$ >> pids\n(trap '' TERM HUP INT; echo started; sleep 600) & echo $! >> pids\n\
                  sleep 600 & echo $! >> pids\ntrap '' TERM\nwait\nsleep 600\n";
    let quick = "#!/bin/sh\nsleep 600 & echo $! >> pids\necho left a child\n";
    let actions = [program("hang", "./hang", json!({ "timeout_ms": 1500 })), program("quick", "./quick", json!({}))];
    let place = place(&[("hang", script), ("quick", quick)], &actions);
    let trace = place.calls(&[think("hang", json!({})), think("quick", json!({}))]);
    assert!(observed(&trace[0]).contains("timed out"), "{:#}", trace[0]);
    assert!(observed(&trace[1]).contains("left a child"), "{:#}", trace[1]);
    let pids = std::fs::read_to_string(place.path().join("pids")).expect("they were started");
    assert_eq!(pids.lines().count(), 4, "{pids}");
    for pid in pids.lines() {
        assert!(gone(pid), "process {pid} is left");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_leaves_its_session_is_gone_after_the_deadline_and_after_the_runs_end() {
    // The parent is gone at once, and so is the group.
    let leave = |file: &str| {
        let inner = format!("echo $$ > {file}.new; mv {file}.new {file}; exec sleep 1000");
        format!("#!/bin/sh\n(setsid sh -c '{inner}' >/dev/null 2>&1 &)\nwhile [ ! -e {file} ]; do sleep 0.01; done\n")
    };
    let (hang, quick) = (leave("first") + "exec sleep 600\n", leave("second") + "echo left a session\n");
    let actions = [program("hang", "./hang", json!({ "timeout_ms": 2000 })), program("quick", "./quick", json!({}))];
    let place = place(&[("hang", &hang), ("quick", &quick)], &actions);
    // Not of the run, and in a session of its own as well.
    let mut stranger = std::process::Command::new("setsid").args(["sleep", "1000"]).spawn().expect("setsid");
    let trace = place.calls(&[think("hang", json!({})), think("quick", json!({}))]);
    assert!(observed(&trace[0]).contains("timed out"), "{:#}", trace[0]);
    assert!(observed(&trace[1]).contains("left a session"), "{:#}", trace[1]);
    for file in ["first", "second"] {
        let pid = std::fs::read_to_string(place.path().join(file)).expect("it was started");
        assert!(gone(pid.trim()), "process {pid} is left");
    }
    assert!(stranger.try_wait().expect("it is there").is_none(), "a process that is not the run's was killed");
    stranger.kill().expect("it is there");
    stranger.wait().expect("it ends");
}
