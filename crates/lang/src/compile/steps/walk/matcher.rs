//! Matchers: what is known of the entries of their two lists.

use serde_json::Value;

use super::{ListSource, Walk, output};
use crate::compile::context::Context;
use crate::compile::documents;
use crate::program::reference::as_path;

/// The type of the built-in matcher, and the kind of actions that are matchers.
pub(super) const MATCHER: &str = "matcher";

impl Walk<'_, '_, '_> {
    /// Notes the schemas of the entries of the two lists of a matcher, and which list may be cut, by the JSON pointer of its step.
    /// `action` is the registered one that the step calls: the lists that the step does not give are written there.
    pub(super) fn matched_lists(
        &mut self,
        step: &str,
        properties: Option<&Value>,
        action: Option<&Value>,
        context: &Context,
    ) -> [Value; 2] {
        let mut cut = Vec::new();
        let mut side = |name: &str| {
            let given = properties.and_then(|properties| properties.get(name));
            let written = given.or_else(|| action?.get(name));
            if let Some(list @ Value::Array(_)) = written {
                return output::items(Some(&documents::of_literal(list)));
            }
            // A path in an action is one into the input of the call.
            let path = given.and_then(|given| as_path(given.as_str()?));
            let list = path.and_then(|path| self.schema(&path, context));
            let source = list.and_then(ListSource::of_schema);
            cut.extend(source.map(|source| (format!("{step}/properties/{name}"), source)));
            output::items(list)
        };
        let lists = ["left", "right"].map(&mut side);
        self.steps.cut_lists.append(&mut cut);
        self.steps.matchers.insert(step.to_owned(), lists.clone());
        lists
    }
}
