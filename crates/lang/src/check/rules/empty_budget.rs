//! A budget without a bound.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};

pub const RULE: Rule = Rule { code: codes::EMPTY_BUDGET, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let react = subject.react(&["budget/tokens", "budget/cost_usd"]);
    let Some(budget) = react.and_then(|react| react.budget.as_ref()) else { return };
    if let Some(cursor) = subject.property("budget").filter(|_| budget.tokens.is_none() && budget.cost_usd.is_none()) {
        let fault = cursor.report(&RULE, "the budget has no bound: the run may use what it likes");
        found.push(fault.help("give it `tokens`, or `cost_usd`"));
    }
}
