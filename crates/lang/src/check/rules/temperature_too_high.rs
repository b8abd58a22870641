//! A temperature above what the model's provider takes.

use crate::check::{Cursor, Rule, Subject, model};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;

pub const RULE: Rule = Rule { code: codes::TEMPERATURE_TOO_HIGH, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let mut judge = |cursor: Option<Cursor<'_>>, name: Option<&str>, temperature: Option<f64>| {
        let (Some(cursor), Some(model)) = (cursor.filter(Cursor::is_written), model::named(subject, name)) else {
            return;
        };
        let Some(temperature) = temperature else { return };
        let Some(most) = model.max_temperature().filter(|most| temperature > *most) else { return };
        let message = format!("the temperature of `{}` ends at {most}: {temperature} is sent as {most}", model.id());
        found.push(cursor.report(&RULE, message).help(format!("write {most}")).suggest(most.to_string()));
    };
    if let Some(react) = subject.react(&["temperature", "model"]) {
        judge(subject.property("temperature"), react.model.as_deref(), react.temperature);
    }
    for used in subject.actions() {
        if let Action::Llm(llm) = &*used.action {
            judge(Some(used.at("/temperature")), llm.model.as_deref(), llm.temperature);
        }
    }
}
