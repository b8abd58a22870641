//! Scenarios that can't be played, or can't hold.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::endings::programs;
use super::{PlacedExpectations, ScenarioSubject};
use crate::check::script_calls::too_many_calls;
use crate::diagnostic::{Diagnostic, codes, nearest};
use crate::language::react::Dialect;
use crate::language::scenario::{
    FaultPlan, Quantities, Scenario, ScenarioDecision, ScenarioDelivery, ScenarioFault, ToolFailure,
};
use crate::program::input_file;
use crate::program::webhook::{Delivery, DeliveryOutcome};
use crate::program::{LoopProgram, Program, bind, builtin};
use crate::syntax::token;

const CODE: &str = codes::SCENARIO_SENSE;

/// Reports them.
pub(super) fn check(subject: &ScenarioSubject<'_>, found: &mut Vec<Diagnostic>) {
    let mut names = BTreeSet::new();
    for (index, scenario) in subject.file.scenarios.iter().enumerate() {
        let at = format!("/scenarios/{index}");
        if !names.insert(scenario.name.as_str()) {
            let message = "another scenario of this file has this name".to_owned();
            found.push(subject.error(CODE, format!("{at}/name"), message).help("say what is special about this one"));
        }
        played(subject, index, &at, found);
        for (number, decision) in scenario.decisions.iter().enumerate() {
            decides(subject, decision, &format!("{at}/decisions/{number}"), found);
        }
        if let Some(FaultPlan::Listed(faults)) = &scenario.faults {
            for (number, fault) in faults.iter().enumerate() {
                if fault.reply.is_some() && scenario.recording.is_some() {
                    let message = "the replies of a recording can't fail".to_owned();
                    let fault = subject.error(CODE, format!("{at}/faults/{number}/reply"), message);
                    found.push(fault.help("write the `replies` into the scenario, or let a call fail"));
                }
                goes_wrong(subject, fault, &format!("{at}/faults/{number}"), found);
            }
        }
        if scenario.under_faults.is_some() && !matches!(scenario.faults, Some(FaultPlan::Each(_))) {
            let message = "`under_faults` is for `\"faults\": \"each\"`: here it is never looked at".to_owned();
            found.push(subject.warning(CODE, format!("{at}/under_faults"), message).help("write it under `expect`"));
        }
        let is_said = has_unread(subject, &format!("{at}/expect")) || has_unknown(subject, &at);
        if scenario.expect.is_empty() && scenario.crash.is_none() && scenario.faults.is_none() && !is_said {
            let message = "nothing is expected: this scenario holds whatever happens".to_owned();
            found.push(subject.warning(CODE, format!("{at}/name"), message).help("say under `expect` what must hold"));
        }
        leftover(subject, scenario, &at, found);
        several_calls(subject, scenario, &at, found);
    }
    calls_below(subject, &subject.file.loops, "", found);
    for placed in subject.expectations() {
        at_odds(subject, &placed, found);
    }
}

/// Whether an object has a key that is not known, which is reported: it may be meant for what is missing in it.
fn has_unknown(subject: &ScenarioSubject<'_>, at: &str) -> bool {
    let of = |path: &str| path.rsplit_once('/').is_some_and(|(parent, _)| parent == at);
    subject.document.faults.iter().any(|fault| fault.code == codes::UNKNOWN_FIELD && of(&fault.path))
}

/// Whether a value, or a part of it, can't be read, which is reported: what it says is not known.
fn has_unread(subject: &ScenarioSubject<'_>, at: &str) -> bool {
    let is_in = |path: &str| path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    subject.document.faults.iter().any(|fault| is_in(&fault.path))
}

/// Whether the run of a scenario can start.
fn played(subject: &ScenarioSubject<'_>, index: usize, at: &str, found: &mut Vec<Diagnostic>) {
    let Some(scenario) = subject.file.scenarios.get(index) else { return };
    let asks_no_model = subject.program.is_none_or(|program| program.is_flow());
    match scenario.sources() {
        // A key that is not known may be meant to say it.
        0 if asks_no_model || has_unknown(subject, at) => {}
        0 if ["replies", "script", "recording"].iter().any(|key| has_unread(subject, &format!("{at}/{key}"))) => {}
        0 => {
            let message = "nothing says what the model replies".to_owned();
            let fault = subject.error(CODE, format!("{at}/name"), message);
            found.push(fault.help("give `replies`, a `script` or a `recording`"));
        }
        1 => {}
        _ => {
            let message = "more than one of `replies`, `script` and `recording` says what the model replies".to_owned();
            found.push(subject.error(CODE, format!("{at}/name"), message).help("leave one of them"));
        }
    }
    if scenario.now.parse::<jiff::Timestamp>().is_err() {
        let message = "`now` is no moment".to_owned();
        found.push(subject.error(CODE, format!("{at}/now"), message).help("write it like 2026-01-01T00:00:00Z"));
    }
    let Some(program) = subject.program else { return };
    let recorded = subject.recordings.get(&index).map(|recording| recording.input.clone());
    if let Some(delivery) = &scenario.delivery {
        return delivered(subject, scenario, delivery, at, found);
    }
    let mut input = scenario.input.clone().map(Value::Object).or(recorded).unwrap_or_default();
    let taken = input_file::take(&program.file_places(), &mut input).map_err(|fault| fault.message);
    let first = |faults: Vec<Diagnostic>| faults.first().map(|fault| fault.message.clone()).unwrap_or_default();
    let bound = taken.and_then(|_| bind(program, input, &scenario.now, "scenario").map_err(first));
    if let Err(why) = bound {
        let key = match (&scenario.input, &scenario.recording) {
            (Some(_), _) => "input",
            (None, Some(_)) => "recording",
            (None, None) => "name",
        };
        let pointer = format!("{at}/{key}");
        let message = format!("the run can't start with this input: {why}");
        found.push(subject.error(CODE, pointer, message).help("the document says under `input` what it takes"));
    }
}

/// Whether the delivery of a scenario starts a run, or none where that is expected.
fn delivered(
    subject: &ScenarioSubject<'_>,
    scenario: &Scenario,
    delivery: &ScenarioDelivery,
    at: &str,
    found: &mut Vec<Diagnostic>,
) {
    let pointer = format!("{at}/delivery");
    let mut report = |message: String, help: &str| {
        found.push(subject.error(CODE, pointer.clone(), message).help(help));
    };
    if scenario.input.is_some() || scenario.recording.is_some() {
        let message = "the input of the run is made of the delivery".to_owned();
        return report(message, "leave `input` and `recording` out");
    }
    let Some(program) = subject.program else { return };
    let delivery = Delivery::of_scenario(delivery, &scenario.now);
    match program.as_flow().and_then(|flow| flow.outcome_of(&delivery)) {
        None => report("the document has no webhook".to_owned(), "give `input`, or the document a `trigger.webhook`"),
        Some(Err(why)) => {
            let help = match why.starts_with("the input does not fit") {
                true => "the document says under `input` what it takes",
                false => "the webhook says what it reads",
            };
            report(format!("the delivery would be refused: {why}"), help)
        }
        Some(Ok(DeliveryOutcome::Skipped)) if !scenario.expect.skipped => {
            let message = "the delivery starts no run: `when` of the webhook does not hold".to_owned();
            report(message, "if that is what the scenario shows, expect it: \"expect\": {\"skipped\": true}");
        }
        Some(Ok(DeliveryOutcome::Starts(_))) if scenario.expect.skipped => {
            report("the delivery starts a run".to_owned(), "take `skipped` out, or change what is delivered");
        }
        Some(Ok(DeliveryOutcome::Skipped)) => {}
        Some(Ok(DeliveryOutcome::Starts(input))) => {
            if let Err(faults) = bind(program, input, &scenario.now, "scenario") {
                let why = faults.first().map(|fault| fault.message.clone()).unwrap_or_default();
                report(
                    format!("the delivery would be refused: {why}"),
                    "the document says under `input` what it takes",
                );
            }
        }
    }
}

/// A decision must be one, and only one.
fn decides(subject: &ScenarioSubject<'_>, decision: &ScenarioDecision, at: &str, found: &mut Vec<Diagnostic>) {
    const KINDS: &str = "`approve`, `deny`, `edit`, `answer`, `happened`, `fail`, `retry` or `expires`";
    let count = [
        decision.approve.is_some(),
        decision.deny.is_some(),
        decision.edit.is_some(),
        decision.answer.is_some(),
        decision.happened.is_some(),
        decision.fail.is_some(),
        decision.retry.is_some(),
        decision.expires.is_some(),
    ];
    let count = count.into_iter().filter(|is_given| *is_given).count();
    if count != 1 && !(count == 0 && has_unknown(subject, at)) {
        let message = if count == 0 { "this decides nothing" } else { "this is more than one decision" };
        found.push(subject.error(CODE, at.to_owned(), message.to_owned()).help(format!("give one of {KINDS}")));
    }
    for (name, value) in [("approve", decision.approve), ("retry", decision.retry), ("expires", decision.expires)] {
        if value == Some(false) {
            let message = format!("`{name}` is true, or left out");
            let help = if name == "approve" { "to deny a call: {\"deny\": \"the reason\"}" } else { "write true" };
            found.push(subject.error(CODE, format!("{at}/{name}"), message).help(help));
        }
    }
}

/// A fault must have one place and one kind.
fn goes_wrong(subject: &ScenarioSubject<'_>, fault: &ScenarioFault, at: &str, found: &mut Vec<Diagnostic>) {
    let kinds = [fault.fails.is_some(), fault.says.is_some(), fault.reply_is.is_some()];
    let kinds = kinds.into_iter().filter(|is_given| *is_given).count();
    let problem = match (&fault.action, fault.reply) {
        (None, None) => Some("it has no place: name a tool with `action`, or a reply with `reply`"),
        (Some(_), Some(_)) => Some("it is of a call or of a reply, and not of both"),
        _ if kinds != 1 => Some("it is one of `fails`, `says` and `reply_is`"),
        (Some(_), None) if fault.reply_is.is_some() => Some("`reply_is` goes with `reply`"),
        (None, Some(_)) if fault.says.is_some() => Some("`says` goes with `action`"),
        (None, Some(_)) if fault.nth.is_some() => Some("`nth` goes with `action`"),
        _ => None,
    };
    if let Some(problem) = problem.filter(|_| !has_unknown(subject, at)) {
        let fault = subject.error(CODE, at.to_owned(), format!("this fault can't happen: {problem}"));
        found.push(fault.help("like {\"action\": \"pay\", \"nth\": 1, \"fails\": \"timeout\"}"));
    }
    if let Some(word) = fault.fails.as_ref().filter(|word| ToolFailure::of(word).is_none()) {
        let fault = subject.error(CODE, format!("{at}/fails"), format!("nothing fails by `{word}`"));
        let words: Vec<String> = ToolFailure::WORDS.iter().map(|word| format!("`{word}`")).collect();
        found.push(match nearest(word, ToolFailure::WORDS) {
            Some(near) => fault.help(format!("the nearest name is `{near}`")),
            None => fault.help(format!("it is one of {}; `http` takes a status from 400 to 599", words.join(", "))),
        });
    }
}

/// Replies behind the one that ends the run.
fn leftover(subject: &ScenarioSubject<'_>, scenario: &Scenario, at: &str, found: &mut Vec<Diagnostic>) {
    let (Some(replies), Some(program)) = (&scenario.replies, subject.program) else { return };
    if scenario.faults.is_some() || !takes_any_answer(program) {
        return;
    }
    let ends = |reply: &Value| {
        let action = reply.get("action").and_then(Value::as_str);
        let input = reply.get("action_input").and_then(Value::as_object);
        reply.get("answer").is_some()
            || action == Some(builtin::COMPLETE)
                && input.is_some_and(|input: &Map<String, Value>| input.contains_key("answer"))
    };
    if let Some(end) = replies.iter().position(ends).filter(|end| end + 1 < replies.len()) {
        let pointer = format!("{at}/replies/{}", end + 1);
        let fault =
            subject.warning(CODE, pointer, "this reply is never asked for: the one before ends the run".to_owned());
        found.push(fault.help("replies that are left over are a failure"));
    }
}

/// Several calls in a reply, where each loop that is given it takes one: the run can't continue with it.
fn several_calls(subject: &ScenarioSubject<'_>, scenario: &Scenario, at: &str, found: &mut Vec<Diagnostic>) {
    calls_below(subject, &scenario.loops, at, found);
    let Some(program) = subject.program else { return };
    let has_own = |name: &String| scenario.loops.contains_key(name) || subject.file.loops.contains_key(name);
    let own: Vec<&LoopProgram> = match program.as_loop() {
        Some(main) => vec![main],
        None => programs(program).into_iter().filter_map(Program::as_loop).filter(|one| !has_own(&one.name)).collect(),
    };
    let replies = scenario.replies.as_deref().unwrap_or_default();
    one_call_each(subject, replies, &format!("{at}/replies"), &own, found);
}

/// The same in the replies of called loops, by their names.
fn calls_below(
    subject: &ScenarioSubject<'_>,
    loops: &BTreeMap<String, Vec<Value>>,
    at: &str,
    found: &mut Vec<Diagnostic>,
) {
    let Some(program) = subject.program else { return };
    for (name, replies) in loops {
        let of_name = programs(program).into_iter().filter_map(Program::as_loop).filter(|one| one.name == *name);
        one_call_each(subject, replies, &format!("{at}/loops/{}", token(name)), &of_name.collect::<Vec<_>>(), found);
    }
}

fn one_call_each(
    subject: &ScenarioSubject<'_>,
    replies: &[Value],
    at: &str,
    own: &[&LoopProgram],
    found: &mut Vec<Diagnostic>,
) {
    // In the other dialects, the model reads that there are too many: a scenario may be about that.
    if own.iter().any(|program| program.properties.dialect != Dialect::Json) {
        return;
    }
    for (number, reply) in replies.iter().enumerate() {
        found.extend(too_many_calls(subject.document, reply, &format!("{at}/{number}"), own));
    }
}

/// Whether the first answer of the model ends the run.
fn takes_any_answer(program: &Program) -> bool {
    let answers_at_once = |of: &LoopProgram| of.answer.is_none() && of.properties.require_tool_before_answer.is_none();
    program.as_loop().is_some_and(answers_at_once)
}

/// Expectations that exclude each other.
fn at_odds(subject: &ScenarioSubject<'_>, placed: &PlacedExpectations<'_>, found: &mut Vec<Diagnostic>) {
    let PlacedExpectations { at, expect } = placed;
    let never = |action: &String| {
        expect.never_asked.contains(action)
            || expect
                .never
                .iter()
                .any(|entry| matches!(entry, crate::language::scenario::NeverEntry::Tool(name) if name == action))
    };
    for (index, action) in expect.once.iter().enumerate().filter(|(_, action)| never(action)) {
        let message = format!("`{action}` can't happen once and never");
        found.push(subject.error(CODE, format!("{at}/once/{index}"), message).help("remove one of the two"));
    }
    let successful = expect.calls.iter().flatten().enumerate().filter(|(_, call)| call.success == Some(true));
    for (index, call) in successful {
        if let Some(action) = call.action.as_ref().filter(|action| never(action)) {
            let message = format!("`{action}` can't succeed here and never be called");
            found.push(subject.error(CODE, format!("{at}/calls/{index}"), message).help("remove one of the two"));
        }
    }
    if let (Some(most), Some(least)) = (&expect.at_most, &expect.at_least)
        && let Some(name) = exceeds(least, most)
    {
        let message = format!("`at_least` is above `at_most` here: no number of {name} is both");
        found.push(subject.error(CODE, format!("{at}/at_least/{name}"), message).help("exchange the two"));
    }
}

/// The first quantity of which more is needed than allowed.
fn exceeds(least: &Quantities, most: &Quantities) -> Option<&'static str> {
    let counts = [
        ("iterations", least.iterations, most.iterations),
        ("calls", least.calls, most.calls),
        ("tokens", least.tokens, most.tokens),
    ];
    let counts =
        counts.into_iter().filter(|(_, least, most)| least.zip(*most).is_some_and(|(least, most)| least > most));
    let sums = [("cost_usd", least.cost_usd, most.cost_usd), ("seconds", least.seconds, most.seconds)];
    let sums = sums.into_iter().filter(|(_, least, most)| least.zip(*most).is_some_and(|(least, most)| least > most));
    counts.map(|(name, ..)| name).chain(sums.map(|(name, ..)| name)).next()
}
