//! A call's deadline that lies behind the run's.

use std::collections::HashSet;

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::tool::TypedTool;

pub const RULE: Rule = Rule { code: codes::TIMEOUT_BELOW_TOOL, check };

fn check<'a>(subject: &Subject<'a>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["timeout_ms"]) else { return };
    let run = react.timeout_ms;
    let mut judge = |cursor: &dyn Fn() -> Option<Cursor<'a>>, call: Option<u64>| {
        let Some(call) = call.filter(|call| *call > run) else { return };
        let Some(cursor) = cursor().filter(Cursor::is_written) else { return };
        let fault = cursor.report(&RULE, format!("one call may take {call} ms, and the whole run has {run} ms"));
        let fault = fault.help("give the loop a larger `timeout_ms`, or the call a smaller one");
        found.push(match subject.property("timeout_ms") {
            Some(run) => fault.related(&run.place(), "the run's time is bounded here"),
            None => fault,
        });
    };
    let call = subject.react(&["tool_timeout_ms"]).map(|react| react.tool_timeout_ms);
    judge(&|| subject.property("tool_timeout_ms"), call);
    let mut overridden: HashSet<&str> = HashSet::new();
    for (pointer, declaration) in subject.declarations() {
        if let ToolDeclaration::Typed(TypedTool::Action(tool)) = declaration {
            judge(&|| Some(subject.at(&format!("{pointer}/timeout_ms"))), tool.timeout_ms);
            overridden.extend(tool.timeout_ms.map(|_| tool.name.as_str()));
        }
    }
    // A declaration that can't be read may give its action less.
    if subject.react(&["tools"]).is_none() {
        return;
    }
    for used in subject.actions().iter().filter(|used| !overridden.contains(used.name())) {
        judge(&|| Some(used.at("/timeout_ms")), used.action.head().timeout_ms);
    }
}
