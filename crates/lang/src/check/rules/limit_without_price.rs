//! A spending limit in US dollars over a model without a price.

use std::collections::HashSet;

use crate::check::model::{self, NamedModel};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::language::spending_limit::SpendingLimit;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::LIMIT_WITHOUT_PRICE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    if project.limits.iter().all(|limit| limit.cost_usd.is_none()) {
        return;
    }
    let react = subject.react(&["model", "fallback_models"]);
    let own = react.map(|react| react.model.as_deref());
    let fallbacks = react.iter().flat_map(|react| react.fallback_models.iter().map(|model| Some(model.name())));
    let actions = subject.actions().iter().filter_map(|used| match &*used.action {
        Action::Llm(action) => Some(action.model.as_deref()),
        _ => None,
    });
    let names: Vec<_> = own.into_iter().chain(fallbacks).chain(actions).collect();
    let mut reported = HashSet::new();
    for NamedModel { name, declared } in names.into_iter().filter_map(|written| model::named(subject, written)) {
        let knows = subject.knows_project(&format!("/models/{}/price", token(name)));
        if !knows || declared.is_some_and(|model| model.price.is_some()) || !reported.insert(name) {
            continue;
        }
        let counts = |limit: &SpendingLimit| {
            let is_own = |wanted: &String| subject.program().is_none_or(|program| program.name == *wanted);
            limit.cost_usd.is_some()
                && limit.model.as_ref().is_none_or(|model| model == name)
                && limit.loop_name.as_ref().is_none_or(is_own)
        };
        let Some(number) = project.limits.iter().position(counts) else { continue };
        let Some(cursor) = subject.in_project(&format!("/limits/{number}/cost_usd")) else { continue };
        let fault =
            cursor.report(&RULE, format!("the spending limit is in US dollars, and the model `{name}` has no price"));
        let price = "\"price\": {\"input\": ..., \"output\": ...}";
        found.push(fault.help(match declared {
            Some(_) => {
                format!("give `models.{name}` what a million tokens cost: {price}, both 0 where it costs nothing")
            }
            None => format!("declare `{name}` under `models`, with {price} for a million tokens"),
        }));
    }
}
