//! Values that are printed into an address or a header, held against the schemas beside them: an object or a list is sent
//! there as JSON.

use crate::check::{Rule, SentText, Subject, ValueSchemas};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::language::Action;
use crate::language::action::{TextKind, ValueStyle};
use crate::program::reference::{Field, PathStep};
use crate::program::schema::LargeTypes;
use crate::program::template::ValueUse;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::OBJECT_IN_ADDRESS, check };

/// The most faults that are reported of one text.
const MAX_FOUND: usize = 20;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let schemas = ValueSchemas::of_input(subject);
    let of_actions: Vec<ValueSchemas<'_>> =
        subject.actions().iter().map(|used| schemas.inside(subject, used)).collect();
    for sent in subject.sent_texts() {
        if !matches!(sent.kind, TextKind::Url | TextKind::Header | TextKind::Query) {
            continue;
        }
        let Some(schemas) = sent.action.and_then(|action| of_actions.get(action)) else { continue };
        if schemas.input.is_some() || schemas.arguments.is_some() {
            in_text(subject, sent, *schemas, found);
            few_of_many(found);
        }
    }
}

fn in_text(subject: &Subject<'_>, sent: &SentText<'_>, schemas: ValueSchemas<'_>, found: &mut Vec<Diagnostic>) {
    let Some(field) = sent.compiled() else { return };
    let is_path = matches!(field, Field::Path(_) | Field::Optional(_));
    let place = if sent.kind == TextKind::Header { "a header" } else { "the address" };
    if is_path && writes_objects(subject, sent) {
        return;
    }
    let judge = |used: &ValueUse| {
        let at = sent.cursor.clone().inside(used.range.clone());
        let types = allowed(used, sent.kind, is_path, schemas).filter(|_| !subject.is_reported(&at.place()))?;
        let name = spelled(&used.path);
        let message = format!("`{name}` goes into {place}, and by its schema it may be {types}");
        Some(at.report(&RULE, message).help(format!(
            "give `{name}` a `type` that is one text: \"string\", \"integer\", \"number\" or \"boolean\""
        )))
    };
    let mut names: Vec<Vec<PathStep>> = Vec::new();
    field.each_use(&mut |_, used| {
        if !used.is_printed || names.len() >= MAX_FOUND || names.contains(&used.path) {
            return;
        }
        if let Some(fault) = judge(used) {
            names.push(used.path.clone());
            found.push(fault);
        }
    });
}

/// Whether a parameter of the query as a whole is written with brackets: objects have a form then.
fn writes_objects(subject: &Subject<'_>, sent: &SentText<'_>) -> bool {
    let Some(used) = sent.action.and_then(|at| subject.actions().get(at)) else { return false };
    let Action::Http(http) = &*used.action else { return false };
    let name = sent.cursor.path().rsplit_once("/query/").map_or("", |(_, name)| name);
    http.query_style.iter().any(|(known, style)| *style == ValueStyle::Brackets && token(known) == name)
}

/// What a value may be that has no place there, in words; nothing when it may not.
fn allowed(used: &ValueUse, kind: TextKind, is_path: bool, schemas: ValueSchemas<'_>) -> Option<String> {
    let described = schemas.describe(&used.path)?;
    let types = LargeTypes::allowed(described.schema, described.way.value?)?;
    // A header and a parameter of the query are left out when they are null as a whole, and a block asks for a value. A
    // parameter of the query that is a list as a whole is sent once for each entry.
    let takes_null = is_path || used.guarded >= used.path.len();
    let takes_list = is_path && kind == TextKind::Query;
    let words =
        [(types.object, "an object"), (types.list && !takes_list, "a list"), (types.null && !takes_null, "null")];
    let words: Vec<&str> = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
    match words.as_slice() {
        [] => None,
        [only] => Some((*only).to_owned()),
        [first @ .., last] => Some(format!("{} or {last}", first.join(", "))),
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
