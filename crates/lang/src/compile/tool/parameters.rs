//! The schema of a tool's input: as written, or derived from what the action takes.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::{ActionDraft, approval, derived_schema, matcher};
use crate::compile::review::{ReviewedValues, known_part, review};
use crate::diagnostic::{codes, nearest};
use crate::language::Action;
use crate::policy::secret_names::is_foreign_secret;
use crate::program::ToolKind;
use crate::program::fault::LocalFault;
use crate::program::reference::{RESERVED, escape_pointer};
use crate::program::schema::{Advice, Examined, Fix, Schema, SchemaFault, advice};

/// The most names that are looked at for the nearest one, and how often that is done for an action.
const MAX_COMPARED_NAMES_AND_SEARCHES: (usize, usize) = (1_000, 20);

/// The schema of an action's input. Names that the action takes have been gathered before; `kind` is what it was compiled
/// to.
pub(super) fn of(
    action: &Action,
    written: Option<&Arc<Value>>,
    kind: Option<&ToolKind>,
    work: &mut ActionDraft<'_>,
) -> Option<Schema> {
    let Some(written) = written else {
        let names = work.arguments_at("");
        if let Some(ToolKind::Matcher(tool)) = kind {
            return Some(matcher::schema(tool, &names));
        }
        if let Some(schema) = action.kind().input_schema() {
            return Some(Schema::compile(schema).unwrap_or_else(|_| Schema::any()));
        }
        // Without any hint of what it takes, an HTTP action takes what it is given.
        return Some(if names.is_empty() && matches!(action, Action::Http(_)) {
            Schema::any()
        } else {
            derived_schema::schema(&names, kind)
        });
    };
    let examined = Schema::examine(written);
    let mut faults = faults_of(written, &examined);
    let is_object = faults.iter().all(|fault| fault.code == codes::BAD_SCHEMA);
    let refused: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    let review = review(written, ReviewedValues::Objects, &refused);
    faults.extend(review.faults);
    let errors: Vec<&str> =
        faults.iter().filter(|fault| fault.is_error()).map(|fault| fault.pointer.as_str()).collect();
    let is_sound = errors.is_empty();
    // What is wrong in one property hides no name of another.
    let has_names = is_object && examined.has_names() && !review.hides_names;
    if !has_names {
        let known = known_part(written, &errors).and_then(|known| Schema::compile(known.into_owned()).ok());
        faults.into_iter().for_each(|fault| work.push(fault.under("/parameters")));
        if let Some(known) = known {
            unknown(&known, work);
            hidden(&known, work);
        }
        return None;
    }
    faults.into_iter().for_each(|fault| work.push(fault.under("/parameters")));
    let schema = examined.rest?;
    // A name that is not there and one that is not used are most often the two ends of one slip.
    if !unknown(&schema, work) && !work.is_partial {
        unused(&schema, action, kind, work);
    }
    hidden(&schema, work);
    Some(schema).filter(|_| is_sound)
}

/// A fault of a schema, with how it is fixed; its pointer begins at the schema.
pub(in crate::compile) fn bad_schema(written: &Value, fault: SchemaFault) -> LocalFault {
    let advice = advice(written, &fault.path);
    let fault = LocalFault::error(codes::BAD_SCHEMA, fault.path, fault.message);
    match advice {
        Some(Advice { help, fix: Some(Fix { written, meant }) }) => fault.help(help).rename(&written, &meant),
        Some(Advice { help, fix: None }) => fault.help(help),
        None => fault,
    }
}

/// Compiles the schema of a tool's input. A call's input is always an object.
///
/// # Errors
/// What is wrong with it; pointers begin at the schema.
pub(super) fn compile(written: &Value) -> Result<Schema, Vec<LocalFault>> {
    let examined = Schema::examine(&Arc::new(written.clone()));
    let faults = faults_of(written, &examined);
    examined.rest.filter(|_| faults.is_empty()).ok_or(faults)
}

/// What is wrong with the schema of a tool's input.
fn faults_of(written: &Value, examined: &Examined) -> Vec<LocalFault> {
    let faults = examined.faults.iter().map(|fault| bad_schema(written, fault.clone()));
    faults.chain(examined.rest.as_ref().and_then(no_object)).collect()
}

/// Why no object can match, where that can be seen without trying; the pointer begins at the schema.
pub(super) fn no_object(schema: &Schema) -> Option<LocalFault> {
    const OBJECT: &str = "a tool's input is an object: {\"type\": \"object\", \"properties\": {...}}";
    let found = |path: &str, message: String, help| Some(LocalFault::error(codes::NO_OBJECT, path, message).help(help));
    let source = schema.source();
    if *source == Value::Bool(false) {
        return found("", "the schema matches nothing at all".to_owned(), OBJECT);
    }
    let takes_object = match source.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => true,
    };
    if !takes_object {
        let message = "the schema is not for objects, and a tool's input is always an object";
        return found("/type", message.to_owned(), OBJECT);
    }
    let (known, required): (HashSet<_>, _) = (schema.properties().into_iter().collect(), schema.required());
    if schema.is_closed()
        && source.get("$ref").is_none()
        && let Some(name) = required.iter().find(|name| !known.contains(*name))
    {
        let message =
            format!("`{name}` is required and not allowed: it is not among the properties, and no others may be there");
        return found("/required", message, "put it among the `properties`, or take it out of `required`");
    }
    let at = |name: &str| format!("/properties/{}", escape_pointer(name));
    let described = source.get("properties");
    let is_shut = |name: &&&str| described.and_then(|members| members.get(**name)) == Some(&Value::Bool(false));
    if let Some(name) = required.iter().find(is_shut) {
        let message = format!("`{name}` is required, and nothing matches its schema");
        return found(&at(name), message, "write what it may be, or take it out of `required`");
    }
    let bound = |key: &str| source.get(key).and_then(Value::as_u64);
    match (bound("minProperties"), bound("maxProperties")) {
        (Some(least), Some(most)) if least > most => {
            let message = format!("no object has at least {least} and at most {most} properties");
            found("/minProperties", message, "the least is not more than the most")
        }
        _ => None,
    }
}

/// Reports the names that the action takes and the schema does not have, or may leave out. Returns
/// whether there is one that the schema does not have.
fn unknown(schema: &Schema, work: &mut ActionDraft<'_>) -> bool {
    let known = schema.properties();
    let has: HashSet<_> = known.iter().copied().collect();
    let required: HashSet<_> = schema.required().into_iter().collect();
    let mut measured = 0;
    let mut faults: Vec<LocalFault> = Vec::new();
    for named in work.named.iter().filter(|named| named.is_argument()) {
        let name = named.first();
        let fault = if has.contains(name) {
            // A `:name` of a query that a call leaves out is NULL.
            let may_be_absent = named.variable.optional || named.form.is_left_out || named.pointer == "/query";
            if may_be_absent || required.contains(name) {
                continue;
            }
            LocalFault::warning(
                codes::OPTIONAL_PARAMETER,
                &named.pointer,
                format!("`{name}` may be left out of a call, and the action needs it"),
            )
            .help(match named.form.is_path {
                true => format!(
                    "put it among the `required` of `parameters`; a template may do without it: \"{{{{#if {name}}}}}{{{{{name}}}}}{{{{/if}}}}\""
                ),
                false => format!(
                    "put it among the `required` of `parameters`, or write {{{{#if {name}}}}}...{{{{/if}}}} around it"
                ),
            })
        } else if schema.is_open() || is_foreign_secret(&named.variable.path) {
            // `check` reports a secret in the syntax of another product, and how it is written here.
            continue;
        } else {
            let message = format!("the action's `parameters` have no `{name}`");
            let fault = LocalFault::error(codes::NO_PARAMETER, &named.pointer, message);
            let compared =
                if measured < MAX_COMPARED_NAMES_AND_SEARCHES.1 { MAX_COMPARED_NAMES_AND_SEARCHES.0 } else { 0 };
            measured += 1;
            // What an expression of n8n begins with: `$json.order`.
            let second = named.variable.path.get(1).filter(|second| name.starts_with('$') && has.contains(&***second));
            if let Some(second) = second {
                let fault = fault.help(format!("a parameter is written `{{{{{second}}}}}`"));
                faults.push(fault.rename(&format!("{name}.{second}"), second).inside(named.variable.range.clone()));
                continue;
            }
            let has_parts = named.variable.path.len() > 1;
            let own = RESERVED.into_iter().filter(|own| !has_parts || *own == "input");
            match nearest(name, known.iter().copied().take(compared).chain(own)) {
                Some(near) => fault.help(format!("the nearest name is `{near}`")).rename(name, near),
                None if known.is_empty() => fault.help("add it to the properties of `parameters`"),
                None => fault.help(format!("they have {}; add it, or use one of them", list(&known))),
            }
        };
        faults.push(fault.inside(named.variable.range.clone()));
    }
    let missing = faults.iter().any(LocalFault::is_error);
    faults.into_iter().for_each(|fault| work.push(fault));
    missing
}

fn list(names: &[&str]) -> String {
    let mut shown: Vec<String> = names.iter().take(12).map(|name| format!("`{name}`")).collect();
    if names.len() > shown.len() {
        shown.push(format!("{} more", names.len() - shown.len()));
    }
    shown.join(", ")
}

/// Warns of required parameters that the model must write and that then go nowhere.
fn unused(schema: &Schema, action: &Action, kind: Option<&ToolKind>, work: &mut ActionDraft<'_>) {
    // What an HTTP action does not name goes to its body or query, unless the body is written.
    if matches!(action, Action::Http(http) if http.body.is_none()) {
        return;
    }
    let mut used: HashSet<_> = work.arguments_at("").into_iter().collect();
    used.extend(approval::inputs(action.head().requires_approval));
    if let Some(ToolKind::Matcher(tool)) = kind {
        used.extend(matcher::inputs(tool).into_iter().map(str::to_owned));
    }
    let own = action.kind().input_schema();
    let own = own.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    used.extend(own.into_iter().flatten().map(|(name, _)| name.clone()));
    let known: HashSet<_> = schema.properties().into_iter().collect();
    for name in schema.required() {
        if !known.contains(name) || used.contains(name) {
            continue;
        }
        let pointer = format!("/parameters/properties/{}", escape_pointer(name));
        let exists = schema.source().pointer(pointer.strip_prefix("/parameters").unwrap_or_default()).is_some();
        let pointer = if exists { pointer } else { "/parameters".to_owned() };
        let form = if matches!(action, Action::Db(_)) { format!(":{name}") } else { format!("{{{{{name}}}}}") };
        work.push(
            LocalFault::warning(
                codes::UNUSED_PARAMETER,
                pointer,
                format!("`{name}` is required, and the action never uses it"),
            )
            .help(format!("use it as `{form}`, or take it out of `parameters`")),
        );
    }
}

/// Warns of parameters that templates can't see, because the engine's name wins.
fn hidden(schema: &Schema, work: &mut ActionDraft<'_>) {
    for name in schema.properties().into_iter().filter(|name| RESERVED.contains(name)) {
        let Some(named) = work.named.iter().find(|named| named.first() == name) else { continue };
        let what = match name {
            "input" => "the run's input",
            "now" => "the moment of the call",
            _ => "the run's id",
        };
        let fault = LocalFault::warning(
            codes::HIDDEN_PARAMETER,
            &named.pointer,
            format!("`{name}` is {what} here, and not the parameter of that name"),
        );
        let fault = fault.inside(named.variable.range.clone()).help("give the parameter another name");
        work.push(fault);
    }
}
