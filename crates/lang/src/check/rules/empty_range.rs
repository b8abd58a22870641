//! The parts of an `and` that leave no number to a value: above 10, and below 5.

use std::collections::HashMap;

use serde_json::Value;

/// What one comparison asks of a number.
#[derive(Clone, Copy)]
struct NumberBound<'v> {
    number: f64,
    /// The number as it is written.
    written: &'v Value,
    /// Whether the number itself is excluded.
    is_strict: bool,
    /// In a sentence: `greater than`.
    called: &'static str,
}

/// The tightest bounds that the parts ask of one value.
#[derive(Default)]
struct NumberRange<'v> {
    least: Option<NumberBound<'v>>,
    most: Option<NumberBound<'v>>,
}

impl<'v> NumberRange<'v> {
    fn raise(&mut self, bound: NumberBound<'v>) {
        let is_tighter = |least: &NumberBound<'_>| (bound.number, bound.is_strict) > (least.number, least.is_strict);
        if self.least.as_ref().is_none_or(is_tighter) {
            self.least = Some(bound);
        }
    }

    fn lower(&mut self, bound: NumberBound<'v>) {
        let is_tighter = |most: &NumberBound<'_>| (-bound.number, bound.is_strict) > (-most.number, most.is_strict);
        if self.most.as_ref().is_none_or(is_tighter) {
            self.most = Some(bound);
        }
    }

    /// The two bounds that no number meets.
    fn contradiction(&self) -> Option<(&NumberBound<'v>, &NumberBound<'v>)> {
        let (least, most) = (self.least.as_ref()?, self.most.as_ref()?);
        let is_empty =
            least.number > most.number || (least.number >= most.number && (least.is_strict || most.is_strict));
        is_empty.then_some((least, most))
    }
}

/// Why the parts of an `and` never hold together, where two of them bound the same value.
pub(super) fn reason(parts: &[Value]) -> Option<String> {
    let mut ranges: HashMap<&str, NumberRange<'_>> = HashMap::new();
    for part in parts {
        let Some((operator, path, bound)) = comparison(part) else { continue };
        let range = ranges.entry(path).or_default();
        match operator {
            "greaterThan" | "greaterOrEqual" => range.raise(bound),
            "lessThan" | "lessOrEqual" => range.lower(bound),
            _ => {
                range.raise(bound);
                range.lower(bound);
            }
        }
        if let Some((least, most)) = range.contradiction() {
            let (first, second) = (least.called, most.called);
            return Some(format!("`{path}` is not both {first} {} and {second} {}", least.written, most.written));
        }
    }
    None
}

/// A comparison of a path with a number that is written out, turned so that the path is on the left.
fn comparison(part: &Value) -> Option<(&str, &str, NumberBound<'_>)> {
    let (operator, operands) = part.as_object()?.iter().next()?;
    let [one, other] = operands.as_array()?.as_slice() else { return None };
    let path = |value: &'_ Value| value.as_str().is_some_and(|text| text.starts_with('@'));
    let (operator, path, written) = match (path(one), path(other)) {
        (true, false) => (operator.as_str(), one, other),
        (false, true) => (super::constant_condition::mirrored(operator), other, one),
        _ => return None,
    };
    let (is_strict, called) = match operator {
        "greaterThan" => (true, "greater than"),
        "lessThan" => (true, "less than"),
        "greaterOrEqual" => (false, "at least"),
        "lessOrEqual" => (false, "at most"),
        "equal" | "eq" => (false, "equal to"),
        _ => return None,
    };
    Some((operator, path.as_str()?, NumberBound { number: written.as_f64()?, written, is_strict, called }))
}
