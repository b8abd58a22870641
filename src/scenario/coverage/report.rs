//! The coverage of documents: how much of them played runs came to, and what none came to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::map::CoverageMap;
use super::points::{CoverageKind, CoveragePoint};
use crate::diagnostic::{Diagnostic, Source, sort_by_place};

/// The code of the reports of coverage.
const CODE: &str = "coverage";

/// The coverage of all documents that were tested.
#[derive(Debug, Default)]
pub struct CoverageReport {
    /// By file.
    pub documents: BTreeMap<Arc<str>, DocumentCoverage>,
}

#[derive(Debug, Default)]
pub struct DocumentCoverage {
    /// How many points it has.
    pub points: usize,
    /// How many of them runs came to.
    pub reached: usize,
    /// Those that none came to, in the order of the text: each place once.
    pub missing: Vec<Diagnostic>,
    /// Its text.
    pub source: Option<Source>,
}

impl CoverageReport {
    /// The coverage of documents by the runs that came to `reached`.
    pub fn new<'m>(maps: impl IntoIterator<Item = &'m CoverageMap>, reached: &BTreeSet<CoveragePoint>) -> Self {
        let mut report = Self::default();
        let mut known: BTreeSet<CoveragePoint> = BTreeSet::new();
        for map in maps {
            let points: Vec<CoveragePoint> = map.points().difference(&known).cloned().collect();
            known.extend(points.iter().cloned());
            let mut missing: BTreeMap<MissingAt<'_>, Vec<&CoveragePoint>> = BTreeMap::new();
            for point in &points {
                let document = report.documents.entry(Arc::clone(&point.file)).or_default();
                document.points += 1;
                if reached.contains(point) {
                    document.reached += 1;
                } else if let Some(place) = map.place(point) {
                    let name = if point.kind.is_by_name() { "" } else { point.name.as_str() };
                    let at = MissingAt { file: &point.file, start: place.start, kind: point.kind, name };
                    missing.entry(at).or_default().push(point);
                }
            }
            for points in missing.into_values() {
                if let Some((first, place)) = points.first().and_then(|first| Some((*first, map.place(first)?))) {
                    let fault = Diagnostic::warning(CODE, sentence(&points), first.pointer.as_str(), place);
                    report.documents.entry(Arc::clone(&first.file)).or_default().missing.push(fault);
                }
            }
            for tree in map.trees() {
                if let Some(document) = report.documents.get_mut(&tree.source.name) {
                    document.source = Some(tree.source.clone());
                }
            }
        }
        for document in report.documents.values_mut() {
            sort_by_place(&mut document.missing);
        }
        report
    }

    /// Adds a document that no scenario comes to: in one line, and with all of its points.
    pub fn add_untested(&mut self, map: &CoverageMap) {
        let Some(file) = map.file() else { return };
        let points = map.points_of_document().len();
        let source = map.trees().find(|tree| tree.source.name == *file).map(|tree| tree.source.clone());
        let place = source.as_ref().map(|source| source.place(0, 1));
        let missing = place.map(|place| Diagnostic::warning(CODE, "no scenario tests this document", "", place));
        let document = DocumentCoverage { points, reached: 0, missing: missing.into_iter().collect(), source };
        self.documents.entry(Arc::clone(file)).or_insert(document);
    }

    /// Adds a document that has errors, and so no points that are known: as one that nothing comes to.
    pub fn add_broken(&mut self, source: Source) {
        let place = source.place(0, 1);
        let missing = Diagnostic::warning(CODE, "the document has errors, and no scenario tests it", "", place);
        let file = Arc::clone(&source.name);
        let document = DocumentCoverage { points: 1, reached: 0, missing: vec![missing], source: Some(source) };
        self.documents.entry(file).or_insert(document);
    }

    /// How many points the documents have, and how many of them runs came to.
    pub fn total(&self) -> DocumentCoverage {
        let documents = self.documents.values();
        let sum = |of: fn(&DocumentCoverage) -> usize| documents.clone().map(of).sum();
        DocumentCoverage {
            points: sum(|document| document.points),
            reached: sum(|document| document.reached),
            ..DocumentCoverage::default()
        }
    }

    /// What no run came to, in the order of the files and their texts.
    pub fn missing(&self) -> impl Iterator<Item = &Diagnostic> {
        self.documents.values().flat_map(|document| &document.missing)
    }
}

impl DocumentCoverage {
    /// The share in percent, rounded down: only all of them are 100.
    pub fn percent(&self) -> usize {
        (self.reached * 100).checked_div(self.points).unwrap_or(100)
    }
}

/// What is reported together: points of a kind at a place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MissingAt<'p> {
    file: &'p Arc<str>,
    start: usize,
    kind: CoverageKind,
    name: &'p str,
}

/// What is said of the points at a place that no run came to.
fn sentence(points: &[&CoveragePoint]) -> String {
    let Some(first) = points.first() else { return String::new() };
    let what: Vec<String> = match first.kind.is_by_name() {
        true => points.iter().map(|point| format!("`{}`", point.name)).collect(),
        false => points.iter().map(|point| point.outcome.words().to_owned()).collect(),
    };
    let listed = match what.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        all => all.join(", "),
    };
    first.kind.sentence(&first.name, &listed)
}
