//! What is counted while runs are driven, sub-runs too: what happens in them, what they spend themselves, and how long the store
//! takes. Whoever counts is called between two steps, when the event is durable.

use std::sync::Arc;
use std::time::Duration;

use loopctl_engine::event::Tokens;
use loopctl_engine::notice::Notice;
use loopctl_engine::outcome::Ending;
use loopctl_engine::state::RunHeader;
use loopctl_lang::program::Program;

/// Makes the meters of runs.
pub trait RunMeters: Send + Sync {
    /// A run was created, or a sub-run. `within`: the trace of the request that asked for it.
    fn created(&self, run: &RunHeader, within: Option<&TraceContext>);

    /// The meter of a run that is driven from now on.
    fn of(&self, run: &RunHeader, program: &Program) -> Box<dyn RunMeter>;

    /// A request to this model failed and is made again. `status`: that of the answer; none without an answer.
    fn model_retried(&self, model: &str, status: Option<u16>);

    /// The place of a call in its trace, for the request that makes it: that of the call `at`, like `3.0`, or of the step of this
    /// address. None where no trace is made.
    fn trace_context(&self, _run_id: &str, _at: &str) -> Option<TraceContext> {
        None
    }
}

/// Counts for one run.
pub trait RunMeter: Send + Sync {
    /// Something happened in the run.
    fn on(&self, notice: &Notice);

    /// The run spent something itself, and not by a run that it called.
    fn spent(&self, spend: OwnSpend<'_>);

    /// The run ended.
    fn ended(&self, ending: &Ending);

    /// An event of the run became durable after this time.
    fn stored(&self, time: Duration);
}

/// What a run spent itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnSpend<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// The tokens.
    pub tokens: Tokens,
    /// What they cost in US dollars, as far as prices are known.
    pub cost_usd: f64,
}

/// A place in a distributed trace, as W3C's Trace Context writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// The value of `traceparent`.
    pub parent: String,
    /// That of `tracestate`, if there is one.
    pub state: Option<String>,
}

/// Two that count the same runs.
pub struct MeterPair {
    /// The first one.
    pub first: Arc<dyn RunMeters>,
    /// The other one.
    pub second: Arc<dyn RunMeters>,
}

impl RunMeters for MeterPair {
    fn created(&self, run: &RunHeader, within: Option<&TraceContext>) {
        self.first.created(run, within);
        self.second.created(run, within);
    }

    fn of(&self, run: &RunHeader, program: &Program) -> Box<dyn RunMeter> {
        Box::new(PairedMeters { first: self.first.of(run, program), second: self.second.of(run, program) })
    }

    fn model_retried(&self, model: &str, status: Option<u16>) {
        self.first.model_retried(model, status);
        self.second.model_retried(model, status);
    }

    fn trace_context(&self, run_id: &str, at: &str) -> Option<TraceContext> {
        self.first.trace_context(run_id, at).or_else(|| self.second.trace_context(run_id, at))
    }
}

/// Those of one run.
struct PairedMeters {
    first: Box<dyn RunMeter>,
    second: Box<dyn RunMeter>,
}

impl RunMeter for PairedMeters {
    fn on(&self, notice: &Notice) {
        self.first.on(notice);
        self.second.on(notice);
    }

    fn spent(&self, spend: OwnSpend<'_>) {
        self.first.spent(spend);
        self.second.spent(spend);
    }

    fn ended(&self, ending: &Ending) {
        self.first.ended(ending);
        self.second.ended(ending);
    }

    fn stored(&self, time: Duration) {
        self.first.stored(time);
        self.second.stored(time);
    }
}
