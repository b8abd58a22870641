//! A step that waits: whether it says how long, or until when.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::Walk;
use crate::diagnostic::{Diagnostic, codes};
use crate::program::reference::Field;
use crate::program::time_span::{DURATION_HELP, TimeSpan};
use crate::program::wait::{MAX_WAIT_MS, TIMES, moment, span};
use crate::syntax::{quoted, token};

/// The fields of a wait.
const FIELDS: [&str; 2] = ["for", "until"];

/// What other products call `for` and `until`.
const OTHER_WORDS: [(&str, &str); 16] = [
    ("duration", "for"),
    ("seconds", "for"),
    ("minutes", "for"),
    ("hours", "for"),
    ("days", "for"),
    ("amount", "for"),
    ("delay", "for"),
    ("ms", "for"),
    ("milliseconds", "for"),
    ("timeout", "for"),
    ("time", "until"),
    ("at", "until"),
    ("date", "until"),
    ("timestamp", "until"),
    ("datetime", "until"),
    ("dateTime", "until"),
];

/// What a wait is, for messages.
const A_WAIT: &str = "a wait has `for` or `until`: {\"for\": \"2h\"}, {\"until\": \"@input.due\"}";

impl Walk<'_, '_, '_> {
    /// Judges what a wait is given. `at`: the JSON pointer of the step.
    pub(super) fn wait(&mut self, at: &str, properties: Option<&Value>) {
        let given = properties.and_then(Value::as_object);
        let has = |name: &str| given.is_some_and(|given| given.get(name).is_some_and(|value| !value.is_null()));
        for name in given.into_iter().flat_map(|given| given.keys()).filter(|name| !FIELDS.contains(&name.as_str())) {
            let place = format!("{at}/properties/{}", token(name));
            let meant = OTHER_WORDS.iter().find(|(word, _)| word == name).map(|(_, meant)| *meant);
            let message = format!("a wait has no field `{name}`");
            let fault = self.bad_wait(&place, message, true);
            self.faults.push(match meant {
                Some(meant) => fault.help(format!("write `{meant}`; {A_WAIT}")),
                None => fault.help(A_WAIT),
            });
        }
        match (has("for"), has("until")) {
            (true, true) => {
                let place = format!("{at}/properties/until");
                let fault = self.bad_wait(&place, "`for` and `until` are two ends of one wait".to_owned(), true);
                self.faults.push(fault.help("take one of the two out"));
            }
            (false, false) => {
                // What else it has, and what is written at the step itself, is said already.
                let is_beside = FIELDS.iter().any(|name| self.main.tree.at(&format!("{at}/{name}")).is_some());
                if !is_beside && given.is_none_or(serde_json::Map::is_empty) {
                    let message = "the step does not say how long it waits".to_owned();
                    let fault = self.bad_wait(&format!("{at}/type"), message, false);
                    self.faults.push(fault.help(A_WAIT));
                }
            }
            _ => {}
        }
        for name in FIELDS {
            let Some(value) = given.and_then(|given| given.get(name)).filter(|value| !value.is_null()) else {
                continue;
            };
            self.wait_field(name, &format!("{at}/properties/{name}"), value);
        }
    }

    /// Judges one of the two fields, as far as its value is written.
    fn wait_field(&mut self, name: &str, at: &str, value: &Value) {
        let why = match (value.as_str(), name) {
            (Some(text), _) => match Field::compile(value) {
                Ok(Field::Literal(_)) if name == "for" => match span(text) {
                    Ok(span) if span.seconds() == 0 => {
                        Some("the step does not wait: its `for` is no time at all".to_owned())
                    }
                    judged => judged.err(),
                },
                Ok(Field::Literal(_)) => match moment(text, &TimeZone::UTC) {
                    None => Some(format!("{} is no time: {TIMES}", quoted(text))),
                    Some(until) if self.is_too_far(until) => {
                        Some(format!("`until` is {}, and a step waits for at most 366 days", quoted(text)))
                    }
                    Some(_) => None,
                },
                Ok(Field::Optional(_)) => Some(format!("a wait can't do without its `{name}`")),
                Ok(_) if name_of_secret(value) => Some(format!("`{name}` of a wait is no secret")),
                // The fault of a template is reported with the texts.
                Ok(_) | Err(_) => None,
            },
            (None, "for") => Some(format!("`for` is a text: {}", DURATION_HELP)),
            (None, _) => Some(format!("`until` is a text: {TIMES}")),
        };
        let Some(why) = why else { return };
        let fault = self.bad_wait(at, why, false);
        let meant = value.as_str().filter(|_| name == "for").and_then(TimeSpan::meant);
        self.faults.push(match meant {
            Some(meant) => fault.suggest(quoted(&meant)),
            None => fault.help(A_WAIT),
        });
    }

    /// Whether a step that began now would fail because the time is so far away. Where no moment is known, it may be near when the
    /// workflow runs.
    fn is_too_far(&self, until: Timestamp) -> bool {
        // A date is a midnight that may be a day later elsewhere.
        const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
        let now_ms = self.calls.texts().outside.now_ms;
        let latest_ms = now_ms.map(|now_ms| now_ms.saturating_add_unsigned(MAX_WAIT_MS.saturating_add(DAY_MS)));
        latest_ms.is_some_and(|latest_ms| until.as_millisecond() > latest_ms)
    }

    fn bad_wait(&self, at: &str, message: String, key: bool) -> Diagnostic {
        let place = if key { self.main.tree.key_place(at) } else { self.main.tree.place(at) };
        Diagnostic::error(codes::BAD_WAIT, message, at, place)
    }
}

fn name_of_secret(value: &Value) -> bool {
    Field::compile(value).is_ok_and(|field| field.names_secret())
}
