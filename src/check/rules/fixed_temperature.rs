//! A temperature for a model that takes none.

use crate::check::{Rule, Spot, Subject, model};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;

/// The rule.
pub const RULE: Rule = Rule {
    code: codes::FIXED_TEMPERATURE,
    name: "fixed-temperature",
    severity: Severity::Warning,
    page: include_str!("fixed_temperature.md"),
    look: Some(look),
};

fn look(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let mut judge = |spot: Option<Spot<'_>>, name: Option<&str>| {
        let (Some(spot), Some(model)) = (spot.filter(Spot::is_written), model::named(subject, name)) else { return };
        if model.takes_no_temperature() {
            let message = format!("the model `{}` takes no temperature: none is sent", model.id());
            found.push(spot.key().tell(&RULE, message).help("take it out"));
        }
    };
    if let Some(react) = subject.react(&["temperature", "model"]) {
        judge(subject.property("temperature"), react.model.as_deref());
    }
    for used in subject.actions() {
        if let Action::Llm(llm) = &used.action {
            judge(Some(used.at("/temperature")), llm.model.as_deref());
        }
    }
}
