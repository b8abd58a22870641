//! The texts that a model reads: compiles their templates, checks the names in them, and allows no secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;

use super::context::Context;
use super::documents::is_word_for;
use super::effort::Effort;
use super::foreign_path;
use super::layout::LoopLayout;
use crate::diagnostic::{Diagnostic, codes, is_slip};
use crate::program::file_value::{PREFIX, named};
use crate::program::flow::APPROVAL_KEYS;
use crate::program::reference::steps;
use crate::program::schema::described;
use crate::program::template::{Template, ValueEscape, Variable};
use crate::syntax::document::{Document, DocumentKind};

/// The names that every text of a loop can use.
const NAMES: [&str; 3] = ["input", "now", "__run_id"];
/// Whether only the system prompt can use a name.
pub(super) fn is_of_system(name: &str) -> bool {
    SYSTEM_NAMES.contains(&name)
}

/// The names that only the system prompt can use.
const SYSTEM_NAMES: [&str; 4] = ["objective", "tools", "today", "dialect_instructions"];

/// The most names that are compared in the search for the nearest one.
const MAX_COMPARED_NAMES: usize = 1_000;
/// The most known names that a help lists.
const MAX_LISTED: usize = 20;
/// The most variables of one text that are reported as unknown.
const MAX_FAULTS: usize = 50;

/// The compiled texts of a loop.
#[derive(Default)]
pub(super) struct Prompts {
    pub objective: Option<Template>,
    /// The author's system prompt.
    pub system_prompt: Option<Template>,
    /// Their faults.
    pub faults: Vec<Diagnostic>,
}

impl Prompts {
    /// Compiles the texts of a loop; `context` are the names that the steps before it write.
    pub(super) fn compile(document: &Document, layout: &LoopLayout, context: &Context, effort: &Effort) -> Self {
        let mut prompts = Self::default();
        let reader = PromptReader { document, layout, inputs: Inputs::of(document), effort };
        let known = KnownNames { given: &NAMES, written: context, more: &[], is_path: false };
        prompts.objective = reader.text("objective", &known, &mut prompts.faults);
        let known = KnownNames { more: &SYSTEM_NAMES, ..known };
        prompts.system_prompt = reader.text("system_prompt", &known, &mut prompts.faults);
        prompts
    }
}

struct PromptReader<'a> {
    document: &'a Document,
    layout: &'a LoopLayout,
    inputs: Option<Inputs>,
    effort: &'a Effort,
}

impl PromptReader<'_> {
    fn text(&self, property: &str, known: &KnownNames<'_>, faults: &mut Vec<Diagnostic>) -> Option<Template> {
        let text = self.layout.get(self.document, property).and_then(Value::as_str)?;
        let pointer = self.layout.pointer(property);
        let place = |range: &Range<usize>| self.document.tree.place_inside(&pointer, range);
        let template = match Template::compile(text, ValueEscape::Plain) {
            Ok(template) => template,
            Err(fault) => {
                let range = fault.range.unwrap_or(0..text.len());
                let diagnostic = Diagnostic::error(fault.code, fault.message, pointer.as_str(), place(&range));
                faults.push(match fault.help {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                });
                return None;
            }
        };
        for key in template.secrets().iter().take(MAX_FAULTS) {
            let name = format!("orgconfig:{key}");
            let range = text.find(&name).map_or(0..text.len(), |at| at..at + name.len());
            let message = format!("the secret `{name}` would be sent to the model");
            let fault = Diagnostic::error(codes::SECRET_IN_PROMPT, message, pointer.as_str(), place(&range));
            faults.push(
                fault.help("a secret never goes to a model: use it in an action's header, address or environment"),
            );
        }
        let judged = template.variables().iter().map(|variable| (variable, self.unknown(variable, known)));
        let unknown = judged.filter_map(|(variable, fault)| fault.map(|fault| (variable, fault)));
        for (variable, unknown) in unknown.take(MAX_FAULTS) {
            let place = place(&variable.range);
            let fault = Diagnostic::error(codes::UNKNOWN_VARIABLE, unknown.message, pointer.as_str(), place);
            // If it is not written with dots, its place contains more than the name.
            let plain = text.get(variable.range.clone()) == Some(&variable.path.join("."));
            faults.push(match unknown.meant.filter(|_| plain) {
                Some(meant) if let Some(range) = with_dollar(text, variable) => {
                    let whole = self.document.tree.place_inside(&pointer, &range);
                    fault.help(unknown.help).suggest_at(format!("{{{{{meant}}}}}"), whole.start, whole.end)
                }
                Some(meant) => fault.help(unknown.help).suggest(meant),
                None => fault.help(unknown.help),
            });
        }
        Some(template)
    }

    fn unknown(&self, variable: &Variable, known: &KnownNames<'_>) -> Option<UnknownVariable> {
        unknown(variable, known, self.inputs.as_ref(), self.effort)
    }
}

/// The names that a text can use.
#[derive(Clone, Copy)]
pub(super) struct KnownNames<'k> {
    /// Those that the engine gives.
    pub given: &'k [&'k str],
    /// The names that the steps before it write.
    pub written: &'k Context,
    /// The names that only this text can use.
    pub more: &'k [&'k str],
    /// Whether it is an `@path`, not a part of a template.
    pub is_path: bool,
}

impl KnownNames<'_> {
    /// Whether a variable is the name of a document without its `doc:`, and if so, whether the document may have the parts
    /// that are named behind it.
    fn has_document(&self, variable: &Variable) -> Option<bool> {
        let name = format!("{PREFIX}{}", variable.path.first()?);
        self.written.has(&name).then(|| self.leads(&name, variable))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.given.contains(&name) || self.written.has(name) || self.more.contains(&name)
    }

    /// Whether a name may have the parts that a variable names behind its first name.
    fn leads(&self, name: &str, variable: &Variable) -> bool {
        self.has_parts(name, variable.path.get(1..).unwrap_or_default())
    }

    /// Whether a name may have these parts.
    pub(super) fn has_parts(&self, name: &str, rest: &[String]) -> bool {
        if rest.is_empty() {
            return true;
        }
        if is_of_system(name) || (name != "input" && self.given.contains(&name)) {
            return false;
        }
        self.written.schema(name).is_none_or(|schema| described(schema, &steps(rest)).absent.is_none())
    }

    /// The names that a variable may be a slip of: those of steps first. In a loop over a list, a short name is meant as that
    /// of the item, and many are one letter away from `now`: `row`.
    fn near_names<'n>(&'n self, variable: &'n Variable) -> impl Iterator<Item = &'n str> {
        let first = variable.path.first().map(String::as_str).unwrap_or_default();
        let has_its_letters = || "now".chars().all(|letter| first.to_ascii_lowercase().contains(letter));
        let may_be_now = self.written.item().is_none() || has_its_letters();
        let names = self.written.names().chain(self.more.iter().copied()).chain(self.given.iter().copied());
        names.filter(move |name| (*name != "now" || may_be_now) && self.leads(name, variable))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.given.iter().copied().chain(self.written.names()).chain(self.more.iter().copied())
    }

    /// What is known, as a help for a name that is near to none: `example` is it as a part of the run's input.
    fn listed(&self, example: &str, inputs: Option<&Inputs>) -> String {
        let known = self.known(example, inputs);
        match self.written.item() {
            Some(item) if self.is_path => format!("the item of the list is `@{item}` here; {known}"),
            Some(item) => format!("the item of the list is `{{{{{item}}}}}` here; {known}"),
            None => known,
        }
    }

    fn known(&self, example: &str, inputs: Option<&Inputs>) -> String {
        let declared = inputs.filter(|inputs| inputs.declared && !inputs.names.is_empty());
        let of_input = declared.into_iter().flat_map(|inputs| inputs.names.iter().map(|name| format!("input.{name}")));
        let others = self.names().filter(|name| declared.is_none() || *name != "input").map(str::to_owned);
        let known = of_input.take(MAX_LISTED).chain(others.take(MAX_LISTED)).collect::<Vec<_>>().join("`, `");
        match declared {
            Some(inputs) => {
                format!("known here: `{known}`; another part of the {}'s input is declared in its `input`", inputs.of)
            }
            None => format!("what a run is given is written `{example}`; known here: `{known}`"),
        }
    }
}

fn nothing_supplies(written: &str, is_path: bool) -> String {
    match is_path {
        true => format!("no step before this one writes `@{written}`"),
        false => format!("nothing supplies `{written}`"),
    }
}

/// The fault of a variable, and its fix.
pub(super) fn unknown(
    variable: &Variable,
    known: &KnownNames<'_>,
    inputs: Option<&Inputs>,
    effort: &Effort,
) -> Option<UnknownVariable> {
    let is_path = known.is_path;
    let form = |name: String| if is_path { format!("@{name}") } else { format!("{{{{{name}}}}}") };
    let written = variable.path.join(".");
    let (first, second) = (variable.path.first()?.as_str(), variable.path.get(1));
    let names = || inputs.iter().flat_map(|inputs| inputs.names.iter().map(String::as_str)).take(MAX_COMPARED_NAMES);
    let with = |begin: &str, rest: usize| {
        let rest = variable.path.iter().skip(rest).map(|part| format!(".{part}"));
        format!("{begin}{}", rest.collect::<String>())
    };
    if let Some(name) = named(first).filter(|_| !known.has(first)) {
        return Some(unknown_document(first, name, known, effort).with(|near| with(near, 1)));
    }
    if !known.has(first) {
        if known.written.is_open() {
            return None;
        }
        // In a loop over a list, a short name is meant as that of the item.
        let may_be_input = |name: &str| {
            let is_near = known.written.item().is_none() || is_slip(first, name);
            is_near && inputs.is_some_and(|inputs| inputs.leads(name, variable))
        };
        let may_have = |name: &str| inputs.is_none_or(|inputs| inputs.may_have(name));
        let is_slip_of_known =
            || known.near_names(variable).any(|near| near != "input" && is_slip(first.trim_start_matches('$'), near));
        let decided = ["approved", "_approved", "approval", "is_approved", "approve", "rejected"].contains(&first);
        let approval = APPROVAL_KEYS.contains(&first);
        let (help, meant) = if approval {
            ("a step of type `PbotApproval` writes it: put one before this step".to_owned(), None)
        } else if decided && known.written.has("__approved") {
            let meant = (variable.path.len() == 1 && first != "rejected").then(|| "__approved".to_owned());
            ("what a human decided is `@__approved`, which is true or false".to_owned(), meant)
        } else if inputs.is_some_and(|inputs| inputs.outputs.contains(first)) {
            let help = format!(
                "a step writes `{first}`, but it comes later, may be skipped, or is inside of a `foreach`: read the value in a \
                 step that runs after that one"
            );
            (help, None)
        } else if let Some(key) = inputs.and_then(|inputs| inputs.key_of_id(first, known, variable)) {
            let meant = with(key, 1);
            let help = format!(
                "`{first}` is the `id` of a step, which writes `{key}`: it is read as `{}`",
                form(meant.clone())
            );
            (help, Some(meant))
        } else if known.has_document(variable) == Some(true) {
            of_document(&written, is_path)
        } else if let Some(name) =
            second.filter(|name| is_word_for(first) && known.written.has(&format!("{PREFIX}{name}")))
        {
            of_document(&with(name, 2), is_path)
        } else if let Some(foreign) = foreign_path::of(variable, known, &may_have).filter(|_| !is_slip_of_known()) {
            let shown = foreign.meant.clone().unwrap_or_else(|| foreign.example.clone());
            (format!("{} is written `{}`", foreign.what, form(shown)), foreign.meant)
        } else if matches!(first, "item" | "items") && known.written.item().is_none() {
            ("an item is there in the `actions_to_execute` of a loop of mode `foreach` alone".to_owned(), None)
        } else if inputs.is_some_and(|inputs| inputs.leads(first, variable)) {
            (format!("it is written `{}`", form(format!("input.{written}"))), Some(format!("input.{written}")))
        } else if let Some(near) = effort.nearest(first, known.near_names(variable)) {
            (format!("the nearest name is `{near}`"), Some(with(near, 1)))
        } else if let Some(near) = effort.nearest(first, names().filter(|name| may_be_input(name))) {
            (format!("the nearest name is `input.{near}`"), Some(with(&format!("input.{near}"), 1)))
        } else if known.written.item().is_some() {
            (known.listed(&form(format!("input.{written}")), inputs), None)
        } else if known.has_document(variable).is_some() {
            // It does not have the part that is named behind it: what is suggested would be a fault, too.
            (of_document(first, is_path).0, None)
        } else if inputs.is_some_and(|inputs| inputs.names.contains(first)) {
            (format!("it is written `{}`", form(format!("input.{first}"))), None)
        } else {
            (known.listed(&form(format!("input.{written}")), inputs), None)
        };
        return Some(UnknownVariable { message: nothing_supplies(&written, is_path), help, meant });
    }
    let inputs = inputs.filter(|inputs| first == "input" && inputs.declared)?;
    let second = second?;
    absent_input(inputs, second, || effort.nearest(second, names()), |near| with(&format!("input.{near}"), 2))
}

/// The fault of a document that the project does not name; `meant` is the nearest one.
fn unknown_document(first: &str, name: &str, known: &KnownNames<'_>, effort: &Effort) -> UnknownVariable {
    let near = effort.nearest(first, known.names().filter(|name| named(name).is_some()));
    let help = match near {
        Some(near) => format!("the nearest name is `{near}`"),
        None => "name its file in `documents` of the project file; only the steps of a workflow read it".to_owned(),
    };
    UnknownVariable { message: format!("there is no document `{name}` here"), help, meant: near.map(str::to_owned) }
}

/// The fault of a name that the run's input does not have. `with` is a name of the input with what is named behind it.
fn absent_input<'n>(
    inputs: &Inputs,
    name: &str,
    nearest: impl FnOnce() -> Option<&'n str>,
    with: impl Fn(&str) -> String,
) -> Option<UnknownVariable> {
    if inputs.names.contains(name) {
        return None;
    }
    let near = nearest();
    if near.is_none() && !inputs.closed {
        return None;
    }
    let (help, meant) = match near {
        Some(near) => (format!("the nearest name is `input.{near}`"), Some(with(near))),
        None => {
            let mut shown: Vec<String> = inputs.names.iter().take(MAX_LISTED).map(|name| format!("`{name}`")).collect();
            if let Some(more) = inputs.names.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
                shown.push(format!("{more} more"));
            }
            (format!("the {}'s `input` takes {}", inputs.of, shown.join(", ")), None)
        }
    };
    Some(UnknownVariable { message: format!("the {}'s `input` has no `{name}`", inputs.of), help, meant })
}

/// How a document is written that is named without its `doc:`. A path of one has no `@`.
fn of_document(written: &str, is_path: bool) -> (String, Option<String>) {
    let meant = format!("{PREFIX}{written}");
    match is_path {
        true => (format!("a document is written `{meant}`, without the `@`"), None),
        false => (format!("a document is written `{{{{{meant}}}}}`"), Some(meant)),
    }
}

/// An expression of GitHub Actions as a whole, `${{ inputs.id }}`, around a variable: its `$` would stay in the text.
pub(super) fn with_dollar(text: &str, variable: &Variable) -> Option<Range<usize>> {
    let is_foreign = foreign_path::is_first(variable.path.first()?);
    let before = text.get(..variable.range.start)?.trim_end().strip_suffix("${{").filter(|_| is_foreign)?;
    let after = text.get(variable.range.end..)?;
    let end = after.find("}}").filter(|end| after.get(..*end).is_some_and(|blank| blank.trim().is_empty()))?;
    Some(before.len()..variable.range.end + end + 2)
}

/// The fault of a variable.
pub(super) struct UnknownVariable {
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: String,
    /// The name that was probably meant.
    pub meant: Option<String>,
}

impl UnknownVariable {
    /// The same with a longer path in the place of the name that was probably meant.
    fn with(self, path: impl Fn(&str) -> String) -> Self {
        Self { meant: self.meant.as_deref().map(path), ..self }
    }
}

/// The names under which a step may write what it gives, the likeliest first.
pub(crate) fn keys_of_step(step: &Value) -> impl Iterator<Item = &str> {
    let of_step = ["outputKey", "result_key", "name", "type"].into_iter();
    of_step.filter_map(|name| step.get(name).or_else(|| step.get("properties")?.get(name))?.as_str())
}

/// The known names of a loop's input.
pub(super) struct Inputs {
    names: BTreeSet<String>,
    /// The keys that the steps with an `id` may write, by their `id`.
    ids: BTreeMap<String, Vec<String>>,
    /// The schema of the input, when it is declared.
    schema: Option<Value>,
    /// The keys that the steps of the document write, wherever they are.
    outputs: BTreeSet<String>,
    /// Whether other names are not allowed.
    closed: bool,
    /// Whether a schema lists the names; otherwise they come from the document's own input.
    declared: bool,
    /// What it is the input of.
    of: &'static str,
}

impl Inputs {
    /// The key that the step with an `id` writes, of those that are known.
    fn key_of_id(&self, id: &str, known: &KnownNames<'_>, variable: &Variable) -> Option<&str> {
        self.ids.get(id)?.iter().map(String::as_str).find(|key| known.has(key) && known.leads(key, variable))
    }

    /// Whether the input may have a name.
    fn may_have(&self, name: &str) -> bool {
        self.names.contains(name) || !self.closed
    }

    /// Whether it is a name of the input, which may have the parts that a variable names behind its first name.
    fn leads(&self, name: &str, variable: &Variable) -> bool {
        let rest = variable.path.iter().skip(1).cloned();
        let path: Vec<String> = std::iter::once(name.to_owned()).chain(rest).collect();
        let has_parts = |schema| described(schema, &steps(&path)).absent.is_none();
        self.names.contains(name) && self.schema.as_ref().is_none_or(has_parts)
    }

    pub(super) fn of(document: &Document) -> Option<Self> {
        let (mut outputs, mut ids) = (BTreeSet::new(), BTreeMap::new());
        gather_outputs(document.value.get("definition").unwrap_or(&Value::Null), &mut outputs, &mut ids);
        let undeclared = |names, of| {
            let (ids, outputs) = (BTreeMap::new(), BTreeSet::new());
            Self { names, ids, schema: None, outputs, closed: false, declared: false, of }
        };
        let input = document.value.get("input").unwrap_or(&Value::Null);
        let names = |object: &Value| Some(object.as_object()?.keys().cloned().collect());
        let inputs = match document.kind {
            Some(DocumentKind::Loop | DocumentKind::Workflow) => input.get("properties").and_then(names).map(|names| {
                let of = if document.kind == Some(DocumentKind::Loop) { "loop" } else { "workflow" };
                let only_these = input.get("additionalProperties") == Some(&Value::Bool(false));
                let closed = only_these && input.get("patternProperties").is_none();
                Self { closed, declared: true, schema: Some(input.clone()), ..undeclared(names, of) }
            }),
            _ => names(input).map(|names| undeclared(names, "request")),
        };
        let has_steps = !outputs.is_empty() || !ids.is_empty();
        let inputs = inputs.or_else(|| has_steps.then(|| undeclared(BTreeSet::new(), "workflow")));
        inputs.map(|inputs| Self { outputs, ids, ..inputs })
    }
}

/// The keys that steps write, in a part of a workflow, and what those with an `id` may write. A document is never deeper than
/// its reader allows.
fn gather_outputs(part: &Value, outputs: &mut BTreeSet<String>, ids: &mut BTreeMap<String, Vec<String>>) {
    match part {
        Value::Array(items) => items.iter().for_each(|item| gather_outputs(item, outputs, ids)),
        Value::Object(members) => {
            let id = members.get("id").and_then(Value::as_str).filter(|_| members.contains_key("type"));
            if let Some(id) = id.filter(|_| ids.len() < MAX_COMPARED_NAMES) {
                ids.entry(id.to_owned()).or_insert_with(|| keys_of_step(part).map(str::to_owned).collect());
            }
            for (name, member) in members {
                match member.as_str() {
                    Some(key)
                        if matches!(name.as_str(), "outputKey" | "result_key")
                            && outputs.len() < MAX_COMPARED_NAMES =>
                    {
                        outputs.insert(key.to_owned());
                    }
                    _ => gather_outputs(member, outputs, ids),
                }
            }
        }
        _ => {}
    }
}
