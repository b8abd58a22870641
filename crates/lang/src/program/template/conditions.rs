//! The conditions of a template, and which of their sides a rendering takes.

use super::node::TemplateNode;
use super::{Template, render};
use crate::program::scope::Scope;

/// A condition of a template that was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedCondition {
    /// Its number among the conditions of the template, from 0, in the order of the text.
    pub number: usize,
    /// Whether it held.
    pub holds: bool,
}

impl Template {
    /// What its conditions (`{{#if}}`, `{{#unless}}`, `{{else if}}`) ask for, in the order of the text.
    pub fn conditions(&self) -> Vec<&str> {
        let mut found = Vec::new();
        collect(&self.nodes, &mut found);
        found.into_iter().filter_map(asked).collect()
    }

    /// The conditions that a rendering with this scope judges, each as often as it comes to it.
    pub fn judged(&self, scope: &Scope<'_>) -> Vec<JudgedCondition> {
        let mut all = Vec::new();
        collect(&self.nodes, &mut all);
        if all.is_empty() {
            return Vec::new();
        }
        let number = |node: &TemplateNode| all.iter().position(|known| std::ptr::eq(*known, node));
        let judged = render::conditions(&self.nodes, scope).into_iter();
        judged.filter_map(|(node, holds)| Some(JudgedCondition { number: number(node)?, holds })).collect()
    }
}

fn asked(node: &TemplateNode) -> Option<&str> {
    match node {
        TemplateNode::If { test, .. } => Some(test.name()),
        _ => None,
    }
}

/// Collects conditions. A template is never deeper than its parser allows: the recursion ends.
fn collect<'n>(nodes: &'n [TemplateNode], found: &mut Vec<&'n TemplateNode>) {
    for node in nodes {
        match node {
            TemplateNode::Text(_) | TemplateNode::Secret(_) | TemplateNode::Print(_) => {}
            TemplateNode::If { then, other, .. } => {
                found.push(node);
                collect(then, found);
                collect(other, found);
            }
            TemplateNode::Each { body, other, .. } | TemplateNode::With { body, other, .. } => {
                collect(body, found);
                collect(other.as_deref().unwrap_or_default(), found);
            }
        }
    }
}
