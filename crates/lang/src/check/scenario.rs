//! Rules over a file of scenarios and the document that it tests.

pub mod endings;
mod matchers;
mod names;
mod playability;

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, few_of_many, sort_by_place};
use crate::language::scenario::Expectations;
use crate::language::{Recording, ScenarioFile, Script};
use crate::program::Program;
use crate::syntax::document::Document;

/// A file of scenarios, with what it names.
pub struct ScenarioSubject<'a> {
    /// The parsed file.
    pub document: &'a Document,
    /// What it says.
    pub file: &'a ScenarioFile,
    /// The document that is tested; none when it can't be run.
    pub program: Option<&'a Program>,
    /// The scripts that scenarios name, by the place of the scenario.
    pub scripts: &'a BTreeMap<usize, Script>,
    /// The recordings that scenarios name, by the place of the scenario.
    pub recordings: &'a BTreeMap<usize, Recording>,
}

/// Expectations, and the JSON pointer of their place.
struct PlacedExpectations<'a> {
    at: String,
    expect: &'a Expectations,
}

impl<'a> ScenarioSubject<'a> {
    fn expectations(&self) -> Vec<PlacedExpectations<'a>> {
        let scenarios = self.file.scenarios.iter().enumerate();
        scenarios
            .flat_map(|(index, scenario)| {
                let at = |key: &str| format!("/scenarios/{index}/{key}");
                let own = PlacedExpectations { at: at("expect"), expect: &scenario.expect };
                let under = scenario.under_faults.as_ref();
                let under = under.map(|expect| PlacedExpectations { at: at("under_faults"), expect });
                std::iter::once(own).chain(under)
            })
            .collect()
    }

    /// An error about a value.
    fn error(&self, code: &'static str, pointer: String, message: String) -> Diagnostic {
        let place = self.document.tree.place(&pointer);
        Diagnostic::error(code, message, pointer, place)
    }

    /// A warning about a value.
    fn warning(&self, code: &'static str, pointer: String, message: String) -> Diagnostic {
        let place = self.document.tree.place(&pointer);
        Diagnostic::warning(code, message, pointer, place)
    }
}

/// What the rules report about a file of scenarios.
pub fn judge(subject: &ScenarioSubject<'_>, found: &mut Vec<Diagnostic>) {
    for rule in [playability::check, matchers::check, names::check, endings::check] {
        rule(subject, found);
        few_of_many(found);
    }
    sort_by_place(found);
}
