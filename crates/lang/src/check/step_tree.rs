//! The steps of a document as a tree, for rules that need their order and what is around them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Subject;
use super::steps::{WrittenStep, steps};
use crate::syntax::document::DocumentKind;

pub(super) struct StepNode<'a> {
    pub step: WrittenStep<'a>,
    /// The step in its place when its filter does not hold.
    pub otherwise: Option<Box<StepNode<'a>>>,
    /// The steps for each item, of a loop of mode `foreach`.
    pub items: Vec<StepNode<'a>>,
}

/// The steps of a document; none where a part of it could not be read, which may be a step.
pub(super) fn tree<'a>(subject: &Subject<'a>) -> Vec<StepNode<'a>> {
    let document = subject.document();
    if subject.is_step() || !subject.is_whole() {
        return Vec::new();
    }
    let mut unplaced: BTreeMap<&str, WrittenStep<'a>> =
        steps(subject).into_iter().map(|step| (step.at, step)).collect();
    match document.kind {
        Some(DocumentKind::Workflow) => {
            list(&mut unplaced, "/definition/actions", document.value.pointer("/definition/actions"))
        }
        // The document is the step.
        Some(DocumentKind::Loop) => node(&mut unplaced, "").into_iter().collect(),
        _ => Vec::new(),
    }
}

fn list<'a>(
    unplaced: &mut BTreeMap<&str, WrittenStep<'a>>,
    pointer: &str,
    written: Option<&Value>,
) -> Vec<StepNode<'a>> {
    let count = written.and_then(Value::as_array).map_or(0, Vec::len);
    (0..count).filter_map(|number| node(unplaced, &format!("{pointer}/{number}"))).collect()
}

/// A document is never deeper than its reader allows: the recursion ends.
fn node<'a>(unplaced: &mut BTreeMap<&str, WrittenStep<'a>>, at: &str) -> Option<StepNode<'a>> {
    let step = unplaced.remove(at)?;
    let inner = step.properties.get("actions_to_execute").filter(|_| step.is_foreach());
    let items = list(unplaced, &format!("{at}/properties/actions_to_execute"), inner);
    let otherwise = node(unplaced, &format!("{at}/onFalse")).map(Box::new);
    Some(StepNode { step, otherwise, items })
}

impl<'a> StepNode<'a> {
    /// Visits it, the steps in it, and those in its place. `around` are the loops around a step, the outermost first.
    pub fn each<'n>(&'n self, around: &mut Vec<&'n StepNode<'a>>, visit: &mut dyn FnMut(&'n Self, &[&'n Self])) {
        visit(self, around);
        around.push(self);
        self.items.iter().for_each(|node| node.each(around, visit));
        around.pop();
        if let Some(other) = &self.otherwise {
            other.each(around, visit);
        }
    }

    /// Visits the steps for each item, of a loop of mode `foreach`.
    pub fn each_inside<'n>(&'n self, visit: &mut dyn FnMut(&'n Self)) {
        self.items.iter().for_each(|node| node.each(&mut Vec::new(), &mut |inner, _| visit(inner)));
    }
}

/// Visits each list of steps: that of the document, and those of its loops.
pub(super) fn each_list<'n, 'a>(nodes: &'n [StepNode<'a>], visit: &mut dyn FnMut(&'n [StepNode<'a>])) {
    visit(nodes);
    for node in nodes {
        let mut next = Some(node);
        while let Some(node) = next {
            if !node.items.is_empty() {
                each_list(&node.items, visit);
            }
            next = node.otherwise.as_deref();
        }
    }
}
