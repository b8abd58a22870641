//! Two spending limits for the same account: which of them holds is not to be seen.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::spending_limit::SpendingLimit;

pub const RULE: Rule = Rule { code: codes::EQUAL_LIMITS, check };

/// Whether two limits count the same, in the same time.
fn is_same_account(one: &SpendingLimit, other: &SpendingLimit) -> bool {
    let zone = |limit: &SpendingLimit| limit.timezone.clone().unwrap_or_else(|| "UTC".to_owned());
    let whose = |limit: &SpendingLimit| (limit.loop_name.clone(), limit.model.clone(), limit.org.clone());
    one.per == other.per && one.every == other.every && zone(one) == zone(other) && whose(one) == whose(other)
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (number, limit) in project.limits.iter().enumerate() {
        let mut before = project.limits.iter().take(number).enumerate();
        let Some((first, other)) = before.find(|(_, other)| is_same_account(other, limit)) else { continue };
        let Some(cursor) = subject.in_project(&format!("/limits/{number}")) else { continue };
        let both = (other.tokens.is_some() && limit.tokens.is_some())
            || (other.cost_usd.is_some() && limit.cost_usd.is_some());
        let how = match (limit == other, both || limit.on_limit != other.on_limit) {
            (true, _) => "is the same as",
            (false, true) => "contradicts",
            (false, false) => "is for the same account as",
        };
        let message = format!("this spending limit {how} number {} of the list", first + 1);
        let help = "write one limit with all amounts: `tokens` and `cost_usd` may be in one, and the first that is reached holds";
        found.push(cursor.report(&RULE, message).help(help));
    }
}
