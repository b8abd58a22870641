//! The values of a statement: which one a placeholder takes.

use serde_json::Value;

use super::QueryValues;
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;

impl QueryValues {
    /// The value at a place of `params`, from 1.
    pub(super) fn nth(&self, number: usize) -> Result<&Value, ToolFault> {
        number.checked_sub(1).and_then(|at| self.params.get(at)).ok_or_else(|| {
            fault(
                "database: a parameter has no value",
                format!("number {number}, and `params` has {}", self.params.len()),
            )
        })
    }

    /// `?2` and `$2` are the second of `params`; other names are fields of the input. `index` is the place that
    /// the database gave to the parameter, from 1.
    pub(super) fn named(&self, written: &str, index: usize) -> Result<&Value, ToolFault> {
        let name = written.trim_start_matches(['?', '$', ':', '@']);
        if let ('?' | '$', Ok(number)) = (written.chars().next().unwrap_or(' '), name.parse::<usize>()) {
            return self.nth(number);
        }
        if !self.params.is_empty() {
            return self.nth(index);
        }
        match self.input.get(name) {
            Some(value) => Ok(value),
            None if self.optional.iter().any(|optional| optional == name) => Ok(&Value::Null),
            None => Err(fault("database: a parameter has no value", format!("`{written}` is not in the input"))),
        }
    }
}
