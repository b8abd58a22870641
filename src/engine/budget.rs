//! The budget: what a run has used of it, when it is warned about, and when it is spent.

use super::event::{Allowance, FailedAttempt, Tokens};
use super::state::State;
use crate::language::project::Price;
use crate::program::Program;

/// What tokens cost in US dollars.
pub fn cost_usd(tokens: Tokens, price: Price) -> f64 {
    (number(tokens.input) * price.input + number(tokens.output) * price.output) / 1_000_000.0
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "no run has 2^53 tokens")]
fn number(tokens: u64) -> f64 {
    tokens as f64
}

/// Counts tokens and what they cost; `None`: the price is not known, so that of the run is not either.
pub(super) fn charge(program: &Program, state: &mut State, tokens: Tokens, cost_usd: Option<f64>) {
    let tally = &mut state.counters;
    tally.tokens.input = tally.tokens.input.saturating_add(tokens.input);
    tally.tokens.output = tally.tokens.output.saturating_add(tokens.output);
    match cost_usd {
        Some(cost) if cost.is_finite() => tally.cost_usd += cost.max(0.0),
        _ => tally.unpriced |= tokens != Tokens::default(),
    }
    if let Some(budget) = &program.properties.budget {
        state.watch.budget_used = share((budget.tokens, budget.cost_usd), &used(state, &[]));
        state.watch.budget_warned |= state.watch.budget_used >= budget.warn_at;
    }
}

/// Counts what failed attempts used, and keeps them for the trace.
pub(super) fn tried(program: &Program, state: &mut State, attempts: Vec<FailedAttempt>) {
    let iteration = state.counters.iterations.saturating_add(1);
    for attempt in attempts {
        if let Some(usage) = attempt.usage {
            let cost = price(state, &attempt).map(|price| self::cost_usd(usage, price));
            charge(program, state, usage, cost);
        }
        state.attempts.push((iteration, attempt));
    }
}

/// Whether there is something that a run may not spend more of.
pub(super) fn is_bound(program: &Program, state: &State) -> bool {
    let (own, left) = (program.properties.budget.as_ref(), state.header.bound);
    let own = own.is_some_and(|budget| budget.tokens.is_some() || budget.cost_usd.is_some());
    own || left.tokens.is_some() || left.cost_usd.is_some()
}

/// Whether nothing is left for another call.
pub(super) fn is_spent(program: &Program, state: &State) -> bool {
    is_spent_by(program, state, &[])
}

/// Whether nothing is left of what the run that called this one gave it.
pub(super) fn is_spent_for_the_caller(state: &State) -> bool {
    let bound = state.header.bound;
    share((bound.tokens, bound.cost_usd), &used(state, &[])) >= 1.0
}

/// What a run may still spend: of its own budget, and of what it was given.
pub fn left(program: &Program, state: &State) -> Allowance {
    let (own, given) = (program.properties.budget.as_ref(), state.header.bound);
    let tokens = [given.tokens, own.and_then(|budget| budget.tokens)].into_iter().flatten().min();
    let cost_usd = [given.cost_usd, own.and_then(|budget| budget.cost_usd)].into_iter().flatten().reduce(f64::min);
    let used = used(state, &[]);
    Allowance {
        tokens: tokens.map(|most| most.saturating_sub(used.0)),
        cost_usd: cost_usd.map(|most| (most - used.1).max(0.0)),
    }
}

/// Whether these failed attempts of a tool that asks a model used all that was left, the last one some of it.
pub fn uses_up(left: Allowance, attempts: &[FailedAttempt]) -> bool {
    let mut used = Used(0, 0.0);
    used.add(attempts, |attempt| attempt.price);
    attempts.last().is_some_and(|last| last.usage.is_some()) && share((left.tokens, left.cost_usd), &used) >= 1.0
}

/// Whether the last of these failed attempts was paid for, and nothing is left then: no other one is made.
/// One that cost nothing may be made again, the last word of a spent budget too.
pub fn is_enough(program: &Program, state: &State, attempts: &[FailedAttempt]) -> bool {
    attempts.last().is_some_and(|last| last.usage.is_some()) && is_spent_by(program, state, attempts)
}

fn is_spent_by(program: &Program, state: &State, attempts: &[FailedAttempt]) -> bool {
    let (own, left) = (program.properties.budget.as_ref(), state.header.bound);
    let used = used(state, attempts);
    let bounds = own.map(|budget| (budget.tokens, budget.cost_usd)).into_iter().chain([(left.tokens, left.cost_usd)]);
    bounds.into_iter().any(|bound| share(bound, &used) >= 1.0)
}

fn price(state: &State, attempt: &FailedAttempt) -> Option<Price> {
    if attempt.model.is_some() { attempt.price } else { state.header.model.price }
}

/// Tokens and US dollars.
struct Used(u64, f64);

impl Used {
    fn add(&mut self, attempts: &[FailedAttempt], price: impl Fn(&FailedAttempt) -> Option<Price>) {
        for attempt in attempts {
            let Some(usage) = attempt.usage else { continue };
            self.0 = self.0.saturating_add(usage.input).saturating_add(usage.output);
            self.1 += price(attempt).map_or(0.0, |price| cost_usd(usage, price));
        }
    }
}

fn used(state: &State, attempts: &[FailedAttempt]) -> Used {
    let tally = &state.counters;
    let mut used = Used(tally.tokens.input.saturating_add(tally.tokens.output), tally.cost_usd);
    used.add(attempts, |attempt| price(state, attempt));
    used
}

/// The share that is used of so many tokens and US dollars: the larger one of the two; 1 is all of it.
fn share((tokens, cost_usd): (Option<u64>, Option<f64>), used: &Used) -> f64 {
    let part = |used: f64, bound: f64| if bound > 0.0 { used / bound } else { 1.0 };
    let tokens = tokens.map_or(0.0, |bound| part(number(used.0), number(bound)));
    let cost = cost_usd.map_or(0.0, |bound| part(used.1, bound));
    tokens.max(cost)
}
