//! How many runs of a loop or a workflow are under way at a time: the compiled form.

use serde_json::{Number, Value};

use super::canonical;
use super::reference::{Field, Scope};
use crate::language::concurrency::{Concurrency, WhenFull};
use crate::program::json_texts::JsonRule;

/// The most bytes of a key.
const MAX_KEY_BYTES: usize = 4_096;

/// Which runs of a loop or a workflow are counted together, and how many of them are under way at a time.
#[derive(Debug)]
pub struct ConcurrencyRule {
    /// What they have in common; none is all runs of the document.
    key: Option<Field>,
    /// How many.
    pub limit: u32,
    /// What happens to a run that is started when so many are.
    pub when_full: WhenFull,
}

impl ConcurrencyRule {
    /// The rule of a document; none where it has a fault, which is reported.
    pub fn of(written: &Concurrency) -> Option<Self> {
        let key = match &written.key {
            Some(key) => Some(Field::compile(&Value::from(key.as_str())).ok()?),
            None => None,
        };
        Some(Self { key, limit: written.limit, when_full: written.when_full })
    }

    /// The key of a run with this input; none where all runs of the document are counted together. A number and the text that is
    /// written like it are one key.
    ///
    /// # Errors
    /// Why the input has none.
    pub fn key_of(&self, input: &Value) -> Result<Option<String>, String> {
        let Some(key) = &self.key else { return Ok(None) };
        let scope = Scope::of_input(input, JsonRule::PRESENT.into());
        let refused = |why: &str| format!("the `key` of `concurrency` {why}");
        let value = key.resolve(&scope).map_err(|missing| refused(&format!("has no value: {missing}")))?;
        let text = match value {
            Value::String(text) => text,
            Value::Number(number) => spelled(&number),
            Value::Null => return Err(refused("is null: it is a text or a number")),
            Value::Bool(_) => return Err(refused("is true or false: it is a text or a number")),
            Value::Array(_) => return Err(refused("is a list: it is a text or a number")),
            Value::Object(_) => return Err(refused("is an object: it is a text or a number")),
        };
        match text.len() {
            0 => Err(refused("is the empty text: no runs are counted together by it")),
            1..=MAX_KEY_BYTES => Ok(Some(text)),
            _ => Err(refused(&format!("has {} bytes, and may have {MAX_KEY_BYTES}", text.len()))),
        }
    }

    /// The JSON pointer of the member of the input that the key takes; the empty one where it takes several, or none.
    pub fn pointer(&self) -> String {
        let variables = self.key.iter().flat_map(Field::variables);
        let mut names: Vec<String> = variables.filter_map(|named| named.variable.path.get(1).cloned()).collect();
        names.dedup();
        match names.as_slice() {
            [name] => format!("/{}", crate::syntax::token(name)),
            _ => String::new(),
        }
    }

    /// The paths that the key takes.
    pub(crate) fn paths(&self) -> Vec<Vec<String>> {
        self.key.iter().flat_map(Field::variables).map(|named| named.variable.path).collect()
    }
}

/// A number as a key: wholes without a fraction, an exponent or the sign of a zero, so that `7.0` and `7` are one.
fn spelled(number: &Number) -> String {
    let real = number.as_f64().filter(|real| !number.is_i64() && !number.is_u64() && real.fract() == 0.0);
    match real {
        Some(0.0) => "0".to_owned(),
        // Exact: each whole of that size is the nearest of itself only below 2^53.
        Some(real) if real.abs() < 9e15 => format!("{real:.0}"),
        _ => decimal(number),
    }
}

/// A number by what it is worth: `0.50`, `5e-1` and `0.5` are one key. Without an exponent, unless that would be long.
fn decimal(number: &Number) -> String {
    const MAX_ZEROS: usize = 30;
    let spelled = canonical::number(number);
    let (digits, power) = spelled.split_once('e').unwrap_or((&spelled, "0"));
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let Ok(power) = power.parse::<i64>() else { return spelled };
    let size = usize::try_from(power.unsigned_abs()).unwrap_or(usize::MAX);
    if size > MAX_ZEROS {
        return spelled;
    }
    if power >= 0 {
        return format!("{sign}{digits}{}", "0".repeat(size));
    }
    let padded = format!("{}{digits}", "0".repeat(size.saturating_add(1).saturating_sub(digits.len())));
    let (whole, fraction) = padded.split_at(padded.len().saturating_sub(size));
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(key: &str) -> ConcurrencyRule {
        ConcurrencyRule::of(&Concurrency { key: Some(key.to_owned()), limit: 1, when_full: WhenFull::Wait }).unwrap()
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn numbers_that_are_worth_the_same_are_one_key() {
        let key = |input: Value| rule("@input.id").key_of(&input);
        for (written, expected) in [
            (&["0.5", "0.50", "5e-1", "50E-2"][..], "0.5"),
            (&["-12.05", "-1205e-2"], "-12.05"),
            (&["1e20", "100000000000000000000", "100000000000000000000.0"], "100000000000000000000"),
            (&["9007199254740993", "9007199254740993.0"], "9007199254740993"),
            (&["1e40", "10e39"], "1e40"),
        ] {
            for text in written {
                let value: Value = serde_json::from_str(text).unwrap();
                assert_eq!(key(json!({ "id": value })), Ok(Some(expected.to_owned())), "{text}");
            }
        }
    }

    #[test]
    fn a_key_is_a_text_or_a_number_of_the_input() {
        let key = |input: Value| rule("@input.id").key_of(&input);
        for (value, expected) in [
            (json!("a"), "a"),
            (json!(7), "7"),
            (json!(7.0), "7"),
            (json!("7"), "7"),
            (json!(7.5), "7.5"),
            (json!(-0.0), "0"),
        ] {
            assert_eq!(key(json!({ "id": value })), Ok(Some(expected.to_owned())), "{value}");
        }
        for (input, why) in [
            (json!({}), "has no value"),
            (json!({ "id": null }), "is null"),
            (json!({ "id": true }), "is true or false"),
            (json!({ "id": [1] }), "is a list"),
            (json!({ "id": {} }), "is an object"),
            (json!({ "id": "" }), "is the empty text"),
            (json!({ "id": "x".repeat(5_000) }), "has 5000 bytes"),
        ] {
            let refused = key(input.clone()).unwrap_err();
            assert!(refused.contains(why), "{input}: {refused}");
        }
        let several = rule("{{input.region}}/{{input.id}}");
        assert_eq!(several.key_of(&json!({ "region": "eu", "id": 7 })), Ok(Some("eu/7".to_owned())));
        assert_eq!((several.pointer(), rule("@input.id").pointer()), (String::new(), "/id".to_owned()));
    }
}
