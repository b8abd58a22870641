//! Always resumed: with `LOOPCTL_ALWAYS_RESUME` set, every `run` and `resume` of the suite is played by
//! processes that die after each single event and are resumed, until the run ends or waits.
//!
//! A process is killed right after its event is durable. A later one starts with the events that say that it
//! resumed the run, and each run that this one called; it dies at the first other event. A call whose intent
//! was the last event was never made: where the tool is not idempotent the run asks, and is answered that it
//! should make the call. A process that hangs is killed, and its test has failed.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use serde_json::Value;

use super::Place;

/// Longer than any process takes that makes one event, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Whether the suite is played in this way.
pub fn wanted() -> bool {
    #![allow(clippy::disallowed_methods, reason = "the environment says how the suite is to be played")]
    std::env::var_os("LOOPCTL_ALWAYS_RESUME").is_some()
}

/// The flags that decide a pause, or run again what failed: passed once, with their values.
const DECISIONS: [(&str, usize); 8] = [
    ("--answer", 2),
    ("--approve", 1),
    ("--deny", 1),
    ("--edit", 2),
    ("--fail", 2),
    ("--happened", 2),
    ("--retry", 1),
    ("--retry-failed", 1),
];
/// The flags that raise a limit, each with its value: passed once.
const LIMITS: [&str; 4] = ["--budget-tokens", "--budget-usd", "--max-iterations", "--timeout-ms"];
/// The flags that accompany a decision, with their values.
const WITH_DECISIONS: [&str; 7] = ["--at", "--comment", "--reason", "--call", "--pause", "--if", "--new-document"];

/// The output of a process, which must end within its time.
pub fn ended(child: Child, args: &[&str]) -> Output {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let _ = kill(pid, Signal::SIGKILL);
        panic!("this process hangs: {args:?}")
    });
    output.expect("it ends")
}

/// A call of the program, played in pieces.
pub struct Played<'a> {
    place: &'a Place,
    first: Vec<String>,
    again: Vec<String>,
}

impl<'a> Played<'a> {
    /// A call with these arguments; none for a command that drives no run.
    pub fn of(place: &'a Place, args: &[&str]) -> Option<Self> {
        let mut first: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let again = match *args.first()? {
            "run" => {
                kept(place, &mut first);
                first.clone()
            }
            "resume" => without_decision(&first),
            _ => return None,
        };
        Some(Self { place, first, again })
    }

    /// Plays the call. `call` starts a process with these arguments and these fail points.
    pub fn play(self, call: impl Fn(&[&str], &str) -> Output) -> Output {
        // A new document or a raised limit, and a decision, are two events of one process: it dies at the second.
        let has = |names: &[&str]| self.first.iter().any(|arg| names.contains(&arg.as_str()));
        let decides = || has(&DECISIONS.map(|(name, _)| name));
        let at = usize::from(has(&["--new-document"]) || self.first[0] == "resume" && has(&LIMITS) && decides());
        let mut output = call(&list(&self.first), &format!("way:{at}:after-sync"));
        let mut stderr = Vec::new();
        for _ in 0..2000 {
            let killed = output.status.signal() == Some(9);
            let (next, at) = if killed {
                (self.again.clone(), 0)
            } else if let Some(Uncertain { run_id, which, depth }) = uncertain(self.place, &self.again, &output) {
                // A process that is killed right after its decision would have to ask again: it dies at the
                // outcome. Each run between the outermost one and the call writes the decision down.
                let mut args = vec!["resume".to_owned(), run_id, "--retry".to_owned()];
                args.extend(which);
                args.extend(shared(&self.again));
                (args, 1 + depth)
            } else {
                stderr.append(&mut output.stderr);
                return Output { stderr, ..output };
            };
            stderr.append(&mut output.stderr);
            output = call(&list(&next), &format!("way:{at}:after-sync"));
        }
        panic!("the run makes no way: {output:#?}");
    }
}

fn list(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// A run can only be resumed with an id, and in a store that outlives the process.
fn kept(place: &Place, args: &mut Vec<String>) {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let number = RUNS.fetch_add(1, Ordering::SeqCst);
    if !args.iter().any(|arg| arg == "--run-id") {
        args.extend(["--run-id".to_owned(), format!("always-{number}")]);
    }
    if let Some(store) = args.iter_mut().find(|arg| *arg == "memory") {
        *store = format!("sqlite:{}", place.path().join(format!(".always/{number}.db")).display());
    }
}

fn without_decision(args: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if let Some((_, words)) = DECISIONS.iter().find(|(name, _)| name == arg) {
            args.by_ref().take(words - 1).for_each(drop);
        } else if WITH_DECISIONS.contains(&arg.as_str()) || LIMITS.contains(&arg.as_str()) {
            args.by_ref().take(usize::from(arg != "--new-document")).for_each(drop);
        } else if DECISIONS.iter().any(|(name, _)| arg.starts_with(&format!("{name}="))) {
            // The form `--flag=value`.
        } else {
            kept.push(arg.clone());
        }
    }
    kept
}

/// The arguments that `run` and `resume` share.
fn shared(args: &[String]) -> Vec<String> {
    let mut shared = Vec::new();
    for pair in args.windows(2) {
        if ["--script", "--actions", "--store", "--output"].contains(&pair[0].as_str()) {
            shared.extend(pair.iter().cloned());
        }
    }
    let file = args.get(1).filter(|_| args[0] == "run" && !args.iter().any(|arg| arg == "--store"));
    if let Some(file) = file.filter(|file| !file.starts_with('-')) {
        shared.extend(["--document".to_owned(), file.clone()]);
    }
    shared
}

/// A run that asks about a call of unknown outcome; if there are several, the first.
struct Uncertain {
    run_id: String,
    /// The arguments of `resume` that name the call.
    which: Vec<String>,
    /// The depth of the call below the run.
    depth: usize,
}

fn uncertain(place: &Place, args: &[String], output: &Output) -> Option<Uncertain> {
    if output.status.code() != Some(3) {
        return None;
    }
    let run_id = match args[0].as_str() {
        "resume" => args.get(1).cloned(),
        _ => args.windows(2).find(|pair| pair[0] == "--run-id").map(|pair| pair[1].clone()),
    }?;
    let found = shared(args);
    let trace = |run_id: &str| {
        let mut trace = ["trace", run_id, "--format", "json"].map(str::to_owned).to_vec();
        for pair in found.chunks(2).filter(|pair| ["--store", "--document"].contains(&pair[0].as_str())) {
            trace.extend(pair.iter().cloned());
        }
        place.command(&list(&trace)).output().expect("it starts")
    };
    let result: Value = serde_json::from_slice(&trace(&run_id).stdout).unwrap_or_default();
    let pause = &result["pause"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    // Steps of workflows wait beside each other, also for other things.
    let is_uncertain = |step: &&Value| step["kind"] == "uncertain";
    let (which, whose) = match pause["steps"].as_array().filter(|steps| !steps.is_empty()) {
        Some(steps) => {
            let step = steps.iter().find(is_uncertain)?;
            let call = text(&step["calls"][0]["id"]).map(|call| ["--call".to_owned(), call]);
            let at = ["--at".to_owned(), text(&step["at"])?];
            (at.into_iter().chain(call.into_iter().flatten()).collect(), text(&step["run_id"]))
        }
        None if result["termination"] == "uncertain" => {
            (vec!["--call".to_owned(), text(&pause["call"]["id"])?], text(&pause["run_id"]))
        }
        None => return None,
    };
    // The id of a sub-run begins with that of its caller: each of these that is a run takes the decision too.
    let whose = whose.filter(|whose| whose.starts_with(&run_id)).unwrap_or_else(|| run_id.clone());
    let between = whose.match_indices('.').map(|(end, _)| end).chain([whose.len()]).filter(|end| *end > run_id.len());
    let depth = between.filter(|end| whose.get(..*end).is_some_and(|id| trace(id).status.success())).count();
    Some(Uncertain { run_id, which, depth })
}
