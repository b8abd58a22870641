//! `on_failure` without steps.

use serde_json::Value;

use crate::check::steps::steps;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::program::flow::ON_FAILURE;

pub const RULE: Rule = Rule { code: codes::IDLE_ON_FAILURE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let of_loops = steps(subject).into_iter().filter(|step| step.is_foreach()).map(|step| step.property(ON_FAILURE));
    let of_workflow = std::iter::once("/definition/on_failure".to_owned());
    for at in of_workflow.chain(of_loops) {
        let list = subject.document().value.pointer(&at).and_then(Value::as_array);
        if list.is_some_and(Vec::is_empty) && !subject.is_faulty(&at) {
            let fault =
                subject.at(&at).report(&RULE, "`on_failure` has no steps: nothing runs after a failure".to_owned());
            let fault = Diagnostic { severity: Severity::Warning, ..fault };
            found.push(fault.help("write the steps that run then, or take it out"));
        }
    }
}
