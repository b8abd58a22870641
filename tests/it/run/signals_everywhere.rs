//! R10: SIGINT and SIGTERM, once and twice, whatever is under way, and SIGHUP once: 30 cases. Once ends the run after its
//! step, twice at once; it can be resumed, what has ended is not done again, and no process is left.
//!
//! In each case what is under way waits for the test, and not for a time: no signal can come too late.
#![cfg(unix)]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, Ran, complete, gone, ran, think, web, with};
use crate::run::signals::wait_for_line;

/// What is under way when the signal comes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum UnderWay {
    Model,
    RetryOfTheModel,
    HttpTool,
    LlmTool,
    CommandWithChildren,
    Write,
}

const ALL: [UnderWay; 6] = [
    UnderWay::Model,
    UnderWay::RetryOfTheModel,
    UnderWay::HttpTool,
    UnderWay::LlmTool,
    UnderWay::CommandWithChildren,
    UnderWay::Write,
];

/// Writes its pid and its child's, and waits for the signal to go on.
const SLOW: &str = "#!/bin/sh\nsleep 1000 & child=$!\necho $$ >> pids; echo $child >> pids\n\
                    while [ ! -e go ]; do sleep 0.02; done\nkill $child\necho done\n";

struct Case {
    under_way: UnderWay,
    twice: bool,
    place: Place,
    server: Server,
    gate: Gate,
    /// The end of the FIFO that holds the write.
    write: Option<File>,
}

impl Case {
    fn new(under_way: UnderWay, twice: bool) -> Self {
        let gate = Gate::default();
        let server = server(under_way, twice, &gate);
        let place = Place::new();
        place.file("slow.sh", SLOW);
        let actions = [
            web("call", &format!("{}/call", server.url()), json!({ "http_method": "POST" })),
            with(
                json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Well?" }),
                json!({}),
            ),
            with(
                json!({ "action_name": "slow", "kind": "command", "description": "Is slow.", "program": "sh" }),
                json!({ "args": ["slow.sh"], "timeout_ms": 600_000 }),
            ),
        ];
        place.actions(&actions, &json!({ "allow": { "private_addresses": true, "commands": ["sh"] } }));
        let fifo = Command::new("mkfifo").arg(place.path().join("write")).status().expect("mkfifo");
        assert!(fifo.success());
        Self { under_way, twice, place, server, gate, write: None }
    }

    fn env(&self) -> Vec<(String, String)> {
        let mut env = vec![
            ("OPENAI_BASE_URL".to_owned(), format!("{}/v1", self.server.url())),
            ("OPENAI_API_KEY".to_owned(), "key-of-the-test".to_owned()),
        ];
        if self.under_way == UnderWay::Write {
            env.push(("LOOPCTL_FAIL".to_owned(), "journal:2:before-write-hold".to_owned()));
            env.push(("LOOPCTL_HOLD".to_owned(), self.place.path().join("write").display().to_string()));
        }
        env
    }

    fn start(&self) -> Child {
        let env = self.env();
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let args = ["run", "loop.json", "--output", "json", "--run-id", "r", "--model", "test-model"];
        self.place.start(&args, &env)
    }

    fn resume(&self) -> Ran {
        let env = self.env();
        let env: Vec<(&str, &str)> = env.iter().take(2).map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.place.call_with(&["resume", "r", "--output", "json"], &env)
    }

    fn pids(&self) -> Vec<String> {
        let pids = std::fs::read_to_string(self.place.path().join("pids")).unwrap_or_default();
        pids.lines().map(str::to_owned).collect()
    }

    /// Waits until that is under way which is to be.
    fn wait(&mut self, child: &mut Child) {
        match self.under_way {
            UnderWay::Model => self.server.wait_for(1),
            UnderWay::RetryOfTheModel => self.server.wait_for(if self.twice { 1 } else { 2 }),
            UnderWay::HttpTool | UnderWay::LlmTool => self.server.wait_for(2),
            UnderWay::CommandWithChildren => {
                while self.pids().len() < 2 {
                    assert!(child.try_wait().expect("it is there").is_none(), "it ended early");
                    crate::common::wait_poll_interval();
                }
            }
            // Opened without waiting, it fails as long as nobody reads: until the write is held.
            UnderWay::Write => {
                let mut fifo = OpenOptions::new();
                fifo.write(true).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
                while self.write.is_none() {
                    assert!(child.try_wait().expect("it is there").is_none(), "it ended early");
                    self.write = fifo.open(self.place.path().join("write")).ok();
                    crate::common::wait_poll_interval();
                }
            }
        }
    }

    /// Lets that end which is under way.
    fn let_go(&mut self) {
        self.gate.open();
        self.place.file("go", "");
        self.write = None;
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a pid"))
}

/// The model's requests and the tool's, in the order of their kind.
fn server(under_way: UnderWay, twice: bool, gate: &Gate) -> Server {
    let says = |reply: Value| Answer::openai(&reply.to_string());
    let tool = match under_way {
        UnderWay::LlmTool => "ask",
        UnderWay::CommandWithChildren => "slow",
        _ => "call",
    };
    let (call, done) = (says(think(tool, json!({}))), says(complete(json!("done"))));
    let busy = |header: &str, value: &str| Answer::json("{}").status(503).header(header, value);
    let model = match (under_way, twice) {
        (UnderWay::Model, false) => vec![call.behind(gate), done],
        (UnderWay::Model, true) => vec![call.clone().behind(gate), call, done],
        (UnderWay::RetryOfTheModel, false) => vec![busy("retry-after-ms", "1"), call.behind(gate), done],
        (UnderWay::RetryOfTheModel, true) => vec![busy("retry-after", "300"), call, done],
        (UnderWay::LlmTool, _) => vec![call, says(json!("well")).behind(gate), done.clone(), done],
        _ => vec![call, done],
    };
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let gate = gate.clone();
    Server::with(move |_, request| {
        if request.path.starts_with("/v1") {
            let number = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            model.get(number).cloned().unwrap_or_else(|| Answer::json("{}").status(400))
        } else if under_way == UnderWay::HttpTool {
            Answer::json(&json!({ "did": 1 })).behind(&gate)
        } else {
            Answer::json(&json!({ "did": 1 }))
        }
    })
}

fn calls(case: &Case) -> usize {
    case.server.requests().iter().filter(|request| request.path.starts_with("/call")).count()
}

#[test]
fn once_ends_the_run_after_its_step_whatever_is_under_way() {
    for under_way in ALL {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            let mut case = Case::new(under_way, false);
            let mut child = case.start();
            case.wait(&mut child);
            kill(pid(&child), signal).expect("it is there");
            let rest = wait_for_line(&mut child, "after this step");
            case.let_go();
            let stopped = ran(&child.wait_with_output().expect("it ends"));
            rest.join().expect("it ends");
            assert_eq!(stopped.code, 130, "{under_way:?} {signal}: {stopped:#?}");
            assert_eq!(stopped.json()["status"], "cancelled", "{under_way:?} {signal}");
            assert!(case.pids().iter().all(|pid| gone(pid)), "{under_way:?} {signal}: a process is left");
            let made = calls(&case);
            let resumed = case.resume();
            assert_eq!(resumed.code, 0, "{under_way:?} {signal}: {resumed:#?}");
            assert_eq!(calls(&case), made, "{under_way:?} {signal}: the step had ended, and is not done again");
            assert_eq!(resumed.json()["result"]["answer"], "done");
        }
    }
}

#[test]
fn twice_ends_the_run_at_once_whatever_is_under_way() {
    for under_way in ALL {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let mut case = Case::new(under_way, true);
            let mut child = case.start();
            case.wait(&mut child);
            kill(pid(&child), signal).expect("it is there");
            // What is under way never ends by itself: two signals that came as one are made up for.
            let rest = wait_for_line(&mut child, "after this step");
            while child.try_wait().expect("it is there").is_none() {
                let _ = kill(pid(&child), signal);
                crate::common::wait_poll_interval();
            }
            assert_eq!(child.wait().expect("it ended").code(), Some(130), "{under_way:?} {signal}");
            rest.join().expect("it ends");
            assert!(case.pids().iter().all(|pid| gone(pid)), "{under_way:?} {signal}: a process is left");
            case.let_go();
            let resumed = case.resume();
            let termination = resumed.json()["termination"].clone();
            let expected = match under_way {
                UnderWay::Model | UnderWay::RetryOfTheModel => json!("complete"),
                // What may have happened is asked about; also when only its outcome was not on the disk yet.
                _ => json!("uncertain"),
            };
            assert_eq!(termination, expected, "{under_way:?} {signal}: {resumed:#?}");
            assert!(calls(&case) <= 1, "{under_way:?} {signal}");
        }
    }
}
