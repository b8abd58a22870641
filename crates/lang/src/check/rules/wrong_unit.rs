//! A number that is surely meant in another unit: seconds for milliseconds, a percentage for a share.

use serde::Deserialize as _;
use serde_json::Value;

use crate::check::settings::WrittenSettings;
use crate::check::steps::steps;
use crate::check::{Cursor, Rule, Subject, model};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::action::CallSpeed;
use crate::language::approval::ApprovalSettings;
use crate::language::project::Provider;
use crate::language::react::Retry;
use crate::language::retry::CallRetry;
use crate::language::tool::TypedTool;
use crate::language::{Action, ReactProperties, ToolDeclaration};
use crate::policy::durations::{Timed, seems_milliseconds};
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::WRONG_UNIT, check };

/// The characters of a sentence: fewer of a result say nothing.
const SENTENCE: usize = 64;
/// The price of a million tokens below which that of one token, or of a thousand, is meant.
const PRICE: f64 = 0.001;
/// The bytes that one request takes with its answer.
const REQUEST: u64 = 10_000;

/// The time limits of a loop: the property, its value, and what it is given to.
#[expect(clippy::type_complexity, reason = "a table")]
const LIMITS: &[(&str, fn(&ReactProperties) -> Option<u64>, Timed)] = &[
    ("timeout_ms", |react| Some(react.timeout_ms), Timed::Model),
    ("tool_timeout_ms", |react| Some(react.tool_timeout_ms), Timed::Server),
    ("stall_timeout_ms", |react| react.stall_timeout_ms, Timed::Model),
    ("reply_timeout_ms", |react| Some(react.reply_timeout_ms), Timed::Model),
    ("last_call_timeout_ms", |react| Some(react.last_call_timeout_ms), Timed::Model),
    ("retry/for_ms", |react| react.retry.for_ms.filter(|time| *time > 0), Timed::Model),
];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    timeouts(subject, found);
    of_steps(subject, found);
    of_project(subject, found);
}

fn timeouts(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let is_played = |react: &ReactProperties| {
        let model = model::named(subject, react.model.as_deref()).and_then(|model| model.declared);
        model.is_some_and(|model| model.provider == Provider::Script)
    };
    let played = subject.react(&["model"]).is_some_and(is_played);
    // Each needs its own property only: an error in another one hides nothing.
    for (name, limit, timed) in LIMITS {
        let Some(limit) = subject.react(&[name]).and_then(limit) else { continue };
        let what = match (*timed, *name) {
            (Timed::Server, _) => "a call of a tool",
            (_, "timeout_ms") => "the whole run",
            _ => "the model",
        };
        if timed.seems_seconds(limit) && !(played && *timed == Timed::Model) {
            found.extend(seconds(subject.property(name), limit, what));
        }
    }
    if let Some(react) = subject.react(&["retry"]) {
        found.extend(waits(subject.property("retry"), &react.retry));
    }
    if let Some(react) = subject.react(&["max_observation_chars"]) {
        let read = react.max_observation_chars;
        if let Some(cursor) = subject.property("max_observation_chars").filter(|_| read < SENTENCE) {
            let message = format!("the model reads {read} characters of a result: thousands seem to be meant");
            let meant = read.saturating_mul(1000);
            let help = format!("the value is in characters: {read} thousand are {meant}");
            found.push(cursor.report(&RULE, message).help(help).suggest(meant.to_string()));
        }
    }
    approvals(subject, found);
    for (pointer, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(tool) = declaration else { continue };
        let (limit, timed, what) = match tool {
            TypedTool::Loop(tool) => (tool.timeout_ms, Timed::Model, "a run of the loop"),
            TypedTool::Workflow(tool) => (tool.timeout_ms, Timed::Server, "a run of the workflow"),
            TypedTool::Action(tool) => {
                let used = subject.action(&tool.name);
                (tool.timeout_ms, used.map_or(Timed::Model, |used| timed(&used.action)), "a call")
            }
            _ => continue,
        };
        if let Some(limit) = limit.filter(|limit| timed.seems_seconds(*limit)) {
            found.extend(seconds(Some(subject.at(&format!("{pointer}/timeout_ms"))), limit, what));
        }
    }
    for used in subject.actions() {
        let limit = used.action.head().timeout_ms;
        if let Some(limit) = limit.filter(|limit| timed(&used.action).seems_seconds(*limit)) {
            found.extend(seconds(Some(used.at("/timeout_ms")), limit, "a call"));
        }
        if let Action::Matcher(_) = &*used.action {
            matcher(&WrittenSettings::of_action(&RULE, subject, used), found);
        }
        if let Action::Llm(llm) = &*used.action
            && let Some(retry) = &llm.retry
        {
            found.extend(waits(Some(used.at("/retry")), retry));
        } else if let Some(retry) = used.action.kind().retry() {
            found.extend(waits(Some(used.at("/retry")), &of_call(retry)));
        }
    }
}

/// The waits between the attempts of a call.
fn of_call(CallRetry { attempts, base_ms, max_ms, .. }: &CallRetry) -> Retry {
    Retry { attempts: Some(*attempts), base_ms: *base_ms, max_ms: *max_ms, ..Retry::default() }
}

/// How long approvals are waited for.
fn approvals(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let limit = |approval: Option<&ApprovalSettings>| {
        approval.and_then(|approval| approval.expires_after_ms).filter(|limit| Timed::Human.seems_seconds(*limit))
    };
    for (pointer, declaration) in subject.declarations() {
        let approval = match declaration {
            ToolDeclaration::Typed(TypedTool::Action(tool)) => tool.approval.as_ref(),
            ToolDeclaration::Typed(TypedTool::Loop(tool)) => tool.approval.as_ref(),
            ToolDeclaration::Typed(TypedTool::Workflow(tool)) => tool.approval.as_ref(),
            _ => None,
        };
        if let Some(limit) = limit(approval) {
            let cursor = subject.at(&format!("{pointer}/approval/expires_after_ms"));
            found.extend(seconds(Some(cursor), limit, "a human"));
        }
    }
    for used in subject.actions() {
        if let Some(limit) = limit(used.action.head().approval) {
            found.extend(seconds(Some(used.at("/approval/expires_after_ms")), limit, "a human"));
        }
    }
}

/// What the time limit of an action is given to.
fn timed(action: &Action) -> Timed {
    match action.kind().speed() {
        CallSpeed::Model => Timed::Model,
        CallSpeed::Server => Timed::Server,
        // A query or a program of this machine may be quick.
        CallSpeed::Local => Timed::Local,
    }
}

fn seconds(cursor: Option<Cursor<'_>>, limit: u64, what: &str) -> Option<Diagnostic> {
    let cursor = cursor.filter(Cursor::is_written)?;
    let fault = cursor.report(&RULE, format!("{what} gets {limit} ms: seconds seem to be meant"));
    let meant = limit.saturating_mul(1000);
    Some(fault.help(format!("the value is in milliseconds: {}", as_seconds(limit, meant))).suggest(meant.to_string()))
}

fn as_seconds(count: u64, milliseconds: u64) -> String {
    match count {
        1 => format!("1 second is {milliseconds}"),
        _ => format!("{count} seconds are {milliseconds}"),
    }
}

/// Waits between attempts that are over before a busy server is free again.
fn waits(cursor: Option<Cursor<'_>>, retry: &Retry) -> Option<Diagnostic> {
    let (first, longest) = (retry.base_ms, retry.max_ms);
    // So little says that nothing is waited for.
    if first == 0 || longest < 5 || first > longest || retry.attempts.is_some_and(|attempts| attempts < 2) {
        return None;
    }
    let doubled = |times: u32| first.saturating_mul(1_u64.checked_shl(times).unwrap_or(u64::MAX)).min(longest);
    // Without a number of attempts, there are many: the longest wait says how quick they are.
    let all = match retry.attempts {
        Some(attempts) => (1..attempts.min(64)).fold(0_u64, |all, time| all.saturating_add(doubled(time - 1))),
        None => longest,
    };
    let soon = Timed::Server.shortest();
    let cursor = cursor.filter(|_| all < soon)?;
    let name = if cursor.below("/max_ms").is_written() && longest < soon { "/max_ms" } else { "/base_ms" };
    let cursor = Some(cursor.below(name)).filter(Cursor::is_written)?;
    let message = match retry.attempts {
        Some(_) => format!("all retries come within {all} ms: seconds seem to be meant"),
        None => format!("a retry comes after {all} ms at the latest: seconds seem to be meant"),
    };
    let value = if name == "/max_ms" { longest } else { first };
    let meant = value.saturating_mul(1000);
    Some(
        cursor
            .report(&RULE, message)
            .help(format!("the waits are in milliseconds: {}", as_seconds(value, meant)))
            .suggest(meant.to_string()),
    )
}

fn of_steps(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let times =
        |value: Option<&Value>, timed: Timed| value.and_then(Value::as_u64).filter(|limit| timed.seems_seconds(*limit));
    let whole = "/definition/timeout_ms";
    if let Some(limit) = times(subject.document().value.pointer(whole), Timed::Model).filter(|_| !subject.is_step()) {
        found.extend(seconds(Some(subject.at(whole)), limit, "the whole run"));
    }
    for step in steps(subject) {
        let used = subject.action(step.kind);
        let own = used.and_then(|used| times(step.written.get("timeout_ms"), timed(&used.action)));
        let own = own.map(|limit| (limit, format!("{}/timeout_ms", step.at), "a call"));
        let item = times(step.properties.get("item_timeout_ms"), Timed::Server).filter(|_| step.is_foreach());
        let item = item.map(|limit| (limit, step.property("item_timeout_ms"), "an item"));
        for (limit, at, what) in own.into_iter().chain(item) {
            found.extend(seconds(Some(subject.at(&at)), limit, what));
        }
        let at = format!("{}/retry", step.at);
        let retry = step.written.get("retry").filter(|_| used.is_some() && !subject.is_faulty(&at));
        if let Some(retry) = retry.and_then(|retry| CallRetry::deserialize(retry).ok()) {
            found.extend(waits(Some(subject.at(&at)), &of_call(&retry)));
        }
    }
    for step in steps(subject) {
        let number = |name: &str| step.properties.get(name).and_then(Value::as_f64);
        let mut report = |at: String, message: String, help: String, meant: f64| {
            if !subject.is_faulty(&at) {
                found.push(subject.at(&at).report(&RULE, message).help(help).suggest(meant.to_string()));
            }
        };
        match step.kind {
            "PbotForm" | "PbotApproval" => {
                let times = step.properties.get("reminder_intervals").and_then(Value::as_array).into_iter().flatten();
                let times = times
                    .enumerate()
                    .map(|(at, time)| (format!("{}/{at}", step.property("reminder_intervals")), time.as_f64()));
                let all = std::iter::once((step.property("ttl_seconds"), number("ttl_seconds"))).chain(times);
                for (at, seconds) in all {
                    if let Some(seconds) = seconds.filter(|seconds| seems_milliseconds(*seconds)) {
                        let meant = seconds / 1000.0;
                        let message = format!(
                            "{seconds} seconds are {:.0} days: milliseconds seem to be meant",
                            seconds / 86_400.0
                        );
                        report(at, message, format!("the value is in seconds: {meant}"), meant);
                    }
                }
            }
            "matcher" => matcher(&WrittenSettings::of_step(&RULE, subject, &step), found),
            _ => {}
        }
    }
}

/// Shares for percentages, and the reverse.
fn matcher(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    let number = |name: &str| settings.get(name).and_then(Value::as_f64);
    let mut report = |name: &str, message: String, help: String, meant: f64| {
        found.extend(settings.at(name, message).map(|fault| fault.help(help).suggest(meant.to_string())));
    };
    if let Some(share) = number("fuzzyThreshold").filter(|share| *share > 0.0 && *share <= 1.0) {
        let message = format!("texts that are alike by {share} of 100 match: a percentage seems to be meant");
        let help = format!("the threshold is 0 to 100: {}", share * 100.0);
        report("fuzzyThreshold", message, help, share * 100.0);
    }
    let is_relative = settings.text("tolerance_mode") == Some("relative");
    if let Some(percent) = number("tolerance").filter(|share| is_relative && *share >= 1.0) {
        let message = format!("a relative tolerance of {percent} lets all amounts match: a share seems to be meant");
        let help = format!("a share is 0 to 1: {percent} % are {}", percent / 100.0);
        report("tolerance", message, help, percent / 100.0);
    }
}

fn of_project(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        for (side, price) in model.price.iter().flat_map(|price| [("input", price.input), ("output", price.output)]) {
            let cursor = subject.in_project(&format!("/models/{}/price/{side}", token(name)));
            if let Some(cursor) = cursor.filter(|_| price > 0.0 && price < PRICE) {
                let message = format!(
                    "a million tokens of the model `{name}` cost {price} dollars: another unit seems to be meant"
                );
                found.push(
                    cursor
                        .report(&RULE, message)
                        .help("the price is that of a million tokens, not of a thousand or of one"),
                );
            }
        }
    }
    let limits = &project.serve.limits;
    for (name, share) in [("token", &limits.token), ("org", &limits.org)] {
        let cursor = subject.in_project(&format!("/serve/limits/{name}/bytes_per_minute"));
        if let (Some(bytes), Some(cursor)) = (share.bytes_per_minute.filter(|bytes| *bytes < REQUEST), cursor) {
            let meant = bytes << 20;
            let message = format!("{bytes} bytes a minute do not hold one request: mebibytes seem to be meant");
            found.push(
                cursor
                    .report(&RULE, message)
                    .help(format!("the value is in bytes: {bytes} MiB are {meant}"))
                    .suggest(meant.to_string()),
            );
        }
    }
}
