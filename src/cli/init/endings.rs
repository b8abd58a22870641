//! Scenarios for the ways in which a run can end: the probes of `loopctl test --probe`.

use serde_json::{Value, json};

use crate::engine::outcome::Status;
use crate::language::scenario::Scenario;
use crate::project::load::Loaded;
use crate::scenario::{Probe, flow_probe, probes};

/// The scenarios of the probes that come to what they are about.
pub(super) fn of(loaded: &Loaded) -> Vec<Scenario> {
    let probes = probes(&loaded.program, &loaded.root);
    probes.into_iter().filter(|probe| probe.is_reached).filter_map(|probe| probe.scenario).collect()
}

/// Scenarios of a document, as they were played.
pub(super) struct PlayedDocument {
    pub scenarios: Vec<Scenario>,
    /// Why no run of a script comes to its end.
    pub stopped: Option<String>,
}

/// The scenarios of a loop or a workflow.
pub(super) fn of_any(loaded: &Loaded) -> PlayedDocument {
    if loaded.program.is_flow() {
        let probe = flow_probe(&loaded.program, &loaded.root);
        let is_failed = probe.scenario.as_ref().is_none_or(|played| played.expect.status == Some(Status::Failed));
        let stopped = is_failed.then_some(probe.outcome);
        return PlayedDocument { scenarios: probe.scenario.into_iter().collect(), stopped };
    }
    let (reached, others): (Vec<Probe>, Vec<Probe>) =
        probes(&loaded.program, &loaded.root).into_iter().partition(|probe| probe.is_reached);
    let scenarios: Vec<Scenario> = reached.into_iter().filter_map(|probe| probe.scenario).collect();
    let is_completed = scenarios.iter().any(|scenario| scenario.expect.status == Some(Status::Completed));
    let why = || others.into_iter().next().map(|probe| probe.outcome).unwrap_or_default();
    let stopped = (!is_completed).then(why);
    PlayedDocument { scenarios, stopped }
}

/// The text of a file with these scenarios of a document.
pub(super) fn text(document: &str, scenarios: Vec<Scenario>) -> String {
    let scenarios: Vec<Value> =
        scenarios.into_iter().map(|scenario| serde_json::to_value(scenario).unwrap_or_default()).collect();
    json!({ "document": document, "scenarios": scenarios }).to_string()
}
