//! Counts what a call of the model used, and how often one failed, whatever the call was for.

use crate::budget;
use crate::event::{Finish, ModelFault, Reply, Tokens};
use crate::state::{LoopState, StateHead};
use loopctl_lang::program::LoopProgram;

/// Counts a reply to a request of `sent` bytes: tokens, cost, retries.
pub(crate) fn of_reply(program: &LoopProgram, state: &mut LoopState, reply: &Reply, sent: usize) -> Tokens {
    let StateHead { counters, header, .. } = &mut state.head;
    counters.model_retries = counters.model_retries.saturating_add(reply.retries);
    if reply.finish == Finish::Length {
        counters.truncated_responses += 1;
    }
    let written = reply.calls.iter().fold(reply.text.len(), |sum, call| sum.saturating_add(call.size()));
    let usage = if header.estimates_zeros() {
        let thought = reply.reasoning.as_ref().map_or(0, |reasoning| reasoning.text.len());
        let output = counters.estimator.tokens(written.saturating_add(thought));
        let estimate = Tokens { input: counters.estimator.tokens(sent), output, ..Tokens::default() };
        let (usage, is_estimate) = Tokens::of_reply(reply.usage, estimate);
        counters.estimated |= is_estimate;
        usage
    } else {
        reply.usage.unwrap_or_else(|| {
            counters.estimated = true;
            let (input, output) = (counters.estimator.tokens(sent), counters.estimator.tokens(written));
            Tokens { input, output, ..Tokens::default() }
        })
    };
    let price = if reply.model.is_some() { reply.price.as_deref().copied() } else { state.header.model.price };
    budget::charge(program, state, usage, price.map(|price| budget::cost_usd(usage, price)));
    usage
}

/// Counts a failure: its attempts, and what they used.
pub(crate) fn of_failure(program: &LoopProgram, state: &mut LoopState, mut fault: ModelFault) -> ModelFault {
    state.counters.model_retries = state.counters.model_retries.saturating_add(fault.attempts.saturating_sub(1));
    state.counters.calls_failed = state.counters.calls_failed.saturating_add(u32::from(fault.attempts > 0));
    budget::tried(program, state, std::mem::take(&mut fault.failed));
    fault
}
