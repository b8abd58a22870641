//! The numbers that a value may be, as its schema bounds them.

use serde_json::Value;

use super::known_value::JsonTypes;

/// The least and the greatest number that a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct SchemaBounds {
    least: Option<SchemaBound>,
    most: Option<SchemaBound>,
}

/// One end of the numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SchemaBound {
    number: f64,
    is_excluded: bool,
}

impl SchemaBounds {
    pub(crate) const COUNT: Self = Self { least: Some(SchemaBound { number: 0.0, is_excluded: false }), most: None };

    /// What a schema says, by its words or by its `minimum` and `maximum`.
    pub(super) fn of_schema(schema: &Value, words: Option<&[Value]>) -> Self {
        if let Some(words) = words {
            return Self::of_words(words);
        }
        let bound = |name: &str, is_excluded| Some(SchemaBound { number: schema.get(name)?.as_f64()?, is_excluded });
        Self {
            least: bound("exclusiveMinimum", true).or_else(|| bound("minimum", false)),
            most: bound("exclusiveMaximum", true).or_else(|| bound("maximum", false)),
        }
    }

    /// How long the values of a schema are that are all texts, or all lists.
    pub(super) fn of_length(schema: &Value, types: JsonTypes) -> Self {
        let names = match types {
            JsonTypes::TEXT => ["minLength", "maxLength"],
            JsonTypes::LIST => ["minItems", "maxItems"],
            _ => return Self::COUNT,
        };
        let bound = |name: &str| Some(SchemaBound { number: schema.get(name)?.as_f64()?, is_excluded: false });
        let [least, most] = names.map(bound);
        Self { least: least.or(Self::COUNT.least), most }
    }

    /// The same numbers, and those from the least of others.
    pub(super) fn with(self, others: Self) -> Self {
        Self { least: others.least, ..self }
    }

    fn of_words(words: &[Value]) -> Self {
        let Some(numbers) = words.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>() else {
            return Self::default();
        };
        let bound = |number| SchemaBound { number, is_excluded: false };
        Self {
            least: numbers.iter().copied().reduce(f64::min).map(bound),
            most: numbers.iter().copied().reduce(f64::max).map(bound),
        }
    }

    /// Whether each of the numbers, or none, is in this order with another one. Nothing where that is open.
    pub(crate) fn order(&self, operator: &str, other: f64) -> Option<bool> {
        let least = |excluded: bool| {
            self.least.is_some_and(|at| at.number > other || (at.number >= other && (at.is_excluded || !excluded)))
        };
        let most = |excluded: bool| {
            self.most.is_some_and(|at| at.number < other || (at.number <= other && (at.is_excluded || !excluded)))
        };
        // All numbers are above (or at) the other one; or all are below (or at) it.
        let (always, never) = match operator {
            "greaterThan" => (least(true), most(false)),
            "greaterOrEqual" => (least(false), most(true)),
            "lessThan" => (most(true), least(false)),
            "lessOrEqual" => (most(false), least(true)),
            _ => return None,
        };
        (always || never).then_some(always)
    }

    /// Whether a number is outside.
    pub(crate) fn excludes(&self, number: f64) -> bool {
        self.order("lessThan", number) == Some(true) || self.order("greaterThan", number) == Some(true)
    }

    /// The bounds of a count in a sentence.
    pub(crate) fn called_count(&self) -> String {
        match self.most {
            _ if self.least != Self::COUNT.least => self.called(),
            None => "0 or more".to_owned(),
            most => Self { least: None, most }.called(),
        }
    }

    /// The bounds in a sentence: `at least 1 and below 10`.
    pub(crate) fn called(&self) -> String {
        if let (Some(least), Some(most)) = (self.least, self.most)
            && least == most
        {
            return least.number.to_string();
        }
        let end = |bound: Option<SchemaBound>, within: &str, beyond: &str| {
            bound.map(|bound| format!("{} {}", if bound.is_excluded { beyond } else { within }, bound.number))
        };
        let ends = [end(self.least, "at least", "above"), end(self.most, "at most", "below")];
        ends.into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}
