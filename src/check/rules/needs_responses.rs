//! A model of OpenAI's whose tool calls, or all of it, need the Responses API.

use crate::check::{Rule, Subject, model};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::project::ReasoningEffort;
use crate::language::react::Dialect;
use crate::policy::provider::NeedsResponses;

/// The rule.
pub const RULE: Rule = Rule { code: codes::NEEDS_RESPONSES, check };

const HELP: &str = "give the model the provider `openai-responses` in loopctl.json";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["model", "dialect"]) else { return };
    let Some(model) = model::named(subject, react.model.as_deref()) else { return };
    let effort = model.declared.and_then(|model| model.reasoning_effort);
    let is_native = matches!(react.dialect, Dialect::ToolCalls | Dialect::FinalAnswer);
    let (message, help) = match model.needs_responses() {
        Some(NeedsResponses::Always) => {
            (format!("the model `{}` is not in OpenAI's chat completions", model.id()), HELP.to_owned())
        }
        Some(NeedsResponses::ForToolsWithReasoning) if is_native && effort != Some(ReasoningEffort::None) => (
            format!("the model `{}` takes tools in chat completions only without reasoning", model.id()),
            format!("{HELP}, or \"reasoning_effort\": \"none\""),
        ),
        _ => return,
    };
    if let Some(cursor) = subject.property("model").or_else(|| subject.in_project("/model")) {
        found.push(cursor.report(&RULE, message).help(help));
    }
}
