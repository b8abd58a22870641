//! The texts of steps: the paths in them, and what is known of the values that they take.

use std::sync::Arc;

use serde_json::Value;

use super::{GIVEN, ReadValue, Walk};
use crate::compile::context::{Context, STEP};
use crate::compile::documents;
use crate::compile::layout::LoopLayout;
use crate::compile::prompt::{KnownNames, is_of_system, unknown, with_dollar};
use crate::compile::steps::{JsonTypes, KnownValue, TypedText, known_value, output};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::program::Program;
use crate::program::file_value::PREFIX;
use crate::program::reference::{Field, PathStep, RESERVED, as_path, each_text, spelled_path};
use crate::program::template::{Template, ValueEscape, ValueUse};
use crate::syntax::document::DocumentKind;

impl<'a> Walk<'_, 'a, '_> {
    /// A condition: which of its texts name a value and lack the `@`.
    pub(super) fn condition(&mut self, at: &str, value: &Value, context: &Context) {
        self.steps.conditions.push(at.to_owned());
        let mut bare = Vec::new();
        each_text(value, &mut at.to_owned(), &mut |at, text| {
            let inner = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).map(str::trim);
            if let Some(document) = inner.filter(|inner| inner.starts_with(PREFIX) && as_path(inner).is_some()) {
                bare.push((at.to_owned(), document.to_owned()));
                return;
            }
            let path = match text.strip_prefix('@').filter(|path| path.contains('[')).and_then(spelled_path) {
                Some(path) => format!("@{path}"),
                None => format!("@{}", text.trim_start_matches(['$', '{', '.', ' ']).trim_end_matches(['}', ' '])),
            };
            let Some(parts) =
                as_path(&path).filter(|path| path.join(".") != text.trim_start_matches('@') || !text.starts_with('@'))
            else {
                return;
            };
            let first = parts.first().map(String::as_str).unwrap_or_default();
            // A word alone is more likely a word, unless a step writes it.
            let is_braced = inner.is_some() && first != "input";
            let named = context.has(first) || ((parts.len() > 1 || is_braced) && GIVEN.contains(&first));
            if named && !at.ends_with("/hasKey") {
                bare.push((at.to_owned(), path));
            }
        });
        self.steps.bare_paths.extend(bare);
    }

    /// What is known of the value at a path. Many texts may name one value: its schema is read once.
    fn known(&mut self, path: &[String], context: &Context) -> Option<Arc<KnownValue>> {
        let (first, rest) = path.split_first()?;
        let written = context.shared_schema(first).filter(|_| first != "input");
        if let Some(read) = self.read_values.get(path)
            && read.schema.as_ref().map(Arc::as_ptr) == written.map(Arc::as_ptr)
        {
            return read.known.clone();
        }
        let known = match first.as_str() {
            "input" => self.input().and_then(|schema| KnownValue::of_schema(schema, rest)),
            "now" if rest.is_empty() => Some(KnownValue::of_moment()),
            "__run_id" if rest.is_empty() => Some(KnownValue::of_types(JsonTypes::TEXT)),
            "__step" if rest.is_empty() => Some(KnownValue::of_types(JsonTypes::NUMBER)),
            _ => written.and_then(|schema| KnownValue::of_schema(schema, rest)),
        };
        let read = ReadValue { schema: written.cloned(), known: known.map(Arc::new) };
        let known = read.known.clone();
        self.read_values.insert(path.to_vec(), read);
        known
    }

    /// The schema of the run's input.
    fn input(&self) -> Option<&'a Value> {
        let declares = matches!(self.main.kind, Some(DocumentKind::Loop | DocumentKind::Workflow));
        self.main.value.get("input").filter(|_| declares)
    }

    /// The schema of the value at a path.
    pub(super) fn schema<'s>(&'s self, path: &[String], context: &'s Context) -> Option<&'s Value> {
        let (first, rest) = path.split_first()?;
        known_value::part(if first == "input" { self.input()? } else { context.schema(first)? }, rest)
    }

    /// All texts in a value: templates and `@paths`.
    pub(super) fn values(&mut self, at: &str, value: &Value, context: &Context) {
        self.steps.values.push(at.to_owned());
        each_text(value, &mut at.to_owned(), &mut |at, text| self.text(at, text, context));
        few_of_many(self.faults);
    }

    pub(super) fn text(&mut self, at: &str, text: &str, context: &Context) {
        if !text.starts_with('@') && !text.contains("{{") && !text.contains(PREFIX) {
            return;
        }
        if let Some(misplaced) = documents::misplaced(text, self.project()) {
            // The question of an approval is a template.
            let is_template = at.ends_with("/properties/comment");
            let misplaced = if is_template { misplaced.in_template() } else { misplaced };
            self.faults.push(misplaced.report(&self.main.tree, at));
        }
        let field = match Field::compile(&Value::from(text)) {
            Ok(field) => field,
            Err(faults) => {
                return self.faults.extend(faults.into_iter().map(|fault| fault.placed(&self.main.tree, at)));
            }
        };
        let is_path = matches!(field, Field::Path(_) | Field::Optional(_));
        if let Field::Path(path) | Field::Optional(path) = &field
            && let Some(known) = self.known(path, context)
        {
            self.steps.known.insert(at.to_owned(), known);
        }
        self.printed(at, text, context);
        self.typed(at, &field, context);
        let known = KnownNames { given: &GIVEN, written: context, more: &[], is_path };
        for found in field.variables() {
            let effort = &self.calls.effort;
            let Some(unknown) = unknown(&found.variable, &known, self.inputs.as_ref(), effort) else { continue };
            let begin = usize::from(is_path && text.starts_with('@'));
            let range = found.variable.range.start + begin..found.variable.range.end.max(begin);
            let place = self.main.tree.place_inside(at, &range);
            let plain = text.get(range) == Some(&found.variable.path.join("."));
            let fault = Diagnostic::error(codes::UNKNOWN_VARIABLE, unknown.message, at, place).help(unknown.help);
            self.faults.push(match unknown.meant.filter(|_| plain) {
                Some(meant) if let Some(range) = with_dollar(text, &found.variable) => {
                    let whole = self.main.tree.place_inside(at, &range);
                    fault.suggest_at(format!("{{{{{meant}}}}}"), whole.start, whole.end)
                }
                Some(meant) => fault.suggest(meant),
                None => fault,
            });
        }
    }

    /// Notes what is known of the value that a template in `output` is alone, when it is no text.
    fn printed(&mut self, at: &str, text: &str, context: &Context) {
        let inner = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        let path = inner
            .filter(|_| at.starts_with("/definition/output"))
            .and_then(|path| as_path(&format!("@{}", path.trim())));
        if let Some(known) = path.and_then(|path| self.known(&path, context))
            && !known.types.meets(JsonTypes::TEXT)
        {
            self.steps.known.insert(at.to_owned(), known);
        }
    }

    /// Notes which values a text takes whose schemas are known.
    fn typed(&mut self, at: &str, field: &Field, context: &Context) {
        let mut text = TypedText::new(at);
        field.each_use(&mut |_, used| self.take(&mut text, used, context));
        self.keep(text);
    }

    /// Whether a name is that of a file of the project, or of an entry of its list, and not of a row of a CSV file, whose columns
    /// are those of its first line.
    fn is_of_json_file(&self, name: &str, context: &Context) -> bool {
        let is_row =
            || context.schema(name).and_then(|row| row.get("additionalProperties")) == Some(&Value::Bool(false));
        name.starts_with(PREFIX) || (self.entries_of_files.contains(name) && !is_row())
    }

    /// The same for the texts that the loop of a step sends.
    pub(super) fn typed_prompts(&mut self, layout: &LoopLayout, program: Option<&Program>, context: &Context) {
        let compiled = program
            .and_then(Program::as_loop)
            .map(|program| [Some(&program.objective), program.system_prompt.as_ref()]);
        for (name, compiled) in ["objective", "system_prompt"].into_iter().zip(compiled.unwrap_or_default()) {
            self.document_in_prompt(&layout.pointer(name), layout.get(self.main, name));
            let mut text = TypedText::new(&layout.pointer(name));
            let lone = match (program, layout.get(self.main, name).and_then(Value::as_str)) {
                // The loop has a fault elsewhere.
                (None, Some(written)) => Template::compile(written, ValueEscape::Plain).ok(),
                _ => None,
            };
            for used in compiled.or(lone.as_ref()).into_iter().flat_map(Template::uses) {
                let is_of_prompt = matches!(used.path.first(), Some(PathStep::Name(first)) if is_of_system(first));
                if name == "objective" || !is_of_prompt {
                    self.take(&mut text, used, context);
                }
            }
            self.keep(text);
        }
    }

    /// A document that the prompt of a step names and does not take.
    fn document_in_prompt(&mut self, at: &str, text: Option<&Value>) {
        let Some(text) = text.and_then(Value::as_str).filter(|text| text.contains(PREFIX)) else { return };
        let Some(misplaced) = documents::misplaced(text, self.project()) else { return };
        let is_taken = text.get(misplaced.range.clone()).is_some_and(|name| text.contains(&format!("{{{{{name}")));
        if !is_taken {
            self.faults.push(misplaced.in_template().report(&self.main.tree, at));
        }
    }

    /// Notes a value below one whose schema is known: that of the input, or of what a step writes.
    fn take(&self, text: &mut TypedText, used: &ValueUse, context: &Context) {
        let [PathStep::Name(first), _, ..] = used.path.as_slice() else { return };
        let schema = match first.as_str() {
            "input" if self.input().is_some() => None,
            // What the engine gives has no parts.
            name if RESERVED.contains(&name) || (name == STEP && context.shared_schema(name).is_none()) => {
                match output::of_engine(name) {
                    Some(schema) => Some(Arc::new(schema)),
                    None => return,
                }
            }
            // A file, or an entry of it, may have other members by the time of the run, and a filter asks for them.
            name if text.at.ends_with("/hasKey") && self.is_of_json_file(name, context) => return,
            name => match context.shared_schema(name).filter(|schema| schema.is_object()) {
                Some(schema) => Some(Arc::clone(schema)),
                None => return,
            },
        };
        text.uses.push(used.clone());
        if let Some(schema) = schema.filter(|_| !text.schemas.iter().any(|(known, _)| known == first)) {
            text.schemas.push((first.clone(), schema));
        }
    }

    fn keep(&mut self, text: TypedText) {
        if !text.uses.is_empty() {
            self.steps.typed.push(text);
        }
    }
}
