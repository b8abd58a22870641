//! The budget: how much of it a run has used, when a warning is due, and when it is spent.

use super::event::{Allowance, FailedAttempt, Tokens};
use super::state::{LoopState, StateHead};
use loopctl_lang::language::project::Price;
use loopctl_lang::program::ProgramHead;

/// What tokens cost in US dollars.
pub fn cost_usd(tokens: Tokens, price: Price) -> f64 {
    let cached = tokens.cached_input.min(tokens.input);
    let written = tokens.cache_write.min(tokens.input - cached);
    let rest = tokens.input - cached - written;
    let input = number(rest) * price.input
        + number(cached) * price.cached_input.unwrap_or(price.input)
        + number(written) * price.cache_write.unwrap_or(price.input);
    (input + number(tokens.output) * price.output) / 1_000_000.0
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "no run has 2^53 tokens")]
fn number(tokens: u64) -> f64 {
    tokens as f64
}

/// What the run may spend by its document, or by what that was raised to.
pub(super) fn own(program: &ProgramHead, state: &StateHead) -> Option<Allowance> {
    let (budget, raised) = (program.budget.as_ref()?, state.limits.budget);
    Some(Allowance { tokens: raised.tokens.or(budget.tokens), cost_usd: raised.cost_usd.or(budget.cost_usd) })
}

/// Counts tokens and their cost; `None`: the price is not known, so the cost of the run is not known either.
pub(super) fn charge(program: &ProgramHead, state: &mut StateHead, tokens: Tokens, cost_usd: Option<f64>) {
    let tally = &mut state.counters;
    tally.tokens = tally.tokens.plus(tokens);
    match cost_usd {
        Some(cost) if cost.is_finite() => tally.cost_usd += cost.max(0.0),
        _ => tally.unpriced |= tokens != Tokens::default(),
    }
    look(program, state);
}

/// Computes the share of the budget that is used, and whether a warning is due.
pub(super) fn look(program: &ProgramHead, state: &mut StateHead) {
    if let (Some(budget), Some(own)) = (&program.budget, own(program, state)) {
        state.budget.used = share(own, &spent(state, &[]));
        state.budget.is_warned |= state.budget.used >= budget.warn_at;
    }
}

/// What a failed attempt cost, as far as the price is known.
pub fn attempt_cost_usd(state: &StateHead, attempt: &FailedAttempt) -> f64 {
    attempt.usage.zip(price(state, attempt)).map_or(0.0, |(usage, price)| cost_usd(usage, price))
}

/// Counts what failed attempts used, or may have used at most, and keeps them for the trace.
pub(super) fn tried(program: &ProgramHead, state: &mut LoopState, attempts: Vec<FailedAttempt>) {
    let iteration = state.counters.iterations.saturating_add(1);
    for attempt in attempts {
        state.counters.estimated |= attempt.estimated;
        state.counters.at_most |= attempt.at_most;
        state.watch.paid.count(&attempt);
        if let Some(usage) = attempt.usage {
            let cost = price(state, &attempt).map(|price| self::cost_usd(usage, price));
            charge(program, state, usage, cost);
        }
        state.attempts.push((iteration, attempt));
    }
}

/// Whether the run has any limit on spending.
pub(super) fn is_bound(program: &ProgramHead, state: &StateHead) -> bool {
    own(program, state).is_some_and(|own| !own.is_none()) || !state.header.bound.is_none()
}

/// Whether nothing is left for another call.
pub(super) fn is_spent(program: &ProgramHead, state: &StateHead) -> bool {
    is_spent_by(program, state, &[])
}

/// Whether the allowance of the calling run is used up.
pub(super) fn is_spent_for_the_caller(state: &StateHead) -> bool {
    share(state.header.bound, &spent(state, &[])) >= 1.0
}

/// What a run may still spend: of its own budget, and of the allowance of its caller.
pub fn left(program: &ProgramHead, state: &StateHead) -> Allowance {
    let (own, given) = (own(program, state), state.header.bound);
    let tokens = [given.tokens, own.and_then(|budget| budget.tokens)].into_iter().flatten().min();
    let cost_usd = [given.cost_usd, own.and_then(|budget| budget.cost_usd)].into_iter().flatten().reduce(f64::min);
    let spent = spent(state, &[]);
    Allowance {
        tokens: tokens.map(|most| most.saturating_sub(spent.tokens)),
        cost_usd: cost_usd.map(|most| (most - spent.cost_usd).max(0.0)),
    }
}

/// The share of its budget that a run has left, of tokens or of US dollars, whichever is less; none without a budget.
pub fn left_share(program: &ProgramHead, state: &StateHead) -> Option<f64> {
    let bounds = own(program, state).into_iter().chain([state.header.bound]).filter(|most| !most.is_none());
    let spent = spent(state, &[]);
    bounds.map(|most| share(most, &spent)).reduce(f64::max).map(|used| (1.0 - used).max(0.0))
}

/// Whether failed attempts of a tool that asks a model used all that was left, the last one a part of it.
pub fn uses_up(left: Allowance, attempts: &[FailedAttempt]) -> bool {
    let mut spent = SpentSoFar { tokens: 0, cost_usd: 0.0 };
    spent.add(attempts, |attempt| attempt.price);
    attempts.last().is_some_and(|last| last.usage.is_some()) && share(left, &spent) >= 1.0
}

/// Whether the last failed attempt cost something and nothing is left now: no further attempt is made. An
/// attempt that cost nothing may be retried, also in the last call of a spent budget.
pub fn is_enough(program: &ProgramHead, state: &StateHead, attempts: &[FailedAttempt]) -> bool {
    attempts.last().is_some_and(|last| last.usage.is_some()) && is_spent_by(program, state, attempts)
}

fn is_spent_by(program: &ProgramHead, state: &StateHead, attempts: &[FailedAttempt]) -> bool {
    let spent = spent(state, attempts);
    own(program, state).into_iter().chain([state.header.bound]).any(|most| share(most, &spent) >= 1.0)
}

/// The tokens that were spent, read and written together, and US dollars.
pub(super) fn used(state: &StateHead) -> Allowance {
    let SpentSoFar { tokens, cost_usd } = spent(state, &[]);
    Allowance { tokens: Some(tokens), cost_usd: Some(cost_usd) }
}

fn price(state: &StateHead, attempt: &FailedAttempt) -> Option<Price> {
    if attempt.model.is_some() { attempt.price } else { state.header.model.price }
}

/// What was spent.
struct SpentSoFar {
    /// Tokens, read and written together.
    tokens: u64,
    /// US dollars.
    cost_usd: f64,
}

impl SpentSoFar {
    fn add(&mut self, attempts: &[FailedAttempt], price: impl Fn(&FailedAttempt) -> Option<Price>) {
        for attempt in attempts {
            let Some(usage) = attempt.usage else { continue };
            self.tokens = self.tokens.saturating_add(usage.input).saturating_add(usage.output);
            self.cost_usd += price(attempt).map_or(0.0, |price| cost_usd(usage, price));
        }
    }
}

fn spent(state: &StateHead, attempts: &[FailedAttempt]) -> SpentSoFar {
    let counters = &state.counters;
    let tokens = counters.tokens.input.saturating_add(counters.tokens.output);
    let mut spent = SpentSoFar { tokens, cost_usd: counters.cost_usd };
    spent.add(attempts, |attempt| price(state, attempt));
    spent
}

/// The share of an allowance that is used: the larger one of tokens and US dollars; 1 is all of it.
fn share(most: Allowance, spent: &SpentSoFar) -> f64 {
    let part = |spent: f64, most: f64| if most > 0.0 { spent / most } else { 1.0 };
    let tokens = most.tokens.map_or(0.0, |most| part(number(spent.tokens), number(most)));
    let cost = most.cost_usd.map_or(0.0, |most| part(spent.cost_usd, most));
    tokens.max(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_cost_their_own_price_and_without_one_that_of_the_input() {
        let tokens =
            Tokens { input: 1_000_000, output: 500_000, cached_input: 600_000, cache_write: 100_000, reasoning: 9 };
        let plain = Price { input: 10.0, output: 2.0, cached_input: None, cache_write: None };
        assert_eq!(cost_usd(tokens, plain), 11.0);
        let own = Price { cached_input: Some(1.0), cache_write: Some(12.5), ..plain };
        assert_eq!(cost_usd(tokens, own), 3.0 + 0.6 + 1.25 + 1.0);
        // A provider that counts more in its cache than it read costs what it read.
        let odd = Tokens { input: 10, cached_input: u64::MAX, cache_write: u64::MAX, ..Tokens::default() };
        assert_eq!(cost_usd(odd, own), 10.0 / 1_000_000.0);
    }
}
