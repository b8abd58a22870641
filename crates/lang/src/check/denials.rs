//! What rules see of the approvals of a list, and of the steps after them.

use serde::Deserialize as _;

use super::Subject;
use super::step_tree::StepNode;
use crate::language::Condition;
use crate::program::condition::CompiledCondition;
use crate::program::denial::ChainLink;

/// The type of an approval.
pub(super) const APPROVAL: &str = "PbotApproval";

/// A step, or one in its place, with its filter; of a choice, each of its cases is one.
pub(super) struct FilteredNode<'n, 'a> {
    pub node: &'n StepNode<'a>,
    /// Its filter; none also for one that has faults.
    pub filter: Option<CompiledCondition>,
    /// The JSON pointer of the filter.
    pub filter_at: String,
    /// The steps of the case.
    case: Option<&'n [StepNode<'a>]>,
}

impl<'n, 'a> FilteredNode<'n, 'a> {
    /// Whether it is an approval.
    pub fn asks(&self) -> bool {
        self.node.step.kind == APPROVAL
    }

    /// The steps inside it: those for each item, or those of the case.
    pub fn inside(&self) -> &'n [StepNode<'a>] {
        self.case.unwrap_or(&self.node.items)
    }

    /// What the approval says that a no does.
    pub fn on_rejected(&self) -> Option<&'a str> {
        self.node.step.text("on_rejected")
    }

    /// The name of the step in a sentence: its `id`, or its type.
    pub fn called(&self) -> String {
        let id = self.node.step.written.get("id").and_then(serde_json::Value::as_str);
        format!("`{}`", id.unwrap_or(self.node.step.kind))
    }
}

/// The steps of a list, each with those in its place; none when a filter has faults: these are reported, and what it says
/// is not known.
pub(super) fn chains<'n, 'a>(list: impl IntoIterator<Item = &'n StepNode<'a>>) -> Option<Vec<Vec<FilteredNode<'n, 'a>>>>
where
    'a: 'n,
{
    list.into_iter().map(chain).collect()
}

fn chain<'n, 'a>(first: &'n StepNode<'a>) -> Option<Vec<FilteredNode<'n, 'a>>> {
    let mut chain = Vec::new();
    let mut next = Some(first);
    while let Some(node) = next {
        for case in &node.cases {
            let filter = case.when.as_ref().map(|when| compiled(when.written).ok_or(()));
            let filter_at = case.when.as_ref().map(|when| when.at.clone()).unwrap_or_default();
            chain.push(FilteredNode { node, filter: filter.transpose().ok()?, filter_at, case: Some(&case.steps) });
        }
        if node.cases.is_empty() {
            let filter = node.step.filter().map(|written| compiled(written).ok_or(())).transpose().ok()?;
            let filter_at = format!("{}/filter/condition", node.step.at);
            chain.push(FilteredNode { node, filter, filter_at, case: None });
        }
        next = node.otherwise.as_deref();
    }
    Some(chain)
}

/// A condition; none when it has faults.
pub(super) fn compiled(written: &serde_json::Value) -> Option<CompiledCondition> {
    CompiledCondition::compile(&Condition::deserialize(written).ok()?).ok()
}

/// The same, as the compiler sees it.
pub(super) fn links<'l, 'a>(subject: &Subject<'a>, chain: &'l [FilteredNode<'_, 'a>]) -> Vec<ChainLink<'l>> {
    let link = |one: &'l FilteredNode<'_, 'a>| {
        let mut writes = one.node.step.writes(subject);
        for inner in one.inside() {
            inner.each(&mut Vec::new(), &mut |node, _| writes.extend(node.step.writes(subject)));
        }
        ChainLink { asks: one.asks(), filter: one.filter.as_ref(), writes }
    };
    chain.iter().map(link).collect()
}
