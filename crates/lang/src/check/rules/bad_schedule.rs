//! A workflow's schedule that says no time.

use serde_json::{Value, json};

use super::unknown_zone::ZoneFault;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::program::schema::Schema;
use crate::program::timetable::{minutes, time_of_day};
use crate::syntax::document::DocumentKind;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::BAD_SCHEDULE, check };

/// The most faults of the input that are reported.
const MAX_FAULTS: usize = 5;

/// The intervals that people write as words.
const WORDS: [(&str, &str); 9] = [
    ("minutely", "1m"),
    ("hourly", "1h"),
    ("hour", "1h"),
    ("daily", "1d"),
    ("day", "1d"),
    ("nightly", "1d"),
    ("weekly", "7d"),
    ("week", "7d"),
    ("1w", "7d"),
];

/// The units of an interval in the spellings that people use, with their letter.
const UNITS: [(&str, &str); 12] = [
    ("minutes", "m"),
    ("minute", "m"),
    ("mins", "m"),
    ("min", "m"),
    ("hours", "h"),
    ("hour", "h"),
    ("hrs", "h"),
    ("hr", "h"),
    ("days", "d"),
    ("day", "d"),
    ("M", "m"),
    ("H", "h"),
];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    const AT: &str = "/definition/schedule";
    if subject.document().kind != Some(DocumentKind::Workflow) || subject.is_step() {
        return;
    }
    let Some(schedule) = subject.document().value.pointer(AT) else { return };
    let text = |name: &str| schedule.get(name).and_then(Value::as_str);
    let mut report = |name: &str, message: String, help: &str, meant: Option<String>| {
        let pointer = format!("{AT}/{name}");
        if subject.is_faulty(&pointer) {
            return;
        }
        let fault = subject.at(&pointer).report(&RULE, message).help(help);
        found.push(match meant {
            Some(meant) => fault.suggest(quoted(&meant)),
            None => fault,
        });
    };
    let every = text("every");
    if let Some(every) = every.filter(|every| minutes(every).is_none()) {
        let is_number = every.strip_suffix(['m', 'h', 'd']).is_some_and(|number| {
            number.bytes().any(|byte| byte != b'0') && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        let (message, help) = match is_number {
            true => (format!("{} is too long", quoted(every)), "an interval is at most a hundred years: `36600d`"),
            false => (format!("{} is no interval", quoted(every)), "a number with `m`, `h` or `d`: `30m`, `6h`, `1d`"),
        };
        report("every", message, help, interval(every));
    }
    if let Some(at) = text("at").filter(|at| time_of_day(at).is_none()) {
        let message = format!("{} is no time of the day", quoted(at));
        report("at", message, "`HH:MM` of 24 hours: `06:00`, `18:30`", time(at));
    }
    if let Some(ZoneFault { message, help, meant }) = text("timezone").and_then(ZoneFault::of) {
        report("timezone", message, &help, meant);
    }
    for InputFault { below, message } in input_faults(subject, schedule) {
        let name = if schedule.get("input").is_some() { format!("input{below}") } else { "every".to_owned() };
        let help = "write `\"input\": {...}` beside `every`, as the `input` of the workflow describes it";
        report(&name, format!("every scheduled run would be refused: {message}"), help, None);
    }
    let short = every.and_then(minutes).is_some_and(|minutes| minutes < 24 * 60);
    if short && text("at").is_some() {
        let cursor = subject.at(&format!("{AT}/at")).key();
        let message = "`at` has no effect: it counts where `every` is a day or longer";
        let fault = cursor.report(&RULE, message).help("take it out, or write `\"every\": \"1d\"`");
        found.push(Diagnostic { severity: Severity::Warning, ..fault });
    }
}

/// Why every run that the schedule starts would be refused.
struct InputFault {
    /// The JSON pointer from `input` on.
    below: String,
    message: String,
}

/// What the schema of the workflow's input has against that of the schedule.
fn input_faults(subject: &Subject<'_>, schedule: &Value) -> Vec<InputFault> {
    let given = schedule.get("input").filter(|given| !given.is_null()).cloned().unwrap_or_else(|| json!({}));
    let Some(source) = subject.input_schema().filter(|_| given.is_object()) else { return Vec::new() };
    let Ok(schema) = Schema::compile(source.clone()) else { return Vec::new() };
    let required = source.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let absent: Vec<&str> = required.filter(|name| given.get(name).is_none()).collect();
    let missing = absent.iter().map(|name| InputFault {
        below: String::new(),
        message: format!("the workflow's input needs `{name}`, and it was not given"),
    });
    let faults = schema.faults(&given).into_iter();
    let others =
        faults.filter(|fault| !fault.path.is_empty() || !absent.iter().any(|name| fault.message.contains(*name)));
    let others = others.map(|fault| {
        let message = match fault.message.strip_prefix("the value ") {
            Some(rest) if fault.path.is_empty() => format!("the input {rest}"),
            _ => format!("the input does not fit: {}", fault.message),
        };
        InputFault { below: fault.path, message }
    });
    missing.chain(others).take(MAX_FAULTS).collect()
}

/// The interval that is meant by another spelling: `daily`, `5 minutes`, `3600s`, and a number of milliseconds.
fn interval(every: &str) -> Option<String> {
    let text = every.trim().trim_start_matches("every ").trim_start_matches('@').trim();
    if let Some((_, meant)) = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
        return Some((*meant).to_owned());
    }
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(end)?;
    let (count, unit) = (number.parse::<u64>().ok()?, unit.trim());
    let milliseconds = match unit {
        "" | "ms" if count >= 60_000 => Some(count),
        "s" | "sec" | "seconds" => count.checked_mul(1000),
        _ => None,
    };
    if let Some(milliseconds) = milliseconds {
        let minutes = (milliseconds % 60_000 == 0 && milliseconds > 0).then_some(milliseconds / 60_000)?;
        return Some(match (minutes % 1440, minutes % 60) {
            (0, _) => format!("{}d", minutes / 1440),
            (_, 0) => format!("{}h", minutes / 60),
            _ => format!("{minutes}m"),
        });
    }
    let (_, letter) = UNITS.iter().find(|(word, _)| *word == unit)?;
    Some(format!("{count}{letter}")).filter(|meant| minutes(meant).is_some())
}

/// The time that is meant by `6:00`, `06:00:00` or `6:30 PM`.
fn time(at: &str) -> Option<String> {
    let text = at.trim().to_ascii_uppercase();
    let (clock, half) = match text.strip_suffix("PM") {
        Some(clock) => (clock, Some(12)),
        None => match text.strip_suffix("AM") {
            Some(clock) => (clock, Some(0)),
            None => (text.as_str(), None),
        },
    };
    let mut parts = clock.trim().split(':');
    let hours: u8 = parts.next()?.trim().parse().ok()?;
    let minutes: u8 = parts.next().unwrap_or("00").trim().parse().ok()?;
    if parts.next().is_some_and(|seconds| seconds != "00") {
        return None;
    }
    let hours = match half {
        Some(_) if hours > 12 || hours == 0 => return None,
        Some(half) => hours % 12 + half,
        None => hours,
    };
    Some(format!("{hours:02}:{minutes:02}")).filter(|meant| time_of_day(meant).is_some())
}
