//! `loopctl test --live`: scenarios with the models of their documents.

use clap::Args;

use crate::cli::failure::CommandError;
use crate::cli::limits::dollars;
use crate::cli::surface::Surface;
use crate::cli::worker_threads::cores;
use crate::scenario::{LiveBudget, StagedScenario};
use crate::trace::{Tone, escape};

/// How scenarios are played live.
#[derive(Debug, Args)]
pub struct LiveArgs {
    /// Ask the models of the documents, with their keys, in place of the replies that are written. Tools are played
    #[arg(long, conflicts_with_all = ["probe", "crash", "update", "by_position"])]
    pub live: bool,
    /// Play each scenario N times. Each must hold every time
    #[arg(long, value_name = "N", requires = "live", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Start no more plays once they cost this much together
    #[arg(long, value_name = "USD", requires = "live", value_parser = dollars)]
    pub max_cost: Option<f64>,
}

impl LiveArgs {
    /// How often each scenario is played live; none when scenarios are played offline.
    pub(super) fn repeats(&self) -> Option<u32> {
        self.live.then_some(self.repeat)
    }

    /// What all plays may cost together.
    pub(super) fn budget(&self) -> LiveBudget {
        LiveBudget::new(self.max_cost)
    }

    /// How many scenarios are played at the same time unless the user says otherwise: one by one where models are asked, so
    /// that the cost is known before the next.
    pub(super) fn jobs(&self) -> usize {
        if self.live { 1 } else { cores() }
    }

    /// Whether a scenario can be played as it is asked; says why not.
    ///
    /// # Errors
    /// When the cost of the plays is limited, and can't be known.
    pub(super) fn can_play(
        &self,
        staged: &StagedScenario<'_>,
        name: &str,
        surface: &Surface,
    ) -> Result<bool, CommandError> {
        if !self.live {
            return Ok(true);
        }
        if let Some(why) = staged.live_obstacle() {
            let line = format!("`{}` is not played live: {why}\n", escape::line(name));
            surface.say(&surface.err.paint(Tone::Dim, &line));
            return Ok(false);
        }
        match staged.unpriced_model().filter(|_| self.max_cost.is_some()) {
            Some(model) => Err(CommandError::usage_help(
                format!("--max-cost is in US dollars, but the price of the model {model:?} is not known"),
                format!(
                    "give it a `price` under `models` in loopctl.json: {{\"models\": {{{model:?}: {{\"price\": ...}}}}}}"
                ),
            )),
            None => Ok(true),
        }
    }
}
