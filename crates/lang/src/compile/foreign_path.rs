//! Paths of other products: `inputs.parameters.x`, `steps.fetch.outputs.id`, `$json.x`.

use super::prompt::KnownNames;
use crate::program::template::Variable;

/// What other products call what a run is given, and what they put between that and a name in it.
const INPUTS: [&str; 16] = [
    "inputs",
    "$json",
    "$input",
    "$vars",
    "$",
    "workflow",
    "parameters",
    "params",
    "args",
    "arguments",
    "trigger",
    "event",
    "payload",
    "state",
    "$execution",
    "github",
];
const BEFORE_INPUT: [&str; 12] = [
    "parameters",
    "inputs",
    "input",
    "item",
    "first",
    "json",
    "body",
    "event",
    "arguments",
    "params",
    "data",
    "context",
];
/// The same for what earlier steps gave.
const STEPS: [&str; 8] = ["steps", "step", "tasks", "task", "nodes", "outputs", "jobs", "needs"];
const BEFORE_OUTPUT: [&str; 5] = ["outputs", "output", "item", "json", "parameters"];
const RESULTS: [&str; 3] = ["result", "output", "outputs"];

/// A path of another product.
pub(super) struct ForeignPath {
    /// What it names.
    pub what: &'static str,
    /// The path that is meant, when it is known.
    pub meant: Option<String>,
    /// A path of its form.
    pub example: String,
}

/// Whether a path of another product may begin with a name.
pub(super) fn is_first(name: &str) -> bool {
    INPUTS.contains(&name) || STEPS.contains(&name)
}

/// What a variable names in the words of another product; nothing for a name that none has. `may_have` says whether the run's
/// input may have a name.
pub(super) fn of(variable: &Variable, known: &KnownNames<'_>, may_have: &dyn Fn(&str) -> bool) -> Option<ForeignPath> {
    let [first, rest @ ..] = variable.path.as_slice() else { return None };
    if STEPS.contains(&first.as_str()) && !rest.is_empty() {
        return Some(ForeignPath {
            what: "what an earlier step gave, by its `outputKey`,",
            meant: of_step(rest, known),
            example: "key.name".to_owned(),
        });
    }
    if !INPUTS.contains(&first.as_str()) {
        return None;
    }
    let at = rest.iter().position(|part| !BEFORE_INPUT.contains(&part.as_str()));
    // A name of the input may itself be one of the words before it.
    let named = at.or_else(|| rest.len().checked_sub(1)).and_then(|at| rest.get(at..)).unwrap_or_default();
    let meant = named.first().filter(|name| may_have(name)).map(|_| format!("input.{}", named.join(".")));
    // A step may have been given the name that another product has for the input.
    let is_sure = first.starts_with('$') || meant.is_some();
    is_sure.then(|| ForeignPath { what: "what a run is given", meant, example: "input.name".to_owned() })
}

fn of_step(rest: &[String], known: &KnownNames<'_>) -> Option<String> {
    let [key, parts @ ..] = rest else { return None };
    let skipped = parts.iter().take_while(|part| BEFORE_OUTPUT.contains(&part.as_str())).count();
    let parts = parts.get(skipped..)?;
    let parts = if matches!(parts, [lone] if skipped > 0 && RESULTS.contains(&lone.as_str())) { &[] } else { parts };
    let is_known = known.has(key) && known.has_parts(key, parts);
    is_known.then(|| std::iter::once(key).chain(parts).cloned().collect::<Vec<_>>().join("."))
}
