//! A condition of a fallback that never holds.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};

pub const RULE: Rule = Rule { code: codes::UNMET_ROUTE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["fallback_models", "budget"]) else { return };
    for (at, model) in react.fallback_models.iter().enumerate() {
        let Some(when) = model.when() else { continue };
        let field = format!("fallback_models/{at}/when/budget_left_below");
        let Some(cursor) = subject.property(&field) else { continue };
        if when.budget_left_below <= 0.0 {
            let message = format!("less than nothing is never left: `{}` is not asked", model.name());
            found.push(cursor.report(&RULE, message).help("write a share between 0 and 1, such as 0.2"));
        } else if react.budget.is_none() {
            let message =
                format!("the loop has no `budget`: `{}` is asked only where a caller bounds its runs", model.name());
            found
                .push(cursor.report(&RULE, message).help("give the loop a `budget`, or name the model without `when`"));
        }
    }
}
