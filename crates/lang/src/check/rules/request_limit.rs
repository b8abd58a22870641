//! What a provider does not take whole in a request.

use crate::check::model::{self, NamedModel};
use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::react::Dialect;
use crate::language::{Action, ToolDeclaration};
use crate::policy::name_pattern::matches_pattern;
use crate::policy::window;
use crate::program::Program;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::REQUEST_LIMIT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if let Some(react) = subject.react(&["model", "dialect", "fallback_models", "max_tokens"]) {
        let fallbacks = react.fallback_models.iter().map(|model| Some(model.name()));
        let models: Vec<NamedModel<'_>> = std::iter::once(react.model.as_deref())
            .chain(fallbacks)
            .filter_map(|name| model::named(subject, name))
            .collect();
        if matches!(react.dialect, Dialect::ToolCalls | Dialect::FinalAnswer) {
            tools(subject, &models, found);
        }
        for model in models {
            let window = model.declared.and_then(|model| model.context_tokens);
            let most = react.max_tokens.unwrap_or_else(|| window::max_tokens(window));
            thinking(subject, model, most, found);
        }
    }
    for used in subject.actions() {
        if let Action::Llm(llm) = &*used.action
            && let Some(model) = model::named(subject, llm.model.as_deref())
        {
            thinking(subject, model, llm.max_tokens, found);
        }
    }
}

/// Reports tools that are left out of requests, and descriptions that are cut, once for each provider.
fn tools(subject: &Subject<'_>, models: &[NamedModel<'_>], found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.program().and_then(Program::as_loop) else { return };
    let offered = program.offered_tools();
    let mut judged = Vec::new();
    for model in models {
        let model::ProviderLimits { provider, limits } = model.limits();
        if judged.contains(&provider) {
            continue;
        }
        judged.push(provider);
        let count = program.most_offered();
        if let Some(most) = limits.tools.filter(|most| count > *most)
            && let Some(cursor) = subject.property("tools")
        {
            let message = format!(
                "the provider `{provider}` takes {most} tools in a request, and the loop has {count} with the built-in \
                 ones: the last {} are not sent",
                count - most
            );
            let help = "give the loop fewer tools, or put some of them into a loop that it calls";
            found.push(cursor.key().report(&RULE, message).help(help));
        }
        let Some(most) = limits.description else { continue };
        for tool in offered.all().iter().filter(|tool| tool.description.chars().count() > most) {
            let Some(cursor) = declared(subject, tool.tool()) else { continue };
            let message = format!(
                "the provider `{provider}` takes {most} characters of a description: that of `{}` is sent without its end",
                tool.tool()
            );
            found.push(cursor.report(&RULE, message).help("shorten the description of the action"));
        }
    }
}

/// Where a tool is declared.
fn declared<'s>(subject: &'s Subject<'_>, tool: &str) -> Option<Cursor<'s>> {
    let name = |declaration: &ToolDeclaration| match declaration {
        ToolDeclaration::Typed(typed) => typed.name().is_some_and(|name| matches_pattern(name, tool)),
        ToolDeclaration::Legacy(name) => name == tool,
    };
    subject.declarations().find(|(_, declaration)| name(declaration)).map(|(pointer, _)| subject.at(pointer))
}

/// Reports that a model is given less to think than is written.
fn thinking(subject: &Subject<'_>, model: NamedModel<'_>, most: u32, found: &mut Vec<Diagnostic>) {
    let Some(budget) = model.thinking_budget().filter(|budget| *budget >= most) else { return };
    let place = format!("/models/{}/thinking/budget_tokens", token(model.name));
    let Some(cursor) = subject.in_project(&place) else { return };
    let message =
        format!("the model may think {budget} tokens, and a whole reply has {most} here: it is given less to think");
    let fault = cursor.report(&RULE, message).help("write a `max_tokens` above `budget_tokens`, or lower this one");
    if !found.iter().any(|known| known.code == fault.code && known.message == fault.message) {
        found.push(fault);
    }
}
