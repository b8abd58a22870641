//! A schema whose shape can't be sent to a model that is to write replies of that shape.

use serde_json::Value;

use crate::check::{Cursor, Rule, Subject, model};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::project::Constrain;
use crate::language::react::Dialect;
use crate::program::Program;
use crate::program::turn_schema::lost_keywords;

pub const RULE: Rule = Rule { code: codes::UNSENT_SCHEMA, check };

/// The most further keywords that are named.
const MAX_NAMED: usize = 3;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["model", "dialect", "fallback_models", "answer_schema"]) else { return };
    let fallbacks = react.fallback_models.iter().map(|model| Some(model.name()));
    let written = std::iter::once(react.model.as_deref()).chain(fallbacks);
    let is_on = |name| {
        let declared = model::named(subject, name).and_then(|model| model.declared);
        declared.is_some_and(|model| model.constrain == Constrain::On)
    };
    // With `auto`, nothing depends on what can be sent.
    if react.dialect != Dialect::Json || !written.into_iter().any(is_on) {
        return;
    }
    for used in subject.actions().iter().filter(|used| used.knows(&["parameters"])) {
        let Some(schema) = used.action.head().parameters else { continue };
        judge(schema, &used.at("/parameters"), found);
    }
    if let (Some(schema), Some(place)) = (&react.answer_schema, subject.property("answer_schema")) {
        judge(schema, &place, found);
    }
    // The schema has only the tools that are offered.
    let open = subject.program().and_then(Program::as_loop).filter(|program| program.selection().is_none());
    let open = open.map(|program| program.turn_schema().open_inputs.as_slice()).unwrap_or_default();
    for (pointer, declaration) in subject.declarations() {
        if let Some(name) = name(declaration).filter(|name| open.iter().any(|open| open == name)) {
            let message = format!("what `{name}` takes is too large for the schema that constrains replies");
            let help = "it is left out of that schema, and loopctl validates each call; give the tool fewer parameters, \
                        or the loop fewer tools";
            found.push(subject.at(pointer).report(&RULE, message).help(help));
        }
    }
}

/// Reports the keywords of a schema that are left out, at the first one.
fn judge(schema: &Value, place: &Cursor<'_>, found: &mut Vec<Diagnostic>) {
    let lost = lost_keywords(schema);
    let Some((first, others)) = lost.split_first() else { return };
    let mut message = format!("`{}` can't be sent to the model's provider, which constrains replies", first.keyword);
    let named: Vec<String> = others.iter().take(MAX_NAMED).map(|lost| format!("`{}`", lost.pointer)).collect();
    if !named.is_empty() {
        let more = if others.len() > MAX_NAMED { " and others" } else { "" };
        message.push_str(&format!("; nor can {}{more}", named.join(", ")));
    }
    let help = "that part of a reply may be any JSON, and loopctl validates it when the reply has come; describe it with \
                `type`, `properties`, `items`, `enum` and `anyOf`, or write \"constrain\": \"auto\"";
    found.push(place.below(&first.pointer).key().report(&RULE, message).help(help));
}

fn name(declaration: &ToolDeclaration) -> Option<&str> {
    match declaration {
        ToolDeclaration::Typed(tool) => tool.name(),
        ToolDeclaration::Legacy(name) => Some(name),
    }
}
