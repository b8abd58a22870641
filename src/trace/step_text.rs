//! The steps of a workflow as text.

use std::fmt::Write as _;

use serde_json::Value;

use super::approval;
use super::escape;
use super::look::{Look, Tone, wrap};
use super::steps::{as_call, counted};
use super::text::{Pieces, ShownObservation};
use super::units::rfc3339;
use crate::engine::flow::question::StepQuestion;
use crate::engine::flow::record::{StepRecord, StepStatus};
use crate::engine::outcome::Termination;

/// A step that ended, in a line or two. Its texts must be redacted already.
pub fn step_line(pieces: &Pieces, record: &StepRecord) -> String {
    let value = match (&record.error, &record.items, record.status) {
        (Some(error), _, _) => Value::from(error.message.as_str()),
        (None, Some(items), _) => Value::from(counted(items)),
        (None, None, StepStatus::Completed) => match &record.output {
            Some(output) if !record.at.contains('.') => output.clone(),
            _ => Value::from(record.kind.as_str()),
        },
        (None, None, status) => Value::from(status.word()),
    };
    let duration_ms = record.duration_ms();
    let mut shown = pieces.observation(&ShownObservation {
        whose: Some(&record.at),
        value: &value,
        success: record.error.is_none(),
        duration_ms,
    });
    if let Some(run_id) = &record.run_id {
        shown.push_str(&pieces.remark(&format!("run {run_id}")));
    }
    shown
}

/// The questions of a workflow that waits, each with what it is about. Lines with a bar contain the words of the
/// document or of a model and nothing else.
pub fn questions(look: &Look, steps: &[StepQuestion], shorten: bool) -> String {
    const SHOWN: usize = 20;
    let mut shown = String::new();
    for question in steps.iter().take(SHOWN) {
        let says = match question.kind {
            Termination::Approval => "needs an approval:",
            Termination::Uncertain => "was called, and it is not known whether it happened:",
            Termination::Stuck => "is stuck:",
            _ => "asks:",
        };
        let title = format!("The step {} {says}", escape::line(&question.at));
        let _ = writeln!(shown, "{}", look.paint(Tone::Bold, &title));
        if let Some(run_id) = &question.run_id {
            let by = format!("asked by the run {}", escape::line(run_id));
            let _ = writeln!(shown, "  {}", look.paint(Tone::Dim, &by));
        }
        let bar = format!("{} ", look.paint(Tone::Warn, "┃"));
        let own = question.kind == Termination::Approval && question.action != "PbotApproval";
        for line in escape::terminal(question.question.trim()).split('\n').filter(|_| !own) {
            for line in wrap(line, look.width.saturating_sub(4)) {
                let _ = writeln!(shown, "  {bar}{line}");
            }
        }
        for (at, option) in question.options.iter().enumerate() {
            let _ = writeln!(shown, "  {bar}{}. {}", at + 1, escape::line(option));
        }
        if let Some(at_ms) = question.expires_at_ms {
            let until = format!("without an answer until {}, the run fails", rfc3339(at_ms));
            let _ = writeln!(shown, "  {}", look.paint(Tone::Dim, &until));
        }
        for call in as_call(question).iter().chain(&question.calls) {
            shown.push_str(&approval::call(look, call, shorten));
        }
    }
    if steps.len() > SHOWN {
        let _ = writeln!(shown, "and {} more steps", steps.len() - SHOWN);
    }
    shown
}
