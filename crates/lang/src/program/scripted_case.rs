//! Which case of a script a run plays: a function of the run's input alone, so that a run that is resumed, retried or
//! tested plays the same one.

use serde_json::{Map, Value, json};

use super::Schema;
use crate::diagnostic::shown;
use crate::language::Script;
use crate::language::script::ScriptCase;

/// What the input of a run must be.
#[derive(Debug)]
pub struct InputCondition {
    /// None when a value is a number that nothing can be compared with: it never fits.
    schema: Option<Schema>,
}

impl InputCondition {
    /// The condition of a `when`.
    pub fn new(when: &Map<String, Value>) -> Self {
        let values: Map<String, Value> =
            when.iter().map(|(name, value)| (name.clone(), json!({ "const": value }))).collect();
        let names: Vec<&String> = when.keys().collect();
        Self { schema: Schema::compile(json!({ "properties": values, "required": names })).ok() }
    }

    /// Whether an input fits. Numbers are equal by their value: 1 is 1.0.
    pub fn fits(&self, input: &Value) -> bool {
        input.is_object() && self.schema.as_ref().is_some_and(|schema| schema.faults(input).is_empty())
    }
}

/// A script whose `replies` are those for an input: of the first case that fits, or its own ones. Without either, the
/// cases stay, and a run of it says that there are no replies for its input.
pub fn for_input(script: Script, input: &Value) -> Script {
    let fitting = script.cases.iter().position(|case| InputCondition::new(&case.when).fits(input));
    let Some(place) = fitting else {
        return match script.replies.is_empty() {
            true => script,
            false => Script { cases: Vec::new(), ..script },
        };
    };
    let replies = script.cases.into_iter().nth(place).map(|case| case.replies).unwrap_or_default();
    Script { replies, cases: Vec::new(), ..script }
}

/// The most cases that a sentence names.
const MAX_NAMED: usize = 8;

/// Says that no case fits an input, and which ones there are.
pub fn no_case<'a>(cases: impl ExactSizeIterator<Item = &'a Map<String, Value>>) -> String {
    let count = cases.len();
    let mut named: Vec<String> = cases.take(MAX_NAMED).map(words).collect();
    if count > MAX_NAMED {
        named.push(format!("{} more", count - MAX_NAMED));
    }
    let last = named.pop().unwrap_or_default();
    let all = if named.is_empty() { last } else { format!("{} and {last}", named.join(", ")) };
    format!("the script has no replies for this input; it has replies for {all}")
}

/// A `when` as the command line gives an input: `ticket_id=TK-1042`.
fn words(when: &Map<String, Value>) -> String {
    let field = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{}={}", shown(name), shown(text)),
        other => format!("{}={}", shown(name), shown(&other.to_string())),
    };
    when.iter().map(field).collect::<Vec<_>>().join(" with ")
}

impl ScriptCase {
    /// Whether every input that fits `later` fits this case too.
    pub(crate) fn covers(&self, later: &Self) -> bool {
        self.when.iter().all(|(name, value)| {
            let wanted = Map::from_iter([(name.clone(), value.clone())]);
            later.when.get(name).is_some_and(|other| {
                InputCondition::new(&wanted).fits(&Value::Object(Map::from_iter([(name.clone(), other.clone())])))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn every_field_must_have_its_value_and_others_may_have_any() {
        let condition = InputCondition::new(&when(&json!({"id": "A", "n": 1, "of": {"k": [1, null]}})));
        assert!(condition.fits(&json!({"id": "A", "n": 1.0, "of": {"k": [1.0, null]}, "more": true})));
        for input in [
            json!({"id": "B", "n": 1, "of": {"k": [1, null]}}),
            json!({"id": "A", "n": "1", "of": {"k": [1, null]}}),
            json!({"id": "A", "n": 1, "of": {"k": [1, null], "more": 1}}),
            json!({"id": "A", "n": 1}),
            json!({}),
            json!(null),
        ] {
            assert!(!condition.fits(&input), "{input}");
        }
    }

    #[test]
    fn the_first_case_that_fits_gives_the_replies() {
        let script: Script = serde_json::from_value(json!({"replies": ["other"], "cases": [
            {"when": {"id": "A", "n": 1}, "replies": ["one"]},
            {"when": {"id": "A"}, "replies": ["any"]}]}))
        .unwrap();
        for (input, said) in [
            (json!({"id": "A", "n": 1}), "one"),
            (json!({"id": "A", "n": 2}), "any"),
            (json!({"id": "B"}), "other"),
            (json!(null), "other"),
        ] {
            let of = for_input(script.clone(), &input);
            assert_eq!((of.replies, of.cases.len()), (vec![json!(said)], 0), "{input}");
        }
        let none = for_input(Script { replies: Vec::new(), ..script }, &json!({"id": "B"}));
        assert_eq!((none.replies.len(), none.cases.len()), (0, 2));
    }

    #[test]
    fn the_sentence_names_a_few_cases() {
        let all = [json!({"id": "A"}), json!({"id": "B", "n": 1})].map(|value| when(&value));
        assert_eq!(
            no_case(all.iter()),
            "the script has no replies for this input; it has replies for id=A and id=B with n=1"
        );
        let many: Vec<_> = (0..11).map(|n| when(&json!({"n": n}))).collect();
        assert!(no_case(many.iter()).ends_with("n=6, n=7 and 3 more"), "{}", no_case(many.iter()));
    }
}
