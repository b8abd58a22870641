//! The text of a question that is posted: what is asked, about which data, until when, and how it is answered.

use std::fmt::Write as _;

use serde_json::Value;

use super::answer_hint::AnswerHint;
use super::clock;
use loopctl_engine::open_posts::QuestionToPost;
use loopctl_engine::state::RunHeader;
use loopctl_lang::policy::characters::is_hidden;
use loopctl_lang::policy::redact::Redaction;
use loopctl_lang::policy::word::written;
use loopctl_lang::program::Program;

/// The most characters of a question.
const MAX_QUESTION_CHARS: usize = 3_000;
/// The most characters of the data that is shown with it.
const MAX_DATA_CHARS: usize = 2_000;
/// The most fields of a form that are listed.
const MAX_FIELDS: usize = 20;
/// What became of a question that nobody decided in time.
const ESCALATED: &str = "nobody decided in time: only tokens with the scope `decide:escalated`, and users of the machine, \
                         may decide from now on";

/// A question that is posted.
#[derive(Clone, Copy)]
pub(super) struct PostedQuestion<'q> {
    pub asked: &'q QuestionToPost,
    /// Which reminder it is; 0 for the question itself.
    pub reminder: u32,
    pub hint: &'q AnswerHint,
}

/// Begins each line that is not the engine's.
const QUOTE: &str = "> ";

/// The text that is posted. What the engine says comes first, and each line of the question, its data and its form is quoted, so
/// that no line of the data passes for one of the engine. Secrets are hidden, and characters that nobody sees are shown by their
/// numbers.
pub(super) fn of(program: &Program, header: &RunHeader, posted: &PostedQuestion<'_>) -> String {
    let PostedQuestion { asked, reminder, hint } = *posted;
    let redact = Redaction::new(&program.project.redact);
    let step = asked.step.as_ref();
    let label = step.and_then(|step| step.item_label.as_deref());
    let label = label.map(|label| format!(" ({})", redact.text(label))).unwrap_or_default();
    let asks = format!("{} asks at {}{label}, run {}", header.loop_name, asked.at(), header.run_id);
    let asks = if reminder > 0 { format!("Reminder {reminder}: {asks}") } else { asks };
    let mut text = line(&if asked.is_escalated() { format!("Escalated: {asks}") } else { asks });
    if asked.is_escalated() {
        push(&mut text, ESCALATED);
    }
    if reminder > 0 {
        push(&mut text, &format!("nobody has answered since {}", clock::rfc3339(asked.targets.since_ms)));
    }
    let AnswerHint { link, otherwise, without_link } = hint;
    let ways = [link.as_deref(), otherwise.as_deref()].into_iter().flatten();
    let ways = ways.map(|way| format!("answer: {way}")).chain(without_link.map(|why| format!("no link: {why}")));
    ways.for_each(|way| push(&mut text, &line(&way)));
    if let Some(approval) = asked.approval().filter(|approval| approval.approvers > 1) {
        push(&mut text, &format!("{} people must approve", approval.approvers));
    }
    let until_ms = step.and_then(|step| step.expires_at_ms);
    let until_ms = until_ms.or_else(|| asked.approval().and_then(|approval| approval.expires_at_ms));
    if let Some(until_ms) = until_ms {
        push(&mut text, &format!("open until {}", clock::rfc3339(until_ms)));
    }
    push(&mut text, "");
    quote(&mut text, &cut(&visible(&redact.text(&asked.question.text)), MAX_QUESTION_CHARS));
    if let Some((name, data)) = data(asked) {
        let data = serde_json::to_string_pretty(&redact.value(data)).unwrap_or_default();
        quote(&mut text, &cut(&format!("{name}: {}", visible(&data)), MAX_DATA_CHARS));
    }
    let fields = step.map(|step| step.fields.as_slice()).unwrap_or_default();
    for field in fields.iter().take(MAX_FIELDS) {
        let label = field.label.as_ref().map(|label| format!(" ({})", redact.text(label))).unwrap_or_default();
        let kind = written(&field.kind).unwrap_or_default();
        quote(&mut text, &line(&format!("- {}: {kind}{label}", field.name)));
    }
    if let Some(more) = fields.len().checked_sub(MAX_FIELDS).filter(|more| *more > 0) {
        quote(&mut text, &format!("- and {more} more"));
    }
    text
}

/// What is shown with a question, and what it is.
fn data(asked: &QuestionToPost) -> Option<(&str, &Value)> {
    if let Some(call) = &asked.call {
        return Some((&call.action, &call.action_input));
    }
    let step = asked.step.as_ref()?;
    let shown = step.show.as_ref().map(|shown| ("shown", shown));
    let input = step.action_input.as_ref().filter(|input| input.as_object().is_none_or(|input| !input.is_empty()));
    shown.or_else(|| input.map(|input| ("data", input)))
}

fn push(text: &mut String, line: &str) {
    text.push('\n');
    text.push_str(line);
}

/// Adds a text that is not the engine's.
fn quote(text: &mut String, quoted: &str) {
    for line in quoted.lines() {
        push(text, format!("{QUOTE}{line}").trim_end());
    }
}

/// A text in one line.
fn line(text: &str) -> String {
    visible(&text.replace(['\n', '\t'], " "))
}

/// The first characters of a text, and how many were left out.
fn cut(text: &str, most: usize) -> String {
    let Some((at, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let (kept, rest) = text.split_at(at);
    format!("{kept}… ({} more characters are shown with the run)", rest.chars().count())
}

/// A text in which characters that nobody sees are numbers.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for sign in text.chars() {
        match is_hidden(sign) {
            // Writing to a string does not fail.
            true => drop(write!(shown, "\\u{{{:X}}}", u32::from(sign))),
            false => shown.push(sign),
        }
    }
    shown
}
