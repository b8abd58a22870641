//! A temperature for a model that takes none.

use crate::check::{Cursor, Rule, Subject, model};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;

pub const RULE: Rule = Rule { code: codes::FIXED_TEMPERATURE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let mut judge = |cursor: Option<Cursor<'_>>, name: Option<&str>| {
        let (Some(cursor), Some(model)) = (cursor.filter(Cursor::is_written), model::named(subject, name)) else {
            return;
        };
        if model.takes_no_temperature() {
            let message = format!("the model `{}` takes no temperature: none is sent", model.id());
            found.push(cursor.key().report(&RULE, message).help("take it out"));
        } else if model.chooses_by_top_p() {
            let message = format!("the model `{}` takes no temperature beside `top_p`: none is sent", model.id());
            let help = "take it out, or `top_p` of the model in loopctl.json";
            found.push(cursor.key().report(&RULE, message).help(help));
        }
    };
    if let Some(react) = subject.react(&["temperature", "model"]) {
        judge(subject.property("temperature"), react.model.as_deref());
    }
    for used in subject.actions() {
        if let Action::Llm(llm) = &*used.action {
            judge(Some(used.at("/temperature")), llm.model.as_deref());
        }
    }
}
