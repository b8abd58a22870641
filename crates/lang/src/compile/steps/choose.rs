//! The lists of steps of a choice, as they are written.

use serde_json::Value;

use crate::language::choose::CHOOSE;
use crate::program::choose::OTHERWISE;

/// A list of steps of a choice. Its pointers begin at the step.
pub(crate) struct CaseList<'v> {
    /// The name of the case in addresses.
    pub name: String,
    /// The JSON pointer of its condition; none of `otherwise`.
    pub when: Option<String>,
    /// The JSON pointer of its steps.
    pub pointer: String,
    /// The steps.
    pub steps: &'v Value,
}

/// Whether a step is a choice. Without `cases`, its type is the name of an action.
pub(crate) fn is_choice(step: &Value) -> bool {
    step.get("type").and_then(Value::as_str) == Some(CHOOSE) && step.get("cases").is_some_and(Value::is_array)
}

/// The lists of steps of a choice, in their order; none of another step.
pub(crate) fn case_lists(step: &Value) -> Vec<CaseList<'_>> {
    if !is_choice(step) {
        return Vec::new();
    }
    let cases = step.get("cases").and_then(Value::as_array).into_iter().flatten().enumerate();
    let mut lists: Vec<CaseList<'_>> = cases.filter_map(|(number, case)| numbered(number, case)).collect();
    if let Some(steps) = step.get("otherwise").filter(|steps| steps.is_array()) {
        lists.push(CaseList { name: OTHERWISE.to_owned(), when: None, pointer: "/otherwise".to_owned(), steps });
    }
    lists
}

fn numbered(number: usize, case: &Value) -> Option<CaseList<'_>> {
    let steps = case.get("steps").filter(|steps| steps.is_array())?;
    Some(CaseList {
        name: number.to_string(),
        when: case.get("when").map(|_| format!("/cases/{number}/when")),
        pointer: format!("/cases/{number}/steps"),
        steps,
    })
}
