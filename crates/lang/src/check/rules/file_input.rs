//! A `contentMediaType` in the input of a loop by which no file comes to its model.

use serde_json::Value;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::policy::media::MediaType;
use crate::program::input_file;
use crate::program::schema::vocabulary::{Holds, keyword_named};
use crate::syntax::document::DocumentKind;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::FILE_INPUT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    of_schema(subject, found);
    of_tools(subject, found);
}

fn of_schema(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(schema) = subject.input_schema().filter(|_| !subject.is_step()) else { return };
    let is_loop = subject.document().kind == Some(DocumentKind::Loop);
    for (name, part) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let pointer = format!("/input/properties/{}", token(name));
        for (part, pointer) in [(Some(part), pointer.clone()), (part.get("items"), format!("{pointer}/items"))] {
            let Some(range) = part.and_then(|part| part.get("contentMediaType")).and_then(Value::as_str) else {
                continue;
            };
            let takes_text = part.is_some_and(input_file::takes_text);
            let (message, help) = match (MediaType::of_range(range).is_empty(), takes_text) {
                (false, _) if !is_loop => (
                    "the models of a workflow's steps are sent no files".to_owned(),
                    "files are sent to the model of a loop that is run on its own".to_owned(),
                ),
                (true, _) if !is_loop => continue,
                (false, true) => (
                    format!("a string of `{range}` is no file for the model: it stays a text in the input"),
                    "for a file, write \"type\": \"object\" in place of \"string\"".to_owned(),
                ),
                (true, false) if is_of_file(range) => (
                    format!("no model is sent a file of `{range}`"),
                    format!("models read {}", input_file::names(&MediaType::ALL)),
                ),
                _ => continue,
            };
            let cursor = subject.at(&format!("{pointer}/contentMediaType"));
            found.push(cursor.report(&RULE, message).help(help));
        }
        if is_loop {
            deeper(subject, part, &pointer, Depth::Property, found);
        }
    }
}

/// Where a part of the schema of an input is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Property,
    Items,
    /// It is within one of these, where files are not looked for.
    Deeper,
}

/// Media types of files within a property, which stay texts of the input.
fn deeper(subject: &Subject<'_>, part: &Value, pointer: &str, depth: Depth, found: &mut Vec<Diagnostic>) {
    let Some(members) = part.as_object() else { return };
    let range = members.get("contentMediaType").and_then(Value::as_str).filter(|_| depth == Depth::Deeper);
    if range.is_some_and(|range| !MediaType::of_range(range).is_empty()) && !input_file::takes_text(part) {
        let cursor = subject.at(&format!("{pointer}/contentMediaType"));
        let message = "no file comes to the model from within a property: what is given here stays in the input";
        found.push(
            cursor.report(&RULE, message.to_owned()).help("make it a property of the input, or the items of one"),
        );
    }
    for (keyword, value) in members {
        let Some(holds) = keyword_named(keyword).map(|keyword| keyword.holds) else { continue };
        let below = if depth == Depth::Property && keyword == "items" { Depth::Items } else { Depth::Deeper };
        let at = format!("{pointer}/{}", token(keyword));
        match (holds, value) {
            (Holds::NamedSchemas, Value::Object(parts)) => {
                for (name, part) in parts {
                    deeper(subject, part, &format!("{at}/{}", token(name)), below, found);
                }
            }
            (Holds::Schemas | Holds::SchemaOrSchemas, Value::Array(parts)) => {
                for (place, part) in parts.iter().enumerate() {
                    deeper(subject, part, &format!("{at}/{place}"), below, found);
                }
            }
            (Holds::Schema | Holds::SchemaOrSchemas, part) => deeper(subject, part, &at, below, found),
            _ => {}
        }
    }
}

/// Whether a type is one of files that people hand to models, and not of texts.
fn is_of_file(range: &str) -> bool {
    let kind = range.split('/').next().unwrap_or_default().to_ascii_lowercase();
    matches!(kind.as_str(), "image" | "audio" | "video" | "*")
}

/// A loop that an agent calls and that needs a file: the model has none to give.
fn of_tools(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.program() else { return };
    for (pointer, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(typed) = declaration else { continue };
        let Some(name) = typed.name() else { continue };
        let called = program.tool(name).and_then(|tool| tool.called_loop().or(tool.launched()));
        let Some(called) = called else { continue };
        let required = called.input.as_ref().and_then(|schema| schema.source().get("required"));
        let is_required =
            |name: &str| required.and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == name));
        let Some(place) = called.file_places().into_iter().find(|place| is_required(&place.name)) else { continue };
        let message = format!("the loop `{name}` needs the file `{}`, which a model can't give", place.name);
        found.push(
            subject
                .at(pointer)
                .report(&RULE, message)
                .help("call it as a step of a workflow, or make the file optional"),
        );
    }
}
