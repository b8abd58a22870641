//! What is counted while runs are driven, sub-runs too: what happens in them, what they spend themselves, and how long the store
//! takes. Whoever counts is called between two steps, when the event is durable.

use std::time::Duration;

use loopctl_engine::event::Tokens;
use loopctl_engine::notice::Notice;
use loopctl_engine::outcome::Ending;
use loopctl_engine::state::RunHeader;

/// Makes the meters of runs.
pub trait RunMeters: Send + Sync {
    /// A run was created, or a sub-run.
    fn created(&self, run: &RunHeader);

    /// The meter of a run that is driven from now on.
    fn of(&self, run: &RunHeader) -> Box<dyn RunMeter>;

    /// A request to this model failed and is made again. `status`: that of the answer; none without an answer.
    fn model_retried(&self, model: &str, status: Option<u16>);
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
