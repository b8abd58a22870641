//! A model of OpenAI's whose tool calls, or all of it, need the Responses API.

use crate::check::model::{self, NamedModel};
use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::language::project::ReasoningEffort;
use crate::language::react::{Dialect, ReactProperties};
use crate::policy::provider::NeedsResponses;

pub const RULE: Rule = Rule { code: codes::NEEDS_RESPONSES, check };

const HELP: &str = "give the model the provider `openai-responses` in loopctl.json";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if let Some(react) = subject.react(&["model", "dialect"]) {
        let cursor = subject.property("model").or_else(|| subject.in_project("/model"));
        judge(model::named(subject, react.model.as_deref()), cursor, sends_tools(react), found);
    }
    if let Some(react) = subject.react(&["dialect", "fallback_models"]) {
        for (at, model) in react.fallback_models.iter().enumerate() {
            let cursor = subject.property(&format!("fallback_models/{at}"));
            judge(model::named(subject, Some(model.name())), cursor, sends_tools(react), found);
        }
    }
    for used in subject.actions() {
        if let Action::Llm(llm) = &*used.action
            && llm.model.is_some()
        {
            judge(model::named(subject, llm.model.as_deref()), Some(used.at("/model")), false, found);
        }
    }
}

/// Whether the requests of a loop have its tools.
fn sends_tools(react: &ReactProperties) -> bool {
    matches!(react.dialect, Dialect::ToolCalls | Dialect::FinalAnswer)
}

/// Judges a model at the place where it is named.
fn judge(model: Option<NamedModel<'_>>, cursor: Option<Cursor<'_>>, has_tools: bool, found: &mut Vec<Diagnostic>) {
    let (Some(model), Some(cursor)) = (model, cursor) else { return };
    let is_off = model.declared.and_then(|model| model.reasoning_effort) == Some(ReasoningEffort::None);
    let (message, help) = match model.needs_responses() {
        Some(NeedsResponses::Always) => {
            (format!("the model `{}` is not in OpenAI's chat completions", model.id()), HELP.to_owned())
        }
        Some(NeedsResponses::ForTools) if has_tools => (
            format!("the model `{}` takes tools in OpenAI's Responses API only, with any effort", model.id()),
            match is_off && model.refuses_no_effort() {
                true => format!("{HELP}, and a `reasoning_effort` of `low` or more"),
                false => HELP.to_owned(),
            },
        ),
        Some(NeedsResponses::ForToolsWithReasoning) if has_tools && !is_off => (
            format!("the model `{}` takes tools in chat completions only without reasoning", model.id()),
            format!("{HELP}, or \"reasoning_effort\": \"none\""),
        ),
        _ => return,
    };
    found.push(cursor.report(&RULE, message).help(help));
}
