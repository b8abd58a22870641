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
        if temperature > 1.0 && model.is_anthropic() && !model.takes_no_temperature() {
            let message = format!("the temperature of `{}` ends at 1: {temperature} is sent as 1", model.id());
            found.push(spot.tell(&RULE, message).help("write 1").suggest("1"));
        }
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
