//! Lowers choices: the steps of the cases follow the choice in its list, each with its case.

use std::sync::Arc;

use super::FlowLowering;
use crate::language::Step;
use crate::language::step::Choose;
use crate::program::choose::{CaseOf, ChooseCase, ChooseStep, OTHERWISE};
use crate::program::condition::CompiledCondition;
use crate::program::flow::{FlowStep, ON_FAILURE, each_step};

/// The case that steps are in; of the steps of a document or an item, none.
#[derive(Debug, Default)]
pub(super) struct CasePlace {
    /// What precedes their names in addresses: `route.0.`.
    pub prefix: String,
    /// The cases, the outermost first.
    pub within: Vec<CaseOf>,
}

impl CasePlace {
    /// That of the steps which run when their list has failed: they are as a case that the failure chooses.
    pub fn on_failure() -> Self {
        let of = CaseOf { choose: Arc::from(ON_FAILURE), case: 0 };
        Self { prefix: format!("{ON_FAILURE}."), within: vec![of] }
    }
}

/// A choice and its place.
pub(super) struct PlacedChoice<'p> {
    /// Its JSON pointer.
    pub at: &'p str,
    /// Its name in its list.
    pub name: &'p str,
    /// The case that it is in.
    pub around: &'p CasePlace,
}

impl FlowLowering<'_, '_> {
    /// Lowers a choice, and adds the steps of its cases to those inside.
    pub(super) fn choose(
        &mut self,
        place: &PlacedChoice<'_>,
        choose: &Choose,
        inside: &mut Vec<FlowStep>,
    ) -> Option<ChooseStep> {
        let mut cases = Some(Vec::with_capacity(choose.cases.len()));
        for (number, case) in choose.cases.iter().enumerate() {
            let pointer = format!("{}/cases/{number}/steps", place.at);
            let writes = self.case(
                place,
                &ListOfCase { number, name: &number.to_string(), pointer, steps: &case.steps },
                inside,
            );
            let compiled = CompiledCondition::compile(&case.when).ok().zip(writes);
            let compiled = compiled.map(|(when, writes)| ChooseCase { when, writes });
            cases = cases.zip(compiled).map(|(mut cases, case)| {
                cases.push(case);
                cases
            });
        }
        let otherwise = match &choose.otherwise {
            Some(steps) => {
                let pointer = format!("{}/otherwise", place.at);
                let list = ListOfCase { number: choose.cases.len(), name: OTHERWISE, pointer, steps };
                Some(self.case(place, &list, inside)?)
            }
            None => None,
        };
        Some(ChooseStep { cases: cases?, otherwise })
    }

    /// Lowers the steps of a case. Returns the keys that they write.
    fn case(
        &mut self,
        place: &PlacedChoice<'_>,
        list: &ListOfCase<'_>,
        inside: &mut Vec<FlowStep>,
    ) -> Option<Vec<String>> {
        let of = CaseOf { choose: Arc::from(place.name), case: list.number };
        let within = place.around.within.iter().cloned().chain([of]).collect();
        let around = CasePlace { prefix: format!("{}.{}.", place.name, list.name), within };
        let mut lowered = Vec::with_capacity(list.steps.len());
        self.steps_of(&list.pointer, list.steps, &around, &mut lowered)?;
        let mut writes = Vec::new();
        each_step(&lowered, &mut |step| writes.extend(step.written_keys()));
        inside.append(&mut lowered);
        Some(writes)
    }
}

/// The steps of a case as they are written.
struct ListOfCase<'l> {
    number: usize,
    name: &'l str,
    pointer: String,
    steps: &'l [Step],
}
