//! A crash at each event of a scenario: before the event is stored and after it. Each must end as the run without one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::journal::CrashPoint;
use super::judge::Failure;
use super::matcher::shown;
use super::play::{PlayError, Played};
use super::story::{RunStory, StoryCall};
use crate::policy::word::written;
use crate::trace::units::plural;

/// The most crash points of a scenario; the rest are left out, and counted.
const MAX_CRASH_POINTS: usize = 4_000;
/// The most crash points that are reported: those behind them often have the same cause.
const MAX_REPORTED_POINTS: usize = 3;

/// What came of all crash points.
#[derive(Debug, Default)]
pub struct CrashReport {
    points: usize,
    alike: usize,
    left_out: usize,
    /// How often a human was asked whether a call had happened, by tool.
    asked: BTreeMap<String, usize>,
    /// How often a call failed because its `on_uncertain` says so, by tool.
    failed: BTreeMap<String, usize>,
    repeated: usize,
    differences: Vec<String>,
}

impl CrashReport {
    /// Plays a scenario with a crash at each of its events.
    pub fn of(base: &Played, play: impl Fn(CrashPoint) -> Played) -> Self {
        let mut report = Self::default();
        let points = (0..base.events).flat_map(|event| [false, true].map(|is_stored| CrashPoint { event, is_stored }));
        report.left_out = (2 * base.events).saturating_sub(MAX_CRASH_POINTS);
        for point in points.take(MAX_CRASH_POINTS) {
            let played = play(point);
            report.points += 1;
            for action in &played.asked_after_crash {
                *report.asked.entry(action.clone()).or_default() += 1;
            }
            report.repeated += played.repeated.len();
            let failed = played.failed_by_document();
            for action in failed {
                *report.failed.entry(action.clone()).or_default() += 1;
            }
            match difference(base, &played) {
                None => report.alike += usize::from(failed.is_empty()),
                Some(why) => {
                    let when = if point.is_stored { "after" } else { "before" };
                    report.differences.push(format!("stopped {when} event {} was stored: {why}", point.event));
                }
            }
        }
        report
    }

    /// In one line: `41 crash points: 41 end alike, 2 ask whether refund happened, 0 repeat a call`.
    pub fn line(&self) -> String {
        let mut line = format!("{}: {} end alike", plural(self.points, "crash point"), self.alike);
        for (action, count) in &self.asked {
            line.push_str(&format!(", {count} ask whether {action} happened"));
        }
        for (action, count) in &self.failed {
            line.push_str(&format!(", {count} fail by `on_uncertain` of {action}"));
        }
        line.push_str(&format!(", {} repeat a call", self.repeated));
        if self.left_out > 0 {
            line.push_str(&format!("; {} were left out", self.left_out));
        }
        line
    }

    /// What does not end alike; the first few.
    pub fn failures(&self, pointer: &str) -> Vec<Failure> {
        let failure = |message: String| Failure { pointer: pointer.to_owned(), key: "crash", message, near: None };
        let mut failures: Vec<Failure> =
            self.differences.iter().take(MAX_REPORTED_POINTS).map(|message| failure(message.clone())).collect();
        if let Some(more) = self.differences.len().checked_sub(MAX_REPORTED_POINTS).filter(|more| *more > 0) {
            let verb = if more == 1 { "does" } else { "do" };
            failures.push(failure(format!("{} {verb} not end alike either", plural(more, "more crash point"))));
        }
        failures
    }
}

/// What is otherwise in a run that was stopped and resumed; none if it ended alike.
fn difference(base: &Played, played: &Played) -> Option<String> {
    if let Some(action) = played.repeated.first() {
        return Some(format!("`{action}` is called again, although its result was stored"));
    }
    let failed = played.failed_by_document();
    // A run whose call failed, because the document says so, takes another way: it may need other decisions.
    let counts = |fault: &&PlayError| failed.is_empty() || matches!(fault, PlayError::Run(_));
    if let Some(fault) = played.faults.iter().filter(counts).find(|fault| !base.faults.contains(fault)) {
        return Some(match fault {
            PlayError::Run(why) | PlayError::Decision(_, why) => why.clone(),
            PlayError::UnusedDecisions(_) => "the run does not wait for all decisions".to_owned(),
        });
    }
    let (before, after) = match (&base.story, &played.story) {
        (Some(before), Some(after)) => (before, after),
        (None, None) => return None,
        _ => return Some("the run is lost".to_owned()),
    };
    if !failed.is_empty() {
        return more_effects(before, after, failed);
    }
    effects(before, after).or_else(|| ending(before, after)).or_else(|| calls(&before.calls, &after.calls)).or_else(
        || {
            // The price of a call that a human says has happened is not known.
            if played.asked_after_crash.is_empty() { money(before, after) } else { None }
        },
    )
}

/// A call that failed, because the document says so, is not made again.
fn more_effects(before: &RunStory, after: &RunStory, failed: &[String]) -> Option<String> {
    let action = failed.iter().find(|action| after.effects_of(action) > before.effects_of(action))?;
    Some(differs(action, before, after))
}

fn effects(before: &RunStory, after: &RunStory) -> Option<String> {
    let mut tools = before.effects.keys().chain(after.effects.keys());
    let action = tools.find(|action| before.effects_of(action) != after.effects_of(action))?;
    Some(differs(action, before, after))
}

fn differs(action: &str, before: &RunStory, after: &RunStory) -> String {
    let (one, other) = (before.effects_of(action), after.effects_of(action));
    format!("the effect of `{action}` happens {} and not {one}", plural(other, "time"))
}

fn ending(before: &RunStory, after: &RunStory) -> Option<String> {
    let (one, other) = (&before.result, &after.result);
    if (one.status, one.termination) != (other.status, other.termination) {
        let words = |status: crate::engine::outcome::Status, why: Option<_>| {
            format!("{} ({})", status.word(), written(&why).unwrap_or_default())
        };
        return Some(format!(
            "the run is {} and not {}",
            words(other.status, other.termination),
            words(one.status, one.termination)
        ));
    }
    let answer = |story: &RunStory| story.result.result.as_ref().map(|answer| without_start_status(&answer.answer));
    (answer(before) != answer(after))
        .then(|| format!("the answer is {}", answer(after).as_ref().map_or_else(|| "missing".to_owned(), shown)))
}

/// A value without how far the runs were that calls started without waiting for them: after a crash they may be further.
fn without_start_status(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_start_status).collect(),
        Value::Object(members) => {
            let is_start = members.len() == 2 && members.contains_key("run_id") && members.contains_key("status");
            let kept = members.iter().filter(|(name, _)| !is_start || *name != "status");
            kept.map(|(name, value)| (name.clone(), without_start_status(value))).collect()
        }
        other => other.clone(),
    }
}

fn calls(before: &[StoryCall], after: &[StoryCall]) -> Option<String> {
    let (one, other) = (before.len(), after.len());
    if one != other {
        return Some(format!("there are {} and not {one}", plural(other, "call")));
    }
    // An idempotent call that is made again may give something else: that it did nothing.
    let of = |call: &StoryCall| (call.at.clone(), call.action.clone(), call.input.clone(), call.success);
    let (before, after) = (by_step(before), by_step(after));
    let (one, other) = before.iter().zip(&after).find(|(one, other)| of(one) != of(other))?;
    let name = |call: &StoryCall| call.at.clone().or_else(|| call.action.clone()).unwrap_or_default();
    Some(format!("`{}` stands where `{}` stood", name(other), name(one)))
}

/// The calls in the order of the addresses of their steps: steps beside each other end in any order.
fn by_step(calls: &[StoryCall]) -> Vec<&StoryCall> {
    let mut around = String::new();
    let mut placed: Vec<(String, &StoryCall)> = Vec::with_capacity(calls.len());
    for call in calls {
        if let Some(at) = &call.at {
            around.clone_from(at);
        }
        placed.push((around.clone(), call));
    }
    placed.sort_by(|(one, _), (other, _)| one.cmp(other));
    placed.into_iter().map(|(_, call)| call).collect()
}

fn money(before: &RunStory, after: &RunStory) -> Option<String> {
    let of = |story: &RunStory| {
        let usage = &story.result.usage;
        (usage.input_tokens.saturating_add(usage.output_tokens), usage.cost_usd)
    };
    (of(before) != of(after)).then(|| format!("the run needs {} tokens and not {}", of(after).0, of(before).0))
}
