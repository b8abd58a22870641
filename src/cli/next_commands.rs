//! The commands that a user may run next, ready to be copied.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::store::StorePlace;
use crate::engine::flow::record::{StepRecord, StepStatus};
use crate::engine::open_posts::QuestionToPost;
use crate::engine::outcome::{Status, Termination};
use crate::engine::question::{StepQuestion, WaitingCall};
use crate::engine::reply::refusal::{ANSWERS, RefusalCause};
use crate::engine::state::State;
use crate::language::notify::NOTIFY;
use crate::program::flow::ON_FAILURE;
use crate::trace::steps::as_call;
use crate::trace::units::rfc3339;
use crate::trace::{Look, RunResult, Tone, escape};

/// The flag of a retry that does again what steps of `on_failure` have taken back.
const AFTER_ON_FAILURE: &str = "--after-on-failure";
/// The most steps whose commands are listed.
const MAX_STEPS: usize = 3;

/// What the next command must repeat.
#[derive(Debug, Clone)]
pub struct NextCommands {
    /// How this program is called here.
    pub program: String,
    pub run_id: String,
    /// Whether the store outlives the process.
    pub lasts: bool,
    /// Whether the run is a copy of one that a Restate server drives.
    pub is_copy: bool,
    /// Whether the run came in a file: nobody continues it here.
    pub is_imported: bool,
    /// The `--store`, where it is needed.
    pub store: Option<String>,
    /// The script that replaces the model.
    pub script: Option<PathBuf>,
    /// The files of `--actions`.
    pub actions: Vec<PathBuf>,
    /// The flags of `resume` that raise the limit which ended it.
    pub raising: Option<String>,
    /// Whether steps of `on_failure` have run, also in an item or a run below: a retry says that it does their work again.
    pub is_handled: bool,
    /// What an author can do about replies that could not be read.
    pub for_replies: Option<&'static str>,
}

/// Whether items of a loop failed in a run that continued without them.
fn has_failed_items(result: &RunResult) -> bool {
    result.steps.iter().any(|step| step.items.as_ref().is_some_and(|items| items.failed > 0))
}

impl NextCommands {
    /// For a run in a store.
    pub fn new(run_id: &str, place: &StorePlace) -> Self {
        Self {
            program: program(),
            run_id: run_id.to_owned(),
            lasts: place.lasts(),
            is_copy: false,
            is_imported: false,
            store: if place.lasts() { place.needed() } else { None },
            script: None,
            actions: Vec::new(),
            raising: None,
            is_handled: false,
            for_replies: None,
        }
    }

    /// `PROGRAM VERB RUN`, with the flags that it needs.
    pub fn command(&self, verb: &str, rest: &str) -> String {
        let mut command = format!("{} {verb} {}", quoted(&self.program), quoted(&self.run_id));
        if !rest.is_empty() {
            command.push(' ');
            command.push_str(rest);
        }
        if matches!(verb, "resume" | "retry" | "rerun") {
            if let Some(script) = &self.script {
                command.push_str(&format!(" --script {}", quoted(&script.display().to_string())));
            }
            for file in &self.actions {
                command.push_str(&format!(" --actions {}", quoted(&file.display().to_string())));
            }
        }
        if let Some(store) = &self.store {
            command.push_str(&format!(" --store {}", quoted(store)));
        }
        command
    }

    /// The run, and the commands for it, one on each line.
    pub fn text(&self, result: &RunResult, look: &Look) -> String {
        if !self.lasts {
            return match result.status {
                Status::Completed | Status::Failed => String::new(),
                _ => "  the store was in memory: the run can't be resumed; next time use --store sqlite:PATH\n"
                    .to_owned(),
            };
        }
        let mut ways = vec![("run".to_owned(), self.run_id.clone())];
        match (result.status, result.termination) {
            _ if self.is_imported && result.finished_at.is_none() => {
                ways.push(("explain".to_owned(), self.command("explain", "")));
            }
            (Status::Paused, kind) if self.is_copy => ways.extend(self.in_restate(kind)),
            (Status::Cancelled | Status::Running, _) if self.is_copy && result.finished_at.is_none() => {
                ways.push(("status".to_owned(), self.handler("status", "")));
            }
            (Status::Paused, Some(kind)) => ways.extend(self.decisions(kind, result)),
            (Status::Cancelled | Status::Running | Status::Quarantined, _) if result.finished_at.is_none() => {
                ways.push(("resume".to_owned(), self.command("resume", "")));
            }
            (_, why) => {
                ways.push(("trace".to_owned(), self.command("trace", "")));
                ways.extend(self.again(result));
                let is_for_replies = |words: &&str| match why {
                    Some(Termination::InvalidReplies) => true,
                    Some(Termination::ModelError) => *words == OTHER_MODELS,
                    _ => false,
                };
                let remedy = why
                    .and_then(|why| remedy(why, !result.steps.is_empty()))
                    .or(self.for_replies.filter(is_for_replies));
                ways.extend(remedy.map(|remedy| ("may help".to_owned(), remedy.to_owned())));
            }
        }
        let width = ways.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        ways.iter()
            .map(|(label, command)| {
                let label = look.paint(Tone::Dim, &format!("{label:<width$}"));
                format!("  {label}  {}\n", escape::line(command))
            })
            .collect()
    }

    /// The calls that decide about a run that a Restate server drives.
    fn in_restate(&self, kind: Option<Termination>) -> Vec<(String, String)> {
        let answer = |label: &str, body: &str| (label.to_owned(), self.handler("answer", body));
        let mut ways = match kind {
            Some(Termination::Approval) => {
                vec![answer("approve", r#"{"approve": true}"#), answer("deny", r#"{"deny": true, "reason": "..."}"#)]
            }
            Some(Termination::Human | Termination::Stuck) => vec![answer("answer", r#"{"answer": "..."}"#)],
            _ => Vec::new(),
        };
        ways.push(("cancel".to_owned(), self.handler("cancel", "{}")));
        ways
    }

    /// A call of a handler of the run in Restate. `INGRESS` is the address of its server.
    fn handler(&self, name: &str, body: &str) -> String {
        let call = format!("curl -X POST INGRESS/loopctl/{}/{name}", quoted(&self.run_id));
        if body.is_empty() { call } else { format!("{call} --json {}", quoted(body)) }
    }

    /// The commands with which a run continues that has failed.
    pub fn again(&self, result: &RunResult) -> Vec<(String, String)> {
        let mut ways = Vec::new();
        match (result.status, result.termination) {
            (Status::Failed, Some(reason @ (Termination::ModelError | Termination::SpendingLimit)))
                if reason == Termination::SpendingLimit
                    || result.error.as_ref().is_some_and(|error| error.retryable) =>
            {
                ways.push(("retry".to_owned(), self.command("retry", "")));
            }
            // Failed items run again, although the run completed.
            (Status::Completed, _) if !self.is_copy && has_failed_items(result) => {
                let flag = if self.is_handled { AFTER_ON_FAILURE } else { "" };
                ways.push(("retry".to_owned(), self.command("retry", flag)));
            }
            (Status::Failed, Some(Termination::StepFailed | Termination::Rejected | Termination::FormExpired)) => {
                let is_handled = self.is_handled || result.steps.iter().any(of_failure);
                let flags =
                    if is_handled { format!("--retry-failed {AFTER_ON_FAILURE}") } else { "--retry-failed".to_owned() };
                ways.push(("retry".to_owned(), self.command("resume", &flags)));
                ways.push(("corrected".to_owned(), self.command("resume", &format!("{flags} --new-document"))));
            }
            _ => {}
        }
        ways.extend(self.raising.as_deref().map(|flags| ("continue".to_owned(), self.command("resume", flags))));
        ways
    }

    /// The commands with which a run continues that waits, or has failed; none where nobody continues it here.
    pub fn continuing(&self, result: &RunResult) -> Vec<(String, String)> {
        match (result.status, result.termination) {
            _ if self.is_imported && result.finished_at.is_none() => Vec::new(),
            (Status::Paused, kind) if self.is_copy => self.in_restate(kind),
            (Status::Paused, Some(kind)) => self.decisions(kind, result),
            _ => self.again(result),
        }
    }

    /// The commands that decide about what a run waits for, in a sentence; none when it waits for nothing.
    pub fn deciding(&self, result: &RunResult) -> Option<String> {
        let kind = result.pause.as_ref().map(|pause| pause.question.kind);
        let ways = match kind {
            Some(kind) => self.decisions(kind, result),
            None => result.waiting.iter().take(MAX_STEPS).flat_map(|question| self.of_step(question, true)).collect(),
        };
        let is_wait = kind.is_some_and(Termination::is_wait);
        let written = |(what, command): (String, String)| match is_wait {
            true => format!("`{command}` ({what})"),
            false => format!("`{command}`"),
        };
        let commands: Vec<String> = ways.into_iter().map(written).collect();
        // What waits for a time asks nobody.
        let words = if is_wait { "the run waits, and continues by" } else { "what waits is decided by" };
        (self.lasts && !commands.is_empty()).then(|| format!("{words} {}", commands.join(" or ")))
    }

    /// The commands that decide about a question that is posted, in a line.
    pub fn about(&self, asked: &QuestionToPost) -> String {
        let ways = match (&asked.call, &asked.step) {
            (Some(call), _) => self.of_call(asked.question.kind, call, false),
            (None, Some(step)) => self.of_step(step, true),
            (None, None) => Vec::new(),
        };
        ways.into_iter().map(|(_, command)| command).collect::<Vec<_>>().join(" or ")
    }

    fn decisions(&self, kind: Termination, result: &RunResult) -> Vec<(String, String)> {
        let steps = result.pause.as_ref().map_or(&[][..], |pause| pause.steps.as_slice());
        if kind.is_wait() && !steps.is_empty() {
            let first = steps.iter().min_by_key(|step| step.expires_at_ms).filter(|step| step.expires_at_ms.is_some());
            let at = |step: &StepQuestion| end_of_wait(step);
            let after = first.and_then(|step| step.expires_at_ms).map(|at_ms| format!("after {}", rfc3339(at_ms)));
            let go_on = (after.unwrap_or_else(|| "continue".to_owned()), self.command("resume", ""));
            let end = first.map(|step| ("end the wait".to_owned(), self.command("resume", &at(step))));
            return std::iter::once(go_on).chain(end).collect();
        }
        if !steps.is_empty() && kind != Termination::ModelError {
            return steps.iter().take(MAX_STEPS).flat_map(|question| self.of_step(question, steps.len() > 1)).collect();
        }
        let resume = |rest: &str| self.command("resume", rest);
        let calls = result.pause.as_ref().map_or(&[][..], |pause| match pause.calls.as_slice() {
            [] => pause.call.as_slice(),
            several => several,
        });
        match kind {
            Termination::Approval | Termination::Uncertain => {
                let several = calls.len() > 1;
                calls.iter().flat_map(|call| self.of_call(kind, call, several)).collect()
            }
            Termination::ModelError => vec![("resume".to_owned(), resume(""))],
            Termination::Waiting | Termination::WaitingEvent | Termination::SpendingLimit => {
                vec![("continue".to_owned(), resume(""))]
            }
            _ => vec![("answer".to_owned(), resume("--answer \"...\""))],
        }
    }

    /// The commands that decide about a step of a workflow.
    fn of_step(&self, question: &StepQuestion, several: bool) -> Vec<(String, String)> {
        if question.question.kind.is_wait() {
            let end = self.command("resume", &end_of_wait(question));
            return vec![(format!("end the wait {}", question.at), end)];
        }
        if question.question.kind == Termination::ModelError {
            let again = self.command("resume", &format!("--at {} --retry", quoted(&question.at)));
            return vec![(format!("ask the model of {}", question.at), again)];
        }
        let at = if several { format!("--at {} ", quoted(&question.at)) } else { String::new() };
        let calls: Vec<WaitingCall> = as_call(question).into_iter().chain(question.calls.iter().cloned()).collect();
        if !calls.is_empty() {
            return calls.iter().flat_map(|call| self.of_call(question.question.kind, call, several)).collect();
        }
        let answer = match question.expected_keys.as_slice() {
            [] => "--answer \"...\"".to_owned(),
            keys => {
                let keys: Vec<String> =
                    keys.iter().map(|key| format!("{}: ...", serde_json::Value::from(key.as_str()))).collect();
                format!("--answer {}", quoted(&format!("{{{}}}", keys.join(", "))))
            }
        };
        let label = if several { format!("answer {}", question.at) } else { "answer".to_owned() };
        vec![(label, self.command("resume", &format!("{at}{answer}")))]
    }

    /// The commands that decide about a call, bound to what was shown of it.
    fn of_call(&self, kind: Termination, call: &WaitingCall, several: bool) -> Vec<(String, String)> {
        let ways: &[(&str, &str)] = match kind {
            Termination::Approval => {
                &[("approve", "--approve"), ("deny", "--deny --reason \"...\""), ("edit", "--edit '{...}'")]
            }
            _ => &[("it happened", "--happened '{...}'"), ("it failed", "--fail \"...\""), ("retry", "--retry")],
        };
        let label = |label: &str| if several { format!("{label} {}", call.id) } else { label.to_owned() };
        let command = |rest: &str| self.command("resume", &format!("{rest} --if {}", call.hash));
        ways.iter().map(|(name, rest)| (label(name), command(rest))).collect()
    }
}

/// The decision that ends the wait of a step.
fn end_of_wait(question: &StepQuestion) -> String {
    let decision = match question.question.kind {
        Termination::SpendingLimit => "--retry",
        _ if question.awaits.is_some() => "--answer '{...}'",
        _ => "--approve",
    };
    format!("--at {} {decision}", quoted(&question.at))
}

/// How the program was called: its path as given, so that a command can be copied even if the program is not on
/// the `PATH`; otherwise its name.
pub fn program() -> String {
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let is_path = called.parent().is_some_and(|folder| !folder.as_os_str().is_empty());
    match called.to_str() {
        Some(called) if is_path => called.to_owned(),
        _ => "loopctl".to_owned(),
    }
}

/// What an author can do about a failure, if anything.
fn remedy(why: Termination, is_of_workflow: bool) -> Option<&'static str> {
    Some(match why {
        Termination::Timeout if is_of_workflow => "more `timeout_ms`",
        Termination::Budget if is_of_workflow => "more `budget`",
        Termination::MaxIterations => {
            "more `max_iterations`, or `\"on_limit\": \"answer\"` to answer with what is known"
        }
        Termination::Timeout => "more `timeout_ms`, or `\"on_limit\": \"answer\"` to answer with what is known",
        Termination::Context => "`history`, or a smaller `max_observation_chars`",
        Termination::Budget => "more `budget`, or `\"on_limit\": \"answer\"` to answer with what is known",
        Termination::SpendingLimit => "a higher amount in the `limits` of the project, or a later retry",
        Termination::Stuck => "`on_stuck` with `retry_with_hint` or `escalate`, or a tool that gives what is missing",
        _ => return None,
    })
}

/// What helps against refusals.
const OTHER_MODELS: &str = "`fallback_models` of other providers, or another objective";

/// What an author can do about the replies of a run that could not be taken.
pub fn remedy_for_replies(state: &State) -> &'static str {
    let of_loop = state.as_loop();
    if of_loop.is_some_and(|state| state.watch.answers_refused >= ANSWERS) {
        return "an `answer_schema` with fewer demands, or a larger model";
    }
    match RefusalCause::of_last(state.entries()) {
        RefusalCause::CutOffThinking => "more `max_tokens`, or less reasoning (`reasoning_effort` of the model)",
        RefusalCause::CutOff => "more `max_tokens`",
        RefusalCause::Refused => OTHER_MODELS,
        RefusalCause::Unreadable | RefusalCause::Empty => "another `dialect`, or a larger model",
    }
}

/// A word in quotes where a shell needs them.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A path for a command line: one that begins like an option is written from the folder on. What a terminal doesn't show, and
/// bytes that are no text, are written as the escapes of a shell.
pub fn quoted_path(path: &Path) -> String {
    let dashed = || Path::new(".").join(path);
    let bytes = path.as_os_str().as_encoded_bytes();
    let path = if bytes.starts_with(b"-") { Cow::Owned(dashed()) } else { Cow::Borrowed(path) };
    match path.to_str() {
        Some(text) if escape::line(text) == text => quoted(text),
        _ => escaped(path.as_os_str().as_encoded_bytes()),
    }
}

/// A word as `$'...'`, which bash, zsh and later shells of POSIX read.
fn escaped(word: &[u8]) -> String {
    let mut text = String::from("$'");
    for byte in word {
        match byte {
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\r' => text.push_str("\\r"),
            b'\'' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            // Three digits, so that a digit behind them is not one of them.
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('\'');
    text
}

/// Whether it is a step of `on_failure` that may have taken something back.
fn of_failure(step: &StepRecord) -> bool {
    step.status != StepStatus::Skipped && step.kind != NOTIFY && step.at.split('.').next() == Some(ON_FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::state;
    use crate::engine::event::CallId;
    use crate::engine::question::Question;
    use crate::trace::result::PauseView;
    use crate::trace::{Redaction, Shown, result};

    fn next() -> NextCommands {
        NextCommands {
            program: "loopctl".to_owned(),
            run_id: "run-1".to_owned(),
            lasts: true,
            is_copy: false,
            is_imported: false,
            store: None,
            script: None,
            actions: Vec::new(),
            raising: None,
            is_handled: false,
            for_replies: None,
        }
    }

    fn shown(status: Status, termination: Option<Termination>) -> RunResult {
        let mut result = result(Shown::default(), &state(), &Redaction::default());
        result.status = status;
        result.termination = termination;
        result
    }

    #[test]
    fn a_question_is_answered_and_a_call_approved() {
        let look = Look::plain(80);
        let human = next().text(&shown(Status::Paused, Some(Termination::Human)), &look);
        assert_eq!(human, "  run     run-1\n  answer  loopctl resume run-1 --answer \"...\"\n");
        let approval = next().text(&waiting(Termination::Approval, &["2.0"]), &look);
        assert!(approval.contains("  approve  loopctl resume run-1 --approve --if hash-2.0\n"), "{approval}");
        assert!(approval.contains("--deny --reason \"...\" --if hash-2.0") && approval.contains("--edit '{...}' --if"));
        let uncertain = next().text(&waiting(Termination::Uncertain, &["2.0"]), &look);
        assert!(uncertain.contains("--happened '{...}' --if hash-2.0") && uncertain.contains("--retry --if hash-2.0"));
    }

    /// A paused run with these calls.
    fn waiting(kind: Termination, ids: &[&str]) -> RunResult {
        let calls: Vec<WaitingCall> = ids
            .iter()
            .map(|id| WaitingCall {
                id: (*id).to_owned(),
                call: CallId { iteration: 2, index: 0 },
                action: "pay".to_owned(),
                action_input: serde_json::json!({}),
                hash: format!("hash-{id}"),
                approval: None,
                ask: None,
            })
            .collect();
        let mut result = shown(Status::Paused, Some(kind));
        result.pause = Some(PauseView {
            steps: Vec::new(),
            number: 1,
            question: Question::new(kind, ""),
            call: calls.first().cloned(),
            calls: if calls.len() > 1 { calls } else { Vec::new() },
        });
        result
    }

    #[test]
    fn each_of_several_calls_is_decided_on_its_own() {
        let text = next().text(&waiting(Termination::Approval, &["2.0", "2.1"]), &Look::plain(80));
        assert!(text.contains("approve 2.0") && text.contains("--approve --if hash-2.1\n"), "{text}");
        assert_eq!(text.lines().count(), 7, "{text}");
    }

    #[test]
    fn script_actions_and_store_are_named_again_where_they_are_needed() {
        let next = NextCommands {
            store: Some("sqlite:my runs.db".to_owned()),
            script: Some("s.json".into()),
            actions: vec!["a.json".into()],
            ..next()
        };
        assert_eq!(
            next.command("resume", "--approve"),
            "loopctl resume run-1 --approve --script s.json --actions a.json --store 'sqlite:my runs.db'"
        );
        assert_eq!(next.command("trace", ""), "loopctl trace run-1 --store 'sqlite:my runs.db'");
    }

    #[test]
    fn an_ended_run_is_named_with_its_trace() {
        let look = Look::plain(80);
        assert_eq!(
            next().text(&shown(Status::Completed, Some(Termination::Complete)), &look),
            "  run    run-1\n  trace  loopctl trace run-1\n"
        );
        let failed = next().text(&shown(Status::Failed, Some(Termination::MaxIterations)), &look);
        assert!(failed.contains("loopctl trace run-1") && failed.contains("max_iterations"));
    }

    #[test]
    fn a_run_in_memory_offers_no_command() {
        let next = NextCommands { lasts: false, ..next() };
        let text = next.text(&shown(Status::Paused, Some(Termination::Human)), &Look::plain(80));
        assert!(!text.contains("loopctl resume") && text.contains("memory"));
    }

    #[test]
    fn a_shell_takes_a_quoted_word_whole() {
        assert_eq!(quoted("run-1"), "run-1");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $(x)"), "'it'\\''s $(x)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_path_can_be_pasted_whatever_its_name_is() {
        assert_eq!(quoted_path(Path::new("a/b")), "a/b");
        assert_eq!(quoted_path(Path::new("-rf")), "./-rf");
        assert_eq!(quoted_path(Path::new("größe x")), "'größe x'");
        assert_eq!(quoted_path(Path::new("a\nb'c\\1")), "$'a\\nb\\'c\\\\1'");
        assert_eq!(quoted_path(Path::new("-\u{1b}[31m7\u{202e}")), "$'./-\\033[31m7\\342\\200\\256'");
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt as _;
            let path = Path::new(std::ffi::OsStr::from_bytes(b"a\xff1"));
            assert_eq!(quoted_path(path), "$'a\\3771'");
        }
    }
}
