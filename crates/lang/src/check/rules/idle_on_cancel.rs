//! `on_cancel` of a workflow that has no steps for it.

use serde_json::Value;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::syntax::document::DocumentKind;

pub const RULE: Rule = Rule { code: codes::IDLE_ON_CANCEL, check };

const AT: &str = "/definition/on_cancel";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let document = subject.document();
    if document.kind != Some(DocumentKind::Workflow) || subject.is_step() || subject.is_faulty(AT) {
        return;
    }
    let is_on = document.value.pointer(AT) == Some(&Value::Bool(true));
    let steps = document.value.pointer("/definition/on_failure");
    if is_on && steps.is_none_or(|steps| steps.as_array().is_some_and(Vec::is_empty)) {
        let message = "`on_cancel` has no effect: the workflow has no steps in `on_failure`".to_owned();
        let fault = subject.at(AT).key().report(&RULE, message);
        let fault = Diagnostic { severity: Severity::Warning, ..fault };
        found.push(fault.help("write the steps that run after a cancel in `on_failure`, or take it out"));
    }
}
