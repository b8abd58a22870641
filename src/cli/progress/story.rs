//! The story of a run, notice by notice: pure, so that tests can read it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::engine::event::ToolFault;
use crate::engine::flow::record::{StepRecord, StepStatus};
use crate::engine::notice::Notice;
use crate::engine::question_post::QuestionPost;
use crate::engine::record::TraceEntry;
use crate::program::Program;
use crate::program::builtin::{COMPLETE, LOG_PROGRESS, PAUSE_FOR_HUMAN};
use crate::trace::continuation::{continuation_sentence, hidden_continuation};
use crate::trace::decision::{decision_sentence, hidden};
use crate::trace::entries::{call_attempt_sentence, call_sentence};
use crate::trace::question_post::post_sentence;
use crate::trace::refused_replies::{ShownRefusals, unsaid};
use crate::trace::step_text::{item_line, step_line};
use crate::trace::steps::{shown_row, shown_step};
use crate::trace::text::{Pieces, ShownObservation, took};
use crate::trace::units::{count, dollars, duration, plural};
use crate::trace::{Redaction, events};

use super::super::failure::CommandError;

/// Formats the notices of a run as text.
#[derive(Debug)]
pub struct Story {
    pieces: Pieces,
    redact: Redaction,
    /// The calls that were shown and have no observation yet.
    open: Vec<(String, Value)>,
    /// The refusals that were shown.
    refusals: ShownRefusals,
    /// The steps of items under way that failed.
    failed_steps: Vec<String>,
    /// How the addresses of the workflow's own steps in cases begin.
    cases: BTreeSet<String>,
    /// Whether several calls were under way in this turn, so that observations must name their call.
    several: bool,
    /// Whether an iteration was already shown: a blank line separates the next one from it.
    any_shown: bool,
    /// Whether the run's header was shown last: a blank line separates it from what follows.
    headed: bool,
}

impl Story {
    /// A story that hides what `redact` hides.
    pub fn new(pieces: Pieces, redact: Redaction) -> Self {
        Self {
            pieces,
            redact,
            open: Vec::new(),
            refusals: ShownRefusals::default(),
            failed_steps: Vec::new(),
            cases: BTreeSet::new(),
            several: false,
            any_shown: false,
            headed: false,
        }
    }

    /// The story of a run of this program.
    pub fn of(pieces: Pieces, program: &Program) -> Self {
        let steps = program.as_flow().map(|flow| flow.steps.as_slice()).unwrap_or_default();
        let cases = steps.iter().filter_map(|step| step.name.rsplit_once('.')).map(|(case, _)| format!("{case}."));
        Self { cases: cases.collect(), ..Self::new(pieces, Redaction::new(&program.project.redact)) }
    }

    /// The notice as an object, with secrets hidden.
    ///
    /// # Errors
    /// When it can't be written as JSON.
    pub fn json(&self, notice: &Notice) -> Result<Value, CommandError> {
        events::shown(notice, &self.redact).map_err(|error| CommandError::Output(std::io::Error::other(error)))
    }

    /// What is shown after a notice: whole lines, or nothing.
    pub fn on(&mut self, notice: &Notice) -> String {
        let text = self.text(notice);
        if matches!(notice, Notice::RunStarted { .. } | Notice::RunResumed { .. }) {
            self.headed = true;
            return text;
        }
        // If nothing follows, the end starts with its own blank line.
        if text.is_empty() || !std::mem::take(&mut self.headed) { text } else { format!("\n{text}") }
    }

    // house: flat match
    #[expect(clippy::too_many_lines, reason = "one flat match")]
    fn text(&mut self, notice: &Notice) -> String {
        match notice {
            Notice::RunStarted { run_id, loop_name, model, objective, max_iterations, .. } => {
                let most = format!("at most {}", plural(*max_iterations, "iteration"));
                let objective = self.redact.text(objective);
                let facts: &[&str] = if *max_iterations == 0 { &[run_id] } else { &[run_id, model, &most] };
                self.pieces.header(loop_name, facts, &objective)
            }
            Notice::RunResumed { run_id, loop_name, iterations } => {
                self.pieces.header(loop_name, &[run_id, &resumed_after(*iterations)], "")
            }
            Notice::ModelRetried { attempt, reason, delay_ms, .. } => {
                let wait = duration(*delay_ms);
                self.pieces
                    .remark(&format!("the model: {}; attempt {attempt}, retry in {wait}", self.redact.text(reason)))
            }
            Notice::ToolRetried { at, action, attempt, error, delay_ms, .. } => {
                let number = usize::try_from(*attempt).unwrap_or(usize::MAX);
                let sentence = call_attempt_sentence(number, error, Some(*delay_ms));
                self.pieces.remark(&self.redact.text(&format!("{}: {sentence}", at.as_ref().unwrap_or(action))))
            }
            Notice::BudgetWarning { tokens, cost_usd, used, .. } => {
                let cost = cost_usd.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
                let used = used * 100.0;
                self.pieces.remark(&format!("{used:.0} % of the budget is used: {} tokens{cost}", count(*tokens)))
            }
            Notice::HistoryTrimmed { messages, summarized, notes_fault, .. } => {
                let how = match (*summarized, notes_fault) {
                    (true, None) => "; a summary by the model replaces them".to_owned(),
                    (true, Some(_)) => "; a summary by the model replaces them, and it was cut off".to_owned(),
                    (false, Some(fault)) => format!("; there is no summary of them: {}", fault.reason()),
                    (false, None) => String::new(),
                };
                self.pieces.remark(&format!("the history was too long: {} removed{how}", plural(*messages, "message")))
            }
            Notice::ModelReplied { iteration, thought, usage, duration_ms, waited_ms, .. } => {
                self.several = false;
                self.open.clear();
                let tokens = usage.map(|usage| plural(usage.input_tokens.saturating_add(usage.output_tokens), "token"));
                let cost: Vec<String> = tokens
                    .into_iter()
                    .chain([took(*duration_ms), waited(*waited_ms)])
                    .filter(|part| !part.is_empty())
                    .collect();
                let gap = if std::mem::replace(&mut self.any_shown, true) { "\n" } else { "" };
                gap.to_owned() + &self.pieces.thought(*iteration, &self.redact.text(thought), &cost.join(", "))
            }
            Notice::StepStarted { at, kind, action_input, .. } => self.step_started(at, kind, action_input),
            Notice::StepEnded { record } => self.step_ended(record),
            Notice::ItemEnded { at, row } => {
                self.any_shown = true;
                let failed = self.failed_step(at).filter(|_| row.status == StepStatus::Failed);
                item_line(&self.pieces, failed.as_deref().unwrap_or(at), &shown_row((**row).clone(), &self.redact))
            }
            Notice::ToolCalled { action, action_input, .. } => self.called(action, action_input),
            Notice::Observed { entry, .. } => {
                if let Some(status) = entry.call_status {
                    let action = self.redact.text(entry.action.as_deref().unwrap_or_default());
                    return self.pieces.remark(&format!("{action}: {}", call_sentence(status, &entry.attempts)));
                }
                let TraceEntry { action, action_input, observation, success, duration_ms, error, .. } = entry;
                let observation = self.redact.value(observation);
                let observation = self.refusals.shown(entry, &observation);
                let seen =
                    ShownObservation { whose: None, value: &observation, success: *success, duration_ms: *duration_ms };
                let text = self.observed(action.as_deref(), action_input.as_ref().unwrap_or(&Value::Null), &seen);
                let hint = entry.hint.as_deref().map(|hint| self.pieces.remark(&self.redact.text(hint)));
                let thought = if action.is_none() { self.redact.text(&entry.thought) } else { "".into() };
                text + &self.detail(error.as_ref(), &thought) + &hint.unwrap_or_default()
            }
            Notice::Progress { message, milestone, percent, .. } => {
                let message = self.redact.text(message);
                let milestone = milestone.as_deref().map(|milestone| self.redact.text(milestone));
                self.pieces.progress(&message, milestone.as_deref(), *percent)
            }
            Notice::McpProgress { at, action, progress, total, message, .. } => {
                let of_all = total.map(|total| format!(" of {total}")).unwrap_or_default();
                let said = message.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
                let name = at.as_ref().unwrap_or(action);
                self.pieces.note(&self.redact.text(&format!("{name}: {progress}{of_all}{said}")))
            }
            Notice::McpDrift { at, action, changes, is_called, .. } => {
                let follows = if *is_called { "it is called all the same" } else { "it is not called" };
                let (name, changes) = (at.as_ref().unwrap_or(action), changes.join(", "));
                self.pieces.remark(&format!("{name} has changed since it was pinned ({changes}): {follows}"))
            }
            Notice::QuestionPosted { post } => self.question_posted(post),
            Notice::Decided { record } => {
                self.any_shown = true;
                self.pieces.note(&decision_sentence(&hidden(record, &self.redact)))
            }
            Notice::Retried { record } | Notice::LimitsRaised { record } => {
                self.any_shown = true;
                self.pieces.note(&continuation_sentence(&hidden_continuation(record, &self.redact)))
            }
            Notice::ModelAsked { .. } | Notice::ModelDelta { .. } | Notice::Paused { .. } | Notice::RunEnded { .. } => {
                String::new()
            }
        }
    }

    fn question_posted(&mut self, post: &QuestionPost) -> String {
        self.any_shown = true;
        let said = self.redact.text(&post_sentence(post)).into_owned();
        if post.posted_at_ms.is_some() { self.pieces.note(&said) } else { self.pieces.remark(&said) }
    }

    /// The detail of a failure: for the person who fixes the cause, not for the model.
    /// `thought` is that of a refused reply.
    fn detail(&self, error: Option<&ToolFault>, thought: &str) -> String {
        let detail = error.map(|fault| self.redact.text(fault.detail.trim())).unwrap_or_default();
        match unsaid(!thought.is_empty(), thought, &detail) {
            detail if detail.is_empty() => String::new(),
            detail => self.pieces.remark(&detail),
        }
    }

    /// The last step of an item that failed. The item has ended: its steps are forgotten.
    fn failed_step(&mut self, at: &str) -> Option<String> {
        let is_of_item = |step: &mut String| step.strip_prefix(at).is_some_and(|rest| rest.starts_with('.'));
        self.failed_steps.extract_if(.., is_of_item).last()
    }

    /// A step of an item is a part of it: the item says what came of all of them.
    fn step_ended(&mut self, record: &StepRecord) -> String {
        self.any_shown = true;
        if self.is_of_item(&record.at) {
            self.failed_steps.extend((record.status == StepStatus::Failed).then(|| record.at.clone()));
            return String::new();
        }
        step_line(&self.pieces, &shown_step(without_attempts(record), &self.redact))
    }

    /// Whether a step is one of an item, and none of the workflow itself, of a case or of `on_failure`.
    fn is_of_item(&self, at: &str) -> bool {
        let of_case = self.cases.iter().filter_map(|case| at.strip_prefix(case.as_str())).min_by_key(|own| own.len());
        of_case.unwrap_or(at).contains('.')
    }

    /// The steps of items are shown when they end: many of them run beside each other.
    fn step_started(&mut self, at: &str, kind: &str, input: &Value) -> String {
        if self.is_of_item(at) {
            return String::new();
        }
        self.any_shown = true;
        self.pieces.call(&format!("{at} {}", self.redact.text(kind)), &self.redact.value(input))
    }

    fn called(&mut self, action: &str, input: &Value) -> String {
        if is_shown_otherwise(action) {
            return String::new();
        }
        self.any_shown = true;
        self.several |= !self.open.is_empty();
        self.open.push((action.to_owned(), input.clone()));
        self.pieces.call(&self.redact.text(action), &self.redact.value(input))
    }

    fn observed(&mut self, action: Option<&str>, input: &Value, seen: &ShownObservation<'_>) -> String {
        self.any_shown = true;
        let Some(action) = action else { return self.pieces.observation(seen) };
        if seen.success && is_shown_otherwise(action) {
            return String::new();
        }
        let at = self.open.iter().position(|(name, given)| name == action && given == input);
        match at {
            Some(at) => {
                self.open.remove(at);
                let name = self.redact.text(action);
                self.pieces.observation(&ShownObservation { whose: self.several.then_some(&*name), ..*seen })
            }
            // A call that the engine answered itself was not shown before.
            None => {
                self.pieces.call(&self.redact.text(action), &self.redact.value(input)) + &self.pieces.observation(seen)
            }
        }
    }
}

fn is_shown_otherwise(action: &str) -> bool {
    // The end is shown as the answer, progress as progress, and a question as the pause.
    matches!(action, COMPLETE | LOG_PROGRESS | PAUSE_FOR_HUMAN)
}

/// Where a run continues.
fn resumed_after(iterations: u32) -> String {
    match iterations {
        0 => "resumed".to_owned(),
        before => format!("resumed after {}", plural(before, "iteration")),
    }
}

/// The record of a step without its attempts, which were shown when they failed.
fn without_attempts(record: &StepRecord) -> StepRecord {
    StepRecord { attempts: Vec::new(), ..record.clone() }
}

/// How long a request waited for its turn; nothing where that is no time to speak of.
fn waited(waited_ms: u64) -> String {
    if waited_ms < 1_000 { String::new() } else { format!("after a wait of {} for its turn", took(waited_ms)) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::event::{CallId, Finish};
    use crate::engine::flow::item_row::ItemRow;
    use crate::engine::flow::record::StepStatus;
    use crate::engine::record::{TokenDetails, TokenUsage, TraceEntry};
    use crate::trace::{Look, escape};
    use serde_json::json;

    fn story(width: usize) -> Story {
        Story::new(Pieces { look: Look::plain(width), shorten: true }, Redaction::default())
    }

    fn replied(iteration: u32, thought: &str) -> Notice {
        let usage = Some(TokenUsage { input_tokens: 1_200, output_tokens: 34, details: TokenDetails::default() });
        Notice::ModelReplied {
            iteration,
            thought: thought.to_owned(),
            usage,
            finish: Finish::Stop,
            response_model: None,
            duration_ms: 1_250,
            waited_ms: 0,
            time_to_first_token_ms: None,
        }
    }

    fn called(iteration: u32, index: u32, action: &str, input: Value) -> Notice {
        Notice::ToolCalled { call: CallId { iteration, index }, action: action.to_owned(), action_input: input }
    }

    fn observed(iteration: u32, action: &str, input: Value, observation: Value, success: bool) -> Notice {
        Notice::Observed {
            call: Some(CallId { iteration, index: 0 }),
            entry: TraceEntry {
                iteration,
                at_ms: 0,
                thought: String::new(),
                action: Some(action.to_owned()),
                action_input: Some(input),
                observation,
                success,
                duration_ms: 312,
                waited_ms: 0,
                usage: None,
                run_id: None,
                error: None,
                decided_at_ms: None,
                called_at_ms: None,
                index: 0,
                call_status: None,
                attempts: Vec::new(),
                hint: None,
            },
        }
    }

    fn begin() -> Notice {
        Notice::RunStarted {
            run_id: "run-1".to_owned(),
            loop_name: "refund-check".to_owned(),
            model: "small".to_owned(),
            objective: "Decide whether ticket TK-1 gets a refund.".to_owned(),
            max_iterations: 10,
            fork_of: None,
        }
    }

    #[test]
    fn a_run_is_shown_as_it_happens() {
        let ticket = json!({"ticket_id": "TK-1", "api_key": "k"});
        let notices = [
            begin(),
            Notice::ModelAsked { iteration: 1 },
            Notice::ModelRetried { iteration: 1, attempt: 1, reason: "http 429".to_owned(), delay_ms: 1_000 },
            replied(1, "I look at the ticket first, because everything else hangs on what the customer wrote there."),
            called(1, 0, "lookup_ticket", ticket.clone()),
            observed(1, "lookup_ticket", ticket, json!({"status": "open", "amount": 12}), true),
            replied(2, "Two at once."),
            called(2, 0, "a", json!({})),
            called(2, 1, "b", json!({"n": 1})),
            observed(2, "b", json!({"n": 1}), json!("done"), true),
            observed(2, "a", json!({}), json!("http 503"), false),
            replied(3, ""),
            observed(
                3,
                "lookup_tickets",
                json!({}),
                json!("There is no tool lookup_tickets; did you mean lookup_ticket?"),
                false,
            ),
            observed(4, "__log_progress__", json!({"message": "half"}), json!("noted"), true),
            Notice::Progress { iteration: 4, message: "half".to_owned(), milestone: None, percent: Some(50.0) },
            observed(5, "__complete__", json!({"answer": 1}), json!(null), true),
        ];
        let mut story = story(72);
        let text: String = notices.iter().map(|notice| story.on(notice)).collect();
        insta::assert_snapshot!(text, @r#"
    refund-check · run-1 · small · at most 10 iterations
    Decide whether ticket TK-1 gets a refund.

         ! the model: http 429; attempt 1, retry in 1.0 s
      1  I look at the ticket first, because everything else hangs on what
         the customer wrote there.  1,234 tokens, 1.2 s
         → lookup_ticket {"ticket_id": "TK-1", "api_key": "[hidden]"}
         ← {"status": "open", "amount": 12}  312 ms

      2  Two at once.  1,234 tokens, 1.2 s
         → a
         → b {"n": 1}
         ← b: done  312 ms
         ✗ a: http 503  312 ms

      3  (no thought)  1,234 tokens, 1.2 s
         → lookup_tickets
         ✗ There is no tool lookup_tickets; did you mean lookup_ticket?
           312 ms
         ◆ █████░░░░░ 50 %  half
    "#);
    }

    #[test]
    fn a_beginning_is_parted_from_what_comes_by_one_blank_line_and_from_an_end_by_the_ends() {
        let resumed =
            Notice::RunResumed { run_id: "run-1".to_owned(), loop_name: "refund-check".to_owned(), iterations: 1 };
        let retried = Notice::ModelRetried { iteration: 1, attempt: 1, reason: "x".to_owned(), delay_ms: 1 };
        for next in [replied(2, "Next."), called(1, 0, "a", json!({})), retried] {
            let mut story = story(72);
            assert_eq!(story.on(&resumed), "refund-check · run-1 · resumed after 1 iteration\n");
            assert_eq!(story.on(&Notice::ModelAsked { iteration: 1 }), "");
            let text = story.on(&next);
            assert!(text.starts_with('\n') && !text.starts_with("\n\n"), "{text:?}");
            assert!(!story.on(&called(3, 0, "b", json!({}))).starts_with('\n'));
        }
    }

    #[test]
    fn a_failure_says_all_to_who_watches_and_a_call_decided_before_stands_apart() {
        let mut failed = observed(1, "lookup_host", json!({}), json!("Error: http 401"), false);
        let Notice::Observed { entry, .. } = &mut failed else { panic!("an observation") };
        let detail = "{\"error\": \"no token\", \"api_key\": \"k\"}\n".to_owned();
        entry.error = Some(ToolFault { class: "http 401".to_owned(), detail, ..ToolFault::default() });
        let mut story = story(72);
        let text: String = [failed, replied(2, "Next.")].iter().map(|notice| story.on(notice)).collect();
        insta::assert_snapshot!(text, @r#"
         → lookup_host
         ✗ Error: http 401  312 ms
         ! {"error":"no token","api_key":"[hidden]"}

      2  Next.  1,234 tokens, 1.2 s
    "#);
    }

    #[test]
    fn an_item_is_one_line_by_its_label_and_what_came_of_it() {
        let step = |at: &str| StepRecord {
            at: at.to_owned(),
            kind: "decide".to_owned(),
            item_label: None,
            status: StepStatus::Completed,
            started_at_ms: Some(0),
            finished_at_ms: Some(5),
            waited_ms: 0,
            input: None,
            output: Some(json!({ "verdict": "pay" })),
            run_id: None,
            usage: None,
            items: None,
            case: None,
            error: None,
            attempts: Vec::new(),
            list: Box::default(),
        };
        let item = |index: u32, status, item: Value, output: Option<Value>, error: Option<&str>| Notice::ItemEnded {
            at: format!("each.{index}"),
            row: Box::new(ItemRow {
                index,
                label: None,
                status,
                item: Some(item),
                output,
                error: error.map(str::to_owned),
            }),
        };
        let mut story = story(72);
        let started = |at: &str| Notice::StepStarted {
            at: at.to_owned(),
            kind: "loop".to_owned(),
            action_input: Arc::default(),
            item_label: None,
        };
        let notices = [
            started("each"),
            started("each.0.decide"),
            Notice::StepEnded { record: Box::new(step("each.0.decide")) },
            item(0, StepStatus::Completed, json!({ "invoice": "INV-4", "amount": 3 }), Some(json!("pay")), None),
            item(1, StepStatus::Failed, json!({ "invoice": "INV-5" }), None, Some("http 503")),
            item(2, StepStatus::Skipped, json!(7), None, None),
            item(3, StepStatus::Completed, json!({ "password": "hunter2" }), Some(json!({ "api_key": "k" })), None),
            Notice::StepEnded { record: Box::new(step("note")) },
        ];
        let text: String = notices.iter().map(|notice| story.on(notice)).collect();
        insta::assert_snapshot!(text, @r#"
         → each loop
         ← INV-4 (each.0): pay
         ✗ INV-5 (each.1): http 503
         ← 7 (each.2): skipped
         ← [hidden] (each.3): {"api_key": "[hidden]"}
         ← note: {"verdict": "pay"}  5 ms
        "#);
    }

    #[test]
    fn long_texts_are_cut_and_counted() {
        let mut story = story(60);
        let text = story.on(&observed(1, "x", json!({"q": "y".repeat(5_000)}), json!("z ".repeat(5_000)), true));
        assert!(text.lines().count() <= 8, "{text}");
        assert!(text.contains("yy…\"}\n") && text.contains("characters more"), "{text}");
    }

    #[test]
    fn nothing_of_a_hostile_run_reaches_the_terminal_raw() {
        let hostile = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202E}\r\u{E0041}";
        let mut story = story(80);
        let notices = [
            Notice::RunStarted {
                run_id: hostile.to_owned(),
                loop_name: hostile.to_owned(),
                model: hostile.to_owned(),
                objective: hostile.to_owned(),
                max_iterations: 1,
                fork_of: None,
            },
            Notice::ModelRetried { iteration: 1, attempt: 1, reason: hostile.to_owned(), delay_ms: 1 },
            replied(1, hostile),
            called(1, 0, hostile, json!({ hostile: hostile })),
            observed(1, hostile, json!({ hostile: hostile }), json!(hostile), false),
            Notice::Progress {
                iteration: 1,
                message: hostile.to_owned(),
                milestone: Some(hostile.to_owned()),
                percent: Some(1.0),
            },
        ];
        for notice in &notices {
            let text = story.on(notice);
            assert!(!text.contains(escape::is_hidden), "{text:?}");
        }
    }

    #[test]
    fn a_line_for_machines_hides_secrets_and_keeps_digits() {
        let input: Value = serde_json::from_str(r#"{"password":"hunter2","n":12345678901234567890123}"#).unwrap();
        let value = story(80).json(&called(1, 0, "x", input)).unwrap();
        let line = super::super::json_line(&value).unwrap();
        assert!(line.starts_with(r#"{"event":"tool_called""#), "{line}");
        assert!(!line.contains("hunter2") && line.contains("12345678901234567890123"), "{line}");
    }
}
