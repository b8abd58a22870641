//! The steps of a workflow as text.

use std::fmt::Write as _;

use serde_json::Value;

use super::About;
use super::approval;
use super::entries::step_attempts;
use super::escape;
use super::layout::{Look, Tone, wrap};
use super::steps::{MOST_ROWS, as_call, chosen_case, counted, failure, item_label, notable, totals};
use super::text::{Pieces, ShownObservation, took};
use super::units::rfc3339;
use crate::flow::item_label::labelled;
use crate::flow::item_row::ItemRow;
use crate::flow::record::{StepRecord, StepStatus};
use crate::flow::view::StepView;
use crate::outcome::Termination;
use crate::question::{EndedPart, OnRejected, StepQuestion};

/// A step that ended, in a line or two. Its texts must be redacted already.
pub fn step_line(pieces: &Pieces, record: &StepRecord) -> String {
    let value = match (&record.error, &record.items, record.status) {
        (Some(error), _, _) => Value::from(failure(error)),
        (None, Some(items), _) => Value::from(counted(items)),
        (None, None, StepStatus::Completed) if let Some(sent) = record.notice() => Value::from(sent),
        (None, None, StepStatus::Completed) if let Some(case) = &record.case => Value::from(chosen_case(case)),
        (None, None, StepStatus::Completed) => match &record.output {
            Some(output) if record.list.is_empty() => output.clone(),
            _ => Value::from(record.kind.as_str()),
        },
        (None, None, status) => Value::from(status.word()),
    };
    let duration_ms = record.duration_ms();
    let mut shown = pieces.observation(&ShownObservation {
        whose: Some(&labelled(&record.at, record.item_label.as_deref())),
        value: &value,
        success: record.error.is_none(),
        duration_ms,
    });
    shown.extend(step_attempts(record).map(|sentence| pieces.remark(&sentence)));
    if let Some(run_id) = &record.run_id {
        shown.push_str(&pieces.note(&format!("run {run_id}")));
    }
    shown
}

/// An item of a loop that ended, in a line or two: what it is called, and what came of it. It must be redacted already.
pub fn item_line(pieces: &Pieces, at: &str, row: &ItemRow) -> String {
    let (label, _) = item_label(row);
    let whose = if label.is_empty() { at.to_owned() } else { format!("{label} ({at})") };
    let value = match (&row.error, &row.output, row.status) {
        (Some(error), _, _) => Value::from(error.as_str()),
        (None, Some(output), StepStatus::Completed) => output.clone(),
        (None, _, status) => Value::from(status.word()),
    };
    let success = row.status != StepStatus::Failed;
    pieces.observation(&ShownObservation { whose: Some(&whose), value: &value, success, duration_ms: 0 })
}

/// The questions of a workflow that waits, each with what it is about. Lines with a bar contain the words of the
/// document or of a model and nothing else.
pub fn questions(look: &Look, steps: &[StepQuestion], shorten: bool) -> String {
    const SHOWN: usize = 20;
    let mut shown = String::new();
    for question in steps.iter().take(SHOWN) {
        if question.question.kind.is_wait() {
            let until = question.expires_at_ms.map(rfc3339).unwrap_or_default();
            let what = question.awaits.as_ref().map(|awaited| format!(" for the event {}", awaited.event));
            let what = what.unwrap_or_default();
            let title = format!("The step {} waits{what} until {until}", escape::line(&question.at));
            let _ = writeln!(shown, "{}", look.paint(Tone::Bold, &title));
            if let Some(awaited) = question.awaits.as_ref().filter(|awaited| !awaited.matches.is_empty()) {
                let matches = Value::Object(awaited.matches.clone()).to_string();
                let _ = writeln!(shown, "  {}", look.paint(Tone::Dim, &escape::line(&matches)));
            }
            if question.question.kind == Termination::SpendingLimit {
                let why = look.paint(Tone::Dim, &escape::line(&question.question.text));
                let _ = writeln!(shown, "  {why}");
            }
            continue;
        }
        let says = match question.question.kind {
            Termination::Approval => "needs an approval:",
            Termination::Uncertain => "was called, and it is not known whether it happened:",
            Termination::Stuck => "is stuck:",
            Termination::ModelError => "waits for its model, which can't be reached:",
            _ => "asks:",
        };
        let at = labelled(&question.at, question.item_label.as_deref());
        let title = format!("The step {} {says}", escape::line(&at));
        let _ = writeln!(shown, "{}", look.paint(Tone::Bold, &title));
        if let Some(run_id) = &question.question.run_id {
            let by = format!("asked by the run {}", escape::line(run_id));
            let _ = writeln!(shown, "  {}", look.paint(Tone::Dim, &by));
        }
        let bar = format!("{} ", look.paint(Tone::Warn, "┃"));
        let own = question.question.kind == Termination::Approval && question.action != "PbotApproval";
        for line in escape::terminal(question.question.text.trim()).split('\n').filter(|_| !own) {
            for line in wrap(line, look.width.saturating_sub(4)) {
                let _ = writeln!(shown, "  {bar}{line}");
            }
        }
        for (at, option) in question.question.options.iter().enumerate() {
            let _ = writeln!(shown, "  {bar}{}. {}", at + 1, escape::line(option));
        }
        shown.push_str(&form(look, question));
        if let Some(at_ms) = question.expires_at_ms {
            let what = if question.ends == Some(EndedPart::Item) { "this item" } else { "the run" };
            let until = format!("without an answer until {}, {what} fails", rfc3339(at_ms));
            let _ = writeln!(shown, "  {}", look.paint(Tone::Dim, &until));
        }
        for call in as_call(question).iter().chain(&question.calls) {
            shown.push_str(&approval::call(look, call, shorten));
        }
        if let Some(fact) = after_a_no(question) {
            let _ = writeln!(shown, "  {}", look.paint(Tone::Dim, fact));
        }
    }
    if steps.len() > SHOWN {
        let _ = writeln!(shown, "and {} more steps", steps.len() - SHOWN);
    }
    shown
}

/// The data and the fields of a form with types.
fn form(look: &Look, question: &StepQuestion) -> String {
    let mut shown = String::new();
    if let Some(data) = &question.show {
        for line in serde_json::to_string_pretty(data).unwrap_or_default().lines() {
            let _ = writeln!(shown, "    {}", escape::json(line));
        }
    }
    for field in &question.fields {
        let name = look.paint(Tone::Accent, &escape::line(&field.name));
        let label = field.label.as_deref().map(|label| format!("{}: ", escape::line(label))).unwrap_or_default();
        let required = if field.required { " · required" } else { "" };
        let _ = writeln!(shown, "  {name}  {label}{}{required}", escape::line(&field.note()));
    }
    shown
}

/// What a no to the approval of a step does, in a sentence; none where a model reads it.
pub fn after_a_no(question: &StepQuestion) -> Option<&'static str> {
    let own = question.at.rsplit('/').next().unwrap_or_default();
    Some(match question.on_rejected? {
        OnRejected::Stop if question.ends == Some(EndedPart::Item) => {
            "a no stops this item: none of its later steps runs, and the other items continue"
        }
        OnRejected::Stop if question.ends.is_none() && own.contains('.') => {
            "a no stops this item, or the run: none of its later steps runs"
        }
        OnRejected::Stop => "a no stops the run: no later step of it runs",
        OnRejected::GoOn => "after a no the next steps run, as their filters say",
    })
}

/// The steps at an address, with what they were given and gave.
pub fn view(look: Look, about: &About<'_>, run_id: &str, view: &StepView) -> String {
    let pieces = Pieces { look, shorten: false };
    let at = view.at.as_deref().unwrap_or("all steps");
    let mut shown = pieces.header(about.loop_name, &[run_id, at, view.status.word()], "");
    if let Some(item) = view.item {
        let whose = match view.item_label.as_deref() {
            Some(label) => format!("{}: this item", escape::line(label)),
            None => "This item".to_owned(),
        };
        let _ = writeln!(shown, "{whose} is {}.", look.paint(tone(item), item.word()));
    }
    for record in &view.steps {
        shown.push('\n');
        shown.push_str(&whole_step(&pieces, record));
    }
    if let Some(items) = &view.items {
        let _ = writeln!(shown, "\n{}", totals(items));
        let rows: Vec<String> = notable(items).take(MOST_ROWS).map(item_row).collect();
        for line in rows.iter().flat_map(|row| wrap(row, look.width)).filter(|line| !line.is_empty()) {
            let _ = writeln!(shown, "{line}");
        }
        let more = notable(items).count().saturating_sub(MOST_ROWS);
        if more > 0 {
            let _ = writeln!(shown, "and {more} more");
        }
    }
    if !view.questions.is_empty() {
        shown.push('\n');
        shown.push_str(&questions(&look, &view.questions, false));
        if view.waiting > view.questions.len() {
            let _ = writeln!(shown, "and {} more steps", view.waiting - view.questions.len());
        }
    }
    shown
}

/// What became of an item: `item 1 failed: the bank is closed`. It must be redacted already.
pub fn item_row(row: &ItemRow) -> String {
    let item = labelled(&row.index.to_string(), row.label.as_deref());
    let reason = row.error.as_ref().map(|error| format!(": {}", escape::line(error))).unwrap_or_default();
    format!("item {} {}{reason}", escape::line(&item), row.status.word())
}

/// A step with its times, what it was given, and what it gave.
fn whole_step(pieces: &Pieces, record: &StepRecord) -> String {
    let look = pieces.look;
    let at = labelled(&record.at, record.item_label.as_deref());
    let (at, kind) = (escape::line(&at), escape::line(&record.kind));
    let status = look.paint(tone(record.status), record.status.word());
    let mut shown = format!("{}  {kind}  {status}", look.paint(Tone::Bold, &at));
    let started = record.started_at_ms.filter(|_| record.status != StepStatus::Skipped);
    if let Some(at_ms) = started {
        let took = took(record.duration_ms());
        let times = format!("  {}{}{took}", rfc3339(at_ms), if took.is_empty() { "" } else { "  " });
        shown.push_str(&look.paint(Tone::Dim, &times));
    }
    shown.push('\n');
    if let Some(input) = &record.input {
        shown.push_str(&pieces.call(&record.kind, input));
    }
    shown.extend(step_attempts(record).map(|sentence| pieces.remark(&sentence)));
    let value = match (&record.error, &record.output, &record.items) {
        (Some(error), _, _) => Some(Value::from(failure(error))),
        (None, Some(output), _) => Some(output.clone()),
        (None, None, Some(items)) => Some(Value::from(counted(items))),
        (None, None, None) => record.case.as_deref().map(|case| Value::from(chosen_case(case))),
    };
    if let Some(value) = &value {
        let success = record.error.is_none();
        shown.push_str(&pieces.observation(&ShownObservation { whose: None, value, success, duration_ms: 0 }));
    }
    if let Some(run_id) = &record.run_id {
        shown.push_str(&pieces.note(&format!("run {run_id}")));
    }
    shown
}

fn tone(status: StepStatus) -> Tone {
    match status {
        StepStatus::Completed => Tone::Good,
        StepStatus::Failed => Tone::Bad,
        StepStatus::Waiting | StepStatus::Uncertain | StepStatus::Cancelled => Tone::Warn,
        StepStatus::Running => Tone::Accent,
        StepStatus::Pending | StepStatus::Skipped => Tone::Dim,
    }
}
