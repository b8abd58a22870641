//! A budget in dollars for a model without a price.

use std::collections::HashSet;
use std::iter;

use crate::check::{Rule, Subject, model};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::syntax::token;

/// The rule.
pub const RULE: Rule = Rule { code: codes::COST_WITHOUT_PRICE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["budget", "model", "fallback_models"]) else { return };
    if react.budget.as_ref().is_none_or(|budget| budget.cost_usd.is_none()) {
        return;
    }
    // The loop's own model, those that are asked in its place, and those of `llm` actions: all are paid for.
    let own = iter::once((react.model.as_deref(), subject.property("budget/cost_usd")));
    let fallbacks = react.fallback_models.iter().enumerate();
    let fallbacks =
        fallbacks.map(|(at, name)| (Some(name.as_str()), subject.property(&format!("fallback_models/{at}"))));
    let actions = subject.actions().iter().filter_map(|used| match &*used.action {
        Action::Llm(action) => Some((Some(action.model.as_deref()?), Some(used.at("/model")))),
        _ => None,
    });
    let mut reported = HashSet::new();
    for (written, cursor) in own.chain(fallbacks).chain(actions) {
        let (Some(cursor), Some(model)) = (cursor, model::named(subject, written)) else { continue };
        let name = model.name;
        let knows = subject.knows_project(&format!("/models/{}/price", token(name)));
        if !knows || model.declared.is_some_and(|model| model.price.is_some()) || reported.contains(name) {
            continue;
        }
        reported.insert(name);
        let fault = cursor.report(&RULE, format!("the budget is in US dollars, and the model `{name}` has no price"));
        let price = "\"price\": {\"input\": ..., \"output\": ...}";
        found.push(fault.help(match model.declared {
            Some(_) => format!("give `models.{name}` of the project what a million tokens cost: {price}"),
            None => format!("declare `{name}` under `models` of `loopctl.json`, with {price} for a million tokens"),
        }));
    }
}
