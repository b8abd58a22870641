//! A system prompt that leaves out what the model needs.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::react::Dialect;
use crate::program::template::{Template, ValueEscape};

pub const RULE: Rule = Rule { code: codes::PROMPT_WITHOUT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(text) = subject.react(&["system_prompt"]).and_then(|react| react.system_prompt.as_deref()) else { return };
    let (Some(cursor), Ok(template)) = (subject.property("system_prompt"), Template::compile(text, ValueEscape::Plain))
    else {
        return;
    };
    let named =
        |name: &str| template.variables().iter().any(|variable| variable.path.first().is_some_and(|of| of == name));
    // Native tool calls bring the tools beside the prompt.
    let native = subject
        .react(&["dialect"])
        .is_some_and(|react| matches!(react.dialect, Dialect::ToolCalls | Dialect::FinalAnswer));
    let left: Vec<String> = ["objective", "tools", "dialect_instructions"]
        .into_iter()
        .filter(|name| !(named(name) || native && *name == "tools"))
        .map(|name| format!("`{{{{{name}}}}}`"))
        .collect();
    let why = match left.as_slice() {
        [] => return,
        _ if !named("dialect_instructions") => "the model does not learn in which form it must reply",
        _ if !named("tools") && !native => "the model does not learn what it can call",
        _ => "the model does not learn what to reach",
    };
    let fault = cursor.report(&RULE, format!("the system prompt leaves out {}: {why}", left.join(" and ")));
    found.push(fault.help("it takes the place of ours, whole: name in it what the model needs"));
}
