//! `--interactive`: when a run waits, the human decides in the terminal. The prompt is made from the call
//! itself, and the decision carries its hash.

mod asked_form;
mod typed_line;

use std::io::IsTerminal as _;
use std::slice;
use std::sync::Arc;

use serde_json::Value;

use super::failure::CommandError;
use super::output::shown;
use super::process::local_user;
use super::surface::Surface;
use super::watch::Watched;
use crate::drive::engine::{Engine, Finished, Resume};
use crate::drive::fault::Fault;
use crate::engine::event::{Decided, Decision};
use crate::engine::outcome::{Pause, Termination};
use crate::engine::question::WaitingCall;
use crate::engine::state::Phase;
use crate::program::Program;
use crate::program::file_value::written_json;
use crate::trace::redact::HIDDEN;
use crate::trace::result::PauseView;
use crate::trace::step_text::questions;
use crate::trace::steps::as_call;
use crate::trace::text::Pieces;
use crate::trace::{Redaction, RunResult, Tone, approval, escape, result};

/// Checks that there is somebody to ask.
///
/// # Errors
/// When stdin or stderr is no terminal.
pub fn needs_terminal(surface: &Surface) -> Result<(), CommandError> {
    if std::io::stdin().is_terminal() && surface.err_terminal {
        return Ok(());
    }
    Err(CommandError::usage_help(
        "--interactive needs a terminal, but stdin or stderr is not one",
        "without it, a run that waits for a human ends with exit code 3, and `loopctl resume` answers it",
    ))
}

/// Asks about each pause of a run, until it ends or is left paused.
pub async fn decide(
    surface: &Surface,
    watched: &Watched,
    engine: &Engine,
    program: &Arc<Program>,
    mut finished: Option<Result<Finished, Fault>>,
) -> Option<Result<Finished, Fault>> {
    let asker = Asker { surface, redact: Redaction::new(&program.project.redact) };
    loop {
        let Some(Ok(Finished { state })) = &finished else { return finished };
        let Phase::Paused { pause, .. } = &state.phase else { return finished };
        let result = result(shown(program), state, &asker.redact);
        let Some(decided) = asker.ask(pause, &result).await else { return finished };
        let run_id = state.header.run_id.clone();
        let resume = Resume { decided: Some(decided), ..Resume::default() };
        finished = watched.drive(engine.resume(program, &run_id, resume, watched.watch())).await;
        if let Some(Err(Fault::Refused(why))) = &finished {
            surface.say(&surface.line(Tone::Warn, "not taken", &why.to_string()));
            // Its time may be over, and then its step fails. Or somebody else has decided meanwhile: the next question is about the
            // current state.
            let plain = engine.resume(program, &run_id, Resume::default(), watched.watch());
            finished = match watched.drive(plain).await {
                Some(Err(_)) => Some(engine.state(program, &run_id).await.map(|state| Finished { state })),
                plain => plain,
            };
        }
    }
}

/// The type of an approval that is a step of its own.
const APPROVAL: &str = "PbotApproval";

/// What differs in the words for approvals.
#[derive(Clone, Copy)]
struct ApprovalWords {
    /// What can be edited.
    edited: &'static str,
    /// Who reads the reason of a no.
    reason: &'static str,
}

impl ApprovalWords {
    /// Those for a call that a model wants.
    const CALL: Self = Self { edited: "input", reason: "the model reads it" };
    /// Those for the call of a step.
    const STEP: Self = Self { edited: "input", reason: "it is recorded" };
    /// Those for an approval that is a step.
    const PAYLOAD: Self = Self { edited: "payload", reason: "it is recorded, and later steps can read it" };
}

/// What is asked for where an answer is free, or an object of these keys.
fn answer_words(options: usize, keys: &[String]) -> String {
    match (options, keys) {
        (0, []) => "answer (empty: leave it paused)".to_owned(),
        (0, keys) => {
            let members: Vec<String> = keys.iter().map(|key| format!("{}: ...", Value::from(key.as_str()))).collect();
            let object = format!("{{{}}}", members.join(", "));
            format!("answer, a JSON object: {} (empty: leave it paused)", escape::line(&object))
        }
        _ => "answer, or the number of an option (empty: leave it paused)".to_owned(),
    }
}

/// Asks one human.
struct Asker<'a> {
    surface: &'a Surface,
    redact: Redaction,
}

impl Asker<'_> {
    /// The decision of the human; none leaves the run paused.
    async fn ask(&self, pause: &Pause, result: &RunResult) -> Option<Decided> {
        let waiting = result.pause.as_ref()?;
        self.surface.say("\n");
        // The steps of a workflow are decided one after the other.
        // A human is asked first; a model that can't be reached is asked again where nothing else is to be decided.
        let find = |fits: fn(Termination) -> bool| waiting.steps.iter().find(|step| fits(step.question.kind));
        let step = find(|kind| !kind.needs_no_human()).or_else(|| find(|kind| !kind.is_wait()));
        if step.map_or(pause.question.kind, |step| step.question.kind).is_wait() {
            return None;
        }
        let of_step = step.and_then(|step| as_call(step).or_else(|| step.calls.first().cloned()));
        let first = if step.is_some() { of_step.as_ref() } else { waiting.call.as_ref() };
        let at = step.map(|step| step.at.clone());
        let decided = |call: Option<&WaitingCall>, decision| Decided {
            pause: Some(pause.number),
            at: at.clone(),
            call: call.filter(|call| at.is_none() || call.call.iteration > 0).map(|call| call.call),
            hash: call.map(|call| call.hash.clone()),
            by: local_user(),
            ..Decided::from(decision)
        };
        match (step.map_or(pause.question.kind, |step| step.question.kind), first) {
            (Termination::Approval, Some(call)) => {
                // The question of a step of the workflow itself; a call of its run is shown alone.
                let own = step.filter(|step| step.calls.is_empty());
                match own {
                    Some(step) => self.surface.say(&questions(&self.surface.err, slice::from_ref(step), true)),
                    None => {
                        self.asked_by(waiting);
                        self.bold("This tool call needs your approval:");
                        self.show(call, true);
                    }
                }
                let words = match own {
                    Some(step) if step.action == APPROVAL => ApprovalWords::PAYLOAD,
                    Some(_) => ApprovalWords::STEP,
                    None => ApprovalWords::CALL,
                };
                let decision = self.approval(call, words).await?;
                Some(decided(Some(call), decision))
            }
            (Termination::Uncertain, Some(call)) => {
                self.asked_by(waiting);
                self.bold("It is not known whether this call happened:");
                let decision = self.uncertain(call).await?;
                Some(decided(Some(call), decision))
            }
            (Termination::ModelError, _) => {
                self.surface.say(&Pieces { look: self.surface.err, shorten: false }.pause(waiting));
                let answer = self.line("r: retry, anything else: leave it paused").await?;
                (answer == "r").then(|| decided(None, Decision::Retry))
            }
            _ if step.is_some_and(|step| !step.fields.is_empty()) => {
                let step = step?;
                self.surface.say(&questions(&self.surface.err, slice::from_ref(step), false));
                self.surface.say("  the end of the input (Ctrl-D) leaves it paused\n");
                Some(decided(None, self.filled_in(step).await?))
            }
            _ => {
                let pieces = Pieces { look: self.surface.err, shorten: false };
                self.surface.say(&pieces.pause(waiting));
                let keys = step.map(|step| step.expected_keys.as_slice()).unwrap_or_default();
                let words = answer_words(pause.question.options.len(), keys);
                let text = self.line(&words).await.filter(|text| !text.is_empty())?;
                Some(decided(None, Decision::Answer(chosen(&text, &pause.question.options))))
            }
        }
    }

    async fn approval(&self, call: &WaitingCall, words: ApprovalWords) -> Option<Decision> {
        let cut = approval::is_cut(&self.surface.err, call);
        loop {
            let view = if cut { ", v: view it whole" } else { "" };
            let keys = format!("a: approve, d: deny, e: edit the {}{view}, s: leave it paused", words.edited);
            match self.line(&keys).await?.as_str() {
                "a" => return Some(Decision::Approve),
                "d" => {
                    let reason = self.line(&format!("reason ({}; may be empty)", words.reason)).await?;
                    return Some(Decision::Deny(Some(reason).filter(|reason| !reason.is_empty())));
                }
                "e" => {
                    if let Some(input) = self.edited(call).await? {
                        return Some(Decision::Edit(input));
                    }
                }
                "v" if cut => self.show(call, false),
                "s" => return None,
                _ => self.surface.say("enter one of these letters\n"),
            }
        }
    }

    /// Another input, after it was shown and confirmed; `Some(None)`: not confirmed.
    async fn edited(&self, call: &WaitingCall) -> Option<Option<Value>> {
        let text = self.line("the whole input as JSON, on one line (empty: as it was)").await?;
        if text.is_empty() {
            return Some(None);
        }
        let input = match written_json(&text) {
            Ok(input) => input,
            Err(why) => {
                self.surface.say(&self.surface.line(Tone::Warn, "not taken", &why));
                return Some(None);
            }
        };
        if holds_placeholder(&input) {
            self.surface.say(&format!("replace {HIDDEN} by the value itself\n"));
            return Some(None);
        }
        let edited = WaitingCall { action_input: self.redact.value(&input), ..call.clone() };
        self.show(&edited, true);
        let yes = self.line("call it with this input? y: yes, anything else: no").await?;
        Some((yes == "y").then_some(input))
    }

    async fn uncertain(&self, call: &WaitingCall) -> Option<Decision> {
        self.show(call, true);
        loop {
            match self.line("h: it happened, f: it failed, r: retry it, s: leave it paused").await?.as_str() {
                "h" => {
                    let text = self.line("what it returned, as JSON on one line").await?;
                    match written_json(&text) {
                        Ok(value) => return Some(Decision::Happened(value)),
                        Err(why) => self.surface.say(&self.surface.line(Tone::Warn, "not taken", &why)),
                    }
                }
                "f" => {
                    let reason = self.line("why it failed").await?;
                    if !reason.trim().is_empty() {
                        return Some(Decision::Failed(reason));
                    }
                }
                "r" => return Some(Decision::Retry),
                "s" => return None,
                _ => self.surface.say("enter one of these letters\n"),
            }
        }
    }

    /// Names the run that asks, if it is a sub-run.
    fn asked_by(&self, waiting: &PauseView) {
        if let Some(run_id) = &waiting.question.run_id {
            self.surface.say(&format!("the sub-run {} waits\n", escape::line(run_id)));
        }
    }

    fn show(&self, call: &WaitingCall, cut: bool) {
        self.surface.say(&approval::call(&self.surface.err, call, cut));
    }

    fn bold(&self, text: &str) {
        self.surface.say(&format!("{}\n", self.surface.err.paint(Tone::Bold, text)));
    }
}

/// The option of this number, from 1; else the text itself.
fn chosen(text: &str, options: &[String]) -> String {
    let at = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    at.and_then(|at| options.get(at)).cloned().unwrap_or_else(|| text.to_owned())
}

fn holds_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => text == HIDDEN,
        Value::Array(items) => items.iter().any(holds_placeholder),
        Value::Object(fields) => fields.values().any(holds_placeholder),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_chooses_an_option_and_any_other_text_is_the_answer() {
        let options = ["refund".to_owned(), "3".to_owned()];
        assert_eq!(chosen("1", &options), "refund");
        assert_eq!(chosen("2", &options), "3");
        for text in ["0", "3", "-1", "one", "1.5", "99999999999999999999"] {
            assert_eq!(chosen(text, &options), text);
        }
        assert_eq!(chosen("1", &[]), "1");
    }

    #[test]
    fn a_placeholder_of_a_hidden_value_is_found_at_any_depth() {
        assert!(holds_placeholder(&json!({ "a": [{ "password": "[hidden]" }] })));
        assert!(!holds_placeholder(&json!({ "a": "is [hidden] here", "[hidden]": 1 })));
    }
}
