//! Each task of `docs/tasks.md` works as it is shown: its files, in an empty folder, are without an error and a warning, its
//! commands end with the exit codes that are named behind them, and they print what is shown below them.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::common::Place;
use crate::common::server::{Answer, Server};
use crate::pasted::{self, Section};

const PAGE: &str = "docs/tasks.md";

/// Addresses of the page, and what a test has in their place.
const OLLAMA: &str = "http://localhost:11434";
const CHAT: &str = "https://chat.example.com";
const SERVER: &str = "127.0.0.1:3009";

macro_rules! tasks {
    ($($name:ident: $title:literal,)*) => {
        const TESTED: &[&str] = &[$($title),*];
        $(#[test] fn $name() { played($title); })*
    };
}

tasks! {
    an_api_and_a_database: "Call my API and my database",
    one_row_at_a_time: "One row at a time, ask when unsure",
    a_chat: "Ask in a chat",
    a_budget: "A budget",
    an_approval: "Approve before a payment",
    a_flaky_api: "Retry a flaky API",
    ollama: "Use Ollama",
    a_fallback: "Two models, one as a fallback",
    a_called_loop: "Call a loop from a loop",
    a_schedule: "Run on a schedule",
    http: "Start over HTTP",
    a_crash: "Resume after a crash",
    no_model: "Test without a model",
    old_runs: "Replay last week's runs against a new document",
    a_secret: "Keep a secret out",
    bounded_inputs: "Limit what a tool may be called with",
    csv: "Read a CSV file",
    a_schema: "A structured answer by a schema",
    a_command: "Call a command",
    github_actions: "In GitHub Actions",
}

fn sections() -> Vec<Section> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    pasted::sections(&page)
}

#[test]
fn each_task_of_the_page_is_tested_and_is_in_its_table() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let titles: Vec<String> = sections().into_iter().map(|section| section.title).collect();
    assert_eq!(titles.len(), 20);
    assert_eq!(
        titles.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        TESTED.iter().copied().collect::<BTreeSet<_>>(),
        "{PAGE} and tests/it/tasks.rs have different tasks"
    );
    let table = page.split("\n## ").next().unwrap();
    for title in titles {
        let anchor = format!("](#{})", crate::readme::anchor(&title));
        assert!(table.contains(&anchor), "{PAGE}: the table has no link to `{title}`");
    }
}

fn played(title: &str) {
    play(&sections().into_iter().find(|section| section.title == title).unwrap());
}

/// Plays one section of a page: its files in an empty folder, and its commands.
pub(crate) fn play(section: &Section) {
    let title = &section.title;
    assert!(section.files.len() > 1, "{title}: files are shown");
    assert!(!section.commands.is_empty(), "{title}: a command is shown");
    let outside = Server::with(|_, _| {
        let turn = json!({ "thought": "Swedish.", "action": "__complete__", "action_input": { "answer": "Swedish" } });
        Answer::openai(&turn.to_string())
    });
    let free = free_address(title);
    let here = |text: &str| {
        let text = text.replace(OLLAMA, &outside.url()).replace(CHAT, &outside.url());
        text.replace(SERVER, &free.to_string())
    };

    let place = Place::new();
    for (name, text) in &section.files {
        place.file(name, here(text));
    }
    let checked = place.call(&["check", "--deny-warnings"]);
    assert_eq!(checked.code, 0, "{title}: {}", checked.stderr);

    if section.commands.contains("curl") && Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: curl, for the task `{title}`");
        return;
    }
    let output = shell(&place, &here(&section.commands));
    let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{title}: {shown}");
    for line in &section.shown {
        assert!(shown.contains(line), "{title}: `{line}` is not in what the commands print:\n{shown}");
    }
    for (named, path) in [(OLLAMA, "/v1/chat/completions"), (CHAT, "/hooks/T0/B0")] {
        // A model that only a scenario plays is asked by nobody.
        if section.files.iter().any(|(name, text)| text.contains(named) && !name.contains("test"))
            && section.calls_out()
        {
            let asked = outside.requests();
            assert!(asked.iter().any(|request| request.path == path), "{title}: nobody asked {named}{path}: {asked:?}");
        }
    }
    for (_, text) in section.files.iter().filter(|(name, _)| name.ends_with(".yml")) {
        let steps: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("- run: loopctl ")).collect();
        assert!(!steps.is_empty(), "{title}: a step calls loopctl");
        for step in steps {
            assert!(section.commands.contains(&format!("loopctl {step}\n")), "{title}: `{step}` is not played");
        }
    }
}

/// An address that nobody listens on, and that no other test is given: the system gives out the ports above 32768.
fn free_address(title: &str) -> std::net::SocketAddr {
    let first =
        20_000 + u16::try_from((std::process::id() * 64) % 9_000).unwrap() + u16::try_from(title.len()).unwrap();
    let mut ports = (first..30_000).step_by(64);
    ports
        .find_map(|port| std::net::TcpListener::bind(("127.0.0.1", port)).ok()?.local_addr().ok())
        .expect("a port is free")
}

/// Runs the lines of commands in one shell: each ends with exit code 0, or the one that its comment names.
pub(crate) fn shell(place: &Place, commands: &str) -> Output {
    let tools = place.path().join(".tools");
    fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_loopctl"), tools.join("loopctl")).unwrap();
    // What is still in the background ends with the shell.
    let mut script = "trap 'kill $! 2>/dev/null' EXIT\n".to_owned();
    for (number, line) in commands.replace("\\\n", " ").lines().enumerate() {
        let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
        let code = comment.split_once("exit code ").map_or("0", |(_, code)| code.split(':').next().unwrap());
        script.push_str(command.trim_end());
        script.push('\n');
        if !command.trim_end().ends_with('&') {
            let number = number + 1;
            script.push_str(&format!(
                "code=$?; [ $code = {code} ] || {{ echo \"line {number}: exit code $code, not {code}\" >&2; exit 99; }}\n"
            ));
        }
    }
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(place.path()).env_clear().env("NO_COLOR", "1").env("COLUMNS", "100");
    command
        .env("HOME", place.path())
        .env("TMPDIR", place.path())
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", tools.display()));
    command.output().unwrap()
}
