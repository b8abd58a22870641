//! Several calls a turn, in a dialect that has one.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::react::Dialect;

pub const RULE: Rule = Rule { code: codes::ONE_CALL_A_TURN, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    const HELP: &str = "take it out: it has a meaning in the dialects that allow several calls";
    if subject.react(&["dialect"]).is_none_or(|react| react.dialect != Dialect::Json) {
        return;
    }
    let calls = subject.react(&["max_tool_calls_per_turn"]).map_or(1, |react| react.max_tool_calls_per_turn);
    if let Some(cursor) = subject.property("max_tool_calls_per_turn").filter(|_| calls > 1) {
        let fault = cursor.key().report(&RULE, format!("the dialect `json` has one call a turn, and never {calls}"));
        found.push(fault.help(HELP));
    }
    if let Some(cursor) = subject.property("order") {
        let fault = cursor.key().report(&RULE, "the dialect `json` has one call a turn, and no order of calls");
        found.push(fault.help(HELP));
    }
}
