//! A fallback that was tried before: the model itself, or one that is there twice.

use std::collections::HashMap;

use crate::check::{Rule, Subject, model};
use crate::diagnostic::{Diagnostic, codes};

pub const RULE: Rule = Rule { code: codes::REPEATED_MODEL, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["model", "fallback_models"]) else { return };
    let first = model::named(subject, react.model.as_deref()).map(|model| model.name);
    let mut met = HashMap::new();
    for (at, model) in react.fallback_models.iter().enumerate() {
        // One with a condition may also be asked after failures.
        let (name, is_routed) = (model.name(), model.when().is_some());
        let Some(cursor) = subject.property(&format!("fallback_models/{at}")) else { continue };
        let earlier = Some(*met.entry((name, is_routed)).or_insert(at)).filter(|earlier| *earlier < at);
        let (what, place) = if first == Some(name) {
            (
                if is_routed { "is the loop's own model" } else { "is the model that failed before" },
                subject.property("model"),
            )
        } else if let Some(earlier) = earlier {
            ("is there twice", subject.property(&format!("fallback_models/{earlier}")))
        } else {
            continue;
        };
        let fault = cursor.report(&RULE, format!("the fallback `{name}` {what}"));
        let fault = fault.help("take it out: a model is tried again by `retry`, and a fallback is for another one");
        found.push(match place {
            Some(first) => fault.related(&first.place(), "it is named here first"),
            None => fault,
        });
    }
}
