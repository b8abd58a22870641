//! The catalog: the registered actions and their places.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::Texts;
use crate::diagnostic::{Diagnostic, Place, codes};
use crate::language::Action;
use crate::syntax::document::{Document, DocumentKind};

/// The documents in which actions are looked up, besides the main one.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    /// Those beside the document, the nearest first.
    pub beside: Vec<Arc<Document>>,
    /// Those of `--actions`.
    pub given: Vec<Arc<Document>>,
    /// The workflows beside the document: read when a tool names one.
    workflows: OnceLock<Vec<Arc<Document>>>,
}

impl Shelf {
    /// Reads the documents.
    pub(crate) fn read(texts: &Texts) -> Self {
        let read = |source| texts.readings.document(source);
        let beside = texts.actions.iter().map(read).collect();
        Self { beside, given: texts.extra_actions.iter().map(read).collect(), workflows: OnceLock::new() }
    }

    /// The workflows beside the document, and those of `--actions`.
    pub(crate) fn workflows(&self, texts: &Texts) -> Vec<&Document> {
        let beside = self
            .workflows
            .get_or_init(|| texts.workflows.iter().map(|source| texts.readings.document(source)).collect());
        let given = self.given.iter().filter(|document| document.kind == Some(DocumentKind::Workflow));
        let mut all: Vec<&Document> = beside.iter().map(|document| &**document).collect();
        for document in given {
            if !all.iter().any(|known| known.tree.source.name == document.tree.source.name) {
                all.push(document);
            }
        }
        all
    }

    /// The faults of the files of `--actions`: they are always reported.
    pub(crate) fn faults_of_given(&self) -> Vec<Diagnostic> {
        let mut faults = Vec::new();
        for document in &self.given {
            faults.extend(document.faults.iter().cloned());
            // A loop or a workflow is no fault: it may be called. If it was given for its actions, the missing ones are
            // reported.
            if !matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::Workflow)) {
                faults.extend(no_actions(document));
            }
        }
        faults
    }
}

/// The fault of a document that contains no actions, if it has another kind.
pub(super) fn no_actions(document: &Document) -> Option<Diagnostic> {
    let kind = document.kind.filter(|kind| *kind != DocumentKind::Actions)?;
    let message = format!("an actions document was expected; this is {}", kind.called());
    Some(Diagnostic::error(codes::NO_LOOP, message, "", document.tree.source.whole()))
}

/// A registered action and its place.
#[derive(Clone, Copy)]
pub(crate) struct Registered<'a> {
    /// The document that holds it.
    pub document: &'a Document,
    /// Its index in `actions` or in the document's array; none for a document of one action.
    index: Option<usize>,
    /// Whether it is one of the loop's own `actions`.
    pub own: bool,
    pub name: &'a str,
    /// The action.
    pub value: &'a Value,
}

impl Registered<'_> {
    /// What it does; nothing when it can't be read.
    pub(crate) fn read(&self) -> Option<Arc<Action>> {
        self.document.action(self.index, self.value)
    }

    /// Its JSON pointer in its document.
    pub(crate) fn pointer(&self) -> String {
        let array = if self.own { "/actions" } else { "" };
        self.index.map_or_else(|| array.to_owned(), |index| format!("{array}/{index}"))
    }

    /// The place of its name.
    pub(crate) fn place(&self) -> Place {
        self.document.tree.place(&format!("{}/action_name", self.pointer()))
    }
}

/// All registered actions, the nearest first.
#[derive(Default)]
pub(crate) struct Catalog<'a> {
    /// The actions.
    pub all: Vec<Registered<'a>>,
    /// The same sorted by name; actions with the same name keep their order.
    by_name: Vec<Registered<'a>>,
}

impl<'a> Catalog<'a> {
    /// The actions of the document, of those beside it, and of the files of `--actions`.
    pub(crate) fn new(main: &'a Document, shelf: &'a Shelf) -> Self {
        let mut all = Vec::new();
        if let Some(own) = main.value.get("actions").and_then(Value::as_array) {
            all.extend(own.iter().enumerate().filter_map(|(index, value)| registered(main, Some(index), true, value)));
        }
        for document in shelf.beside.iter().chain(&shelf.given) {
            all.extend(Self::of_actions(document));
        }
        let mut by_name = all.clone();
        by_name.sort_by_key(|action| action.name);
        Self { all, by_name }
    }

    pub(crate) fn of_actions(document: &'a Document) -> Vec<Registered<'a>> {
        match (document.kind, &document.value) {
            (Some(DocumentKind::Actions), Value::Array(items)) => {
                let items = items.iter().enumerate();
                items.filter_map(|(index, value)| registered(document, Some(index), false, value)).collect()
            }
            (Some(DocumentKind::Actions), value) => registered(document, None, false, value).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Every action of this exact name. An action without a name that can be read has none.
    pub(crate) fn find(&self, name: &str) -> &[Registered<'a>] {
        if name.is_empty() {
            return &[];
        }
        let from = self.by_name.partition_point(|action| action.name < name);
        let rest = self.by_name.get(from..).unwrap_or_default();
        let to = rest.partition_point(|action| action.name == name);
        rest.get(..to).unwrap_or_default()
    }

    /// The first two actions of this exact name: where there are two, none is meant.
    pub(crate) fn first_two(&self, name: &str) -> Vec<Registered<'a>> {
        self.find(name).iter().take(2).copied().collect()
    }
}

pub(super) fn registered<'a>(
    document: &'a Document,
    index: Option<usize>,
    own: bool,
    value: &'a Value,
) -> Option<Registered<'a>> {
    let name = value.get("action_name").and_then(Value::as_str)?;
    Some(Registered { document, index, own, name, value })
}
