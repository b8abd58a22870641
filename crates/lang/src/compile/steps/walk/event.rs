//! A step that waits for an event: whether it says for which one.

use serde_json::Value;

use super::Walk;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::program::awaited_event::{MAX_MATCHES, MAX_NAME_CHARS, is_name, ttl_ms};
use crate::program::reference::Field;
use crate::program::time_span::TimeSpan;
use crate::syntax::{quoted, token};

const FIELDS: [&str; 3] = ["event", "match", "ttl_seconds"];

/// What other products call the fields.
const OTHER_WORDS: [(&str, &str); 14] = [
    ("name", "event"),
    ("event_name", "event"),
    ("eventName", "event"),
    ("signal", "event"),
    ("topic", "event"),
    ("key", "match"),
    ("where", "match"),
    ("filter", "match"),
    ("matches", "match"),
    ("correlation", "match"),
    ("timeout", "ttl_seconds"),
    ("timeout_seconds", "ttl_seconds"),
    ("ttl", "ttl_seconds"),
    ("for", "ttl_seconds"),
];

/// The operators of conditions, which a `match` does not know.
const OPERATORS: [&str; 12] = [
    "equal",
    "eq",
    "notEqual",
    "greaterThan",
    "lessThan",
    "greaterOrEqual",
    "lessOrEqual",
    "in",
    "matches",
    "and",
    "or",
    "not",
];

const A_WAIT: &str =
    "write {\"event\": \"payment.received\", \"match\": {\"order\": \"@input.id\"}, \"ttl_seconds\": 86400}";

impl Walk<'_, '_, '_> {
    /// Judges what a wait for an event is given. `at`: the JSON pointer of the step.
    pub(super) fn wait_for_event(&mut self, at: &str, properties: Option<&Value>) {
        let given = properties.and_then(Value::as_object);
        for name in given.into_iter().flat_map(|given| given.keys()).filter(|name| !FIELDS.contains(&name.as_str())) {
            let meant = OTHER_WORDS.iter().find(|(word, _)| word == name).map(|(_, meant)| *meant);
            let message = format!("a wait for an event has no field `{name}`");
            let fault = self.bad_event(&format!("{at}/properties/{}", token(name)), message, true);
            self.faults.push(match meant {
                Some(meant) => fault.help(format!("it is called `{meant}` here; {A_WAIT}")),
                None => fault.help(A_WAIT),
            });
        }
        let get = |name: &str| given.and_then(|given| given.get(name)).filter(|value| !value.is_null());
        match get("event") {
            Some(Value::String(name)) if is_name(name) => {}
            Some(Value::String(name)) => {
                let message = format!("{} is no name of an event", quoted(name));
                let fault = self.bad_event(&format!("{at}/properties/event"), message, false);
                let help = format!(
                    "a name is written out: at most {MAX_NAME_CHARS} ASCII letters, digits, `.`, `_`, `-`, `:` and `/`; which one \
                     of these events is meant says `match`"
                );
                self.faults.push(fault.help(help));
            }
            Some(_) => {
                let fault = self.bad_event(&format!("{at}/properties/event"), "`event` is a text".to_owned(), false);
                self.faults.push(fault.help(A_WAIT));
            }
            None => {
                let is_beside = FIELDS.iter().any(|name| self.main.tree.at(&format!("{at}/{name}")).is_some());
                if !is_beside {
                    let message = "the step does not say for which event it waits".to_owned();
                    let fault = self.bad_event(&format!("{at}/type"), message, false);
                    self.faults.push(fault.help(A_WAIT));
                }
            }
        }
        if let Some(matches) = get("match") {
            self.event_matches(&format!("{at}/properties/match"), matches);
        }
        if let Some(ttl) = get("ttl_seconds") {
            self.event_ttl(&format!("{at}/properties/ttl_seconds"), ttl);
        }
    }

    fn event_matches(&mut self, at: &str, matches: &Value) {
        let Some(members) = matches.as_object() else {
            let message = "`match` is an object: what members of the data of the event must be".to_owned();
            let fault = self.bad_event(at, message, false);
            return self.faults.push(fault.help(A_WAIT));
        };
        if members.len() > MAX_MATCHES {
            let message = format!("`match` has {} members, and at most {MAX_MATCHES} are compared", members.len());
            let fault = self.bad_event(at, message, true);
            self.faults.push(fault.help("one member that names the event is enough"));
        }
        for (name, value) in members {
            let place = format!("{at}/{}", token(name));
            self.unmet_match(&place, name, value);
            let why = match Field::compile(value) {
                Ok(Field::Optional(_)) => "a wait can't do without the values of its `match`",
                Ok(field) if field.names_secret() => {
                    "a value of `match` is no secret: it is shown to who may see the run"
                }
                _ => continue,
            };
            let fault = self.bad_event(&place, why.to_owned(), false);
            self.faults.push(fault);
        }
    }

    /// A member of `match` that looks like a condition: it is compared as it is written, and no event has it.
    fn unmet_match(&mut self, at: &str, name: &str, value: &Value) {
        let is_operator = |word: &str| OPERATORS.contains(&word);
        let inner = value.as_object().filter(|inner| inner.len() == 1).and_then(|inner| inner.keys().next());
        let (message, help) = if name.starts_with('@') || name.starts_with("data.") {
            (
                format!(
                    "`{name}` is compared with a member of this name: `match` has the names of the members of the data"
                ),
                "write the name of the member alone: {\"order\": \"@input.id\"}",
            )
        } else if is_operator(name) && value.is_array() || inner.is_some_and(|inner| is_operator(inner)) {
            (
                format!("`{name}` is compared with what is written here: a `match` has no conditions"),
                "a `match` says what members of the data must be; a step behind the wait has the condition in its `filter`",
            )
        } else if value.as_array().is_some_and(|list| list.len() > 1 && list.iter().all(|entry| !entry.is_object())) {
            (
                format!("`{name}` is compared with the whole of this list, and not with its entries"),
                "wait for the event of one value, or read the value in a `filter` behind the wait",
            )
        } else {
            return;
        };
        let fault = self.bad_event(at, message, false);
        self.faults.push(Diagnostic { severity: Severity::Warning, ..fault }.help(help));
    }

    fn event_ttl(&mut self, at: &str, ttl: &Value) {
        if ttl.as_f64().and_then(ttl_ms).is_some() {
            return;
        }
        let message = match ttl.as_f64() {
            Some(_) => "`ttl_seconds` is above 0, and at most 366 days (31,622,400)".to_owned(),
            None => "`ttl_seconds` is a number of seconds".to_owned(),
        };
        let fault = self.bad_event(at, message, false);
        let meant = ttl.as_str().and_then(TimeSpan::read_forward).map(|ttl| ttl.seconds().to_string());
        self.faults.push(match meant {
            Some(meant) => fault.suggest(meant),
            None => fault.help(A_WAIT),
        });
    }

    fn bad_event(&self, at: &str, message: String, key: bool) -> Diagnostic {
        let place = if key { self.main.tree.key_place(at) } else { self.main.tree.place(at) };
        Diagnostic::error(codes::BAD_EVENT, message, at, place)
    }
}
