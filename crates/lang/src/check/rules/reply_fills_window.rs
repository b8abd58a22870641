//! A reply that may take the model's whole window.

use crate::check::{Cursor, Rule, Subject, model};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::REPLY_FILLS_WINDOW, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if let Some(react) = subject.react(&["max_tokens", "model"]) {
        // The default is a part of the window.
        if let Some(reply) = react.max_tokens {
            judge(subject, react.model.as_deref(), reply, subject.property("max_tokens"), found);
        }
    }
    for used in subject.actions() {
        if let Action::Llm(llm) = &*used.action {
            let cursor = Some(used.at("/max_tokens")).filter(Cursor::is_written);
            judge(subject, llm.model.as_deref(), llm.max_tokens, cursor, found);
        }
    }
}

fn judge(subject: &Subject<'_>, name: Option<&str>, reply: u32, at: Option<Cursor<'_>>, found: &mut Vec<Diagnostic>) {
    let Some(model) = model::named(subject, name) else { return };
    let Some(window) = model.declared.and_then(|model| model.context_tokens) else { return };
    let declared = subject.in_project(&format!("/models/{}/context_tokens", token(model.name)));
    let default = at.is_none();
    let Some(cursor) = at.or_else(|| declared.clone()).filter(|_| u64::from(reply) >= window) else { return };
    let name = model.name;
    let message =
        format!("a reply may have {reply} tokens, and the window of `{name}` has {window} for question and reply");
    let fault = cursor.report(&RULE, message);
    found.push(match declared.filter(|_| !default) {
        Some(window) => {
            let fault = fault.help("make `max_tokens` smaller: the question needs the rest of the window");
            fault.related(&window.place(), "the window is said here")
        }
        None => fault.help("that is the default of `max_tokens`: write a smaller one, or correct the window"),
    });
}
