//! The series of the steps of workflows.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::labels::Labels;
use super::{BORDERS, seconds};
use crate::engine::flow::record::StepRecord;

/// The counters since the start of the server.
pub struct StepMetrics {
    ended: Family<Labels, Counter>,
    seconds: Family<Labels, Histogram, fn() -> Histogram>,
    items: Family<Labels, Counter>,
}

impl StepMetrics {
    /// All counters at zero, in a registry.
    pub fn registered(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BORDERS);
        let all = Self {
            ended: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            items: Family::default(),
        };
        let help = "Steps of workflows that ended, those of items too, by workflow, type and status";
        registry.register("steps", help, all.ended.clone());
        registry.register("step_seconds", "How long steps of workflows took, waits included", all.seconds.clone());
        let help = "Items of loops that ended, by workflow and status";
        registry.register("items", help, all.items.clone());
        all
    }

    /// Counts a step that ended. `workflow` and `kind` are words that the folder knows.
    pub fn record(&self, workflow: &str, kind: &str, step: &StepRecord) {
        let labels = vec![("workflow", workflow.to_owned()), ("type", kind.to_owned())];
        self.seconds.get_or_create(&labels).observe(seconds(step.duration_ms()));
        let status = [labels, vec![("status", step.status.word().to_owned())]].concat();
        self.ended.get_or_create(&status).inc();
        let Some(items) = &step.items else { return };
        let counts = [
            ("completed", items.completed),
            ("failed", items.failed),
            ("skipped", items.skipped),
            ("cancelled", items.cancelled),
        ];
        for (status, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
            let labels = vec![("workflow", workflow.to_owned()), ("status", status.to_owned())];
            self.items.get_or_create(&labels).inc_by(u64::from(number));
        }
    }
}
