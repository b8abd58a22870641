//! `on_uncertain` of an idempotent action: its calls are made again whatever it says.

use crate::check::{Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::action::OnUncertain;

pub const RULE: Rule = Rule { code: codes::IDLE_ON_UNCERTAIN, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let known = |used: &&Used<'_>| used.knows(&["/idempotent", "/http_method", "/read_only", "/on_uncertain"]);
    for used in subject.actions().iter().filter(known) {
        let kind = used.action.kind();
        let head = kind.head();
        let written = match head.on_uncertain {
            Some(OnUncertain::Pause) => "pause",
            Some(OnUncertain::Fail) => "fail",
            // That is what happens.
            Some(OnUncertain::Retry) | None => continue,
        };
        if !head.idempotent.unwrap_or_else(|| kind.is_idempotent()) {
            continue;
        }
        let cursor = used.at("/on_uncertain");
        let message = format!("`{written}` has no effect: the action is idempotent, and its calls are made again");
        let fault = cursor.report(&RULE, message);
        found.push(match head.idempotent {
            Some(_) => fault.help("take it out; or take `idempotent` out, if a second call does harm"),
            None => fault.help("take it out; or write `\"idempotent\": false`, if a second call does harm"),
        });
    }
}
