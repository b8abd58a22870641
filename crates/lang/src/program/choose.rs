//! A compiled choice between lists of steps.

use std::sync::Arc;

use super::condition::CompiledCondition;
use super::denial::ChainLink;

/// The name of the steps that run when no case holds, in addresses.
pub const OTHERWISE: &str = "otherwise";

/// A choice. The steps of its cases follow it in its list.
#[derive(Debug)]
pub struct ChooseStep {
    /// The cases, in their order.
    pub cases: Vec<ChooseCase>,
    /// The keys that the steps write which run when no case holds; none without such steps.
    pub otherwise: Option<Vec<String>>,
}

/// A case of a choice.
#[derive(Debug)]
pub struct ChooseCase {
    /// Its steps run when this holds, and no case before it does.
    pub when: CompiledCondition,
    /// The keys that its steps write.
    pub writes: Vec<String>,
}

/// The case that a step is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseOf {
    /// The name of the choice in its list.
    pub choose: Arc<str>,
    /// The number of the case; that of `otherwise` follows the last one.
    pub case: usize,
}

impl ChooseStep {
    /// A case as addresses name it.
    pub fn name_of(&self, case: usize) -> String {
        if case < self.cases.len() { case.to_string() } else { OTHERWISE.to_owned() }
    }

    /// The cases as an approval before them sees them: each takes the place of the one before.
    pub(crate) fn links(&self) -> impl Iterator<Item = ChainLink<'_>> {
        let link = |filter, writes: &Vec<String>| ChainLink { asks: false, filter, writes: writes.clone() };
        let cases = self.cases.iter().map(move |case| link(Some(&case.when), &case.writes));
        cases.chain(self.otherwise.iter().map(move |writes| link(None, writes)))
    }
}
