//! The report as JUnit's XML: a file is a suite, a scenario a case. The times are those of the played clock, so that the
//! same scenarios give the same text.

use std::fmt::Write as _;

use super::coverage::TestCoverage;
use super::{TestCounts, Tested, TestedFile};
use crate::diagnostic::Diagnostic;
use crate::scenario::{Measured, ScenarioVerdict};
use crate::trace::escape;

pub(super) fn report(tested: &Tested<'_>) -> String {
    let TestCounts { hold, fail, broken, .. } = TestCounts::of(tested.files);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all = hold + fail + broken;
    line(
        &mut xml,
        0,
        &format!("<testsuites name=\"loopctl\" tests=\"{all}\" failures=\"{fail}\" errors=\"{broken}\">"),
    );
    for file in tested.files {
        suite(&mut xml, file, tested.coverage.map(TestCoverage::percent));
    }
    line(&mut xml, 0, "</testsuites>");
    xml
}

/// A file. The coverage is that of all documents: a suite is where readers of reports look for properties.
fn suite(xml: &mut String, file: &TestedFile, coverage: Option<usize>) {
    let errors: Vec<&Diagnostic> = file.diagnostics.iter().filter(|fault| fault.is_error()).collect();
    let failures = file.verdicts.iter().filter(|verdict| !verdict.holds()).count();
    let (tests, broken) = (file.verdicts.len() + usize::from(!errors.is_empty()), usize::from(!errors.is_empty()));
    let name = attribute(&file.name);
    let head = format!("<testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{broken}\">");
    line(xml, 1, &head);
    if let Some(percent) = coverage {
        line(xml, 2, "<properties>");
        line(xml, 3, &format!("<property name=\"coverage\" value=\"{percent}\"/>"));
        line(xml, 2, "</properties>");
    }
    if !errors.is_empty() {
        line(xml, 2, &format!("<testcase classname=\"{name}\" name=\"the file can be played\">"));
        for error in errors {
            element(xml, "error", error);
        }
        line(xml, 2, "</testcase>");
    }
    for (verdict, failures) in file.each() {
        case(xml, &name, verdict, failures);
    }
    line(xml, 1, "</testsuite>");
}

fn case(xml: &mut String, suite: &str, verdict: &ScenarioVerdict, failures: &[Diagnostic]) {
    let seconds = verdict.measured.map_or(0.0, |measured| measured.seconds);
    let name = attribute(&verdict.name);
    line(xml, 2, &format!("<testcase classname=\"{suite}\" name=\"{name}\" time=\"{seconds:.3}\">"));
    if let Some(measured) = verdict.measured {
        properties(xml, &measured);
    }
    for failure in failures {
        element(xml, "failure", failure);
    }
    if !failures.is_empty() && !verdict.trace.is_empty() {
        line(xml, 3, &format!("<system-out>{}</system-out>", attribute(&verdict.trace.join("\n"))));
    }
    line(xml, 2, "</testcase>");
}

fn properties(xml: &mut String, measured: &Measured) {
    line(xml, 3, "<properties>");
    let mut property = |name: &str, value: String| {
        line(xml, 4, &format!("<property name=\"{name}\" value=\"{value}\"/>"));
    };
    property("iterations", measured.iterations.to_string());
    property("calls", measured.calls.to_string());
    property("tokens", measured.tokens.to_string());
    if let Some(cost) = measured.cost_usd {
        property("cost_usd", cost.to_string());
    }
    line(xml, 3, "</properties>");
}

fn element(xml: &mut String, name: &str, fault: &Diagnostic) {
    let place = &fault.place;
    let at = attribute(&format!("{}:{}:{}", place.file, place.line, place.column));
    let message = attribute(&fault.message);
    line(xml, 3, &format!("<{name} type=\"{}\" message=\"{message}\">{at}: {message}</{name}>", fault.code));
}

fn line(xml: &mut String, depth: usize, text: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(xml, "{}{text}", "  ".repeat(depth));
}

/// A text as it may be written in an attribute and in an element. What XML can't hold becomes a question mark, and what nobody sees
/// is shown by its number.
fn attribute(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let held: String = text.chars().map(|c| if c != '\n' && c.is_control() { '?' } else { c }).collect();
    for c in escape::report(&held).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' => safe.push_str("&#10;"),
            '\u{FFFE}' | '\u{FFFF}' => safe.push('?'),
            c => safe.push(c),
        }
    }
    safe
}
