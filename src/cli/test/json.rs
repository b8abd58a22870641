//! The report as JSON.

use serde::Serialize;

use super::coverage::JsonCoverage;
use super::{TestCounts, Tested};
use crate::diagnostic::Diagnostic;
use crate::scenario::{LiveCount, ScenarioVerdict};
use crate::trace::escape;

#[derive(Serialize)]
struct JsonReport<'a> {
    scenarios: usize,
    hold: usize,
    fail: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<JsonCoverage<'a>>,
    files: Vec<JsonFile<'a>>,
}

#[derive(Serialize)]
struct JsonFile<'a> {
    file: &'a str,
    /// Errors and warnings of the file itself.
    diagnostics: &'a [Diagnostic],
    scenarios: Vec<JsonScenario<'a>>,
}

#[derive(Serialize)]
struct JsonScenario<'a> {
    name: &'a str,
    holds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<JsonLive>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    failures: Vec<JsonFailure<'a>>,
}

/// In how many live plays all holds. What they needed is above, for all of them together.
#[derive(Serialize)]
struct JsonLive {
    hold: u32,
    of: u32,
}

#[derive(Serialize)]
struct JsonFailure<'a> {
    /// What was expected, in a word.
    expectation: &'a str,
    message: &'a str,
    path: &'a str,
    line: u32,
    column: u32,
}

pub(super) fn report(tested: &Tested<'_>) -> String {
    let TestCounts { hold, fail, .. } = TestCounts::of(tested.files);
    let coverage = tested.coverage.map(|coverage| coverage.json());
    let files = tested.files.iter().map(|file| JsonFile {
        file: &file.name,
        diagnostics: &file.diagnostics,
        scenarios: file.each().map(|(verdict, failures)| scenario(verdict, failures)).collect(),
    });
    let report = JsonReport { scenarios: hold + fail, hold, fail, coverage, files: files.collect() };
    escape::json(&serde_json::to_string_pretty(&report).unwrap_or_default()).into_owned() + "\n"
}

fn scenario<'a>(verdict: &'a ScenarioVerdict, failures: &'a [Diagnostic]) -> JsonScenario<'a> {
    let measured = verdict.measured;
    JsonScenario {
        name: &verdict.name,
        holds: verdict.holds(),
        iterations: measured.map(|measured| measured.iterations),
        calls: measured.map(|measured| measured.calls),
        tokens: measured.map(|measured| measured.tokens),
        cost_usd: measured.and_then(|measured| measured.cost_usd),
        seconds: measured.map(|measured| measured.seconds),
        live: verdict.live.map(|LiveCount { hold, of }| JsonLive { hold, of }),
        notes: &verdict.notes,
        failures: failures
            .iter()
            .map(|failure| JsonFailure {
                expectation: failure.code,
                message: &failure.message,
                path: &failure.path,
                line: failure.place.line,
                column: failure.place.column,
            })
            .collect(),
    }
}
