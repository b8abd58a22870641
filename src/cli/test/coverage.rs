//! The coverage of the documents that scenarios test: for people, and for programs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::report;
use crate::diagnostic::{Diagnostic, Source};
use crate::project::load::load;
use crate::scenario::{CoverageMap, CoverageReport, DocumentCoverage};
use crate::trace::{Look, Tone, escape};

/// The coverage, and what is asked of it.
pub(super) struct TestCoverage {
    pub report: CoverageReport,
    /// The least share in percent.
    pub minimum: u8,
}

impl TestCoverage {
    /// Whether it is what is asked.
    pub fn is_enough(&self) -> bool {
        let DocumentCoverage { points, reached, .. } = self.report.total();
        reached * 100 >= points * usize::from(self.minimum)
    }

    /// The share of all documents together in percent.
    pub fn percent(&self) -> usize {
        self.report.total().percent()
    }

    /// What no scenario comes to, as `check` shows it, and the share of each document.
    pub fn text(&self, look: &Look) -> String {
        let documents = || self.report.documents.iter();
        let sources: Vec<Source> = documents().filter_map(|(_, document)| document.source.clone()).collect();
        let missing: Vec<Diagnostic> = self.report.missing().cloned().collect();
        let mut text = String::from("\n") + &report::each(&missing, &sources, look);
        for (file, document) in documents() {
            let tone = if document.missing.is_empty() { Tone::Good } else { Tone::Warn };
            let share = look.paint(tone, &shown(document));
            text.push_str(&format!("{}: {share}\n", escape::line(file)));
        }
        let total = self.report.total();
        if self.report.documents.len() > 1 {
            text.push_str(&format!("all documents: {}\n", shown(&total)));
        }
        if !self.is_enough() {
            let line = format!("the coverage of {} percent is under the minimum of {}", total.percent(), self.minimum);
            text.push_str(&look.paint(Tone::Bad, &line));
            text.push('\n');
        }
        text
    }

    /// The same for programs.
    pub fn json(&self) -> JsonCoverage<'_> {
        let DocumentCoverage { points, reached, .. } = self.report.total();
        let documents = self.report.documents.iter().map(|(file, document)| JsonDocument {
            document: file,
            percent: document.percent(),
            reached: document.reached,
            points: document.points,
            missing: document.missing.iter().map(JsonMissing::from).collect(),
        });
        JsonCoverage { percent: self.percent(), reached, points, minimum: self.minimum, documents: documents.collect() }
    }
}

/// Adds the documents that no scenario comes to. One with errors has no points: it counts as one point that nothing comes to, or
/// breaking a document would raise the coverage.
pub(super) fn untested(report: &mut CoverageReport, documents: &[PathBuf]) {
    let real = |file: &str| Path::new(file).canonicalize().ok();
    let known: BTreeSet<PathBuf> = report.documents.keys().filter_map(|file| real(file)).collect();
    let is_known = |path: &&PathBuf| path.canonicalize().is_ok_and(|real| known.contains(&real));
    for path in documents.iter().filter(|path| !is_known(path)) {
        match load(path, &[]) {
            Ok(loaded) => report.add_untested(&CoverageMap::of(&loaded.program)),
            Err(faults) => {
                let text = faults.sources.into_iter().find(|source| Path::new(&*source.name) == path.as_path());
                text.into_iter().for_each(|source| report.add_broken(source));
            }
        }
    }
}

/// `83 percent (25 of 30)`.
fn shown(document: &DocumentCoverage) -> String {
    format!("coverage {} percent ({} of {})", document.percent(), document.reached, document.points)
}

/// The coverage in a report for programs.
#[derive(Serialize)]
pub(super) struct JsonCoverage<'a> {
    percent: usize,
    reached: usize,
    points: usize,
    minimum: u8,
    documents: Vec<JsonDocument<'a>>,
}

#[derive(Serialize)]
struct JsonDocument<'a> {
    document: &'a str,
    percent: usize,
    reached: usize,
    points: usize,
    /// What no scenario comes to.
    missing: Vec<JsonMissing<'a>>,
}

#[derive(Serialize)]
struct JsonMissing<'a> {
    message: &'a str,
    path: &'a str,
    line: u32,
    column: u32,
}

impl<'a> From<&'a Diagnostic> for JsonMissing<'a> {
    fn from(fault: &'a Diagnostic) -> Self {
        let Diagnostic { message, path, place, .. } = fault;
        Self { message, path, line: place.line, column: place.column }
    }
}
