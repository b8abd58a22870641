//! A `concurrency` whose key no input decides.

use serde_json::Value;

use super::no_member::may_be_left_out;
use crate::check::{Rule, Subject};
use crate::compile::steps::concurrency_at;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::concurrency::Concurrency;
use crate::program::concurrency::ConcurrencyRule;
use crate::syntax::quoted;
use serde::Deserialize as _;

pub const RULE: Rule = Rule { code: codes::CONCURRENCY_KEY, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let document = subject.document();
    let Some(at) = concurrency_at(document).filter(|at| !subject.is_step() && !subject.is_faulty(at)) else { return };
    let Some(written) = document.value.pointer(at) else { return };
    let Some(rule) = Concurrency::deserialize(written).ok().as_ref().and_then(ConcurrencyRule::of) else { return };
    let Some(key) = written.get("key").and_then(Value::as_str) else { return };
    let (at, paths) = (format!("{at}/key"), rule.paths());
    let other = paths.iter().find(|path| path.first().is_none_or(|first| first != "input") || path.len() < 2);
    let (message, help) = match other {
        Some(path) => (
            format!(
                "the key of `concurrency` takes `{}`, and a run has the members of its input alone when it is started",
                path.join(".")
            ),
            "write `@input.NAME`, or a template of such names",
        ),
        None if paths.is_empty() => (
            format!("the key of `concurrency` is {} for every run", quoted(key)),
            "write `@input.NAME`; without `key`, all runs of the document are counted together",
        ),
        None => return may_be_missing(subject, &at, found),
    };
    let near = key.strip_prefix("input.").filter(|_| paths.is_empty()).map(|rest| quoted(&format!("@input.{rest}")));
    let fault = subject.at(&at).report(&RULE, message).help(help);
    found.push(match near {
        Some(near) => fault.suggest(near),
        None => fault,
    });
}

/// A key that takes an input which may be left out: a start without it is refused.
fn may_be_missing(subject: &Subject<'_>, at: &str, found: &mut Vec<Diagnostic>) {
    let Some(text) = subject.compiled.steps.typed.iter().find(|text| text.at == at) else { return };
    let Some(name) = may_be_left_out(subject, text, &[]) else { return };
    if subject.is_reported(&subject.at(at).place()) {
        return;
    }
    let message =
        format!("`{name}` may be left out, and the key of `concurrency` needs it: a start without it is refused");
    let fault = Diagnostic { severity: Severity::Warning, ..subject.at(at).report(&RULE, message) };
    found.push(fault.help("let `input` require it: put it among the `required` of its schema"));
}
