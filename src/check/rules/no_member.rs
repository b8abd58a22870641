//! Values that templates and paths name, held against the schemas beside them: a name below a value that does not have
//! it ends the run, or the call.

use serde_json::Value;

use crate::check::{Cursor, Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::language::Action;
use crate::program::reference::{Field, PathStep, RESERVED, each_text};
use crate::program::schema::{AbsentStep, described, short};
use crate::program::template::ValueUse;
use crate::syntax::Node;
use crate::syntax::document::DocumentKind;

/// The rule. It reports a missing input as L054 and one that may be left out as L061, as the compiler does elsewhere.
pub const RULE: Rule = Rule { code: codes::NO_MEMBER, check };

/// The most faults that are reported of one text.
const MAX_FOUND: usize = 50;
/// The most names that are compared with one that is not there, and the most that a sentence lists.
const MEASURED: usize = 1_000;
const LISTED: usize = 12;
/// The parts of a loop document whose texts take values of the input, beside those of its loop.
const OF_STEPS: [&str; 3] = ["/properties/actions_to_execute", "/onFalse", "/filter"];

/// The schemas of the values that a text can name.
#[derive(Clone, Copy)]
struct Schemas<'s> {
    /// That of the run's input.
    input: Option<&'s Value>,
    /// That of the call's arguments, inside an action.
    arguments: Option<&'s Value>,
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let document = subject.document();
    let is_loop = document.kind == Some(DocumentKind::Loop);
    let input = document.value.get("input").filter(|input| is_loop && input.is_object());
    let input = input.filter(|_| !subject.is_faulty("/input"));
    if input.is_some() {
        let schemas = Schemas { input, arguments: None };
        let prompts = ["objective", "system_prompt"].into_iter().filter_map(|name| subject.property(name));
        prompts.for_each(|cursor| in_text(subject, &cursor, schemas, found));
        let steps = OF_STEPS.into_iter().filter(|_| !subject.is_step());
        for pointer in steps.filter(|pointer| document.value.pointer(pointer).is_some()) {
            let value = document.value.pointer(pointer).unwrap_or(&Value::Null);
            each_text(value, &mut pointer.to_owned(), &mut |at, _| in_text(subject, &subject.at(at), schemas, found));
        }
    }
    for used in subject.actions() {
        let parameters = used.at("/parameters");
        let arguments = used.written().get("parameters").filter(|written| written.is_object());
        let arguments = arguments.filter(|_| is_sound(subject, &parameters));
        let schemas = Schemas { input, arguments };
        if input.is_some() || arguments.is_some() {
            each_string(used, &mut |pointer| in_text(subject, &used.at(pointer), schemas, found));
        }
        few_of_many(found);
    }
}

/// Whether no error was reported of a value, or of what is in it.
fn is_sound(subject: &Subject<'_>, cursor: &Cursor<'_>) -> bool {
    let place = cursor.place();
    let inside = |fault: &Diagnostic| {
        fault.place.file == place.file && place.start <= fault.place.start && fault.place.end <= place.end
    };
    !subject.is_reported(&place) && !subject.compiled.diagnostics.iter().any(|fault| fault.is_error() && inside(fault))
}

/// Visits the places of all texts of an action that can name a value.
fn each_string(used: &Used<'_>, visit: &mut dyn FnMut(&str)) {
    used.each_secret_string(&mut |pointer, _| visit(pointer));
    match &used.action {
        Action::Command(command) => (0..command.args.len()).for_each(|at| visit(&format!("/args/{at}"))),
        Action::Llm(_) => visit("/template"),
        _ => {}
    }
}

fn in_text(subject: &Subject<'_>, cursor: &Cursor<'_>, schemas: Schemas<'_>, found: &mut Vec<Diagnostic>) {
    let Some(text) = cursor.node().and_then(Node::as_str) else { return };
    if !text.starts_with('@') && !text.contains("{{") {
        return;
    }
    // What can't be read was reported.
    let Ok(field) = Field::compile(&Value::from(text)) else { return };
    let (before, mut known) = (found.len(), Vec::new());
    field.each_use(&mut |_, used| {
        if found.len() - before >= MAX_FOUND {
            return;
        }
        let Some(fault) = judged(subject, cursor, text, used, schemas) else { return };
        // A block over a list names the list, and each entry of it: one fault of both is one.
        let place = (fault.place.start, fault.message.clone());
        if !subject.is_reported(&fault.place) && !known.contains(&place) {
            known.push(place);
            found.push(fault);
        }
    });
}

/// What is wrong with a value that a text uses, by the schema that describes it.
fn judged(
    subject: &Subject<'_>,
    cursor: &Cursor<'_>,
    text: &str,
    used: &ValueUse,
    schemas: Schemas<'_>,
) -> Option<Diagnostic> {
    let PathStep::Name(first) = used.path.first()? else { return None };
    let is_input = first == "input";
    // Of the names at the top, those of arguments were looked for with their action.
    let (schema, skipped) = match is_input {
        true => (schemas.input?, 1),
        false if RESERVED.contains(&first.as_str()) => return None,
        false => (schemas.arguments?, 0),
    };
    let way = described(schema, used.path.get(skipped..)?);
    let at = cursor.clone().inside(used.range.clone());
    if let Some(absent) = way.absent {
        let absent = AbsentStep { at: absent.at + skipped, ..absent };
        return (is_input || absent.at > 0).then(|| missing(subject, &at, text, used, &absent));
    }
    let optional = way.optional.into_iter().map(|step| step + skipped);
    let optional = optional.filter(|step| *step >= used.guarded && (is_input || *step > 0)).min()?;
    let name = spelled(used.path.get(..=optional)?);
    let message = format!("`{name}` may be left out, and the text needs it");
    let fault = Diagnostic::warning(codes::OPTIONAL_PARAMETER, message, at.path(), at.place());
    let last = spelled(used.path.get(optional..=optional)?);
    let help = match text.starts_with('@') {
        true => format!("put `{last}` among the `required` of its schema"),
        false => format!(
            "put `{last}` among the `required` of its schema, or write {{{{#if {name}}}}}...{{{{/if}}}} around it"
        ),
    };
    Some(fault.help(help))
}

fn missing(subject: &Subject<'_>, at: &Cursor<'_>, text: &str, used: &ValueUse, absent: &AbsentStep<'_>) -> Diagnostic {
    let step = absent.at;
    let before = used.path.get(..step).unwrap_or_default();
    let owner = match before.split_last() {
        Some((PathStep::Entry, list)) => format!("an entry of `{}`", spelled(list)),
        _ => format!("`{}`", spelled(before)),
    };
    let is_of_input = step == 1 && matches!(used.path.first(), Some(PathStep::Name(first)) if first == "input");
    let code = if is_of_input { codes::UNKNOWN_VARIABLE } else { codes::NO_MEMBER };
    let message = format!("by its schema, {owner} {}", absent.why);
    let fault = Diagnostic::error(code, message, at.path(), at.place());
    let is_inside = before.contains(&PathStep::Entry);
    let names_input = is_inside && matches!(used.path.get(step), Some(PathStep::Name(name)) if name == "input");
    let written = text.get(used.range.clone()).unwrap_or_default();
    let members = || absent.members.into_iter().flat_map(|members| members.keys()).map(String::as_str);
    let name = used.path.get(step).and_then(|step| match step {
        PathStep::Name(name) => Some(name),
        PathStep::Entry => None,
    });
    let near = name.and_then(|name| subject.compiled.effort.nearest(name, members().take(MEASURED)));
    let known: Vec<String> = members().take(LISTED).map(short).collect();
    match (near, name) {
        _ if names_input => {
            fault.help("inside of a block names begin at its entry, and at the top with `@root.`: {{@root.input.x}}")
        }
        (Some(near), Some(name)) => {
            let fault = fault.help(format!("the nearest name is `{near}`"));
            // Only where the name stands once in the text of the path, its place is clear.
            match written.matches(name.as_str()).count() {
                1 => fault.suggest(written.replacen(name.as_str(), near, 1)),
                _ => fault,
            }
        }
        _ if known.is_empty() && matches!(before.last(), Some(PathStep::Entry)) => fault.help(format!(
            "the entry itself is `{{{{this}}}}`; `{written}` is no part of it: correct it, or the `items` of the schema"
        )),
        _ if known.is_empty() => fault.help("correct the path, or the schema beside it"),
        _ => fault.help(format!("it has `{}`", known.join("`, `"))),
    }
}

/// A path as a text would name it.
fn spelled(path: &[PathStep]) -> String {
    let names = path.iter().filter_map(|step| match step {
        PathStep::Name(name) => Some(name.as_str()),
        PathStep::Entry => None,
    });
    names.collect::<Vec<_>>().join(".")
}
