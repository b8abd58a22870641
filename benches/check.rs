//! How long it takes to check loops: many documents of about 4 KB with ten tools each, all
//! different, from memory and from files, against the plainest reader of the same bytes.
//!
//! One line of JSON: wall and CPU time of all documents, and how many times longer that is than
//! `serde_json::from_slice::<Value>`. It fails when a document is not found sound.
#![expect(clippy::print_stdout, reason = "the figures are what the caller reads")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Parser;
use loopctl::compile::Texts;
use loopctl::diagnostic::Source;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

/// Checks N documents, R times.
#[derive(Parser)]
struct Arguments {
    /// How many documents.
    #[arg(long, default_value_t = 1000)]
    documents: usize,
    /// How many tools each of them has.
    #[arg(long, default_value_t = 10)]
    tools: usize,
    /// How often each measurement is repeated. The medians are reported, with the first time beside them.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Only what is checked from memory, without the others: for a profiler.
    #[arg(long)]
    memory_only: bool,
    /// What `cargo bench` adds to every program.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Seconds: by the clock, and of this process's CPU.
#[derive(Clone, Copy)]
struct Spent {
    wall: f64,
    cpu: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let documents: Vec<String> = (0..arguments.documents).map(|seed| document(seed, arguments.tools)).collect();
    let bytes: usize = documents.iter().map(String::len).sum();
    if arguments.memory_only {
        for _ in 0..arguments.rounds {
            timed(|| from_memory(&documents))?;
        }
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let own = write_own(folder.path(), &documents)?;
    let beside = write_beside(folder.path(), arguments.documents, arguments.tools)?;
    let (mut memory, mut parse, mut files, mut shared) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        memory.push(timed(|| from_memory(&documents))?);
        parse.push(timed(|| parsed(&documents))?);
        files.push(timed(|| from_files(&own))?);
        shared.push(timed(|| from_files(&beside))?);
    }
    let first = memory.first().map_or(0.0, |spent| spent.wall);
    let (memory, parse, files, shared) = (median(memory), median(parse), median(files), median(shared));
    let line = json!({
        "documents": arguments.documents,
        "tools": arguments.tools,
        "mean_bytes": bytes / arguments.documents.max(1),
        "wall_s": rounded(memory.wall),
        "cpu_s": rounded(memory.cpu),
        "first_wall_s": rounded(first),
        "parse_cpu_s": rounded(parse.cpu),
        "ratio": rounded(memory.cpu / parse.cpu),
        "files_wall_s": rounded(files.wall),
        "files_cpu_s": rounded(files.cpu),
        "actions_beside_wall_s": rounded(shared.wall),
    });
    println!("{line}");
    Ok(())
}

fn from_memory(documents: &[String]) -> Result<(), Box<dyn Error>> {
    let project = Source::new("loopctl.json", project().to_string());
    for (seed, text) in documents.iter().enumerate() {
        let mut texts = Texts::new(Source::new(format!("{seed}.json"), text.as_str()));
        texts.project = Some(project.clone());
        loopctl::load_texts(&texts, PathBuf::from(".")).map_err(|unsound| shown(&unsound))?;
    }
    Ok(())
}

fn from_files(files: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    for file in files {
        loopctl::load(file, &[]).map_err(|unsound| shown(&unsound))?;
    }
    Ok(())
}

fn parsed(documents: &[String]) -> Result<(), Box<dyn Error>> {
    for text in documents {
        std::hint::black_box(serde_json::from_slice::<Value>(text.as_bytes())?);
    }
    Ok(())
}

fn shown(unsound: &loopctl::DocumentError) -> String {
    unsound.diagnostics.first().map_or_else(String::new, |fault| format!("{}: {}", fault.code, fault.message))
}

fn timed(work: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<Spent, Box<dyn Error>> {
    let (start, cpu) = (Instant::now(), cpu_s()?);
    work()?;
    Ok(Spent { wall: start.elapsed().as_secs_f64(), cpu: cpu_s()? - cpu })
}

fn cpu_s() -> Result<f64, Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = (usage.user_time() + usage.system_time()).num_microseconds();
    Ok(f64::from(i32::try_from(micros)?) / 1_000_000.0)
}

fn median(mut all: Vec<Spent>) -> Spent {
    let mut middle = |by: fn(&Spent) -> f64| {
        all.sort_by(|one, other| by(one).total_cmp(&by(other)));
        all.get(all.len() / 2).map_or(0.0, by)
    };
    Spent { wall: middle(|spent| spent.wall), cpu: middle(|spent| spent.cpu) }
}

fn rounded(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

/// Documents that carry their actions along.
fn write_own(folder: &Path, documents: &[String]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = folder.join("own");
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("loopctl.json"), project().to_string())?;
    let mut files = Vec::with_capacity(documents.len());
    for (seed, text) in documents.iter().enumerate() {
        let file = folder.join(format!("{seed:04}.json"));
        std::fs::write(&file, text)?;
        files.push(file);
    }
    Ok(files)
}

/// Documents of one folder whose actions are in `actions/` beside them.
fn write_beside(folder: &Path, documents: usize, tools: usize) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = folder.join("beside");
    std::fs::create_dir_all(folder.join("actions"))?;
    std::fs::write(folder.join("loopctl.json"), project().to_string())?;
    for tool in 0..tools {
        let action = action(0, tool);
        std::fs::write(folder.join("actions").join(format!("{tool}.json")), format!("{action:#}"))?;
    }
    let mut files = Vec::with_capacity(documents);
    for seed in 0..documents {
        let mut document = around(seed, &(0..tools).map(|tool| name(0, tool)).collect::<Vec<_>>());
        if let Some(members) = document.as_object_mut() {
            members.shift_remove("actions");
        }
        let file = folder.join(format!("{seed:04}.json"));
        std::fs::write(&file, format!("{document:#}"))?;
        files.push(file);
    }
    Ok(files)
}

fn project() -> Value {
    json!({
        "model": "big",
        "models": { "big": { "provider": "openai", "model": "gpt-x", "api_key": "env:KEY", "context_tokens": 128000 } },
        "orgconfig": { "crm_token": "env:CRM_TOKEN" },
        "datasources": { "support": { "url": "sqlite:support.db" } },
        "allow": { "commands": ["wc"], "hosts": ["api.example.com"] }
    })
}

/// A document as people write it: about 4 KB with ten tools, no two of them alike.
fn document(seed: usize, tools: usize) -> String {
    let names: Vec<String> = (0..tools).map(|tool| name(seed, tool)).collect();
    let mut document = around(seed, &names);
    let actions: Vec<Value> = (0..tools).map(|tool| action(seed, tool)).collect();
    if let Some(members) = document.as_object_mut() {
        members.insert("actions".to_owned(), Value::from(actions));
    }
    // Wide lines, as an editor keeps them: a member or an action a line.
    let mut text = String::from("{\n");
    let members = document.as_object().into_iter().flatten();
    let last = document.as_object().map_or(0, serde_json::Map::len);
    for (at, (key, value)) in members.enumerate() {
        let comma = if at + 1 < last { "," } else { "" };
        match value.as_array() {
            Some(items) => {
                let items: Vec<String> = items.iter().map(|item| format!("    {item}")).collect();
                text.push_str(&format!("  \"{key}\": [\n{}\n  ]{comma}\n", items.join(",\n")));
            }
            None => text.push_str(&format!("  \"{key}\": {value}{comma}\n")),
        }
    }
    text.push_str("}\n");
    text
}

fn name(seed: usize, tool: usize) -> String {
    const WORDS: [&str; 10] = ["lookup", "refund", "count", "ask", "file", "list", "close", "weigh", "tell", "forward"];
    format!("{}_{seed}_{tool}", WORDS.get(tool % WORDS.len()).copied().unwrap_or("do"))
}

/// The document without its actions.
fn around(seed: usize, names: &[String]) -> Value {
    let tools: Vec<Value> = names.iter().map(|name| json!({ "type": "action", "name": name })).collect();
    json!({
        "type": "loop",
        "name": format!("triage-{seed}"),
        "description": "Reads a ticket, looks up the customer, and files what is to be done.",
        "input": {
            "type": "object",
            "properties": { "ticket_id": { "type": "string", "description": "The ticket" }, "limit": { "type": "integer", "minimum": 1 } },
            "required": ["ticket_id"],
            "additionalProperties": false
        },
        "properties": {
            "mode": "react",
            "objective": format!("Look at ticket {{{{input.ticket_id}}}} of queue {seed}. Read it, look up who wrote it, then file one recommendation and complete with a short summary."),
            "tools": tools,
            "max_iterations": 10 + seed % 10,
            "timeout_ms": 120_000 + seed,
            "temperature": 0.2,
            "on_stuck": { "iterations": 3, "action": "escalate" },
            "result_key": "triage"
        }
    })
}

/// One action of a kind that goes with its number.
fn action(seed: usize, tool: usize) -> Value {
    let name = name(seed, tool);
    let field = &format!("id_{}", (seed + tool) % 97);
    match tool % 5 {
        0 => json!({
            "action_name": name, "kind": "http", "http_method": "GET",
            "description": "Reads one record by its id.",
            "url": format!("https://api.example.com/v{}/records/{{{{{field}}}}}", seed % 9),
            "headers": { "Authorization": "Bearer orgconfig:crm_token" }
        }),
        1 => json!({
            "action_name": name, "kind": "db", "datasource": "support",
            "description": "Lists what was charged, newest first.",
            "query": format!("SELECT id, amount FROM charges WHERE owner = :{field} AND amount >= :least LIMIT {}", 10 + seed % 90),
            "parameters": {
                "type": "object",
                "properties": {
                    field: { "type": "string", "minLength": 1, "description": "The owner" },
                    "least": { "type": "integer", "minimum": 0 }
                },
                "required": [field, "least"],
                "additionalProperties": false
            }
        }),
        2 => json!({
            "action_name": name, "kind": "command", "program": "wc",
            "description": "Counts the words of a text.",
            "args": ["-w", "--"], "stdin": "{{text}}"
        }),
        3 => json!({
            "action_name": name, "kind": "llm",
            "description": "Asks for a short opinion.",
            "template": format!("In {} words: what is wrong with {{{{{field}}}}}? Context: {{{{context}}}}", 20 + seed % 30),
            "max_tokens": 256
        }),
        _ => json!({
            "action_name": name, "kind": "http", "http_method": "POST",
            "description": "Files a recommendation.",
            "url": "https://api.example.com/recommendations",
            "headers": { "Authorization": "Bearer orgconfig:crm_token" },
            "body": { "owner": format!("{{{{{field}}}}}"), "kind": "@kind", "cents": "@cents" },
            "parameters": {
                "type": "object",
                "properties": {
                    field: { "type": "string" },
                    "kind": { "enum": ["refund", "explain", "close"] },
                    "cents": { "type": "number", "minimum": 0, "maximum": 100_000 + seed }
                },
                "required": [field, "kind", "cents"]
            }
        }),
    }
}
