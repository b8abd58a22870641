//! A budget in dollars for a model without a price.

use crate::check::{Rule, Subject, model};
use crate::diagnostic::{Diagnostic, Severity, codes};

/// The rule.
pub const RULE: Rule = Rule {
    code: codes::COST_WITHOUT_PRICE,
    name: "cost-without-price",
    severity: Severity::Error,
    page: include_str!("cost_without_price.md"),
    look: Some(look),
};

fn look(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["budget", "model"]) else { return };
    if react.budget.as_ref().is_none_or(|budget| budget.cost_usd.is_none()) {
        return;
    }
    let (Some(spot), Some(model)) =
        (subject.property("budget/cost_usd"), model::named(subject, react.model.as_deref()))
    else {
        return;
    };
    if model.declared.is_some_and(|model| model.price.is_some()) {
        return;
    }
    let name = model.name;
    let fault = spot.tell(&RULE, format!("the budget is in US dollars, and the model `{name}` has no price"));
    let price = "\"price\": {\"input\": ..., \"output\": ...}";
    found.push(fault.help(match model.declared {
        Some(_) => format!("give `models.{name}` of the project what a million tokens cost: {price}"),
        None => format!("declare `{name}` under `models` of `loopctl.json`, with {price} for a million tokens"),
    }));
}
