//! The input of a scenario, where that is made of a delivery to the webhook of its workflow.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ScenarioVerdict, StagedScenario};
use crate::program::webhook::{Delivery, DeliveryOutcome};
use crate::scenario::judge::Failure;

impl StagedScenario<'_> {
    /// The input that the scenario gives: its own, or that of its delivery.
    pub(super) fn delivered_input(&self) -> Option<Value> {
        match self.outcome() {
            Some(Ok(DeliveryOutcome::Starts(input))) => Some(input),
            _ => self.scenario.input.clone().map(Value::Object),
        }
    }

    /// The verdict where no run starts.
    pub(super) fn undelivered(&self) -> Option<ScenarioVerdict> {
        let is_expected = self.scenario.expect.skipped;
        let message = match self.outcome() {
            Some(Ok(DeliveryOutcome::Starts(_))) if is_expected => Some("the delivery starts a run".to_owned()),
            Some(Ok(DeliveryOutcome::Starts(_))) => return None,
            Some(Ok(DeliveryOutcome::Skipped)) if is_expected => None,
            Some(Ok(DeliveryOutcome::Skipped)) => Some("the delivery starts no run".to_owned()),
            Some(Err(why)) => Some(why),
            None if is_expected => Some("nothing is delivered".to_owned()),
            None => return None,
        };
        let pointer = format!("{}/name", self.at());
        let failure = |message: String| Failure { pointer, key: "name", message, near: None };
        Some(ScenarioVerdict {
            name: self.scenario.name.clone(),
            failures: message.map(failure).into_iter().collect(),
            measured: None,
            notes: Vec::new(),
            trace: Vec::new(),
            written: None,
            live: None,
            reached: BTreeSet::new(),
        })
    }

    /// What comes of the delivery of the scenario; none without one.
    fn outcome(&self) -> Option<Result<DeliveryOutcome, String>> {
        let written = self.scenario.delivery.as_ref()?;
        let delivery = Delivery::of_scenario(written, &self.scenario.now);
        let flow = self.set.loaded.program.as_flow();
        let none = || Err("the document has no webhook".to_owned());
        Some(flow.and_then(|flow| flow.outcome_of(&delivery)).unwrap_or_else(none))
    }
}
