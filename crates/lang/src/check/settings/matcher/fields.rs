//! The fields that a matcher compares, held against the entries of its two lists.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::WrittenSettings;
use crate::check::Cursor;
use crate::compile::steps::{JsonTypes, KnownValue};
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::matcher::{AMOUNT, DATE, MAX_PAIR_DEPTH, is_date_name};
use crate::program::reference::{PathStep, as_path};
use crate::program::schema::described;
use crate::syntax::quoted;

/// The most names that a sentence lists.
const MAX_LISTED_NAMES: usize = 12;

struct MatcherList<'s> {
    path: &'s str,
    /// The schema of an entry.
    entry: &'s Value,
}

/// Fields that the entries of a list do not have by its schema: then none of them has a partner.
pub(super) fn absent_fields(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    let Some(entries) = settings.entries() else { return };
    let paths = ["left", "right"].map(|name| settings.text(name).filter(|path| as_path(path).is_some()));
    let [Some(left), Some(right)] = paths else { return };
    let [of_left, of_right] = entries;
    let lists = [MatcherList { path: left, entry: of_left }, MatcherList { path: right, entry: of_right }];
    let named = settings.list("matchOn").into_iter().flatten().enumerate();
    let named = named.map(|(index, field)| (settings.cursor("matchOn").below(&format!("/{index}")), field));
    let text = settings.get("descriptionKey").filter(|_| settings.get("fuzzyThreshold").is_some());
    for (cursor, field) in named.chain(text.map(|field| (settings.cursor("descriptionKey"), field))) {
        let Some(field) = field.as_str().filter(|field| !field.is_empty() && !field.starts_with('@')) else { continue };
        let lacking = lacking(&lists, &|name| name == field);
        if let Some(fault) = fault(settings, &cursor, &lacking, &format!("`{field}`")) {
            found.push(with_help(settings, fault, &lists, field));
        }
    }
    let is_set = |name: &str| settings.get(name).is_some();
    if is_set("tolerance") {
        let lacking = lacking(&lists, &|name| name == AMOUNT);
        let fault = fault(settings, &settings.cursor("tolerance").key(), &lacking, &format!("`{AMOUNT}`"));
        let help =
            format!("it compares the field `{AMOUNT}` of both: take it out, or let a step before name the field so");
        found.extend(fault.map(|fault| fault.help(help)));
    }
    if is_set("dateWindowDays") {
        let lacking = lacking(&lists, &|name| name == DATE || is_date_name(name));
        let fault = fault(settings, &settings.cursor("dateWindowDays").key(), &lacking, "date");
        let help = format!("it compares the field `{DATE}`, or the only one whose name ends in `_date` or `Date`");
        found.extend(fault.map(|fault| fault.help(help)));
    }
}

/// Fields in `matchOn` whose values can't be equal, because those of the one list are of other types than those of the
/// other list.
pub(super) fn unequal_fields(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    let Some([left, right]) = settings.entries() else { return };
    let named = |name: &'static str| settings.text(name).unwrap_or(name);
    for (index, field) in settings.list("matchOn").into_iter().flatten().enumerate() {
        let cursor = settings.cursor("matchOn").below(&format!("/{index}"));
        let Some(field) = field.as_str().filter(|field| !field.starts_with('@')) else { continue };
        let (Some(one), Some(other)) = (types_of(left, field, 0), types_of(right, field, 0)) else { continue };
        // What is null has no partner.
        let (one, other) = (one.but(JsonTypes::NULL), other.but(JsonTypes::NULL));
        let is_known = one.meets(JsonTypes::ANY) && other.meets(JsonTypes::ANY);
        if !is_known || one.meets(other) || settings.subject.has_error_in(&cursor.place()) {
            continue;
        }
        let (left, right) = (named("left"), named("right"));
        let message = format!(
            "`{field}` is {} in `{left}` and {} in `{right}`: such values are never equal, and nothing matches",
            one.called(),
            other.called()
        );
        let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(settings.rule, message) };
        let help = "let both lists have it in one form: a query gives a text with `CAST(column AS TEXT)`, and a number with \
                    `CAST(column AS INTEGER)`; the values of a CSV file are texts";
        found.push(fault.help(help));
    }
}

/// The types that a field of entries may have, as far as they are known; also below `a`, then below `b`, where they are
/// pairs.
fn types_of(entry: &Value, field: &str, depth: usize) -> Option<JsonTypes> {
    let members = entry.get("properties").and_then(Value::as_object)?;
    if let Some(schema) = members.get(field) {
        return KnownValue::of_schema(schema, &[]).map(|known| known.likely());
    }
    let pair = members.get("a").zip(members.get("b")).filter(|_| members.len() == 2 && depth < MAX_PAIR_DEPTH);
    let (a, b) = pair?;
    match self::members(a).is_some_and(|members| has(members, &|name| name == field, depth + 1)) {
        true => types_of(a, field, depth + 1),
        false => types_of(b, field, depth + 1),
    }
}

/// The lists whose entries do not have such a field.
fn lacking<'l, 's>(lists: &'l [MatcherList<'s>], is_meant: &dyn Fn(&str) -> bool) -> Vec<&'l MatcherList<'s>> {
    let lacks = |list: &&MatcherList<'_>| members(list.entry).is_some_and(|members| !has(members, is_meant, 0));
    lists.iter().filter(lacks).collect()
}

/// A field that lists do not have.
fn fault(
    settings: &WrittenSettings<'_, '_>,
    cursor: &Cursor<'_>,
    lacking: &[&MatcherList<'_>],
    field: &str,
) -> Option<Diagnostic> {
    if lacking.is_empty() || settings.subject.has_error_in(&cursor.place()) {
        return None;
    }
    let lists = lacking.iter().map(|list| format!("`{}`", list.path)).collect::<Vec<_>>().join(" and of ");
    let message = format!("by their schema, the entries of {lists} have no {field}: nothing matches");
    // What is left out of one schema may be there all the same.
    let severity = if lacking.len() > 1 { Severity::Error } else { Severity::Warning };
    Some(Diagnostic { severity, ..cursor.report(settings.rule, message) })
}

fn with_help(
    settings: &WrittenSettings<'_, '_>,
    fault: Diagnostic,
    lists: &[MatcherList<'_>; 2],
    field: &str,
) -> Diagnostic {
    let [left, right] = lists.each_ref().map(|list| {
        let mut names = BTreeSet::new();
        members(list.entry).into_iter().for_each(|members| gather(members, &mut names, 0));
        names
    });
    let listed = |names: &BTreeSet<&str>| names.iter().take(MAX_LISTED_NAMES).copied().collect::<Vec<_>>().join("`, `");
    let both: BTreeSet<&str> = left.intersection(&right).copied().collect();
    if let Some(near) = settings.subject.compiled.effort.nearest(field, both.iter().copied()) {
        return fault.help(format!("the nearest field of both is `{near}`")).suggest(quoted(near));
    }
    if left.is_empty() || right.is_empty() {
        return fault.help("name a field that the entries of both have");
    }
    let [one, other] = lists.each_ref().map(|list| list.path);
    let common =
        if both.is_empty() { "they share no field".to_owned() } else { format!("both have `{}`", listed(&both)) };
    let help = format!("{common}; `{one}` has `{}`, and `{other}` has `{}`", listed(&left), listed(&right));
    fault.help(help)
}

/// The members of entries, where their schema names all of them.
fn members(entry: &Value) -> Option<&Map<String, Value>> {
    // No member has this name: the schema says so where it names all.
    described(entry, &[PathStep::Name(String::new())]).absent?.members
}

/// Whether entries may have a field: also below `a` and `b`, where they are pairs.
fn has(members: &Map<String, Value>, is_meant: &dyn Fn(&str) -> bool, depth: usize) -> bool {
    let is_pair = members.len() == 2 && members.contains_key("a") && members.contains_key("b");
    let below = |part: &Value| self::members(part).is_none_or(|members| has(members, is_meant, depth + 1));
    members.keys().any(|name| is_meant(name)) || (is_pair && (depth >= MAX_PAIR_DEPTH || members.values().any(below)))
}

/// The names of the fields that entries may have.
fn gather<'v>(members: &'v Map<String, Value>, names: &mut BTreeSet<&'v str>, depth: usize) {
    let is_pair = members.len() == 2 && members.contains_key("a") && members.contains_key("b");
    match is_pair && depth < MAX_PAIR_DEPTH {
        true => members.values().filter_map(self::members).for_each(|part| gather(part, names, depth + 1)),
        false => names.extend(members.keys().map(String::as_str)),
    }
}
