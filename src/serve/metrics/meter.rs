//! Counts what happens in runs, and in the runs that they call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Metrics;
use super::labels::{Labels, OTHER};
use super::seconds;
use crate::drive::run_meter::{OwnSpend, RunMeter, RunMeters, TraceContext};
use crate::engine::flow::record::StepRecord;
use crate::engine::notice::Notice;
use crate::engine::outcome::Ending;
use crate::engine::record::TraceEntry;
use crate::engine::state::RunHeader;
use crate::policy::word::written;
use crate::program::Program;

/// The types of the steps of workflows that are no actions.
const STEP_TYPES: [&str; 8] =
    ["loop", "matcher", "custom-table", "PbotApproval", "PbotForm", "choose", "wait", "wait_for_event"];

/// What the metrics count of the runs of an engine.
pub struct MeteredRuns(pub Arc<Metrics>);

impl RunMeters for MeteredRuns {
    fn created(&self, run: &RunHeader, _within: Option<&TraceContext>) {
        let metrics = &self.0;
        let family = if run.caller.is_some() { &metrics.sub_runs_started } else { &metrics.started };
        family.get(vec![("loop", metrics.names.loops.of(&run.loop_name).to_owned())], &["loop"]).inc();
    }

    fn of(&self, run: &RunHeader, _program: &Program) -> Box<dyn RunMeter> {
        Box::new(Meter {
            loop_name: self.0.names.loops.of(&run.loop_name).to_owned(),
            org: self.0.org_of(&run.run_id),
            is_called: run.caller.is_some(),
            calls: Mutex::default(),
            metrics: Arc::clone(&self.0),
        })
    }

    fn model_retried(&self, model: &str, status: Option<u16>) {
        let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        let labels = vec![("model", self.0.names.models.of(model).to_owned()), ("status", status)];
        self.0.model_retries.get(labels, &["model", "status"]).inc();
    }
}

/// Counts for one run.
struct Meter {
    metrics: Arc<Metrics>,
    /// The calls that are under way: an observation of a call that was never made does not count for a tool.
    calls: Mutex<Vec<MeteredCall>>,
    /// The loop or workflow of the run, as labels name it.
    loop_name: String,
    /// Its organisation, as labels name it; empty for none.
    org: String,
    /// Whether another run called it.
    is_called: bool,
}

/// A call that is under way.
struct MeteredCall {
    iteration: u32,
    action: String,
}

impl Meter {
    fn of_loop(&self) -> Labels {
        vec![("loop", self.loop_name.clone())]
    }

    fn observed(&self, iteration: u32, action: &str, success: bool, duration_ms: u64) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |call: &MeteredCall| call.iteration == iteration && call.action == action;
        let Some(at) = calls.iter().position(is_it) else { return };
        calls.swap_remove(at);
        self.called(self.metrics.names.tools.of(action), success, duration_ms);
    }

    /// A call of a tool ended.
    fn called(&self, tool: &str, success: bool, duration_ms: u64) {
        let success = if success { "true" } else { "false" };
        let labels = vec![("tool", tool.to_owned()), ("success", success.to_owned())];
        self.metrics.tool.get(labels, &["tool"]).observe(seconds(duration_ms));
    }

    fn step_ended(&self, record: &StepRecord) {
        let names = &self.metrics.names;
        let is_call = names.tools.has(&record.kind);
        if is_call {
            self.called(&record.kind, record.error.is_none(), record.duration_ms());
        }
        let is_known = is_call || STEP_TYPES.contains(&record.kind.as_str());
        let kind = if is_known { record.kind.as_str() } else { OTHER };
        self.metrics.steps.record(&self.loop_name, kind, record);
    }
}

impl RunMeter for Meter {
    fn on(&self, notice: &Notice) {
        let metrics = &self.metrics;
        match notice {
            Notice::ModelReplied { duration_ms, time_to_first_token_ms, .. } => {
                metrics.iterations.get(self.of_loop(), &["loop"]).inc();
                metrics.model.observe(seconds(*duration_ms));
                if let Some(first) = time_to_first_token_ms {
                    metrics.first_token.observe(seconds(*first));
                }
            }
            Notice::ToolRetried { action, .. } => {
                let labels = vec![("tool", metrics.names.tools.of(action).to_owned())];
                metrics.tool_retries.get(labels, &["tool"]).inc();
            }
            Notice::ToolCalled { call, action, .. } => {
                let call = MeteredCall { iteration: call.iteration, action: action.clone() };
                self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
            }
            Notice::Observed {
                entry: TraceEntry { iteration, action: Some(action), success, duration_ms, call_status: None, .. },
                ..
            } => self.observed(*iteration, action, *success, *duration_ms),
            Notice::StepEnded { record } => self.step_ended(record),
            Notice::Paused { question, .. } if !self.is_called => {
                let kind = written(&question.kind).unwrap_or_default();
                metrics.paused.get([self.of_loop(), vec![("kind", kind)]].concat(), &["loop"]).inc();
            }
            _ => {}
        }
    }

    fn spent(&self, OwnSpend { model, tokens, cost_usd }: OwnSpend<'_>) {
        let metrics = &self.metrics;
        let model = metrics.names.models.of(model);
        let labels = [self.of_loop(), vec![("model", model.to_owned()), ("org", self.org.clone())]].concat();
        let bounded = ["loop", "model", "org"];
        for (direction, count) in [
            ("input", tokens.input),
            ("output", tokens.output),
            ("cached_input", tokens.cached_input),
            ("cache_write", tokens.cache_write),
            ("reasoning", tokens.reasoning),
        ] {
            if count > 0 || matches!(direction, "input" | "output") {
                let labels = [vec![("direction", direction.to_owned())], labels.clone()].concat();
                metrics.tokens.get(labels, &bounded).inc_by(count);
            }
        }
        if cost_usd > 0.0 {
            metrics.cost.get(labels, &bounded).inc_by(cost_usd);
        }
    }

    fn ended(&self, ending: &Ending) {
        let metrics = &self.metrics;
        let family = if self.is_called { &metrics.sub_runs_ended } else { &metrics.ended };
        let labels = vec![
            ("loop", self.loop_name.clone()),
            ("org", self.org.clone()),
            ("status", ending.status.word().to_owned()),
            ("termination", written(&ending.termination).unwrap_or_default()),
        ];
        family.get(labels, &["loop", "org"]).inc();
    }

    fn stored(&self, time: Duration) {
        self.metrics.store_answered("append", time);
    }
}
