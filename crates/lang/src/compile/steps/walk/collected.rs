//! What is gathered of the items of a loop: an `@path`, or an object or a list of them; and the settings that must be an `@path`.

use serde_json::Value;

use super::Walk;
use crate::compile::context::Context;
use crate::compile::documents;
use crate::compile::steps::output;
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::program::reference::{as_optional_path, as_path};
use crate::syntax::{quoted, token};

impl Walk<'_, '_, '_> {
    /// The schema of what is gathered of an item.
    pub(super) fn collected(&mut self, at: &str, written: &Value, context: &Context) -> Value {
        match written {
            // Of an item without the value, nothing is gathered.
            Value::String(path) if let Some(parts) = as_optional_path(path) => {
                self.text(at, path, context);
                output::part(self.schema(&parts, context))
            }
            Value::String(path) => {
                self.path("collect", at, path, context);
                output::part(as_path(path).and_then(|path| self.schema(&path, context)))
            }
            Value::Object(_) | Value::Array(_) => {
                self.parts(at, written, context);
                few_of_many(self.faults);
                self.of_output(written, context)
            }
            _ => output::ANY,
        }
    }

    /// The paths in an object or a list. A document is never deeper than its reader allows: the recursion ends.
    fn parts(&mut self, at: &str, written: &Value, context: &Context) {
        match written {
            Value::Object(members) if members.is_empty() => self.no_path(at, "an empty object"),
            Value::Array(entries) if entries.is_empty() => self.no_path(at, "an empty list"),
            Value::Object(members) => {
                for (name, member) in members {
                    self.parts(&format!("{at}/{}", token(name)), member, context);
                }
            }
            Value::Array(entries) => {
                for (index, entry) in entries.iter().enumerate() {
                    self.parts(&format!("{at}/{index}"), entry, context);
                }
            }
            Value::String(text) if as_optional_path(text).is_some() => self.text(at, text, context),
            Value::String(text) => self.path("collect", at, text, context),
            other => self.no_path(at, &other.to_string()),
        }
    }

    fn no_path(&mut self, at: &str, given: &str) {
        let message = format!("`collect` is made of `@paths`; {given} was given");
        let fault = Diagnostic::error(codes::UNKNOWN_VARIABLE, message, at, self.main.tree.place(at));
        let help = "name what is gathered: {\"id\": \"@row.id\", \"verdict\": \"@decide.verdict\"}";
        self.faults.push(fault.help(help));
    }

    /// A setting that must be an `@path`.
    pub(super) fn path(&mut self, name: &str, at: &str, path: &str, context: &Context) {
        if as_path(path).is_some() {
            return self.text(at, path, context);
        }
        // The schema reports an empty text.
        if path.is_empty() && at.ends_with(name) {
            return;
        }
        let example = match name {
            "collect" => "it names what is gathered of an item: `@finding.answer`",
            _ => "it names the list whose items are taken: `@input.customers`",
        };
        let message = format!("`{name}` must be an `@path`; the text {} was given", quoted(path));
        let fault = Diagnostic::error(codes::UNKNOWN_VARIABLE, message, at, self.main.tree.place(at));
        if let Some(meant) = documents::meant(path, self.project()).filter(|_| name == "items_path") {
            return self.faults.push(fault.help(format!("a document is written `{meant}`")).suggest(quoted(&meant)));
        }
        if let Some(key) = path.strip_suffix('?').filter(|key| as_path(key).is_some()) {
            let help = format!("a key of a step has no `?`: write `{key}`, which is null where no step wrote it");
            return self.faults.push(fault.help(help).suggest(quoted(key)));
        }
        let bare = path.trim().trim_start_matches('{').trim_end_matches('}').trim();
        let meant = format!("@{bare}");
        self.faults.push(match as_path(&meant) {
            Some(_) => fault.help("a path begins with `@`").suggest(quoted(&meant)),
            None => fault.help(example),
        });
    }
}
