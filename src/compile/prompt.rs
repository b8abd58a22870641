//! The texts that a model reads: their templates, the names in them, and no secret.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use super::document::{Document, DocumentKind};
use super::layout::Layout;
use super::template::{Escape, Template, Variable};
use crate::diagnostic::{Diagnostic, codes, nearest};

/// The names that every text of a loop knows.
const NAMES: [&str; 3] = ["input", "now", "__run_id"];
/// The names that only the system prompt knows.
const SYSTEM_NAMES: [&str; 4] = ["objective", "tools", "today", "dialect_instructions"];

/// The most names that are looked at for the nearest one.
const MEASURED: usize = 1_000;
/// The most variables of one text that are told to be unknown.
const MAX_FAULTS: usize = 50;

/// The compiled texts of a loop.
#[derive(Default)]
pub(super) struct Prompts {
    /// The objective.
    pub objective: Option<Template>,
    /// The author's system prompt.
    pub system_prompt: Option<Template>,
    /// What is wrong with them.
    pub faults: Vec<Diagnostic>,
}

impl Prompts {
    /// Compiles the texts of a document.
    pub(super) fn compile(document: &Document, layout: Layout) -> Self {
        let mut prompts = Self::default();
        let reader = Reader { document, layout, inputs: Inputs::of(document) };
        prompts.objective = reader.text("objective", &NAMES, &mut prompts.faults);
        let known: Vec<&str> = NAMES.iter().chain(&SYSTEM_NAMES).copied().collect();
        prompts.system_prompt = reader.text("system_prompt", &known, &mut prompts.faults);
        prompts
    }
}

struct Reader<'a> {
    document: &'a Document,
    layout: Layout,
    inputs: Option<Inputs>,
}

impl Reader<'_> {
    fn text(&self, property: &str, known: &[&str], faults: &mut Vec<Diagnostic>) -> Option<Template> {
        let text = self.layout.get(self.document, property).and_then(Value::as_str)?;
        let pointer = self.layout.pointer(property);
        let place = |range: &Range<usize>| self.document.tree.place_inside(&pointer, range);
        let template = match Template::compile(text, Escape::Plain) {
            Ok(template) => template,
            Err(fault) => {
                let range = fault.range.unwrap_or(0..text.len());
                let told = Diagnostic::error(fault.code, fault.message, pointer.as_str(), place(&range));
                faults.push(match fault.help {
                    Some(help) => told.help(help),
                    None => told,
                });
                return None;
            }
        };
        for key in template.secrets() {
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
        for (variable, (message, help)) in unknown.take(MAX_FAULTS) {
            let fault = Diagnostic::error(codes::UNKNOWN_VARIABLE, message, pointer.as_str(), place(&variable.range));
            faults.push(fault.help(help));
        }
        Some(template)
    }

    /// What is wrong with a variable, and how to mend it.
    fn unknown(&self, variable: &Variable, known: &[&str]) -> Option<(String, String)> {
        let written = variable.path.join(".");
        let (first, second) = (variable.path.first()?.as_str(), variable.path.get(1));
        let names = || self.inputs.iter().flat_map(|inputs| inputs.names.iter().map(String::as_str)).take(MEASURED);
        if !known.contains(&first) {
            let help = if names().any(|name| name == first) {
                format!("it is written `{{{{input.{written}}}}}`")
            } else if let Some(near) = nearest(first, known.iter().copied()) {
                format!("the nearest name is `{near}`")
            } else if let Some(near) = nearest(first, names()) {
                format!("the nearest name is `input.{near}`")
            } else {
                format!("known here: {}; what a run is given is `input.NAME`", known.join(", "))
            };
            return Some((format!("nothing supplies `{written}`"), help));
        }
        let (second, inputs) = (second?, self.inputs.as_ref().filter(|_| first == "input")?);
        if inputs.names.contains(second) {
            return None;
        }
        let near = nearest(second, names());
        if near.is_none() && !inputs.closed {
            return None;
        }
        let help = match near {
            Some(near) => format!("the nearest name is `input.{near}`"),
            None => {
                let names: Vec<&str> = inputs.names.iter().map(String::as_str).collect();
                format!("the loop's `input` takes: {}", names.join(", "))
            }
        };
        Some((format!("the loop's `input` has no `{second}`"), help))
    }
}

/// The names that a loop's input schema lists.
struct Inputs {
    names: BTreeSet<String>,
    /// Whether no other names may be given.
    closed: bool,
}

impl Inputs {
    fn of(document: &Document) -> Option<Self> {
        if document.kind != Some(DocumentKind::Loop) {
            return None;
        }
        let schema = document.value.get("input")?;
        let names = schema.get("properties")?.as_object()?.keys().cloned().collect();
        let only_these = schema.get("additionalProperties") == Some(&Value::Bool(false));
        Some(Self { names, closed: only_these && schema.get("patternProperties").is_none() })
    }
}
