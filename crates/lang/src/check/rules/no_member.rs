//! Values that templates and paths name, held against the schemas beside them: a name below a value that does not have
//! it ends the run, or the call.

mod query_result;

pub(super) use query_result::advice as query_advice;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::condition::{ConditionFacts, PartOfCall, conditions};
use crate::check::key_flow::{Fact, facts_at_steps};
use crate::check::{Cursor, DescribedValue, Rule, SentText, Subject, ValueSchemas};
use crate::compile::steps::{MAY_BE_MISSING, REPLY_FORMAT, TypedText};
use crate::diagnostic::{Diagnostic, Help, Remedy, Severity, codes, few_of_many};
use crate::language::Action;
use crate::language::action::TextKind;
use crate::language::wait::{WAIT, WAIT_FOR_EVENT};
use crate::program::reference::{Field, PathStep, each_text};
use crate::program::schema::{AbsentStep, StepOwner, described, short};
use crate::program::template::ValueUse;
use crate::syntax::document::DocumentKind;
use crate::syntax::quoted;

/// The rule. It reports a missing input as L054 and one that may be left out as L061, as the compiler does elsewhere.
pub const RULE: Rule = Rule { code: codes::NO_MEMBER, check };

/// The most faults that are reported of one text.
const MAX_FOUND: usize = 50;
/// The most names that are compared with one that is not there, and the most that a sentence lists.
const MAX_COMPARED_NAMES: usize = 1_000;
const MAX_LISTED_NAMES: usize = 12;
/// What other languages call the length of a list or a text.
const LENGTHS: [&str; 8] = ["count", "size", "len", "length()", "size()", "count()", "total", "num"];
/// What the engine gives to each step and that has no parts.
const OF_ENGINE: [&str; 3] = ["now", "__run_id", "__step"];
/// How the JSON pointer ends of a path that is asked for: whether it has a value.
const HAS_KEY: &str = "/hasKey";
/// How the message begins of a `hasKey` of a value that never has the member.
const NEVER: &str = "`hasKey` never holds here: ";
/// The same where the value is the input of a call, whose schema is not closed.
const ONLY_BEYOND: &str = "`hasKey` holds only for a call that has more than its schema names: ";
/// How the help begins that names the nearest name.
const NEAREST: &str = "the nearest name is";

/// A text with its place, and what it is compiled to.
struct CompiledText<'t> {
    cursor: &'t Cursor<'t>,
    text: &'t str,
    uses: &'t [ValueUse],
    /// Whether a value that may be left out of the input is a fault.
    needs_input: bool,
    /// What is known where the text of a step is rendered: its filter may ask for the value.
    facts: &'t [Fact<'t>],
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let document = subject.document();
    let schemas = ValueSchemas::of_input(subject);
    let of_steps = &subject.compiled.steps.typed;
    let facts = if of_steps.is_empty() { BTreeMap::new() } else { facts_at_steps(subject) };
    for TypedText { at, uses, schemas: written } in of_steps.iter().filter(|_| !subject.is_step()) {
        let Some(text) = document.value.pointer(at).and_then(Value::as_str) else { continue };
        let known = facts_at(&facts, at);
        let text = CompiledText {
            cursor: &subject.at(at),
            text,
            uses,
            needs_input: known.is_some(),
            facts: known.unwrap_or_default(),
        };
        in_text(subject, &text, ValueSchemas { written, ..schemas }, found);
        few_of_many(found);
    }
    for condition in conditions(subject) {
        let ConditionFacts::Call(Some(schema)) = condition.facts else { continue };
        let schemas = ValueSchemas { input: Some(schema), arguments: None, written: &[] };
        each_text(condition.written, &mut condition.at.clone(), &mut |at, text| {
            // Without a value, the call waits for approval; a `hasKey` never holds then, which another rule reports of a
            // schema that is closed.
            if !at.ends_with(HAS_KEY) || condition.part_of_call(text) == PartOfCall::Open {
                let before = found.len();
                in_plain_text(subject, &condition.cursor(at), text, schemas, found);
                for fault in found.iter_mut().skip(before) {
                    fault.message = fault.message.replacen(NEVER, ONLY_BEYOND, 1);
                }
            }
        });
        few_of_many(found);
    }
    let needs_input = document.kind != Some(DocumentKind::Workflow);
    let of_actions: Vec<ValueSchemas<'_>> =
        subject.actions().iter().map(|used| schemas.inside(subject, used)).collect();
    for sent in subject.sent_texts() {
        if is_given_list(subject, sent) {
            continue;
        }
        let schemas = match (sent.action, sent.kind) {
            (Some(action), _) => of_actions.get(action).copied().unwrap_or(schemas),
            (None, TextKind::Prompt) if !subject.is_step() => schemas,
            (None, _) => continue,
        };
        if (schemas.input.is_some() || schemas.arguments.is_some())
            && names_value(sent.text)
            && let Some(field) = sent.compiled()
        {
            let uses = uses(field);
            in_text(
                subject,
                &CompiledText { cursor: &sent.cursor, text: sent.text, uses: &uses, needs_input, facts: &[] },
                schemas,
                found,
            );
            few_of_many(found);
        }
    }
}

/// What is known where a text of a step is rendered; nothing of a text in which a value may be missing: a condition, the
/// output, and what is gathered of an item.
fn facts_at<'f, 'a>(facts: &'f BTreeMap<String, Vec<Fact<'a>>>, at: &str) -> Option<&'f [Fact<'a>]> {
    let mut step = at;
    loop {
        if let Some(facts) = facts.get(step) {
            let below = at.strip_prefix(step).unwrap_or_default();
            let may_be_missing =
                below.starts_with("/filter/") || below == "/properties/collect" || !below.contains("properties");
            return (!may_be_missing).then_some(facts);
        }
        step = step.rsplit_once('/')?.0;
    }
}

/// Whether a text is the path of a list of a matcher that a call may give, by the last name of the path.
fn is_given_list(subject: &Subject<'_>, sent: &SentText<'_>) -> bool {
    let Some(used) = sent.action.and_then(|at| subject.actions().get(at)) else { return false };
    let is_list = |list: &str| used.at(list).path() == sent.cursor.path();
    if !matches!(&*used.action, Action::Matcher(_)) || !["/left", "/right"].into_iter().any(is_list) {
        return false;
    }
    let name = sent.text.rsplit(['.', '@']).next().unwrap_or_default();
    used.written().get("parameters").is_none() || subject.is_argument(sent, name)
}

fn names_value(text: &str) -> bool {
    text.starts_with('@') || text.contains("{{")
}

/// The same for a text of a condition.
fn in_plain_text(
    subject: &Subject<'_>,
    cursor: &Cursor<'_>,
    text: &str,
    schemas: ValueSchemas<'_>,
    found: &mut Vec<Diagnostic>,
) {
    if let Some(field) = names_value(text).then(|| Field::compile(&Value::from(text)).ok()).flatten() {
        in_text(
            subject,
            &CompiledText { cursor, text, uses: &uses(&field), needs_input: false, facts: &[] },
            schemas,
            found,
        );
    }
}

/// The values that a text uses.
fn uses(field: &Field) -> Vec<ValueUse> {
    let mut uses = Vec::new();
    field.each_use(&mut |_, used| uses.push(used.clone()));
    uses
}

fn in_text(subject: &Subject<'_>, text: &CompiledText<'_>, schemas: ValueSchemas<'_>, found: &mut Vec<Diagnostic>) {
    let (before, mut known) = (found.len(), Vec::new());
    for used in text.uses {
        if found.len() - before >= MAX_FOUND {
            return;
        }
        let Some(fault) = judged(subject, text, used, schemas) else { continue };
        // A block over a list names the list, and each entry of it: one fault of both is one.
        let start = if names_entry(used, schemas) { 0 } else { fault.place.start };
        let place = (start, fault.message.clone());
        if !subject.is_reported(&fault.place) && !known.contains(&place) {
            known.push(place);
            found.push(fault);
        }
    }
}

/// Whether a value is the entry of what is no list.
fn names_entry(used: &ValueUse, schemas: ValueSchemas<'_>) -> bool {
    let absent = schemas.describe(&used.path).and_then(|value| Some(value.way.absent?.at + value.skipped));
    absent.is_some_and(|at| used.path.get(at) == Some(&PathStep::Entry))
}

/// What is wrong with a value that a text uses, by the schema that describes it.
fn judged(
    subject: &Subject<'_>,
    CompiledText { cursor, text, uses, needs_input, facts }: &CompiledText<'_>,
    used: &ValueUse,
    schemas: ValueSchemas<'_>,
) -> Option<Diagnostic> {
    let described = schemas.describe(&used.path)?;
    let skipped = described.skipped;
    let is_input = skipped > 0;
    let at = (*cursor).clone().inside(used.range.clone());
    if at.path().ends_with(HAS_KEY) {
        return never_there(subject, &at, text, used, described);
    }
    let optional = optional_step(&described, used, facts);
    let why = optional.and_then(|step| may_be_missing(&described, used, step)).map(str::to_owned);
    let is_of_reply = described.way.absent.as_ref().is_some_and(|absent| is_of_reply(&described, used, absent));
    if let Some(absent) = described.way.absent {
        let absent = AbsentStep { at: absent.at + skipped, ..absent };
        let is_request = is_input && subject.document().kind == Some(DocumentKind::AgentRequest);
        // What a request shows is one input: another one may have what a text asks for.
        if is_request && absent.at < used.guarded {
            return None;
        }
        let fault = (is_input || absent.at > 0).then(|| missing(subject, &at, text, used, &absent))?;
        let fault = if is_of_reply { of_reply(fault, used, absent.at) } else { fault };
        return Some(if is_request { of_request(fault, &absent, used) } else { fault });
    }
    if is_input && !needs_input {
        return None;
    }
    let optional = optional?;
    // In the output of a workflow, what is missing is null.
    if why.is_some() && (!needs_input || uses.iter().any(|other| asks_beside(other, used, optional))) {
        return None;
    }
    let name = spelled(used.path.get(..=optional)?);
    let message = match &why {
        Some(why) => format!("`{name}` may be missing, and the text needs it: {why}"),
        None => format!("`{name}` may be left out, and the text needs it"),
    };
    let fault = Diagnostic::warning(codes::OPTIONAL_PARAMETER, message, at.path(), at.place());
    let last = spelled(used.path.get(optional..=optional)?);
    let is_step = is_input && subject.document().kind != Some(DocumentKind::AgentRequest);
    let is_step = is_step && subject.compiled.steps.typed.iter().any(|typed| typed.at == at.path());
    let is_of_entry = used.path.iter().take(optional).any(|step| *step == PathStep::Entry);
    let around = |name: &str| format!("{{{{#if {name}}}}}...{{{{/if}}}} around it");
    let schema = format!("put `{last}` among the `required` of its schema");
    let help = match text.starts_with('@') {
        // Inside of a block, an entry has names of its own.
        false if is_of_entry => {
            let written = text.get(used.range.clone()).unwrap_or(&last);
            let below = used.path.len().saturating_sub(optional + 1);
            let here = written.rsplitn(below + 1, '.').last().unwrap_or(written);
            match why {
                Some(_) => format!("write {}", around(here)),
                None => format!("{schema}, or write {}", around(here)),
            }
        }
        true if why.is_some() => {
            let of_item = takes_optional(subject, at.path())
                .then(|| format!(", or write {} to leave the value out with it", quoted(&format!("{text}?"))));
            format!("ask for it in the step's `filter` with {{\"hasKey\": \"@{name}\"}}{}", of_item.unwrap_or_default())
        }
        false if why.is_some() => format!("write {}", around(&name)),
        _ if is_step => of_step(text, &name, &last, takes_optional(subject, at.path())),
        true => schema,
        false => format!("{schema}, or write {}", around(&name)),
    };
    Some(fault.help(help))
}

/// The first step of a path to a member that may be left out, as far as nothing shows that it is there.
fn optional_step(described_value: &DescribedValue<'_>, used: &ValueUse, facts: &[Fact<'_>]) -> Option<usize> {
    let DescribedValue { schema, way, skipped } = described_value;
    let optional = way.optional.iter().map(|step| step + skipped);
    let is_of_input = matches!(used.path.first(), Some(PathStep::Name(first)) if first == "input");
    // The schemas of what steps write require nothing, unless somebody wrote them.
    let is_declared = |step: usize| {
        let around = used.path.get(*skipped..step).unwrap_or_default();
        let is_written = || described(schema, around).value.is_some_and(|part| part.contains_key("required"));
        *skipped == 0 || is_of_input || is_written()
    };
    let optional = optional.filter(|step| *step >= used.guarded && (*skipped > 0 || *step > 0));
    let is_known = |step: usize| {
        let path = used.path.get(..=step).unwrap_or_default();
        let is_engines = || may_be_missing(described_value, used, step).is_some();
        is_shown(facts, path) || (is_engines() && is_asked_beside(facts, path))
    };
    let optional = optional.filter(|step| !is_known(*step));
    optional.filter(|step| is_declared(*step)).min()
}

/// The names of an entry that say how its item ended, or how a run did: what asks for them knows which members there are.
const HOW_IT_ENDED: [&str; 2] = ["status", "error"];

/// Why a member that a step writes may be missing.
fn may_be_missing<'v>(value: &DescribedValue<'v>, used: &ValueUse, step: usize) -> Option<&'v str> {
    let around = used.path.get(value.skipped..step)?;
    described(value.schema, around).value?.get(MAY_BE_MISSING)?.as_str()
}

/// Whether a condition of the same text asks how it ended what a value is a part of.
fn asks_beside(other: &ValueUse, used: &ValueUse, step: usize) -> bool {
    let is_beside = other.path.get(..step) == used.path.get(..step);
    let asks = matches!(other.path.get(step), Some(PathStep::Name(name)) if HOW_IT_ENDED.contains(&name.as_str()));
    !other.is_printed && is_beside && asks
}

/// Whether a condition that held asks how it ended what a value is a part of.
fn is_asked_beside(facts: &[Fact<'_>], path: &[PathStep]) -> bool {
    let Some((_, around)) = path.split_last() else { return false };
    let around = spelled(around);
    let beside = HOW_IT_ENDED.map(|name| format!("@{around}.{name}"));
    let mut asks = false;
    for fact in facts {
        each_text(fact.condition, &mut String::new(), &mut |_, text| {
            asks |= beside.iter().any(|name| text.trim_end_matches('?') == name);
        });
    }
    asks
}

/// The name of the part of a path of a step that its schema lets be left out, and that nothing shows to be there.
pub(super) fn may_be_left_out(subject: &Subject<'_>, text: &TypedText, facts: &[Fact<'_>]) -> Option<String> {
    let schemas = ValueSchemas { written: &text.schemas, ..ValueSchemas::of_input(subject) };
    text.uses.iter().find_map(|used| {
        let described = schemas.describe(&used.path).filter(|described| described.way.absent.is_none())?;
        let step = optional_step(&described, used, facts)?;
        Some(spelled(used.path.get(..=step)?))
    })
}

/// A `hasKey` that never holds, because the value never has the member. It fails nothing, and what it guards never runs.
fn never_there(
    subject: &Subject<'_>,
    at: &Cursor<'_>,
    text: &str,
    used: &ValueUse,
    described: DescribedValue<'_>,
) -> Option<Diagnostic> {
    let DescribedValue { way, skipped, .. } = described;
    // A text may hold JSON that has the member.
    let absent = way.absent.filter(|absent| !matches!(absent.owner, StepOwner::Text))?;
    let absent = AbsentStep { at: absent.at + skipped, ..absent };
    let fault = missing(subject, at, text, used, &absent);
    let message = format!("{NEVER}{}", fault.message);
    Some(Diagnostic { code: RULE.code, severity: Severity::Warning, message, ..fault })
}

/// Whether a condition that held shows that a value is there.
fn is_shown(facts: &[Fact<'_>], path: &[PathStep]) -> bool {
    let names: Option<Vec<&str>> = path
        .iter()
        .map(|step| match step {
            PathStep::Name(name) => Some(name.as_str()),
            PathStep::Entry => None,
        })
        .collect();
    names.is_some_and(|names| facts.iter().any(|fact| fact.shows(&names)))
}

/// Whether a path at a place may end in `?`: a list that is gone through or matched is needed, and so is what a step waits for, and
/// what rows are found by.
pub(super) fn takes_optional(subject: &Subject<'_>, at: &str) -> bool {
    let Some((step, name)) = at.rsplit_once("/properties/") else { return true };
    let kind = subject.document().value.pointer(&format!("{step}/type")).and_then(Value::as_str);
    let is_needed = match kind {
        Some("matcher") => ["left", "right"].contains(&name),
        Some(WAIT) => ["for", "until"].contains(&name),
        Some(WAIT_FOR_EVENT) => name == "match" || name.starts_with("match/"),
        Some("custom-table") => name.starts_with("values/"),
        _ => false,
    };
    !(name == "items_path" || is_needed)
}

/// How a step does with a value that may be left out.
fn of_step(text: &str, name: &str, last: &str, takes_optional: bool) -> String {
    if !takes_optional {
        return format!(
            "put `{last}` among the `required` of its schema, or ask for it in the step's `filter` with {{\"hasKey\": \"@{name}\"}}"
        );
    }
    let otherwise = match text.starts_with('@') {
        true => format!("write {} to leave the value out with it", quoted(&format!("{text}?"))),
        false => format!("write {{{{#if {name}}}}}...{{{{/if}}}} around it"),
    };
    format!(
        "put `{last}` among the `required` of its schema, ask for it in the step's `filter` with \
         {{\"hasKey\": \"@{name}\"}}, or {otherwise}"
    )
}

/// A value that the `input` of an agent request lacks. Without a near name, a run may be given the value.
fn of_request(fault: Diagnostic, absent: &AbsentStep<'_>, used: &ValueUse) -> Diagnostic {
    let path = spelled(used.path.get(..=absent.at).unwrap_or_default());
    let message = fault.message.replacen("by its schema,", "in this request,", 1);
    let is_misspelt = fault.help.as_ref().is_some_and(|help| help.starts_with(NEAREST));
    match (absent.at, used.path.get(1)) {
        (1, Some(PathStep::Name(name))) if !is_misspelt => Diagnostic {
            code: codes::MISSING_INPUT,
            severity: Severity::Warning,
            message: format!("`{path}` is needed, and the `input` of the request has no `{name}`"),
            suggestion: None,
            ..fault
        }
        .help(Help::ending("write it into `input`, or give it to each run: ", Remedy::GiveInput(name.clone()))),
        (1, _) => Diagnostic { code: codes::MISSING_INPUT, message, ..fault },
        _ => Diagnostic { message, ..fault },
    }
}

fn missing(subject: &Subject<'_>, at: &Cursor<'_>, text: &str, used: &ValueUse, absent: &AbsentStep<'_>) -> Diagnostic {
    let step = absent.at;
    let before = used.path.get(..step).unwrap_or_default();
    let owner = match before.split_last() {
        Some((PathStep::Entry, list)) => format!("an entry of `{}`", spelled(list)),
        _ => format!("`{}`", spelled(before)),
    };
    let first = match used.path.first() {
        Some(PathStep::Name(first)) => first.as_str(),
        _ => "",
    };
    if OF_ENGINE.contains(&first) {
        let message = format!("{owner} {}", absent.why);
        let fault = Diagnostic::error(codes::NO_MEMBER, message, at.path(), at.place());
        return fault.help("it has no parts: take it as a whole");
    }
    let is_of_input = step == 1 && first == "input";
    let code = if is_of_input { codes::UNKNOWN_VARIABLE } else { codes::NO_MEMBER };
    let message = format!("by its schema, {owner} {}", absent.why);
    let fault = Diagnostic::error(code, message, at.path(), at.place());
    if matches!(absent.owner, StepOwner::Text) {
        return of_text(fault, used, step, text.get(used.range.clone()).unwrap_or_default());
    }
    let is_inside = before.contains(&PathStep::Entry);
    let names_input = is_inside && matches!(used.path.get(step), Some(PathStep::Name(name)) if name == "input");
    let written = text.get(used.range.clone()).unwrap_or_default();
    let members = || absent.members.into_iter().flat_map(|members| members.keys()).map(String::as_str);
    let name = used.path.get(step).and_then(|step| match step {
        PathStep::Name(name) => Some(name),
        PathStep::Entry => None,
    });
    let near = name.and_then(|name| subject.compiled.effort.nearest(name, members().take(MAX_COMPARED_NAMES)));
    let known: Vec<String> = members().take(MAX_LISTED_NAMES).map(short).collect();
    match (absent.owner, name) {
        (StepOwner::List(entries), Some(name)) => {
            let is_of_entry = entries.is_some_and(|members| members.contains_key(name));
            return of_list(fault, name, &spelled(before), is_of_entry, written);
        }
        (StepOwner::Text | StepOwner::Word, Some(name)) if LENGTHS.contains(&name.as_str()) => {
            let text = spelled(before);
            let fault = fault.help(format!("the number of its characters is its `length`: `{text}.length`"));
            return replaced(fault, written, name, "length");
        }
        _ => {}
    }
    let of_query = absent.members.zip(name.filter(|_| !names_input));
    let of_query = of_query.and_then(|(members, name)| query_advice(members, name));
    if let (Some(advice), Some(name)) = (of_query.filter(|advice| near.is_none() || advice.is_certain()), name) {
        let fault = fault.help(advice.help(&spelled(before)));
        return match advice.meant() {
            Some(meant) => replaced(fault, written, name, meant),
            None => fault,
        };
    }
    match (near, name) {
        _ if names_input => {
            fault.help("inside of a block names begin at its entry, and at the top with `@root.`: {{@root.input.x}}")
        }
        (Some(near), Some(name)) => {
            let fault = fault.help(format!("{NEAREST} `{near}`"));
            replaced(fault, written, name, near)
        }
        _ if known.is_empty() && matches!(before.last(), Some(PathStep::Entry)) => fault.help(format!(
            "the entry itself is `{{{{this}}}}`; `{written}` is no part of it: correct it, or the `items` of the schema"
        )),
        _ if known.is_empty() => fault.help("correct the path, or the schema beside it"),
        _ => fault.help(format!("it has `{}`", known.join("`, `"))),
    }
}

/// A path into what is declared as a text: it reads the JSON in it, and fails where there is none.
fn of_text(fault: Diagnostic, used: &ValueUse, step: usize, written: &str) -> Diagnostic {
    let text = spelled(used.path.get(..step).unwrap_or_default());
    let fault = Diagnostic { severity: Severity::Warning, ..fault };
    match used.path.get(step) {
        Some(PathStep::Name(name)) if LENGTHS.contains(&name.as_str()) => {
            let fault = fault.help(format!("the number of its characters is its `length`: `{text}.length`"));
            replaced(fault, written, name, "length")
        }
        Some(PathStep::Entry) => fault.help(format!(
            "a block over a text goes through the list or object that is its JSON, and fails where it is none: if `{text}` is \
             JSON, say so with `\"contentMediaType\": \"application/json\"`"
        )),
        _ => fault.help(format!(
            "a path into a text reads the JSON in it, and fails where it is none: if `{text}` is JSON, say so with \
             `\"contentMediaType\": \"application/json\"`"
        )),
    }
}

/// Whether a member is looked for in the reply of a model without a schema.
fn is_of_reply(value: &DescribedValue<'_>, used: &ValueUse, absent: &AbsentStep<'_>) -> bool {
    let around = used.path.get(value.skipped..absent.at + value.skipped).unwrap_or_default();
    let format = described(value.schema, around).value.and_then(|part| part.get("format"));
    matches!(absent.owner, StepOwner::Text) && format.is_some_and(|format| format == REPLY_FORMAT)
}

/// A path into what a model answers without a schema.
fn of_reply(fault: Diagnostic, used: &ValueUse, step: usize) -> Diagnostic {
    let reply = spelled(used.path.get(..step).unwrap_or_default());
    let (part, help) = match used.path.get(step) {
        Some(PathStep::Name(name)) if LENGTHS.contains(&name.as_str()) => return fault,
        Some(PathStep::Name(name)) => (format!("has no `{name}`"), format!("that describes `{name}`")),
        Some(PathStep::Entry) | None => ("has no entries".to_owned(), "that describes the list".to_owned()),
    };
    let message =
        format!("`{reply}` is the text of a model's reply, and {part} unless the reply has JSON, alone or in a fence");
    let help = format!("give the action of the model an `answer_schema` {help}: the reply is read and held against it");
    Diagnostic { message, ..fault }.help(help)
}

/// How a list is used that has no member of a name.
fn of_list(fault: Diagnostic, name: &str, list: &str, is_of_entry: bool, written: &str) -> Diagnostic {
    let word = name.to_ascii_lowercase();
    if LENGTHS.contains(&word.as_str()) {
        let fault = fault.help(format!("the number of its entries is its `length`: `{list}.length`"));
        return replaced(fault, written, name, "length");
    }
    if word == "first" {
        return replaced(fault.help(format!("its first entry is `{list}.0`")), written, name, "0");
    }
    match is_of_entry {
        true => fault.help(format!(
            "its entries have it: {{{{#each {list}}}}}{{{{{name}}}}}{{{{/each}}}} takes that of each, and `{list}.0.{name}` that of the first"
        )),
        false => fault.help(format!(
            "{{{{#each {list}}}}}...{{{{/each}}}} goes through its entries, `{list}.0` is the first one, and `{list}.length` their number"
        )),
    }
}

/// A name that is once in the text of a path is replaced there.
fn replaced(fault: Diagnostic, written: &str, name: &str, meant: &str) -> Diagnostic {
    match written.matches(name).count() {
        1 => fault.suggest(written.replacen(name, meant, 1)),
        _ => fault,
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
