//! How judging grows with the size of a document: one construct of the language, doubled from 1,000 to
//! 64,000 times, and the report of what was found in each form.
//!
//! One line of JSON a construct: the processor's time at each size, and how the time per byte grew over the last three
//! doublings that took long enough to be measured (beyond 64,000 where that is needed). It fails when one grows faster
//! than its bytes, or takes longer than it may.
#![expect(clippy::print_stdout, reason = "the figures are what the caller reads")]

#[path = "../tests/it/wide/constructs/mod.rs"]
mod constructs;

use std::error::Error;
use std::hint::black_box;

use clap::Parser;
use constructs::{all, judged};
use loopctl::check::fix;
use loopctl::cli::report;
use loopctl::compile::Texts;
use loopctl::diagnostic::{Diagnostic, Source};
use loopctl::trace::Look;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::json;

/// Judges documents of doubling sizes.
#[derive(Parser)]
struct Arguments {
    /// Only constructs whose name has this in it.
    #[arg(long, default_value = "")]
    only: String,
    /// The first size.
    #[arg(long, default_value_t = 1_000)]
    from: usize,
    /// The last size. Where fewer than three doublings take long enough to be measured, larger ones follow.
    #[arg(long, default_value_t = 64_000)]
    to: usize,
    /// A construct that takes so long, in seconds, is not doubled further.
    #[arg(long, default_value_t = 10.0)]
    most_s: f64,
    /// What `cargo bench` adds to every program.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The most seconds for a document, and how much the time per byte may grow by a doubling.
const BOUNDS: (f64, f64) = (2.0, 1.5);
/// A time under this, in seconds, says nothing of how it grows.
const SHORT: f64 = 0.02;
/// The growth is that of so many doublings.
const DOUBLINGS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut slow = Vec::new();
    for (name, make) in all().filter(|(name, _)| name.contains(&arguments.only)) {
        let (mut sizes, mut times, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        let mut counts = Vec::new();
        let mut n = arguments.from;
        while (n <= arguments.to || is_too_few(&times)) && times.last().is_none_or(|last| *last < arguments.most_s) {
            let texts = make(n);
            let start = cpu_s()?;
            let found = judged(&texts);
            times.push(cpu_s()? - start);
            let start = cpu_s()?;
            reported(&texts, &found);
            reports.push(cpu_s()? - start);
            sizes.push(bytes(&texts));
            counts.push(found.len());
            n *= 2;
        }
        let grew = growth(&sizes, &times).max(growth(&sizes, &reports));
        let longest = times.iter().chain(&reports).copied().fold(0.0, f64::max);
        if grew > BOUNDS.1 || longest > BOUNDS.0 {
            slow.push(*name);
        }
        let ms = |times: &[f64]| times.iter().map(|time| (time * 10_000.0).round() / 10.0).collect::<Vec<_>>();
        let line = json!({
            "construct": name, "bytes": sizes.last(), "diagnostics": counts.last(), "judged_ms": ms(&times), "reported_ms": ms(&reports),
            "growth": (grew * 100.0).round() / 100.0,
        });
        println!("{line}");
    }
    if slow.is_empty() { Ok(()) } else { Err(format!("too slow: {}", slow.join(", ")).into()) }
}

/// The processor's time that this process took: what else the machine does is not counted.
fn cpu_s() -> Result<f64, Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = (usage.user_time() + usage.system_time()).num_microseconds();
    Ok(f64::from(i32::try_from(micros)?) / 1_000_000.0)
}

/// Whether the largest documents take long enough to be measured, but a few more doublings are needed: caches and
/// new pages of memory make one alone look slower than it is.
fn is_too_few(times: &[f64]) -> bool {
    let measured = times.iter().rev().take_while(|time| **time > SHORT).count();
    (1..=DOUBLINGS).contains(&measured)
}

/// The mean growth of the time per byte by a doubling, over the last three that can be measured; 1 where none
/// can.
fn growth(sizes: &[f64], times: &[f64]) -> f64 {
    let per_byte: Vec<f64> =
        sizes.iter().zip(times).filter(|(_, time)| **time > SHORT).map(|(size, time)| time / size).collect();
    let last = per_byte.get(per_byte.len().saturating_sub(DOUBLINGS + 1)..).unwrap_or_default();
    match (last.first(), last.last(), last.len()) {
        (Some(first), Some(last), count @ 2..) => {
            (last / first).powf(1.0 / f64::from(u32::try_from(count - 1).unwrap_or(1)))
        }
        _ => 1.0,
    }
}

fn bytes(texts: &Texts) -> f64 {
    let others = texts.actions.iter().chain(&texts.loops).chain(&texts.project);
    let all: usize = std::iter::once(&texts.main).chain(others).map(|source| source.text.len()).sum();
    f64::from(u32::try_from(all).unwrap_or(u32::MAX))
}

/// The report in all forms, and what `--fix` takes.
fn reported(texts: &Texts, found: &[Diagnostic]) {
    let sources: Vec<Source> =
        std::iter::once(&texts.main).chain(&texts.project).chain(&texts.actions).cloned().collect();
    black_box(report::human(found, &sources, &Look::plain(100)));
    black_box(report::json(found));
    black_box(report::sarif(found, &sources));
    black_box(report::github(found));
    let taken = fix::taken(found, &texts.main);
    let now = Source::new(texts.main.name.clone(), fix::apply(&texts.main.text, &taken));
    black_box(fix::is_worse(&texts.main, &now));
}
