//! The steps of a document as a tree, for rules that need their order and what is around them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Subject;
use super::steps::{WrittenStep, steps};
use crate::compile::steps::case_lists;
use crate::program::flow::ON_FAILURE;
use crate::syntax::document::DocumentKind;

pub(super) struct StepNode<'a> {
    pub step: WrittenStep<'a>,
    /// The step in its place when its filter does not hold.
    pub otherwise: Option<Box<StepNode<'a>>>,
    /// The steps for each item, of a loop of mode `foreach`.
    pub items: Vec<StepNode<'a>>,
    /// The cases of a choice, `otherwise` last.
    pub cases: Vec<CaseNode<'a>>,
    /// Whether it runs when its list has failed: such steps are behind the others.
    pub is_for_failure: bool,
}

/// The steps of a list, and those that run when it has failed.
pub(super) fn with_failure<'n, 'a>(list: &'n [StepNode<'a>]) -> (&'n [StepNode<'a>], &'n [StepNode<'a>]) {
    list.split_at(list.iter().take_while(|node| !node.is_for_failure).count())
}

/// A case of a choice.
pub(super) struct CaseNode<'a> {
    /// The JSON pointer of its condition, and the condition; none of `otherwise`.
    pub when: Option<CaseCondition<'a>>,
    /// Its steps.
    pub steps: Vec<StepNode<'a>>,
}

/// The condition of a case.
pub(super) struct CaseCondition<'a> {
    /// Its JSON pointer.
    pub at: String,
    /// As it is written.
    pub written: &'a Value,
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
            let at = |pointer: &str| document.value.pointer(pointer);
            let mut nodes = list(&mut unplaced, "/definition/actions", at("/definition/actions"));
            nodes.extend(failure_list(&mut unplaced, "/definition/on_failure", at("/definition/on_failure")));
            nodes
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

/// The steps that run when a list has failed.
fn failure_list<'a>(
    unplaced: &mut BTreeMap<&str, WrittenStep<'a>>,
    pointer: &str,
    written: Option<&Value>,
) -> impl Iterator<Item = StepNode<'a>> + use<'a> {
    list(unplaced, pointer, written).into_iter().map(|node| StepNode { is_for_failure: true, ..node })
}

/// A document is never deeper than its reader allows: the recursion ends.
fn node<'a>(unplaced: &mut BTreeMap<&str, WrittenStep<'a>>, at: &str) -> Option<StepNode<'a>> {
    let step = unplaced.remove(at)?;
    let inner = step.properties.get("actions_to_execute").filter(|_| step.is_foreach());
    let mut items = list(unplaced, &format!("{at}/properties/actions_to_execute"), inner);
    let failed = step.properties.get(ON_FAILURE).filter(|_| step.is_foreach());
    items.extend(failure_list(unplaced, &format!("{at}/properties/{ON_FAILURE}"), failed));
    let mut cases = Vec::new();
    for case in case_lists(step.written) {
        let when = case.when.and_then(|when| {
            let written = step.written.pointer(&when)?;
            Some(CaseCondition { at: format!("{at}{when}"), written })
        });
        cases.push(CaseNode { when, steps: list(unplaced, &format!("{at}{}", case.pointer), Some(case.steps)) });
    }
    let otherwise = node(unplaced, &format!("{at}/onFalse")).map(Box::new);
    Some(StepNode { step, otherwise, items, cases, is_for_failure: false })
}

impl<'a> StepNode<'a> {
    /// Visits it, the steps in it, and those in its place. `around` are the loops around a step, the outermost first.
    pub fn each<'n>(&'n self, around: &mut Vec<&'n StepNode<'a>>, visit: &mut dyn FnMut(&'n Self, &[&'n Self])) {
        visit(self, around);
        around.push(self);
        self.items.iter().for_each(|node| node.each(around, visit));
        around.pop();
        self.cases.iter().flat_map(|case| &case.steps).for_each(|node| node.each(around, visit));
        if let Some(other) = &self.otherwise {
            other.each(around, visit);
        }
    }

    /// Visits the steps for each item, of a loop of mode `foreach`, or those of the cases of a choice.
    pub fn each_inside<'n>(&'n self, visit: &mut dyn FnMut(&'n Self)) {
        let inner = self.items.iter().chain(self.cases.iter().flat_map(|case| &case.steps));
        inner.for_each(|node| node.each(&mut Vec::new(), &mut |inner, _| visit(inner)));
    }

    /// The conditions that say whether it runs, or which of its cases does, each with its JSON pointer.
    pub fn conditions(&self) -> Vec<CaseCondition<'a>> {
        let own = self.step.filter();
        let own = own.map(|written| CaseCondition { at: format!("{}/filter/condition", self.step.at), written });
        let cases = self.cases.iter().filter_map(|case| case.when.as_ref());
        let cases = cases.map(|when| CaseCondition { at: when.at.clone(), written: when.written });
        own.into_iter().chain(cases).collect()
    }
}

/// The steps of a list, and those that run after its end: behind the choice that it is a case of.
#[derive(Clone, Copy)]
pub(super) struct RunList<'l, 'n, 'a> {
    /// All of them.
    pub nodes: &'l [&'n StepNode<'a>],
    /// How many of them are of the list itself.
    pub own: usize,
}

/// Visits each list of steps: that of the document, those of its loops, and those of its cases.
pub(super) fn each_list<'n, 'a>(nodes: &'n [StepNode<'a>], visit: &mut dyn FnMut(RunList<'_, 'n, 'a>)) {
    lists_of(nodes, visit);
}

fn lists_of<'n, 'a>(list: &'n [StepNode<'a>], visit: &mut dyn FnMut(RunList<'_, 'n, 'a>)) {
    let (own, failed) = with_failure(list);
    for list in [own, failed] {
        if !list.is_empty() {
            list_of(list, &[], visit);
        }
    }
}

/// A document is never deeper than its reader allows: the recursion ends.
fn list_of<'n, 'a>(own: &'n [StepNode<'a>], later: &[&'n StepNode<'a>], visit: &mut dyn FnMut(RunList<'_, 'n, 'a>)) {
    let nodes: Vec<&'n StepNode<'a>> = own.iter().chain(later.iter().copied()).collect();
    visit(RunList { nodes: &nodes, own: own.len() });
    for (number, first) in own.iter().enumerate() {
        let mut next = Some(first);
        while let Some(node) = next {
            lists_of(&node.items, visit);
            for case in &node.cases {
                list_of(&case.steps, nodes.get(number.saturating_add(1)..).unwrap_or_default(), visit);
            }
            next = node.otherwise.as_deref();
        }
    }
}
