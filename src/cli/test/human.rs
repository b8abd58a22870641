//! The report for people: each scenario in a line, and what does not hold as `check` shows it, with the calls around it.

use super::coverage::TestCoverage;
use super::{TestCounts, TestedFile};
use crate::cli::report;
use crate::diagnostic::Diagnostic;
use crate::scenario::{LiveCount, ScenarioVerdict};
use crate::trace::units::{dollars, plural};
use crate::trace::{Look, Tone, escape};

/// How many calls are shown before and after the one that a failure is about.
const CALLS_AROUND: usize = 1;

pub(super) fn report(files: &[TestedFile], counts: TestCounts, coverage: Option<&TestCoverage>, look: &Look) -> String {
    let mut text = String::new();
    for file in files {
        if !file.verdicts.is_empty() {
            text.push_str(&look.paint(Tone::Bold, &escape::line(&file.name)));
            text.push('\n');
        }
        let sources = [file.source.clone()];
        text.push_str(&report::each(&file.diagnostics, &sources, look));
        for (verdict, failures) in file.each() {
            text.push_str(&headline(verdict, look));
            let mut shown = None;
            for (failure, placed) in verdict.failures.iter().zip(failures) {
                let mut lines = failure.message.lines();
                let first = lines.next().unwrap_or_default().to_owned();
                text.push_str(&one(&Diagnostic { message: first, ..placed.clone() }, file, look));
                for line in lines {
                    text.push_str(&format!("  {}\n", escape::line(line)));
                }
                if shown != Some(failure.near) {
                    text.push_str(&around(&verdict.trace, failure.near, look));
                    shown = Some(failure.near);
                }
                text.push('\n');
            }
        }
    }
    if let Some(coverage) = coverage {
        text.push_str(&coverage.text(look));
    }
    text.push_str(&summary(counts, look));
    text
}

fn headline(verdict: &ScenarioVerdict, look: &Look) -> String {
    let (mark, tone) = if verdict.holds() { ("✓", Tone::Good) } else { ("✗", Tone::Bad) };
    let mut line = format!("  {} {}", look.paint(tone, mark), escape::line(&verdict.name));
    if let Some(measured) = verdict.measured.filter(|_| verdict.holds()) {
        let calls = plural(measured.calls, "call");
        line.push_str(&look.paint(Tone::Dim, &format!("  ({calls})")));
    }
    if let Some(LiveCount { hold, of }) = verdict.live {
        let cost = verdict.measured.and_then(|measured| measured.cost_usd);
        let cost = cost.map_or_else(String::new, |usd| format!(", {}", dollars(usd)));
        line.push_str(&look.paint(Tone::Dim, &format!("  {hold} of {of} hold{cost}")));
    }
    for note in &verdict.notes {
        line.push_str(&format!("\n    {}", look.paint(Tone::Dim, &escape::line(note))));
    }
    if let Some(written) = &verdict.written {
        let path = written.path.display().to_string();
        line.push_str(&look.paint(Tone::Accent, &format!("  wrote {}", escape::line(&path))));
    }
    line.push('\n');
    line
}

fn one(failure: &Diagnostic, file: &TestedFile, look: &Look) -> String {
    let sources = [file.source.clone()];
    report::each(std::slice::from_ref(failure), &sources, look).trim_end().to_owned() + "\n"
}

/// The calls around the one that a failure is about, or the last ones.
fn around(trace: &[String], near: Option<usize>, look: &Look) -> String {
    let last = trace.len().saturating_sub(2 * CALLS_AROUND + 1);
    let first = near.map_or(last, |near| near.saturating_sub(CALLS_AROUND).min(last));
    let mut text = String::new();
    for (at, line) in trace.iter().enumerate().skip(first).take(2 * CALLS_AROUND + 1) {
        let mark = if Some(at) == near { ">" } else { " " };
        text.push_str(&look.paint(Tone::Dim, &format!("   {mark} {line}")));
        text.push('\n');
    }
    text
}

/// `7 scenarios in 2 files: all hold`.
fn summary(counts: TestCounts, look: &Look) -> String {
    let TestCounts { files, broken, hold, fail } = counts;
    let all = format!("{} in {}", plural(hold + fail, "scenario"), plural(files, "file"));
    let mut text = match (hold, fail) {
        (0, 0) => look.paint(Tone::Bad, "no scenario was played"),
        (_, 0) => look.paint(Tone::Good, &format!("{all}: all hold")),
        (hold, fail) => {
            let fails = if fail == 1 { "1 does not hold".to_owned() } else { format!("{fail} do not hold") };
            let holds = if hold == 1 { "1 holds".to_owned() } else { format!("{hold} hold") };
            format!("{all}: {}, {holds}", look.paint(Tone::Bad, &fails))
        }
    };
    if broken > 0 {
        let broken =
            format!("; {} with errors {} not played", plural(broken, "file"), if broken == 1 { "was" } else { "were" });
        text.push_str(&look.paint(Tone::Bad, &broken));
    }
    text + "\n"
}
