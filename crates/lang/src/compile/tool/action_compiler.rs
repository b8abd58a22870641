//! Collects the results while an action is compiled: its faults, the values that it takes, and where it names
//! secrets.

use std::collections::HashSet;

use serde_json::Value;

use super::{MAX_FAULTS, is_value};
use crate::diagnostic::codes;
use crate::program::fault::LocalFault;
use crate::program::file_value::{is_name, named};
use crate::program::reference::{Field, RESERVED, each_text};
use crate::program::template::{Template, ValueEscape, Variable};
use crate::syntax::shape::Unknown;

/// The most bytes of the pointers of the strings that take values: 16 MiB.
const MAX_POINTERS: usize = 16 << 20;

/// A variable and the pointer of the string that names it.
pub(super) struct NamedVariable {
    pub pointer: String,
    pub variable: Variable,
    pub form: NamingForm,
}

/// How a string names a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NamingForm {
    /// Whether it is a member as a whole, which is left out where a call leaves out the value.
    pub is_left_out: bool,
    /// Whether it is an `@path` as a whole, and no template.
    pub is_path: bool,
}

impl NamedVariable {
    /// The name that it begins with.
    pub fn first(&self) -> &str {
        self.variable.path.first().map(String::as_str).unwrap_or_default()
    }

    /// Whether the model writes it: it is no name of the engine.
    pub fn is_argument(&self) -> bool {
        !RESERVED.contains(&self.first())
    }

    /// Whether it is no name of the engine: the model writes it, or it comes from the run's input.
    pub fn is_value(&self) -> bool {
        is_value(&self.variable)
    }

    /// Who writes it, in words.
    pub fn writer(&self) -> &'static str {
        if self.is_argument() { "is written by the model" } else { "is the run's input" }
    }
}

/// The results of compiling an action.
pub(super) struct ActionDraft<'a> {
    /// The parts of the action that could not be read.
    pub unknown: &'a Unknown,
    /// Whether a text could not be read, so that its values are not known.
    pub is_partial: bool,
    /// The faults, at most [`MAX_FAULTS`] errors and as many warnings.
    pub faults: Vec<LocalFault>,
    pub named: Vec<NamedVariable>,
    /// The pointers of the strings that name secrets.
    pub secrets: Vec<String>,
    errors: usize,
    warnings: usize,
    /// The bytes of these pointers.
    pointers: usize,
}

impl<'a> ActionDraft<'a> {
    /// For an action with these unreadable parts.
    pub fn of(unknown: &'a Unknown) -> Self {
        Self {
            unknown,
            is_partial: !unknown.is_empty(),
            faults: Vec::new(),
            named: Vec::new(),
            secrets: Vec::new(),
            errors: 0,
            warnings: 0,
            pointers: 0,
        }
    }

    pub fn push(&mut self, fault: LocalFault) {
        if self.unknown.holds(&fault.pointer) {
            return;
        }
        let reported = if fault.is_error() { &mut self.errors } else { &mut self.warnings };
        *reported += 1;
        if *reported <= MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Adds a value that the string at a pointer takes.
    fn name(&mut self, pointer: &str, variable: &Variable, form: NamingForm) {
        if let Some(name) = variable.path.first().and_then(|first| named(first)) {
            return self.unread_document(name, pointer);
        }
        let before = self.pointers;
        self.pointers = before.saturating_add(pointer.len());
        if self.pointers <= MAX_POINTERS {
            self.named.push(NamedVariable { pointer: pointer.to_owned(), variable: variable.clone(), form });
        } else if before <= MAX_POINTERS {
            let message = "the action takes too many values from places that are named by long keys";
            self.push(LocalFault::error(codes::TOO_MUCH, "", message).help("give it shorter keys, or fewer values"));
        }
    }

    fn unread_document(&mut self, name: &str, pointer: &str) {
        let message = format!("an action does not read the document `{name}`");
        let fault = LocalFault::error(codes::UNKNOWN_VARIABLE, pointer, message);
        self.push(fault.help("a step of a workflow reads it: pass it on in the step's `properties`"));
    }

    /// A document that a text as a whole names with the mark of a path before it: the name would be sent.
    fn marked_document(&mut self, text: &str, pointer: &str) {
        let bare = text.trim().strip_prefix('@').and_then(named);
        let name = bare.and_then(|bare| bare.split('.').next()).filter(|name| is_name(name));
        if let Some(name) = name.filter(|_| !text.trim().contains(char::is_whitespace)) {
            self.unread_document(name, pointer);
        }
    }

    pub fn template(&mut self, text: &str, escape: ValueEscape, pointer: &str) -> Option<Template> {
        self.marked_document(text, pointer);
        match Template::compile(text, escape) {
            Ok(template) => {
                for variable in template.variables() {
                    self.name(pointer, variable, NamingForm::default());
                }
                if !template.secrets().is_empty() {
                    self.secrets.push(pointer.to_owned());
                }
                Some(template)
            }
            Err(fault) => {
                self.push(LocalFault::template(fault, pointer));
                self.is_partial = true;
                None
            }
        }
    }

    pub fn field(&mut self, value: &Value, pointer: &str) -> Option<Field> {
        each_text(value, &mut pointer.to_owned(), &mut |at, text| self.marked_document(text, at));
        match Field::compile(value) {
            Ok(field) => {
                let members = field.left_out_members();
                // A query parameter and a header are members, too, and so is a body as a whole.
                let is_lone = matches!(&field, Field::Path(path) if path.len() == 1);
                let is_member =
                    ["/query/", "/headers/"].iter().any(|top| pointer.starts_with(top)) || pointer == "/body";
                let is_member = is_member && (is_lone || matches!(&field, Field::Optional(_)));
                field.each_named(&mut |below, variable, is_path| {
                    let is_left_out = is_member || members.contains(below);
                    let form = NamingForm { is_left_out, is_path };
                    self.name(&format!("{pointer}{below}"), variable, form);
                });
                if field.names_secret() {
                    self.secrets.push(pointer.to_owned());
                }
                Some(field)
            }
            Err(faults) => {
                faults.into_iter().for_each(|fault| self.push(fault.under(pointer)));
                self.is_partial = true;
                None
            }
        }
    }

    /// The names from the model that the strings at and under `pointer` take, each once.
    pub fn arguments_at(&self, pointer: &str) -> Vec<String> {
        let mut known = HashSet::new();
        let named = self.named.iter().filter(|named| named.is_argument() && is_at(&named.pointer, pointer));
        named.map(NamedVariable::first).filter(|name| known.insert(*name)).map(str::to_owned).collect()
    }
}

/// Whether a JSON pointer is `top`, or leads further down from there.
pub(in crate::compile) fn is_at(pointer: &str, top: &str) -> bool {
    pointer.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
