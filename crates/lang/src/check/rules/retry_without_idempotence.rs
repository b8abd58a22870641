//! A retry of an action that may not be repeated.

use serde_json::Value;

use crate::check::steps::steps;
use crate::check::{Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, codes};

pub const RULE: Rule = Rule { code: codes::RETRY_WITHOUT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let known = |used: &&Used<'_>| used.knows(&["/idempotent", "/http_method", "/retry"]);
    for used in subject.actions().iter().filter(known) {
        let kind = used.action.kind();
        if kind.retry().is_none() || kind.head().idempotent.unwrap_or_else(|| kind.is_idempotent()) {
            continue;
        }
        let what = kind.repeated().unwrap_or_else(|| "a call".to_owned());
        let fault =
            used.at("/retry").report(&RULE, format!("{what} that failed may have happened, and would be made again"));
        found.push(fault.help(
            "write \"idempotent\": true when the other side knows a repeated call by its `Idempotency-Key`, or take `retry` \
             out: then the model reads that the call failed",
        ));
    }
    for step in steps(subject) {
        if !step.written.get("retry").is_some_and(Value::is_object) {
            continue;
        }
        if let Some(provided) = subject.compiled.steps.provided.get(step.kind) {
            if !provided.idempotent {
                let cursor = subject.at(&format!("{}/retry", step.at)).key();
                let message = format!("the tool `{}` may not be repeated, and the step would", step.kind);
                let help = match provided.is_served {
                    true => "say in loopctl.json that a second call does no harm: `idempotent` of the tool under `mcp`",
                    false => "the program says that a second call does no harm: `IDEMPOTENT` of the tool",
                };
                found.push(cursor.report(&RULE, message).help(help));
            }
            continue;
        }
        let Some(used) = subject.action(step.kind).filter(known) else { continue };
        let kind = used.action.kind();
        if !kind.head().idempotent.unwrap_or_else(|| kind.is_idempotent()) {
            let cursor = subject.at(&format!("{}/retry", step.at)).key();
            let message = format!("the action `{}` may not be repeated, and the step would", step.kind);
            let fault = cursor.report(&RULE, message);
            found.push(fault.help("add `\"idempotent\": true` to the action if a second call does no harm"));
        }
    }
}
