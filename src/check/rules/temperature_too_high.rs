//! A temperature above what the model's provider takes.

use crate::check::{Rule, Spot, Subject, model};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;

/// The rule.
pub const RULE: Rule = Rule {
    code: codes::TEMPERATURE_TOO_HIGH,
    name: "temperature-too-high",
    severity: Severity::Warning,
    page: include_str!("temperature_too_high.md"),
    look: Some(look),
};

fn look(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let mut judge = |spot: Option<Spot<'_>>, name: Option<&str>, temperature: f64| {
        let (Some(spot), Some(model)) = (spot.filter(Spot::is_written), model::named(subject, name)) else { return };
        let Some(most) = model.max_temperature().filter(|most| temperature > *most) else { return };
        let message = format!("the temperature of `{}` ends at {most}: {temperature} is sent as {most}", model.id());
        found.push(spot.tell(&RULE, message).help(format!("write {most}")).suggest(most.to_string()));
    };
    if let Some(react) = subject.react(&["temperature", "model"]) {
        judge(subject.property("temperature"), react.model.as_deref(), react.temperature);
    }
    for used in subject.actions() {
        if let Action::Llm(llm) = &used.action {
            judge(Some(used.at("/temperature")), llm.model.as_deref(), llm.temperature);
        }
    }
}
