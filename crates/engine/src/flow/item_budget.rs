//! What is left of the time and the budgets of the items around a step.

use super::progress::{Current, FlowProgress, chosen};
use crate::address::StepAddress;
use crate::event::Allowance;
use loopctl_lang::program::flow::{FlowProgram, StepAction};

/// What is left for a step of an item.
#[derive(Debug, Clone, Copy, Default)]
pub struct ItemRest {
    /// Of the active time, in milliseconds.
    pub time_ms: Option<u64>,
    /// Of the budget.
    pub budget: Allowance,
}

impl ItemRest {
    /// What the items around an open step leave it, when the run was active for so long: the least of them counts.
    pub fn of(program: &FlowProgram, state: &FlowProgress, at: &StepAddress, active_ms: u64) -> Self {
        let mut rest = Self::default();
        let (mut steps, mut frame) = (program.steps.as_slice(), &state.root);
        // Loops are at most three deep.
        while let Current::Items(items) = &frame.current {
            let item = at.item_of(&items.at).and_then(|index| items.open.get(&index));
            let step = steps.get(frame.next).and_then(|step| chosen(step, &items.at));
            let Some((item, StepAction::Foreach(foreach))) = item.zip(step.map(|step| &step.action)) else { break };
            let used_ms = active_ms.saturating_sub(item.began_active_ms);
            let time_ms = foreach.item_timeout_ms.map(|most| most.saturating_sub(used_ms));
            rest.time_ms = rest.time_ms.into_iter().chain(time_ms).min();
            if let Some(most) = &foreach.item_budget {
                let spent = item.spent.tokens.input.saturating_add(item.spent.tokens.output);
                rest.budget = rest.budget.at_most(Allowance {
                    tokens: most.tokens.map(|most| most.saturating_sub(spent)),
                    cost_usd: most.cost_usd.map(|most| (most - item.spent.cost_usd).max(0.0)),
                });
            }
            (steps, frame) = (&foreach.steps, item);
        }
        rest
    }
}
