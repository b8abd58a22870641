//! Programs: what they are given, how they end, and that nothing of them stays.

use std::fs;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::*;

fn shell(script: &str) -> Prepared {
    Prepared {
        program: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: vec![("PATH".to_owned(), PATH.to_owned())],
        stdin: None,
        cwd: "/".into(),
    }
}

async fn sh(script: &str) -> Result<Value, ToolFault> {
    process::run(&shell(script), false).await.map_err(|raw| raw.fault)
}

/// Polls until a process is gone, or is a zombie that only init has to reap.
async fn is_gone(pid: i32) -> bool {
    for _ in 0..200_000 {
        let alive = kill(Pid::from_raw(pid), None).is_ok();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if !alive || stat.contains(") Z ") {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

#[tokio::test]
async fn each_argument_is_one_element_whatever_is_in_it() {
    let args = [
        "plain",
        "two words",
        "",
        "quote ' and \" and `id`",
        "; rm -rf /tmp/x",
        "$(id)",
        "${HOME}",
        "a\nb\r\tc",
        "*",
        "~",
        "\\",
        "&& true | cat > x < y",
        "--output=/tmp/x",
        "-rf",
        "é \u{202e}",
        "%s%n",
        "!!",
        "#",
    ];
    let mut prepared = shell("");
    prepared.program = "/usr/bin/env".into();
    // The shell itself only prints its arguments.
    prepared.args =
        vec!["sh".into(), "-c".into(), "for a in \"$@\"; do printf '%s\\1' \"$a\"; done".into(), "sh".into()];
    prepared.args.extend(args.iter().map(|arg| (*arg).to_owned()));
    let Value::String(printed) = process::run(&prepared, false).await.unwrap() else { panic!("not text") };
    assert_eq!(printed.split_terminator('\u{1}').collect::<Vec<_>>(), args);
}

#[tokio::test]
async fn the_environment_is_what_is_declared_and_nothing_else() {
    let mut prepared = shell("");
    prepared.program = "/usr/bin/env".into();
    prepared.args.clear();
    prepared.env.push(("TOKEN".to_owned(), "x y".to_owned()));
    let Value::String(printed) = process::run(&prepared, false).await.unwrap() else { panic!("not text") };
    let names: Vec<&str> = printed.lines().map(|line| line.split_once('=').unwrap().0).collect();
    assert_eq!(names, ["LOOPCTL_CALL", "PATH", "TOKEN"]);
    assert!(printed.ends_with(&format!("PATH={PATH}\nTOKEN=x y")), "{printed}");
}

#[tokio::test]
async fn output_is_json_or_text() {
    assert_eq!(sh("echo '{\"n\": 1.10}'").await.unwrap().to_string(), r#"{"n":1.10}"#);
    assert_eq!(sh("printf 'a\\nb\\n'").await.unwrap(), json!("a\nb"));
    assert_eq!(sh("true").await.unwrap(), json!({"status": 0}));
    assert_eq!(sh("printf 'a\\0b'").await.unwrap_err().class, "binary answer of 3 bytes, type unknown");
    assert_eq!(sh("printf 'caf\\303\\251'").await.unwrap(), json!("café"));
    let latin1 = sh("printf 'caf\\351'").await.unwrap_err().class;
    assert_eq!(latin1, "the answer of 4 bytes is no text in utf-8, which is read where no charset is named");
}

#[tokio::test]
async fn another_status_is_a_failure_with_what_it_said() {
    let fault = sh("echo out; echo why >&2; exit 3").await.unwrap_err();
    assert_eq!((fault.class.as_str(), fault.detail.as_str()), ("program ended with status 3", "why\n"));
    assert_eq!(sh("kill -9 $$").await.unwrap_err().class, "program ended by signal 9");
}

#[tokio::test]
async fn input_is_fed_and_ended() {
    let mut prepared = shell("wc -c");
    prepared.stdin = Some(vec![b'x'; 300_000]);
    assert_eq!(process::run(&prepared, false).await.unwrap(), json!("300000"));
    // A program that reads no input, and one that waits for input that nobody gives.
    prepared.args = vec!["-c".into(), "echo done".into()];
    assert_eq!(process::run(&prepared, false).await.unwrap(), json!("done"));
    assert_eq!(sh("cat").await.unwrap(), json!({"status": 0}));
}

#[tokio::test]
async fn a_flood_is_cut_off_and_the_program_killed() {
    let pids = tempfile::tempdir().unwrap();
    let file = pids.path().join("pid");
    let script = format!("echo $$ > {}; exec yes", file.display());
    assert_eq!(sh(&script).await.unwrap_err().class, "output too large");
    assert!(is_gone(fs::read_to_string(file).unwrap().trim().parse().unwrap()).await);
}

#[tokio::test]
async fn a_flood_of_errors_is_read_and_thrown_away() {
    assert_eq!(sh("head -c 3000000 /dev/zero >&2; echo fine").await.unwrap(), json!("fine"));
}

#[tokio::test]
async fn exactly_the_limit_passes() {
    let Value::String(text) = sh("head -c 1048576 /dev/zero | tr '\\0' x").await.unwrap() else { panic!() };
    assert_eq!(text.len(), 1_048_576);
    assert_eq!(sh("head -c 1048577 /dev/zero | tr '\\0' x").await.unwrap_err().class, "output too large");
}

#[tokio::test]
async fn what_a_program_leaves_running_is_killed_when_it_ends() {
    // The child holds the output open: without the kill this would wait for it.
    let Value::String(pid) = sh("sleep 1000 & echo pid $!").await.unwrap() else { panic!() };
    assert!(is_gone(pid.trim_start_matches("pid ").parse().unwrap()).await);
}

/// Drives a call until the file exists, and drops it in the middle.
async fn dropped(prepared: &Prepared, file: &Path) {
    let run = process::run(prepared, false);
    tokio::pin!(run);
    while !file.exists() {
        tokio::select! {
            result = &mut run => panic!("it ended: {result:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
}

#[tokio::test]
async fn a_dropped_call_kills_the_program_and_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let script = format!("sleep 1000 & echo $! > {0}.new; echo $$ >> {0}.new; mv {0}.new {0}; wait", file.display());
    let prepared = shell(&script);
    dropped(&prepared, &file).await;
    for pid in fs::read_to_string(&file).unwrap().lines() {
        assert!(is_gone(pid.parse().unwrap()).await, "{pid} lives");
    }
}

/// A script that runs `before`, then starts a process in its own session whose parent has ended; it ends when
/// the number of that process is in the file.
fn deserter(before: &str, file: &Path) -> String {
    leaving(before, file, "exec sleep 1000")
}

/// The same, and the process runs `then`.
fn leaving(before: &str, file: &Path, then: &str) -> String {
    let inner = format!("echo $$ > {0}.new; mv {0}.new {0}; {then}", file.display());
    format!("({before} setsid sh -c '{inner}' >/dev/null 2>&1 &); while [ ! -e {} ]; do :; done", file.display())
}

fn pid_in(file: &Path) -> Pid {
    Pid::from_raw(fs::read_to_string(file).unwrap().trim().parse().unwrap())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_leaves_the_group_is_killed_too_and_a_process_of_another_call_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    // Processes of other calls: one without a mark, and one with another mark.
    let mut strangers = [None, Some(leftover_processes::ProcessMark::new())].map(|mark| {
        let mut stranger = std::process::Command::new("sleep");
        stranger.arg("1000").env_remove(leftover_processes::VARIABLE);
        stranger.envs(mark.iter().map(|mark| (leftover_processes::VARIABLE, mark.value()))).spawn().unwrap()
    });
    sh(&deserter("", &file)).await.unwrap();
    assert!(is_gone(pid_in(&file).as_raw()).await);
    for stranger in &mut strangers {
        assert!(stranger.try_wait().unwrap().is_none(), "a process that is not ours was killed");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_begins_one_program_after_the_other_does_not_slip_through() {
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("again");
    // While a process executes a program, it shows no environment.
    fs::write(&again, format!("exec sh {}\n", again.display())).unwrap();
    for round in 0..20 {
        let file = folder.path().join(format!("pid{round}"));
        sh(&leaving("", &file, &format!("exec sh {}", again.display()))).await.unwrap();
        assert!(is_gone(pid_in(&file).as_raw()).await, "{round}");
    }
}

/// How many processes were started with this among their arguments.
#[cfg(target_os = "linux")]
fn alive(argument: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split('\0').any(|part| part == argument)).count()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_goes_on_as_its_own_child_again_and_again_does_not_slip_through() {
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let (hop, file) = (folder.path().join("hop"), folder.path().join("hopped"));
        // Each process lives only until it has started the next one, in its own session. The chain ends with
        // its folder.
        let script = format!("[ -e {0} ] || exit; (setsid sh {0} &)\necho x >> {1}\n", hop.display(), file.display());
        fs::write(&hop, script).unwrap();
        let many = format!("[ \"$(wc -l < {})\" -ge 20 ]", file.display());
        let start = format!("(setsid sh {} >/dev/null 2>&1 &); until {many} 2>/dev/null; do :; done", hop.display());
        sh(&start).await.unwrap();
        let count = || fs::read_to_string(&file).unwrap().lines().count();
        let before = count();
        assert!(before >= 20, "the twin: it was under way");
        // A killed process may stay in the list for a moment.
        for _ in 0..200_000 {
            if alive(&hop.display().to_string()) == 0 {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(alive(&hop.display().to_string()), 0, "{round}: it goes on, from {before} to {}", count());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dropped_call_kills_what_left_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let prepared = shell(&format!("{}; sleep 1000", deserter("", &file)));
    dropped(&prepared, &file).await;
    assert!(is_gone(pid_in(&file).as_raw()).await);
}

#[tokio::test]
async fn what_leaves_the_group_and_clears_its_environment_is_seen_to_live() {
    // The twin of the tests above: they would see a process that survives.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    sh(&deserter("env -i", &file)).await.unwrap();
    assert!(kill(pid_in(&file), None).is_ok());
    kill(pid_in(&file), nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn arguments_beyond_the_systems_limit_are_a_failure() {
    let mut prepared = shell("true");
    prepared.args.push("x".repeat(2 * 1024 * 1024));
    assert_eq!(process::run(&prepared, false).await.unwrap_err().fault.class, "arguments too long");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_failure() {
    let mut prepared = shell("true");
    prepared.program = "/nowhere/program".into();
    assert_eq!(process::run(&prepared, false).await.unwrap_err().fault.class, "program not found");
}

#[test]
fn only_allowed_programs_are_found() {
    let root = tempfile::tempdir().unwrap();
    let allowed: Vec<String> = ["sh", "./bin/tool", "/bin/sh", "nothing-of-this-name"].map(str::to_owned).to_vec();
    let find = |program: &str| locate(program, &allowed, root.path()).map_err(|fault| fault.class);
    assert!(find("sh").unwrap().ends_with("bin/sh"));
    assert_eq!(find("/bin/sh").unwrap(), Path::new("/bin/sh"));
    assert_eq!(find("./bin/tool").unwrap(), root.path().join("./bin/tool"));
    assert_eq!(find("nothing-of-this-name").unwrap_err(), "program not found");
    for program in ["bash", "SH", "sh ", "/bin/../bin/sh", "bin/tool", "", "/usr/bin/env"] {
        assert_eq!(find(program).unwrap_err(), "program not allowed", "{program:?}");
    }
}

#[test]
fn a_dash_at_the_beginning_must_be_the_authors() {
    let class = |source: &str, text: &str, allow| argument(source, text.to_owned(), allow).map_err(|fault| fault.class);
    for text in ["-rf", "--output=/etc/passwd", "-", "--"] {
        assert_eq!(class("{{x}}", text, false).unwrap_err(), "argument begins with `-`");
        assert_eq!(class("@input.x", text, false).unwrap_err(), "argument begins with `-`");
        assert_eq!(class("{{x}}", text, true).unwrap(), text);
    }
    assert_eq!(class("-n", "-n", false).unwrap(), "-n");
    assert_eq!(class("--file={{x}}", "--file=-x", false).unwrap(), "--file=-x");
    assert_eq!(class("{{x}}", " -x", false).unwrap(), " -x");
    assert_eq!(class("{{x}}", "a\0b", true).unwrap_err(), "argument not allowed");
}

#[test]
fn a_variable_that_a_value_fills_needs_the_projects_permission_and_one_that_steers_has_none() {
    let allowed = ["TICKET", "LD_PRELOAD", "PATH"].map(str::to_owned);
    let class = |name: &str, source: &str| {
        let template = Template::compile(source, loopctl_lang::program::template::ValueEscape::Plain).unwrap();
        permitted(name, &template, &allowed).map_err(|fault| fault.class)
    };
    for (name, source) in [
        ("LD_PRELOAD", "{{x}}"),
        ("ld_library_path", "/lib{{x}}"),
        ("DYLD_INSERT_LIBRARIES", "{{input.x}}"),
        ("PATH", "{{#if input.x}}/tmp{{/if}}"),
        ("GIT_SSH_COMMAND", "{{input.x}}"),
        ("OTHER", "{{x}}"),
        ("OTHER", "{{#each input.xs}}{{this}}{{/each}}"),
        ("ticket", "{{x}}"),
    ] {
        assert_eq!(class(name, source).unwrap_err(), "environment not allowed", "{name}");
    }
    for (name, source) in [
        ("PATH", "/opt/bin"),
        ("LD_LIBRARY_PATH", "/opt/lib"),
        ("GIT_SSH_COMMAND", "ssh -F none"),
        ("TICKET", "{{x}} {{input.y}}"),
        ("KEY", "orgconfig:k"),
        ("AT", "{{now}} {{__run_id}}"),
    ] {
        assert!(class(name, source).is_ok(), "{name}");
    }
    for (name, text) in [("A=B", "x"), ("", "x"), ("A", "a\0b")] {
        assert_eq!(variable(name, text.to_owned()).unwrap_err().class, "environment not allowed", "{name}");
    }
    assert!(variable("TICKET", "-$(id)\n".to_owned()).is_ok());
}

#[test]
fn the_working_folder_stays_in_the_project() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("data")).unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink("/", root.path().join("away")).unwrap();
    let real = root.path().canonicalize().unwrap();
    assert_eq!(folder(root.path(), None).unwrap(), real);
    assert_eq!(folder(root.path(), Some("data")).unwrap(), real.join("data"));
    for cwd in ["..", "/", "/tmp", "data/../..", "away", "away/tmp", "file", "nowhere"] {
        assert_eq!(folder(root.path(), Some(cwd)).unwrap_err().class, "folder not allowed", "{cwd}");
    }
}
