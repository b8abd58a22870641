//! The group of a call of a `command` tool: what stays in it, and that a program does not see a difference.
#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use loopctl::drive::engine::Watch;
use loopctl::drive::start::Start;
use loopctl::engine::event::{EventKind, ToolResult};
use loopctl::{Engine, journal};
use serde_json::{Value, json};

use crate::common::{Place, complete, gone, think};

/// Where this process, and so what it starts, has its groups; none where the system gives none.
fn own_group() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("Linux has it");
    let mounted = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let fields: Vec<&str> = mounted.split(' ').collect();
    let cgroup = std::fs::read_to_string("/proc/self/cgroup").expect("Linux has it");
    let path = Path::new(cgroup.lines().find_map(|line| line.strip_prefix("0::"))?).to_owned();
    let own = Path::new(fields[4]).join(path.strip_prefix(fields[3]).ok()?);
    std::fs::File::options().write(true).open(own.join("cgroup.procs")).ok()?;
    let probe = tempfile::tempdir_in(&own).ok()?;
    probe.path().join("cgroup.kill").exists().then_some(own)
}

/// The same, and a line where there is none.
fn group_or_say_so() -> Option<PathBuf> {
    let own = own_group();
    if own.is_none() {
        println!("skipped: this machine gives no cgroup v2");
    }
    own
}

/// The groups that a process has made and that are there still.
fn groups_of(own: &Path, pid: u32) -> Vec<PathBuf> {
    let name = format!("loopctl-{pid}-");
    let entries = std::fs::read_dir(own).expect("it is there").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&name)).map(|entry| entry.path()).collect()
}

/// A loop over these programs, each called once in this order, then the end.
fn place(scripts: &[(&str, &str)], more: impl Fn(&str) -> Value) -> Place {
    let place = Place::new();
    let mut actions = Vec::new();
    for (name, text) in scripts {
        let file = place.file(name, text);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        actions.push(crate::common::with(
            json!({ "action_name": name, "kind": "command", "description": "Runs.", "program": format!("./{name}") }),
            more(name),
        ));
    }
    let allowed: Vec<String> = scripts.iter().map(|(name, _)| format!("./{name}")).collect();
    place.actions(&actions, &json!({ "allow": { "commands": allowed } }));
    let calls = scripts.iter().map(|(name, _)| think(name, json!({}))).chain([complete(json!("done"))]);
    place.json("script.json", &json!({ "replies": calls.collect::<Vec<_>>() }));
    place
}

fn started(place: &Place) -> Child {
    let document = place.path().join("loop.json");
    let document = document.to_str().expect("its name is text");
    place.start(&["run", document, "--script", "script.json", "--output", "json", "--store", "sqlite:runs.db"], &[])
}

/// Runs it with the real program; its number, and what it said.
fn run(place: &Place) -> (u32, Output) {
    let child = started(place);
    (child.id(), child.wait_with_output().expect("it ends"))
}

/// Runs it in this process, which can't be started again as the real program can: without groups.
async fn run_without(place: &Place) -> Vec<ToolResult> {
    let script = std::fs::read_to_string(place.path().join("script.json")).expect("it is there");
    let loaded = loopctl::load(&place.path().join("loop.json"), &[]).expect("it is sound");
    let engine = Engine::builder(Arc::clone(&loaded.program.project), &loaded.root)
        .script(serde_json::from_str(&script).expect("a script"))
        .build();
    let ended = engine.run(&loaded.program, Start::default(), Watch::default()).await.expect("it runs");
    results(&engine, ended.run_id()).await
}

/// What came of the calls of a run, without the mark, which differs.
async fn results(engine: &Engine, run_id: &str) -> Vec<ToolResult> {
    let events = engine.events(run_id).await.expect("it is there");
    let results = events.into_iter().filter_map(|event| match event.kind {
        EventKind::ToolReturned(returned) => Some(returned.result),
        _ => None,
    });
    let unmarked = |result: ToolResult| match result {
        ToolResult::Ok(Value::String(text)) => {
            let lines = text.lines().filter(|line| !line.starts_with("LOOPCTL_CALL="));
            ToolResult::Ok(lines.collect::<Vec<_>>().join("\n").into())
        }
        other => other,
    };
    results.map(unmarked).collect()
}

/// Leaves a process behind that nothing shows to be the call's: its parent is gone, and so are its session
/// and its environment. Ends when that one is there.
fn deserter(then: &str) -> String {
    let inner = format!("echo $$ > pid.new; mv pid.new pid; {then}");
    format!("#!/bin/sh\n(env -i setsid sh -c '{inner}' >/dev/null 2>&1 &)\nwhile [ ! -e pid ]; do :; done\n")
}

fn pid_in(place: &Place) -> String {
    std::fs::read_to_string(place.path().join("pid")).expect("it was started").trim().to_owned()
}

#[test]
fn what_leaves_its_session_and_clears_its_environment_is_gone_when_the_call_ends() {
    let Some(own) = group_or_say_so() else { return };
    let place = place(&[("leave", &deserter("exec /usr/bin/sleep 1000"))], |_| json!({}));
    let (pid, out) = run(&place);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert!(gone(&pid_in(&place)));
    assert_eq!(groups_of(&own, pid), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn without_a_group_it_lives_on_and_one_with_its_mark_does_not() {
    let place = place(&[("leave", &deserter("exec /usr/bin/sleep 1000"))], |_| json!({}));
    run_without(&place).await;
    let pid = pid_in(&place);
    assert!(Path::new(&format!("/proc/{pid}")).exists(), "the twin of the test above");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.parse().unwrap()), nix::sys::signal::SIGKILL).unwrap();
    assert!(gone(&pid));
    std::fs::remove_file(place.path().join("pid")).unwrap();
    let marked = deserter("exec /usr/bin/sleep 1000").replace("env -i ", "");
    place.file("leave", marked);
    run_without(&place).await;
    assert!(gone(&pid_in(&place)), "the mark finds it");
}

#[test]
fn what_goes_on_as_its_own_child_without_end_and_without_a_mark_is_gone() {
    let Some(own) = group_or_say_so() else { return };
    let hop = "#!/bin/sh\n[ -e stop ] && exit\necho x >> hops\nenv -i setsid sh ./hop >/dev/null 2>&1 &\n";
    let start = "#!/bin/sh\n(env -i setsid sh ./hop >/dev/null 2>&1 &)\n\
                 until [ \"$(wc -l < hops)\" -ge 20 ] 2>/dev/null; do :; done\n";
    let place = place(&[("start", start)], |_| json!({}));
    place.file("hop", hop);
    let (pid, out) = run(&place);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let hops = || std::fs::read_to_string(place.path().join("hops")).expect("it hopped").lines().count();
    let before = hops();
    assert!(before >= 20, "it was under way");
    // The twin, which nobody ends, makes as many hops meanwhile.
    let twin = self::place(&[("start", start)], |_| json!({}));
    twin.file("hop", hop);
    let hopped = Command::new("./start").current_dir(twin.path()).stderr(Stdio::null()).status();
    assert!(hopped.expect("it starts").success());
    twin.file("stop", "");
    assert_eq!(hops(), before, "it goes on");
    assert_eq!(groups_of(&own, pid), Vec::<PathBuf>::new());
    place.file("stop", "");
}

#[test]
fn what_leaves_its_group_is_found_by_its_mark() {
    let Some(own) = group_or_say_so() else { return };
    // Who may write there may leave: root, or the user whom the folder was given to.
    let then = format!("echo 0 > {}/cgroup.procs; echo $$ > pid.new; mv pid.new pid; exec sleep 1000", own.display());
    let leave = format!("#!/bin/sh\n(setsid sh -c '{then}' >/dev/null 2>&1 &)\nwhile [ ! -e pid ]; do :; done\n");
    let place = place(&[("leave", &leave)], |_| json!({}));
    let (pid, out) = run(&place);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert!(gone(&pid_in(&place)));
    assert_eq!(groups_of(&own, pid), Vec::<PathBuf>::new());
}

#[test]
fn what_makes_groups_inside_of_its_own_is_removed_with_them() {
    let Some(own) = group_or_say_so() else { return };
    let nest = format!(
        "#!/bin/sh\ng={}$(sed -n 's/^0:://p' /proc/self/cgroup)\nmkdir -p $g/a/b $g/c\n\
         (echo 0 > $g/c/cgroup.procs; echo $$ > pid; exec env -i setsid sleep 1000) >/dev/null 2>&1 &\n\
         until grep -q . $g/c/cgroup.procs; do :; done; echo nested\n",
        mount_of(&own),
    );
    let place = place(&[("nest", &nest)], |_| json!({}));
    let (pid, out) = run(&place);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let result: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(result["trace"][0]["observation"], "nested", "{result:#}");
    assert_eq!(groups_of(&own, pid), Vec::<PathBuf>::new());
}

/// What comes before the path in `/proc/self/cgroup`.
fn mount_of(own: &Path) -> String {
    let cgroup = std::fs::read_to_string("/proc/self/cgroup").expect("Linux has it");
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::")).expect("it has a group");
    let own = own.display().to_string();
    own.trim_end_matches('/').strip_suffix(path.trim_end_matches('/')).unwrap_or(&own).to_owned()
}

#[test]
fn what_a_killed_process_left_is_removed_by_the_next_one() {
    let Some(own) = group_or_say_so() else { return };
    let wait = "#!/bin/sh\necho $$ > pid.new\nmv pid.new pid\nexec sleep 1000\n";
    let place = place(&[("wait", wait)], |_| json!({}));
    let mut first = started(&place);
    while !place.path().join("pid").exists() {
        assert!(first.try_wait().expect("it is ours").is_none(), "it ended");
        crate::common::wait_poll_interval();
    }
    first.kill().expect("it is ours");
    first.wait().expect("it ends");
    let left = groups_of(&own, first.id());
    assert_eq!(left.len(), 1, "the twin: it left one");
    let program = pid_in(&place);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(program.parse().unwrap()), nix::sys::signal::SIGKILL).unwrap();
    assert!(gone(&program));
    let next = self::place(&[("end", "#!/bin/sh\necho ended\n")], |_| json!({}));
    let (pid, out) = run(&next);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_eq!((groups_of(&own, first.id()), groups_of(&own, pid)), (Vec::new(), Vec::new()));
}

/// What a program sees of how it was started. Whether it ignores SIGINT does not count: who starts this test in the background
/// makes it ignore that signal, and the command handles it.
const SEES: &str = "#!/bin/sh\necho \"$0 $#\"\n[ \"$(cut -d' ' -f5 /proc/$$/stat)\" = $$ ] && echo leads\npwd\numask\nulimit -a\n\
                    grep Sig[BC] /proc/self/status\n\
                    echo ignores $((0x$(sed -n 's/SigIgn:.//p' /proc/self/status) & ~2))\nls /proc/self/fd | wc -l\n";

#[tokio::test]
async fn a_program_is_started_and_ends_the_same_with_a_group_and_without() {
    let Some(own) = group_or_say_so() else { return };
    let scripts: &[(&str, &str)] = &[
        ("fine", "#!/bin/sh\nexit 0\n"),
        ("three", "#!/bin/sh\necho out\necho why >&2\nexit 3\n"),
        ("most", "#!/bin/sh\nexit 255\n"),
        // Our own code for a start that failed, and words like those beside it.
        ("code", "#!/bin/sh\nexit 125\n"),
        ("words", "#!/bin/sh\necho \"$LOOPCTL_CALL program 2\" | sed 's/^[^ ]*/x/' >&2\nexit 125\n"),
        ("killed", "#!/bin/sh\nkill -9 $$\n"),
        ("ended", "#!/bin/sh\nkill -TERM $$\n"),
        ("pipe", "#!/bin/sh\nkill -PIPE $$\n"),
        ("broken", "#!/bin/sh\n(cat /dev/zero; echo \"left by $?\" >&2) | head -c 1 >/dev/null\nexit 4\n"),
        ("input", "#!/bin/sh\nwc -c\n"),
        ("none", "#!/bin/sh\ncat\n"),
        ("sees", SEES),
        ("environment", "#!/bin/sh\ntr '\\0' '\\n' < /proc/$$/environ\n"),
        ("flood", "#!/bin/sh\nexec cat /dev/zero\n"),
        ("hangs", "#!/bin/sh\nexec sleep 1000\n"),
        ("missing", "x"),
        ("not_allowed", "x"),
        ("folder", "x"),
        ("nonsense", "\u{7f}nonsense"),
        ("no_line", "echo a shell would run this\n"),
        ("elf", "\u{7f}ELF and nothing more"),
        ("no_interpreter", "#!/nowhere/interpreter\n"),
        ("empty", ""),
        ("long", "#!/bin/sh\n"),
    ];
    let long = "x".repeat(200_000);
    let place = place(scripts, |name| match name {
        "input" => json!({ "stdin": "x".repeat(300_000) }),
        "environment" => {
            json!({ "env": { "LD_LIBRARY_PATH": "/nowhere", "B": "x y", "A": "1=2", "LOOPCTL_ENTER_X": "" } })
        }
        "hangs" => json!({ "timeout_ms": 300 }),
        "long" => json!({ "args": [long] }),
        _ => json!({}),
    });
    std::fs::remove_file(place.path().join("missing")).unwrap();
    std::fs::set_permissions(place.path().join("not_allowed"), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::remove_file(place.path().join("folder")).unwrap();
    std::fs::create_dir(place.path().join("folder")).unwrap();
    let (pid, out) = run(&place);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let run_id = serde_json::from_slice::<Value>(&out.stdout).expect("JSON")["run_id"].as_str().unwrap().to_owned();
    let loaded = loopctl::load(&place.path().join("loop.json"), &[]).expect("it is sound");
    let store = journal::open("sqlite:runs.db", place.path()).expect("it is there");
    let reader = Engine::builder(Arc::clone(&loaded.program.project), &loaded.root).journal(store).build();
    let (with, without) = (results(&reader, &run_id).await, run_without(&place).await);
    assert_eq!((with.len(), without.len()), (scripts.len(), scripts.len()));
    for (((name, _), with), without) in scripts.iter().zip(&with).zip(&without) {
        assert_eq!(with, without, "{name}");
    }
    let class = |name: &str| {
        let at = scripts.iter().position(|(script, _)| *script == name).expect("it is in the table");
        match &with[at] {
            ToolResult::Failed(fault) => fault.class.clone(),
            ToolResult::Ok(value) => format!("ok {value}"),
        }
    };
    for (name, expected) in [
        ("three", "program ended with status 3"),
        ("code", "program ended with status 125"),
        ("pipe", "program ended by signal 13: the call may have happened; find out before it is made again"),
        ("missing", "program not found"),
        ("not_allowed", "program can't be started"),
        ("folder", "program can't be started"),
        ("no_line", "program can't be started"),
        ("elf", "program can't be started"),
        ("no_interpreter", "program not found"),
        ("long", "arguments too long"),
    ] {
        assert_eq!(class(name), expected, "{name}");
    }
    assert!(class("environment").contains("LD_LIBRARY_PATH=/nowhere\\nLOOPCTL_ENTER_X="), "{}", class("environment"));
    assert_eq!(groups_of(&own, pid), Vec::<PathBuf>::new());
}

#[test]
fn a_program_is_in_a_group_of_its_own() {
    if group_or_say_so().is_none() {
        return;
    }
    let look = "#!/bin/sh\nsed -n 's/^0:://p' /proc/self/cgroup\n";
    let place = place(&[("one", look), ("two", look)], |_| json!({}));
    let (pid, out) = run(&place);
    let result: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"));
    let seen = [0, 1].map(|at| result["trace"][at]["observation"].as_str().expect("a path").to_owned());
    assert!(seen.iter().all(|path| path.contains(&format!("/loopctl-{pid}-"))), "{seen:?}");
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn the_hidden_start_says_what_failed_and_starts_nothing_outside_of_a_group() {
    let place = Place::new();
    let call = |args: &[&str]| {
        let ran = place.call(args);
        (ran.code, ran.stdout, ran.stderr)
    };
    let no_group = place.path().join("no/group");
    let no_group = no_group.to_str().unwrap();
    let expected = (125, String::new(), "token group 2\n".to_owned());
    assert_eq!(call(&["__enter-group", "token", no_group, "/bin/echo", "x"]), expected);
    let file = place.file("group", "");
    let group = file.to_str().unwrap();
    let expected = (125, String::new(), "token program 2\n".to_owned());
    assert_eq!(call(&["__enter-group", "token", group, "/nowhere/program"]), expected);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "0", "it entered before that");
    assert_eq!(
        call(&["__enter-group", "token", group, "/bin/echo", "x", "-y"]),
        (0, "x -y\n".to_owned(), String::new())
    );
    assert_eq!(call(&["__enter-group", "token", group]), (125, String::new(), String::new()));
}
