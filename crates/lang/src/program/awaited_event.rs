//! A step that waits for an event from outside: which events it takes, and for how long.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::canonical::is_same;
use super::reference::{Field, Scope, Unresolved};
use super::wait::MAX_WAIT_MS;
use crate::language::wait::WaitForEvent;

/// The longest name of an event, in characters.
pub const MAX_NAME_CHARS: usize = 100;
/// The most members of `match`.
pub const MAX_MATCHES: usize = 20;
/// The longest `match` of a step, as JSON text in bytes.
pub const MAX_MATCH_BYTES: usize = 4_096;

/// A step that waits for an event.
#[derive(Debug)]
pub struct EventStep {
    /// The name of the event.
    pub event: String,
    /// What members of its data must be, by their dotted paths.
    pub matches: Vec<(String, Field)>,
    /// For how long, in milliseconds.
    pub ttl_ms: u64,
}

impl EventStep {
    /// Compiles what is written; none when it has a fault, which is reported before.
    pub fn compile(written: &WaitForEvent) -> Option<Self> {
        let compile = |(path, value): (&String, &Value)| Some((path.clone(), Field::compile(value).ok()?));
        let matches = written.matches.iter().map(compile).collect::<Option<_>>()?;
        let ttl_ms = written.ttl_seconds.map_or(Some(MAX_WAIT_MS), ttl_ms)?;
        Some(Self { event: written.event.clone(), matches, ttl_ms })
    }

    /// What the step waits for, with the values of the context.
    ///
    /// # Errors
    /// When a name that it needs has no value.
    pub fn awaited(&self, scope: &Scope<'_>) -> Result<EventMatch, Unresolved> {
        let resolve = |(path, field): &(String, Field)| Ok((path.clone(), field.resolve(scope)?));
        let matches = self.matches.iter().map(resolve).collect::<Result<_, Unresolved>>()?;
        Ok(EventMatch { event: self.event.clone(), matches })
    }
}

/// The milliseconds of a `ttl_seconds`; none for a number that is no time, and for one above the longest wait.
pub fn ttl_ms(seconds: f64) -> Option<u64> {
    let time = std::time::Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(time.as_millis()).ok().filter(|ttl_ms| (1..=MAX_WAIT_MS).contains(ttl_ms))
}

/// Whether a text can be the name of an event.
pub fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-' | ':' | '/');
    !text.is_empty() && text.len() <= MAX_NAME_CHARS && text.chars().all(is_letter)
}

/// Which events are waited for: those of a name whose data has these values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventMatch {
    /// The name.
    pub event: String,
    /// The values, by their dotted paths in the data.
    #[serde(rename = "match", default, skip_serializing_if = "Map::is_empty")]
    pub matches: Map<String, Value>,
}

impl EventMatch {
    /// Whether an event is one of them. Values are compared as conditions compare them: `1.0` is `1`, and no digit is rounded away.
    pub fn takes(&self, event: &str, data: &Value) -> bool {
        let is = |(path, wanted): (&String, &Value)| at(data, path).is_some_and(|found| is_same(found, wanted));
        self.event == event && self.matches.iter().all(is)
    }
}

/// The member at a dotted path. A member whose whole name is the path comes first.
fn at<'v>(data: &'v Value, path: &str) -> Option<&'v Value> {
    if let Some(found) = data.get(path) {
        return Some(found);
    }
    path.split('.').try_fold(data, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn of(matches: &Value) -> EventMatch {
        EventMatch { event: "paid".to_owned(), matches: matches.as_object().unwrap().clone() }
    }

    #[test]
    fn an_event_is_taken_by_its_name_and_by_the_values_of_its_data() {
        let data = json!({ "order": 7, "paid": { "by": "card", "parts": [1, 2] }, "a.b": "dotted", "none": null,
            "big": 9_007_199_254_740_993_u64, "bigs": [9_007_199_254_740_993_u64] });
        for (matches, is_taken) in [
            (json!({}), true),
            (json!({ "order": 7 }), true),
            (json!({ "order": 7.0 }), true),
            (json!({ "order": "7" }), false),
            (json!({ "paid.by": "card", "order": 7 }), true),
            (json!({ "paid.by": "cash", "order": 7 }), false),
            (json!({ "paid.parts.1": 2 }), true),
            (json!({ "paid.parts": [1, 2] }), true),
            (json!({ "paid.parts": [1.0, 2] }), true),
            (json!({ "paid.parts": [1, 3] }), false),
            (json!({ "big": 9_007_199_254_740_993_u64 }), true),
            (json!({ "big": 9_007_199_254_740_992_u64 }), false),
            (json!({ "bigs": [9_007_199_254_740_992_u64] }), false),
            (json!({ "a.b": "dotted" }), true),
            (json!({ "none": null }), true),
            (json!({ "absent": null }), false),
        ] {
            assert_eq!(of(&matches).takes("paid", &data), is_taken, "{matches}");
        }
        assert!(!of(&json!({})).takes("payed", &data));
        assert!(!of(&json!({ "order": 7 })).takes("paid", &json!([7])), "data without members has none");
    }

    #[test]
    fn a_name_of_an_event_is_plain() {
        for name in ["paid", "payment.received", "acme/order:paid-1", "A_1"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a\nb", "ä", "a{b", &"x".repeat(101)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_time_to_live_is_a_time() {
        assert_eq!(
            [ttl_ms(86_400.0), ttl_ms(0.001), ttl_ms(31_622_400.0)],
            [Some(86_400_000), Some(1), Some(MAX_WAIT_MS)]
        );
        assert!(
            [0.0, -1.0, f64::NAN, f64::INFINITY, 31_622_401.0].into_iter().all(|seconds| ttl_ms(seconds).is_none())
        );
    }

    proptest! {
        #[test]
        fn no_path_makes_it_fail(path in ".{0,12}", key in ".{0,6}") {
            let _ = of(&json!({ path: 1 })).takes("paid", &json!({ key: [1] }));
        }
    }
}
