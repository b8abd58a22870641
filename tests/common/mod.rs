//! A place for one test: an empty folder, a clean environment, and the real program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

#[cfg(unix)]
mod always;
pub mod dialects;
pub mod hostile;
#[cfg(feature = "mysql")]
#[allow(dead_code, reason = "not all test programs use it")]
pub mod mariadb;
pub mod server;
pub mod streams;
pub mod sweep;
#[cfg(unix)]
pub mod terminal;

/// An empty folder that is removed after the test.
pub struct Place {
    folder: tempfile::TempDir,
}

/// The result of a call of the program.
#[derive(Debug, Clone)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    /// A place that is no memory, whatever `TMPDIR` names: for tests of what a crash leaves.
    pub fn on_disk() -> Self {
        Self { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder") }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("the folder is made");
        std::fs::write(&path, text).expect("the file is written");
        path
    }

    pub fn json(&self, name: &str, value: &Value) -> PathBuf {
        self.file(name, serde_json::to_string_pretty(value).expect("JSON"))
    }

    /// The program with these arguments in this folder, with nothing of the caller's environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
        command.args(args).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command.env("HOME", self.path()).env("PATH", "/usr/local/bin:/usr/bin:/bin").env("NO_COLOR", "1");
        command
    }

    pub fn call(&self, args: &[&str]) -> Ran {
        self.call_with(args, &[])
    }

    pub fn call_with(&self, args: &[&str], env: &[(&str, &str)]) -> Ran {
        let start = |mut command: Command| {
            command.envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("the program starts")
        };
        if env.iter().any(|(name, _)| *name == "LOOPCTL_FAIL") {
            // The test itself sets where the process dies.
            return ran(&start(self.command(args)).wait_with_output().expect("it ends"));
        }
        self.played(args, start)
    }

    /// In one process; or, if the suite is played in pieces, by processes that die after each event.
    fn played(&self, args: &[&str], start: impl Fn(Command) -> Child) -> Ran {
        #[cfg(unix)]
        if let Some(played) = always::wanted().then(|| always::Played::of(self, args)).flatten() {
            return ran(&played.play(|args, fail| {
                let mut command = self.command(args);
                command.env("LOOPCTL_FAIL", fail);
                always::ended(start(command), args)
            }));
        }
        ran(&start(self.command(args)).wait_with_output().expect("it ends"))
    }

    pub fn start(&self, args: &[&str], env: &[(&str, &str)]) -> Child {
        self.command(args)
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    pub fn call_reading(&self, args: &[&str], stdin: &[u8]) -> Ran {
        self.played(args, |mut command| {
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program starts");
            child.stdin.take().expect("a pipe").write_all(stdin).expect("it reads");
            child
        })
    }

    /// Runs the loop `loop.json` with the script `script.json`; the result as JSON.
    pub fn run(&self, more: &[&str]) -> (Ran, Value) {
        let mut args = vec!["run", "loop.json", "--script", "script.json", "--output", "json"];
        args.extend(more);
        let ran = self.call(&args);
        let result = ran.json();
        (ran, result)
    }

    /// A loop with scripted tools; `properties` changes its properties.
    pub fn looped(&self, properties: &Value) -> &Self {
        self.json("loop.json", &document(properties));
        self
    }

    /// A loop `loop.json` that may call these actions, and its project file.
    pub fn actions(&self, actions: &[Value], project: &Value) -> &Self {
        let names: Vec<Value> =
            actions.iter().map(|action| json!({ "type": "action", "name": action["action_name"] })).collect();
        self.json("loopctl.json", project);
        self.json(
            "loop.json",
            &json!({ "type": "loop", "name": "test", "actions": actions, "properties": {
                "mode": "react", "objective": "Find out what is wrong.", "tools": names, "max_iterations": 500,
                "on_stuck": { "iterations": 1000 }, "retry": { "attempts": 2, "base_ms": 1, "max_ms": 2 } } }),
        );
        self
    }

    /// Makes these calls, one in each turn, and ends; returns the entries of the trace.
    pub fn calls(&self, calls: &[Value]) -> Vec<Value> {
        self.calls_with(calls, &[], &[])
    }

    /// The same with more arguments and variables.
    pub fn calls_with(&self, calls: &[Value], more: &[&str], env: &[(&str, &str)]) -> Vec<Value> {
        let replies: Vec<Value> = calls.iter().cloned().chain([complete(json!("done"))]).collect();
        self.json("script.json", &json!({ "replies": replies }));
        let mut args = vec!["run", "loop.json", "--script", "script.json", "--output", "json", "--store", "memory"];
        args.extend(more);
        let ran = self.call_with(&args, env);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let trace = ran.json()["trace"].as_array().expect("a trace").clone();
        assert_eq!(trace.len(), calls.len() + 1, "{ran:#?}");
        trace
    }

    /// The message when the loop is refused before anything runs.
    pub fn refused(&self) -> String {
        self.json("script.json", &json!({ "replies": [complete(json!("done"))] }));
        let ran = self.call(&["run", "loop.json", "--script", "script.json", "--store", "memory"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        ran.stderr
    }

    /// Every file below the folder with its bytes, also those whose names begin with a dot.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("it can be listed") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((path.clone(), std::fs::read(path).expect("it can be read")));
                }
            }
        }
        files
    }

    /// A script of replies, and of the answers of the tools `look` and `act`.
    pub fn script(&self, replies: &[Value]) -> &Self {
        let tools = json!({ "look": [{ "seen": 1 }], "act": [{ "done": true }] });
        self.json("script.json", &json!({ "replies": replies, "tools": tools }));
        self
    }
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(self.stdout.trim()).unwrap_or_else(|error| panic!("no JSON on stdout: {error}\n{self:#?}"))
    }
}

pub fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A loop with two tools: `look` (idempotent) and `act` (not).
pub fn document(properties: &Value) -> Value {
    let mut all = json!({
        "mode": "react",
        "objective": "Find out what is wrong.",
        "tools": [{ "type": "action", "name": "look" }, { "type": "action", "name": "act" }],
        "retry": { "attempts": 2, "base_ms": 1, "max_ms": 2 },
    });
    let object = all.as_object_mut().expect("an object");
    for (name, value) in properties.as_object().expect("properties are an object") {
        object.insert(name.clone(), value.clone());
    }
    json!({
        "type": "loop",
        "name": "test",
        "actions": [
            {
                "action_name": "look", "kind": "http", "description": "Looks at something.",
                "url": "https://tools.example.com/look/{{at}}", "http_method": "GET",
                "parameters": { "type": "object", "properties": { "at": { "type": "string" }, "n": { "type": "integer" } },
                    "required": ["at"], "additionalProperties": false }
            },
            {
                "action_name": "act", "kind": "http", "description": "Does something.",
                "url": "https://tools.example.com/act", "http_method": "POST",
                "parameters": { "type": "object", "properties": { "what": { "type": "string" } }, "required": ["what"] }
            }
        ],
        "properties": all
    })
}

/// How many cases a property is tested with: at each commit, or ten times as many at night (`just nightly`).
pub fn cases(each_commit: u32) -> u32 {
    each_commit * if is_nightly() { 10 } else { 1 }
}

/// Whether the n-th of many cases of one kind is played: a third of them at each commit, all at night (`just nightly`).
pub fn is_sampled(nth: usize) -> bool {
    is_nightly() || nth.is_multiple_of(3)
}

/// Whether the tests are played as a whole, which takes too long for each commit.
pub fn is_nightly() -> bool {
    #![allow(clippy::disallowed_methods, reason = "the environment says how the suite is to be played")]
    std::env::var_os("LOOPCTL_NIGHTLY").is_some()
}

/// Between two looks at what a test waits for: a server that is asked without a pause does little else than answer.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits before the next look. That something holds is known from a look, and never from the time that has passed.
pub fn wait_poll_interval() {
    std::thread::sleep(POLL_INTERVAL);
}

/// Waits until a killed process is gone: the kernel needs some time for that on a busy machine.
pub fn gone(pid: &str) -> bool {
    (0..20_000).any(|_| {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        wait_poll_interval();
        state.is_empty() || state.contains(") Z ")
    })
}

/// An `http` action with this name; `more` changes its properties.
pub fn web(name: &str, url: &str, more: Value) -> Value {
    with(json!({ "action_name": name, "kind": "http", "description": "Asks.", "url": url, "http_method": "GET" }), more)
}

/// An object with the properties of another one merged into it.
pub fn with(mut object: Value, more: Value) -> Value {
    for (name, value) in more.as_object().expect("an object") {
        object[name] = value.clone();
    }
    object
}

/// The observation of an entry, as text.
pub fn observed(entry: &Value) -> String {
    entry["observation"].as_str().map_or_else(|| entry["observation"].to_string(), str::to_owned)
}

pub fn think(action: &str, input: Value) -> Value {
    json!({ "thought": format!("I call {action} with {input}"), "action": action, "action_input": input })
}

pub fn look(at: &str) -> Value {
    think("look", json!({ "at": at }))
}

pub fn complete(answer: Value) -> Value {
    think("__complete__", json!({ "answer": answer }))
}

/// A place whose loop has programs as tools, which answer `said`: a script would replace the model too.
pub fn answering(properties: &Value, said: &str) -> Place {
    let place = Place::new();
    let mut document = document(properties);
    for action in document["actions"].as_array_mut().expect("actions") {
        let (name, parameters) = (action["action_name"].clone(), action["parameters"].clone());
        *action = json!({ "action_name": name, "kind": "command", "program": "echo", "args": [said],
            "description": "Looks.", "parameters": parameters });
    }
    place.json("loop.json", &document);
    place.json("loopctl.json", &json!({ "allow": { "commands": ["echo"] } }));
    place
}

/// The exit of a program that may die at a fail point: -9 when it was killed.
#[cfg(unix)]
pub fn killed(mut command: Command, fail: &str) -> Ran {
    use std::os::unix::process::ExitStatusExt;
    if !fail.is_empty() {
        command.env("LOOPCTL_FAIL", fail);
    }
    let output = command.output().expect("it starts");
    let mut ran = ran(&output);
    if output.status.signal() == Some(9) {
        ran.code = -9;
    }
    ran
}

/// A sound loop with the action `look`, which none of its files declares.
pub const SOUND: &str = r#"{"type": "loop", "properties": {"mode": "react", "objective": "Do it.", "tools": [{"type": "action", "name": "look"}]}}"#;
/// The action `look`.
pub const ACTION: &str = r#"{"action_name": "look", "kind": "http", "description": "Looks.", "url": "https://example.com/x", "http_method": "GET"}"#;

/// A folder with a sound loop and its action.
pub fn sound() -> Place {
    let place = Place::new();
    place.file("loops/a.json", SOUND);
    place.file("loops/actions/look.json", ACTION);
    place
}

/// Drives a run to its end as an operator would who knows what the server saw: `resume` passes a decision on,
/// `was_posted` says whether the call of unknown outcome was made. Returns the last output of the run, and how
/// often such a call was asked about.
pub fn finished(mut ran: Ran, resume: impl Fn(&[&str]) -> Ran, was_posted: impl Fn() -> bool) -> (Ran, u32) {
    let mut uncertain = 0;
    for _ in 0..10 {
        match ran.code {
            0 => return (ran, uncertain),
            3 => {
                ran = match ran.json()["termination"].as_str() {
                    Some("human") => resume(&["--answer", "yes"]),
                    Some("uncertain") => {
                        uncertain += 1;
                        let known: &[&str] =
                            if was_posted() { &["--happened", r#"{"did":"post"}"#] } else { &["--retry"] };
                        resume(known)
                    }
                    other => panic!("paused for {other:?}: {ran:#?}"),
                };
            }
            _ => panic!("{ran:#?}"),
        }
    }
    panic!("the run does not end: {ran:#?}");
}
