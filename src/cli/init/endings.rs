//! Scenarios for the ways in which a run can end: the probes of `loopctl test --probe`.

use serde_json::{Value, json};

use crate::language::scenario::Scenario;
use crate::project::load::Loaded;
use crate::scenario::probes;

/// The scenarios of the probes that come to what they are about.
pub(super) fn of(loaded: &Loaded) -> Vec<Scenario> {
    let probes = probes(&loaded.program, &loaded.root);
    probes.into_iter().filter(|probe| probe.is_reached).filter_map(|probe| probe.scenario).collect()
}

/// The text of a file with these scenarios of a document.
pub(super) fn text(document: &str, scenarios: Vec<Scenario>) -> String {
    let scenarios: Vec<Value> =
        scenarios.into_iter().map(|scenario| serde_json::to_value(scenario).unwrap_or_default()).collect();
    json!({ "document": document, "scenarios": scenarios }).to_string()
}
