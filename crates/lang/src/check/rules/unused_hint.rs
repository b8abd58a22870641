//! A hint beside an action that gives none.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::react::StuckAction;

pub const RULE: Rule = Rule { code: codes::UNUSED_HINT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["on_stuck/action"]) else { return };
    let action = match react.on_stuck.action {
        StuckAction::Fail => "fail",
        StuckAction::Escalate => "escalate",
        StuckAction::RetryWithHint => return,
    };
    if let Some(hint) = subject.property("on_stuck/hint") {
        let message = format!("the hint is never given: `action` is `{action}`");
        let fault = hint.key().report(&RULE, message);
        found.push(fault.help("write \"action\": \"retry_with_hint\", or take the hint out"));
    }
}
