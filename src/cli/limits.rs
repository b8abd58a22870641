//! The limits that a human raises: their flags, and the flags that a run which reached one may continue with.

use clap::Args;

use super::process::acting_user;
use crate::engine::continuation::{limit_of, limits, used};
use crate::engine::event::{Allowance, LimitsRaised, RaisedLimits};
use crate::engine::outcome::Limit;
use crate::engine::state::{Phase, State};
use crate::program::Program;

/// Limits that replace those of the document.
#[derive(Debug, Clone, Default, Args)]
pub struct LimitArgs {
    /// Raise `max_iterations` to N, for the whole run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: Option<u32>,
    /// Raise `timeout_ms` to N, for the active time of the whole run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout_ms: Option<u64>,
    /// Raise the `tokens` of `budget` to N, for the whole run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget_tokens: Option<u64>,
    /// Raise the `cost_usd` of `budget` to USD, for the whole run
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub budget_usd: Option<f64>,
}

impl LimitArgs {
    /// The limits to raise, if any.
    pub fn raised(&self) -> Option<LimitsRaised> {
        let budget = Allowance { tokens: self.budget_tokens, cost_usd: self.budget_usd };
        let limits = RaisedLimits { max_iterations: self.max_iterations, timeout_ms: self.timeout_ms, budget };
        (!limits.is_none()).then(|| LimitsRaised { limits, by: acting_user(), bound: None })
    }
}

pub fn dollars(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|number| number.is_finite() && *number > 0.0).ok_or_else(|| "it is an amount above 0".to_owned())
}

/// The flags of `resume` with which a run continues that a limit ended: each limit that is used up, doubled.
pub fn raising_flags(program: &Program, state: &State) -> Option<String> {
    let Phase::Ended(ending) = &state.phase else { return None };
    // A sub-run has the share that its caller gave it.
    if state.header.caller.is_some() {
        return None;
    }
    let (present, used) = (limits(program, state), used(state));
    let doubled = |present: Option<u64>, used: Option<u64>| present.max(used).map(|most| most.saturating_mul(2));
    Some(match limit_of(ending)? {
        Limit::MaxIterations => {
            let most = doubled(present.max_iterations.map(u64::from), used.max_iterations.map(u64::from))?;
            format!("--max-iterations {}", most.min(u64::from(u32::MAX)))
        }
        Limit::Timeout => format!("--timeout-ms {}", doubled(present.timeout_ms, used.timeout_ms)?),
        Limit::Budget => {
            let tokens = present.budget.tokens.filter(|most| used.budget.tokens.is_some_and(|used| used >= *most));
            let cost = present.budget.cost_usd.filter(|most| used.budget.cost_usd.is_some_and(|used| used >= *most));
            let tokens = tokens.and(doubled(tokens, used.budget.tokens)).map(|most| format!("--budget-tokens {most}"));
            let cost = cost.and(used.budget.cost_usd).map(|used| format!("--budget-usd {}", round_up(used * 2.0)));
            let flags: Vec<String> = tokens.into_iter().chain(cost).collect();
            (!flags.is_empty()).then(|| flags.join(" "))?
        }
        Limit::Context => return None,
    })
}

/// The amount with two digits that count, and not less than before.
fn round_up(amount: f64) -> f64 {
    let step = 10_f64.powi(1).recip() * 10_f64.powf(amount.log10().floor());
    let rounded = (amount / step).ceil() * step;
    // The noise of the binary fraction: no price has that many digits.
    (rounded * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_rounded_up_to_two_digits() {
        for (amount, rounded) in [(2.0, "2"), (0.002_341, "0.0024"), (1.011, "1.1"), (13.2, "14"), (0.1, "0.1")] {
            assert_eq!(round_up(amount).to_string(), rounded, "{amount}");
        }
    }

    #[test]
    fn dollars_are_an_amount_above_nothing() {
        assert_eq!(dollars("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "NaN", "inf", "two"] {
            assert!(dollars(wrong).is_err(), "{wrong}");
        }
    }
}
