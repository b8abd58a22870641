//! The trace as text: the pieces that the terminal shows during a run, and the whole trace of a run. Texts are
//! redacted before they come here, and escaped here.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::approval;
use super::continuation::continuations_after;
use super::decision::{decision_sentence, decision_sentence_of, decisions_about, decisions_about_no_call};
use super::entries::{attempt_sentence, call_attempts, call_sentence, times};
use super::escape;
use super::json::{gist, on_one_line};
use super::layout::{Look, TextBlock, Tone, pad};
use super::question_post::post_sentence;
use super::reason::{notes_sentence, reason};
use super::refused_replies::{ShownRefusals, unsaid};
use super::result::{PauseView, RunResult};
use super::step_text::{questions, step_line};
use super::units::{count, dollars, duration, plural};
use crate::outcome::{Status, Termination};
use crate::record::TraceEntry;

/// The indentation of the text of an iteration.
const INDENT: usize = 5;
/// The number of lines that a long text is cut to.
const LINES: usize = 4;

/// Formats the pieces of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Pieces {
    /// Colours and width.
    pub look: Look,
    /// Whether long texts are cut to a few lines.
    pub shorten: bool,
}

/// An observation: the result of a call, from a tool or the engine.
#[derive(Debug, Clone, Copy)]
pub struct ShownObservation<'a> {
    /// The tool's name, when several calls are under way.
    pub whose: Option<&'a str>,
    /// The result.
    pub value: &'a Value,
    /// Whether the call did what was asked.
    pub success: bool,
    /// The time in milliseconds.
    pub duration_ms: u64,
}

impl Pieces {
    /// The start of an iteration: its number, the model's thought, and its cost.
    pub fn thought(&self, iteration: u32, thought: &str, cost: &str) -> String {
        let number = format!("{iteration:>3}");
        let lead = format!("{}  ", self.look.paint(Tone::Accent, &number));
        let thought = escape::terminal(thought.trim());
        let thought = if thought.is_empty() { Cow::Borrowed("(no thought)") } else { thought };
        self.block((&lead, INDENT), &thought, None, cost)
    }

    /// A call: the tool and its input.
    pub fn call(&self, action: &str, input: &Value) -> String {
        let lead = format!("{:INDENT$}{} ", "", self.look.paint(Tone::Accent, "→"));
        let name = escape::line(action);
        let empty = input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty);
        let input = if empty { String::new() } else { format!(" {}", self.json(input)) };
        let shown = self.block((&lead, INDENT + 2), &format!("{name}{}", escape::terminal(&input)), None, "");
        // A name that had to be broken is not painted.
        match shown.strip_prefix(&lead).and_then(|rest| rest.strip_prefix(name.as_ref())) {
            Some(rest) => format!("{lead}{}{rest}", self.look.paint(Tone::Accent, &name)),
            None => shown,
        }
    }

    /// The times of a call.
    fn times(&self, times: &str) -> String {
        let lead = format!("{:1$}", "", INDENT + 2);
        self.block((&lead, INDENT + 2), times, Some(Tone::Dim), "")
    }

    /// The observation of a call.
    pub fn observation(&self, observation: &ShownObservation<'_>) -> String {
        let (mark, tone) = if observation.success { ("←", Tone::Good) } else { ("✗", Tone::Bad) };
        let lead = format!("{:INDENT$}{} ", "", self.look.paint(tone, mark));
        let text = match observation.value {
            Value::String(text) => Cow::Borrowed(text.trim()),
            Value::Null => Cow::Borrowed(""),
            other => Cow::Owned(self.json(other)),
        };
        let text = escape::terminal(&text);
        let text = match observation.whose {
            Some(name) => Cow::Owned(format!("{}: {text}", escape::line(name))),
            None if text.is_empty() => Cow::Borrowed("(nothing)"),
            None => text,
        };
        let time = took(observation.duration_ms);
        self.block((&lead, INDENT + 2), &text, (!observation.success).then_some(Tone::Fault), &time)
    }

    /// JSON on one line: all of it, or its gist in the available lines.
    fn json(&self, value: &Value) -> String {
        if !self.shorten {
            return on_one_line(value);
        }
        // A line is never completely full, because it ends with a word, and the last one contains the time.
        let room = self.look.width.saturating_sub(INDENT + 2).max(16);
        gist(value, room * (LINES - 1) - room / 4)
    }

    /// The progress that the agent reports.
    pub fn progress(&self, message: &str, milestone: Option<&str>, percent: Option<f64>) -> String {
        let lead = format!("{:INDENT$}{} ", "", self.look.paint(Tone::Accent, "◆"));
        let mut text = String::new();
        if let Some(percent) = percent.filter(|percent| percent.is_finite()) {
            let percent = percent.clamp(0.0, 100.0);
            let full = (1..=10).filter(|tenth| f64::from(*tenth) * 10.0 <= percent + 0.000_1).count();
            let _ = write!(text, "{}{} {percent:.0} %  ", "█".repeat(full), "░".repeat(10 - full));
        }
        text.push_str(&escape::terminal(message));
        if let Some(milestone) = milestone {
            let _ = write!(text, "  ({})", escape::line(milestone));
        }
        self.block((&lead, INDENT + 2), &text, Some(Tone::Bold), "")
    }

    /// A warning: a request to the model that is retried, a call that failed.
    pub fn remark(&self, text: &str) -> String {
        let lead = format!("{:INDENT$}{} ", "", self.look.paint(Tone::Warn, "!"));
        self.block((&lead, INDENT + 2), &escape::terminal(text), Some(Tone::Warn), "")
    }

    /// A fact about what happened that is no warning: who decided, which run it was.
    pub fn note(&self, text: &str) -> String {
        let lead = format!("{:INDENT$}{} ", "", self.look.paint(Tone::Dim, "·"));
        self.block((&lead, INDENT + 2), &escape::terminal(text), Some(Tone::Dim), "")
    }

    /// The start of the run.
    pub fn header(&self, loop_name: &str, facts: &[&str], objective: &str) -> String {
        let name = escape::line(loop_name);
        let facts: Vec<_> = facts.iter().map(|fact| escape::line(fact).into_owned()).collect();
        // On a narrow terminal the facts have their own lines.
        let all = facts.join(" · ");
        let facts = if name.width() + 3 + all.width() > self.look.width {
            format!("\n{}", self.in_lines(&facts, ""))
        } else {
            format!(" · {all}")
        };
        let mut title = self.look.paint(Tone::Bold, &name);
        title.push_str(&self.look.paint(Tone::Dim, &facts));
        title.push('\n');
        if !objective.trim().is_empty() {
            title.push_str(&self.block(("", 0), &escape::terminal(objective.trim()), Some(Tone::Dim), ""));
        }
        title
    }

    /// The summary of the run: its status, and the counters.
    pub fn summary(&self, result: &RunResult, active_ms: u64) -> String {
        let (mark, tone) = mark(result.status);
        let mut title = format!("{mark} {}", result.status.word());
        if let Some(termination) = result.termination.filter(|why| !is_in_status(*why)) {
            let _ = write!(title, ": {}", reason(termination));
        }
        let mut facts = match result.steps.len() {
            0 => vec![plural(result.iterations, "iteration"), plural(result.metadata.tool_calls_made, "tool call")],
            steps => vec![plural(u64::try_from(steps).unwrap_or(u64::MAX), "step")],
        };
        let about = result.usage.about();
        let tokens = result.usage.input_tokens.saturating_add(result.usage.output_tokens);
        facts.push(format!("{about}{} token{}", count(tokens), if tokens == 1 { "" } else { "s" }));
        facts.extend(result.usage.cost_usd.map(|cost| format!("{about}{}", dollars(cost))));
        facts.push(duration(active_ms));
        let all = facts.join(" · ");
        let facts = if title.width() + 2 + all.width() > self.look.width {
            format!("\n  {}", self.in_lines(&facts, "  "))
        } else {
            format!("  {all}")
        };
        let mut shown = format!("{}{}\n", self.look.paint(tone, &title), self.look.paint(Tone::Dim, &facts));
        if let Some(error) = &result.error {
            shown.push_str(&self.block(("  ", 2), &escape::terminal(&error.message), None, ""));
        }
        if let Some(notes) = notes_sentence(&result.metadata) {
            shown.push_str(&self.block(("  ", 2), &notes, Some(Tone::Dim), ""));
        }
        if let Some(by) = &result.cancelled_by {
            let by = format!("cancelled by {}", escape::line(by));
            shown.push_str(&self.block(("  ", 2), &by, Some(Tone::Dim), ""));
        }
        if let Some(stuck) = &result.stuck {
            shown.push_str(&self.block(("  ", 2), &escape::terminal(&stuck.detail), Some(Tone::Dim), ""));
        }
        shown
    }

    /// What a paused run waits for. The model's words are marked as such; a call is shown whole, or with the
    /// count of hidden lines.
    pub fn pause(&self, waiting: &PauseView) -> String {
        if !waiting.steps.is_empty() {
            return questions(&self.look, &waiting.steps, self.shorten);
        }
        let mut shown = String::new();
        let says = match waiting.question.kind {
            Termination::Human => "The agent asks (these are the model's words):",
            Termination::Stuck => "The agent is stuck:",
            Termination::Uncertain => "It is not known whether this call happened:",
            Termination::ModelError => "The model can't be reached:",
            Termination::Waiting | Termination::WaitingEvent | Termination::SpendingLimit => "The run waits:",
            _ if waiting.calls.is_empty() => "This tool call needs your approval:",
            _ => "These tool calls need your approval, each on its own:",
        };
        let _ = writeln!(shown, "{}", self.look.paint(Tone::Bold, says));
        if let Some(run_id) = &waiting.question.run_id {
            let by = format!("asked by the sub-run {}", escape::line(run_id));
            let _ = writeln!(shown, "  {}", self.look.paint(Tone::Dim, &by));
        }
        let bar = format!("{} ", self.look.paint(Tone::Warn, "┃"));
        // Lines with a bar contain the model's words and nothing else.
        let question = match waiting.question.kind {
            Termination::Approval => None,
            Termination::Uncertain
            | Termination::ModelError
            | Termination::Waiting
            | Termination::WaitingEvent
            | Termination::SpendingLimit => {
                let _ = writeln!(shown, "  {}", escape::line(&waiting.question.text));
                None
            }
            _ => Some(waiting.question.text.as_str()),
        };
        for text in [question, waiting.question.context.as_deref()].into_iter().flatten() {
            for line in escape::terminal(text.trim()).split('\n') {
                for line in super::layout::wrap(line, self.look.width.saturating_sub(4)) {
                    let _ = writeln!(shown, "  {bar}{line}");
                }
            }
        }
        for (at, option) in waiting.question.options.iter().enumerate() {
            let _ = writeln!(shown, "  {bar}{}. {}", at + 1, escape::line(option));
        }
        let calls = if waiting.calls.is_empty() { waiting.call.as_slice() } else { &waiting.calls };
        for call in calls {
            shown.push_str(&approval::call(&self.look, call, self.shorten));
        }
        shown
    }

    /// The facts on as few lines as possible. No fact is broken, except by the terminal if it is too long
    /// alone. `indent` starts each line but the first.
    fn in_lines(&self, facts: &[String], indent: &str) -> String {
        let (mut shown, mut columns) = (String::new(), 0);
        for fact in facts {
            let wide = fact.width();
            if columns > 0 && indent.len() + columns + 3 + wide > self.look.width {
                shown.push('\n');
                shown.push_str(indent);
                columns = 0;
            } else if columns > 0 {
                shown.push_str(" · ");
                columns += 3;
            }
            shown.push_str(fact);
            columns += wide;
        }
        shown
    }

    fn block(&self, lead: (&str, usize), text: &str, tone: Option<Tone>, tail: &str) -> String {
        let lines = if self.shorten { LINES } else { usize::MAX };
        self.look.block(text, &TextBlock { lead, tone, tail, lines })
    }
}

/// The trace of a run as text: its objective, each iteration, and the summary. `result` must contain the trace.
pub fn text(look: Look, about: &super::About<'_>, result: &RunResult) -> String {
    let pieces = Pieces { look, shorten: false };
    let mut shown = pieces.header(about.loop_name, &[&result.run_id, about.model, &result.started_at], about.objective);
    shown.extend(result.fork_of.iter().map(|fork| pieces.note(&fork.sentence())));
    shown.extend(result.webhook.iter().map(|webhook| pieces.note(&webhook.sentence())));
    shown.push('\n');
    let trace = result.trace.as_deref().unwrap_or_default();
    shown.push_str(&iterations(&pieces, result, trace));
    let iteration = trace.last().map_or(0, |entry| entry.iteration);
    for record in &result.steps {
        shown.push_str(&step_line(&pieces, record));
    }
    for record in decisions_about_no_call(result) {
        shown.push_str(&pieces.note(&decision_sentence_of(record)));
    }
    shown.extend(result.asked.iter().map(|post| pieces.note(&post_sentence(post))));
    let mut last = attempts(&pieces, result, |attempt| attempt > iteration);
    last.push_str(&remarks(&pieces, continuations_after(result, iteration..u32::MAX)));
    shown.push_str(&last);
    if !trace.is_empty() || !last.is_empty() || !result.steps.is_empty() {
        shown.push('\n');
    }
    shown.push_str(&pieces.summary(result, about.active_ms));
    if let Some(waiting) = &result.pause {
        shown.push_str(&pieces.pause(waiting));
    }
    if let Some(answer) = &result.result {
        let text = text_of_pretty(&answer.answer);
        let _ = write!(shown, "\n{}\n", escape::terminal(text.trim_end()));
    }
    shown
}

/// Entries of a trace, each iteration with its thought, its calls and what was decided about them.
pub fn iterations(pieces: &Pieces, result: &RunResult, trace: &[TraceEntry]) -> String {
    let mut shown = String::new();
    let mut iteration = 0;
    let mut refusals = ShownRefusals::default();
    for entry in trace {
        if entry.iteration != iteration {
            if iteration != 0 {
                shown.push('\n');
            }
            let before = iteration;
            iteration = entry.iteration;
            let continued = remarks(pieces, continuations_after(result, before..iteration));
            if !continued.is_empty() {
                let _ = writeln!(shown, "{continued}");
            }
            shown.push_str(&attempts(pieces, result, |attempt| attempt == iteration));
            let cost = entry.usage.map(|usage| plural(usage.input_tokens.saturating_add(usage.output_tokens), "token"));
            shown.push_str(&pieces.thought(entry.iteration, &entry.thought, &cost.unwrap_or_default()));
        }
        let decisions = decisions_about(result, entry).map(decision_sentence);
        let observation = refusals.shown(entry, &entry.observation);
        shown.push_str(&call_and_observation(pieces, entry, &observation, decisions));
    }
    shown
}

/// The failed attempts to ask the model that were made for these iterations.
fn attempts(pieces: &Pieces, result: &RunResult, of: impl Fn(u32) -> bool) -> String {
    let attempts = result.attempts.iter().filter(|attempt| of(attempt.iteration));
    attempts.map(|attempt| pieces.remark(&attempt_sentence(attempt))).collect()
}

fn remarks(pieces: &Pieces, sentences: impl Iterator<Item = String>) -> String {
    sentences.map(|sentence| pieces.remark(&sentence)).collect()
}

fn call_and_observation(
    pieces: &Pieces,
    entry: &TraceEntry,
    observation: &Value,
    decisions: impl Iterator<Item = String>,
) -> String {
    let mut shown = String::new();
    if let (Some(action), Some(input)) = (&entry.action, &entry.action_input) {
        shown.push_str(&pieces.call(action, input));
        shown.push_str(&pieces.times(&times(entry)));
    }
    shown.extend(decisions.map(|sentence| pieces.note(&sentence)));
    shown.extend(call_attempts(entry).map(|sentence| pieces.remark(&sentence)));
    if let Some(status) = entry.call_status {
        shown.push_str(&pieces.remark(call_sentence(status, &entry.attempts)));
    }
    // The call that ends a run has no observation: its answer is below.
    if entry.call_status.is_some() || entry.success && entry.observation.is_null() {
        return shown;
    }
    let observation =
        ShownObservation { whose: None, value: observation, success: entry.success, duration_ms: entry.duration_ms };
    shown.push_str(&pieces.observation(&observation));
    if let Some(run_id) = &entry.run_id {
        shown.push_str(&pieces.note(&format!("run {run_id}")));
    }
    let detail = entry.error.as_ref().map(|fault| unsaid(entry.action.is_none(), &entry.thought, &fault.detail));
    if let Some(detail) = detail.filter(|detail| !detail.is_empty()) {
        shown.push_str(&pieces.remark(&detail));
    }
    shown.extend(entry.hint.iter().map(|hint| pieces.remark(hint)));
    shown
}

/// A time at the end of a line; empty if it was too short to be measured.
pub fn took(ms: u64) -> String {
    if ms == 0 { String::new() } else { duration(ms) }
}

/// A value for people: a text unchanged, anything else as JSON on several lines.
pub fn text_of_pretty(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(serde_json::to_string_pretty(other).unwrap_or_default()),
    }
}

/// A status padded to `width` columns, in its tone.
pub fn status(look: &Look, status: Status, width: usize) -> String {
    look.paint(mark(status).1, &pad(status.word(), width))
}

/// The tone of a status.
pub fn status_tone(status: Status) -> Tone {
    mark(status).1
}

fn mark(status: Status) -> (&'static str, Tone) {
    match status {
        Status::Running => ("…", Tone::Accent),
        Status::Paused => ("‖", Tone::Warn),
        Status::Completed => ("✓", Tone::Good),
        Status::Failed => ("✗", Tone::Bad),
        Status::Cancelled => ("■", Tone::Warn),
        Status::Quarantined => ("!", Tone::Bad),
    }
}

fn is_in_status(termination: Termination) -> bool {
    matches!(termination, Termination::Complete | Termination::Cancelled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::CallId;
    use crate::event::ToolFault;
    use crate::outcome::{Answer, Ending};
    use crate::question::{Question, WaitingCall};
    use crate::state::{Phase, State};
    use crate::trace::tests_state::{entry, in_phase, of_loop, state};
    use crate::trace::{About, Redaction, Shown, result};
    use serde_json::json;

    fn about() -> About<'static> {
        About { loop_name: "refund-check", model: "small", objective: "Decide about the ticket.", active_ms: 4_200 }
    }

    fn shown(state: &State, look: Look) -> String {
        text(
            look,
            &about(),
            &result(
                Shown { result_key: None, trace: true, driven: false, is_quarantined: false },
                state,
                &Redaction::default(),
            ),
        )
    }

    fn whole() -> State {
        let answer = Answer { answer: json!({"refund": true}), confidence: Some(1.into()), summary: None };
        let ending = Ending {
            status: Status::Completed,
            termination: Termination::Complete,
            answer: Some(answer),
            limit: None,
            stuck: None,
            error: None,
            cancelled_by: None,
            at_ms: 1_769_941_805_000,
        };
        let mut failed = entry(2);
        failed.success = false;
        failed.observation = json!("http 503").into();
        failed.error = Some(Box::new(ToolFault {
            class: "http 503".to_owned(),
            detail: "GET https://h/x: overloaded".to_owned(),
            ..ToolFault::default()
        }));
        let mut state = in_phase(Phase::Ended(Box::new(ending)));
        of_loop(&mut state).entries = vec![entry(1), failed];
        state
    }

    #[test]
    fn a_run_reads_from_top_to_bottom() {
        insta::assert_snapshot!(shown(&whole(), Look::plain(60)), @r#"
    refund-check · run-1 · small · 2026-02-01T10:30:00.000Z
    Decide about the ticket.

      1  look first  120 tokens
         → lookup_ticket {"ticket_id": "TK-1"}
           asked and called 10:30:01.000
         ← {"status": "open"}  312 ms

      2  look first  120 tokens
         → lookup_ticket {"ticket_id": "TK-1"}
           asked and called 10:30:01.000
         ✗ http 503  312 ms
         ! GET https://h/x: overloaded

    ✓ completed  1 iteration · 1 tool call · 120 tokens · 4.2 s

    {
      "refund": true
    }
    "#);
    }

    #[test]
    fn a_narrow_terminal_is_kept_to() {
        use unicode_width::UnicodeWidthStr;
        let mut state = state();
        let mut long = entry(1);
        long.thought = "漢字 and words ".repeat(20).into();
        long.action_input = json!({"ticket_id": "x".repeat(200)}).into();
        long.success = false;
        of_loop(&mut state).entries = vec![long];
        let text = shown(&state, Look::plain(40));
        let widest = text.lines().skip(2).take_while(|line| !line.contains('✗')).map(str::width).max();
        assert!(widest <= Some(40), "{text}");
    }

    #[test]
    fn on_a_narrow_terminal_no_fact_is_broken() {
        use unicode_width::UnicodeWidthStr;
        let shown = shown(&whole(), Look::plain(30));
        let at = |text: &str| shown.lines().find(|line| line.contains(text)).map(str::trim).map(str::to_owned);
        assert_eq!(at("small"), Some("run-1 · small".to_owned()), "{shown}");
        assert_eq!(at("iteration"), Some("1 iteration · 1 tool call".to_owned()), "{shown}");
        assert_eq!(at("4.2 s"), Some("120 tokens · 4.2 s".to_owned()), "{shown}");
        assert!(shown.lines().all(|line| line.width() <= 30), "{shown}");
    }

    #[test]
    fn hostile_text_comes_through_harmless_and_colours_are_ours_only() {
        let mut state = state();
        let mut bad = entry(1);
        let hostile = "\u{1b}[2J\u{9b}31m\u{202E}\r\u{7}";
        bad.thought = hostile.into();
        bad.action = Some(hostile.into());
        bad.action_input = json!({ hostile: hostile }).into();
        bad.observation = json!(hostile).into();
        of_loop(&mut state).entries = vec![bad];
        std::sync::Arc::make_mut(&mut state.header).run_id = hostile.to_owned();
        assert!(!shown(&state, Look::plain(80)).contains(escape::is_hidden));
        let coloured = shown(&state, Look { colour: true, width: 80 });
        assert!(!coloured.replace("\u{1b}[", "").contains(escape::is_hidden));
        assert!(!coloured.contains("\u{1b}[2J"));
    }

    #[test]
    fn progress_is_a_bar_within_its_bounds() {
        let pieces = Pieces { look: Look::plain(80), shorten: true };
        assert_eq!(pieces.progress("half", Some("m1"), Some(50.0)), "     ◆ █████░░░░░ 50 %  half  (m1)\n");
        assert_eq!(pieces.progress("odd", None, Some(900.0)), "     ◆ ██████████ 100 %  odd\n");
        assert_eq!(pieces.progress("none", None, Some(f64::NAN)), "     ◆ none\n");
    }

    #[test]
    fn a_call_that_wants_approval_is_shown_with_what_is_hidden_counted() {
        let call = WaitingCall {
            id: "2.0".to_owned(),
            call: CallId { iteration: 2, index: 0 },
            action: "pay".to_owned(),
            action_input: json!({"note": "\n".repeat(10_000), "rows": vec![1; 100]}),
            hash: "0123456789abcdef".to_owned(),
            approval: None,
            ask: None,
        };
        let question = Question::new(Termination::Approval, "May it pay?");
        let waiting = PauseView { number: 1, question, call: Some(call), calls: Vec::new(), steps: Vec::new() };
        let text = Pieces { look: Look::plain(80), shorten: true }.pause(&waiting);
        assert!(text.lines().count() < 50 && text.contains("not shown here"), "{text}");
    }
}
