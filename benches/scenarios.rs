//! How long `loopctl test` takes for many scenarios of one loop: each of ten replies, with nine calls of a tool that are played.
//!
//! One line of JSON: the wall time of the whole process, the median and the first one. It fails when a scenario does not hold, or
//! when the median is over the bar.
#![expect(clippy::print_stdout, reason = "the figures are what the caller reads")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Parser;
use serde_json::{Value, json};

/// Plays N scenarios of K steps, R times.
#[derive(Parser)]
struct Arguments {
    /// How many scenarios.
    #[arg(long, default_value_t = 1000)]
    scenarios: usize,
    /// How many steps each of them has.
    #[arg(long, default_value_t = 10)]
    steps: usize,
    /// How often they are played.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// The most seconds that the median may take.
    #[arg(long, default_value_t = 2.0)]
    bar: f64,
    /// What `cargo bench` adds to every program.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir()?;
    write(folder.path(), &arguments)?;
    let mut seconds = Vec::new();
    for _ in 0..arguments.rounds.max(1) {
        seconds.push(played(folder.path(), arguments.scenarios)?);
    }
    let first = seconds.first().copied().unwrap_or_default();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
    println!(
        "{}",
        json!({ "scenarios": arguments.scenarios, "steps": arguments.steps, "wall_s": rounded(median), "first_wall_s": rounded(first) })
    );
    if median > arguments.bar {
        return Err(format!("the bar is {} s", arguments.bar).into());
    }
    Ok(())
}

/// Plays all scenarios, and gives the seconds of the process.
fn played(folder: &Path, scenarios: usize) -> Result<f64, Box<dyn Error>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
    let start = Instant::now();
    let output = command.arg("test").current_dir(folder).env_clear().stdin(Stdio::null()).output()?;
    let seconds = start.elapsed().as_secs_f64();
    let report = String::from_utf8(output.stderr)?;
    let last = report.lines().last().unwrap_or_default();
    let count: String = last.split(' ').next().unwrap_or_default().replace(',', "");
    if !output.status.success() || count != scenarios.to_string() || !last.ends_with("all hold") {
        return Err(format!("not all scenarios hold: {last}").into());
    }
    Ok(seconds)
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

fn write(folder: &Path, arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let steps = arguments.steps.max(2);
    let tool = json!({ "action_name": "lookup", "description": "Reads an order.", "kind": "http", "http_method": "GET",
        "url": "https://shop.example.com/orders/{{id}}",
        "parameters": { "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] } });
    let document = json!({ "type": "loop", "name": "orders", "properties": { "mode": "react", "objective": "Settle it.",
        "max_iterations": steps, "tools": [{ "type": "action", "name": "lookup" }] } });
    let look = |n: usize| json!({ "thought": format!("Look {n}."), "action": "lookup", "action_input": { "id": format!("A-{n}") } });
    let answer = json!({ "thought": "Done.", "action": "__complete__", "action_input": { "answer": "x" } });
    let replies: Vec<Value> = (1..steps).map(look).chain([answer]).collect();
    let scenario = |n: usize| {
        json!({ "name": format!("scenario {n}"), "replies": replies, "tools": { "lookup": [{ "state": "late" }] },
            "expect": { "answer": "x", "calls": [{ "action": "lookup", "times": steps - 1 }] } })
    };
    let scenarios: Vec<Value> = (0..arguments.scenarios).map(scenario).collect();
    std::fs::create_dir(folder.join("actions"))?;
    std::fs::write(folder.join("actions/lookup.json"), tool.to_string())?;
    std::fs::write(folder.join("loop.json"), document.to_string())?;
    let file = json!({ "document": "loop.json", "scenarios": scenarios });
    std::fs::write(folder.join("loop.test.json"), file.to_string())?;
    Ok(())
}
