//! A rate of a model, or a number of connections, that can't hold.

use crate::check::model::{self, LongestReply};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::project::Provider;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::IDLE_RATE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        let at = format!("/models/{}", token(name));
        let mut report = |field: &str, message: String, help: &str| {
            if let Some(cursor) = subject.in_project(&format!("{at}{field}"))
                && !subject.is_reported(&cursor.place())
            {
                found.push(cursor.report(&RULE, message).help(help.to_owned()));
            }
        };
        let is_script = model.provider == Provider::Script;
        let written = [
            ("/rate", model.rate.is_some()),
            ("/max_connections", model.max_connections.is_some()),
            ("/circuit", model.circuit.is_some()),
        ];
        for (field, _) in written.into_iter().filter(|(_, is_written)| *is_written && is_script) {
            let message = format!("the model `{name}` is a script: no request is sent, and none waits");
            report(field, message, "leave it out");
        }
        let is_empty = |rate| rate == crate::language::model_rate::ModelRate::default();
        if model.rate.is_some_and(is_empty) && subject.knows_project(&format!("{at}/rate")) {
            let message = "the rate has no amount: the model may be asked as often as runs like".to_owned();
            report("/rate", message, "give it `requests_per_minute`, or `tokens_per_minute`");
        }
    }
    for reply in model::longest_replies(subject) {
        judge(subject, &reply, found);
    }
}

/// A call reserves what the model reads and `max_tokens`: it has to fit into a minute.
fn judge(subject: &Subject<'_>, longest: &LongestReply<'_, '_>, found: &mut Vec<Diagnostic>) {
    let LongestReply { model, tokens: reply, at } = longest;
    let rate = model.declared.and_then(|model| model.rate?.tokens_per_minute);
    let Some(most) = rate.filter(|most| u64::from(*reply) >= *most) else { return };
    let name = model.name;
    let declared = subject.in_project(&format!("/models/{}/rate/tokens_per_minute", token(name)));
    let Some(declared) = declared.filter(|declared| !subject.is_reported(&declared.place())) else { return };
    let message =
        format!("one reply may have {reply} tokens, and the rate of `{name}` is {most} in a minute for all requests");
    let fault = declared.report(&RULE, message);
    found.push(match at {
        Some(reply) => {
            fault.help("raise the rate, or lower `max_tokens`").related(&reply.place(), "the reply is bounded here")
        }
        None => fault.help("raise the rate, or write a smaller `max_tokens`: this is its default"),
    });
}
