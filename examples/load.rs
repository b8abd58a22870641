//! The load driver: N fresh runs, C at a time, of a loop whose only tool is an in-process `echo`,
//! against an OpenAI-protocol server that plays `mock-k<K>-l<MS>`. It prints one JSON line.
#![expect(clippy::print_stdout, reason = "the figures are what the caller reads")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use clap::Parser;
use loopctl::compile::Texts;
use loopctl::diagnostic::Source;
use loopctl::engine::state::Phase;
use loopctl::journal::Journal;
use loopctl::journal::memory::MemoryJournal;
use loopctl::journal::sqlite::SqliteJournal;
use loopctl::{BoxFuture, EmbeddedTool, Engine, Program, Start, ToolCall, ToolFault, Watch, load_texts};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Runs one loop of K steps N times, C at a time.
#[derive(Parser)]
struct Arguments {
    /// The server, up to and without `/chat/completions`.
    #[arg(long)]
    base_url: String,
    /// How many tools a run calls.
    #[arg(long, default_value_t = 10)]
    steps: u32,
    /// How many runs.
    #[arg(long, default_value_t = 100)]
    runs: u32,
    /// How many at a time.
    #[arg(long, default_value_t = 1)]
    concurrency: u32,
    /// Milliseconds that the server waits before each reply.
    #[arg(long, default_value_t = 0)]
    latency: u64,
    /// The dialect of the loop: json, tool_calls, tags or final_answer.
    #[arg(long, default_value = "json")]
    dialect: String,
    /// The journal in a fresh SQLite store, in place of memory.
    #[arg(long)]
    durable: bool,
}

/// The only tool: gives back its text.
struct Echo;

impl EmbeddedTool for Echo {
    fn description(&self) -> &str {
        "Gives the text back."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
            "additionalProperties": false
        })
    }

    fn idempotent(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        Box::pin(async move { Ok(call.input.get("text").cloned().unwrap_or_default()) })
    }
}

/// What all runs share.
struct Shared {
    arguments: Arguments,
    engine: Engine,
    program: Arc<Program>,
    started: AtomicU32,
    ok: AtomicU32,
    errors: Mutex<BTreeMap<String, u64>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(play(arguments))
}

async fn play(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (engine, program) = prepare(&arguments, folder.path())?;
    let workers = arguments.concurrency.min(arguments.runs).max(1);
    let shared = Arc::new(Shared {
        arguments,
        engine,
        program,
        started: AtomicU32::new(0),
        ok: AtomicU32::new(0),
        errors: Mutex::new(BTreeMap::new()),
    });
    let begun = Instant::now();
    let mut set = JoinSet::new();
    for _ in 0..workers {
        set.spawn(work(Arc::clone(&shared)));
    }
    while let Some(ended) = set.join_next().await {
        ended?;
    }
    report(&shared, begun.elapsed().as_secs_f64())
}

/// The engine and the compiled loop: the only uses of the library but [`run_once`].
fn prepare(arguments: &Arguments, folder: &Path) -> Result<(Engine, Arc<Program>), Box<dyn Error>> {
    let dialect = arguments.dialect.as_str();
    let mut model = format!("mock-k{}-l{}", arguments.steps, arguments.latency);
    if dialect != "json" {
        model.push_str("-d");
        model.push_str(dialect);
    }
    let project = json!({
        "model": "m",
        "models": { "m": { "provider": "openai", "base_url": arguments.base_url, "model": model } }
    })
    .to_string();
    let document = json!({
        "type": "loop",
        "name": "load",
        "properties": {
            "mode": "react",
            "objective": "Call echo as often as you are told to, then complete.",
            "tools": [{ "type": "action", "name": "echo" }],
            "dialect": dialect,
            "max_iterations": arguments.steps.saturating_add(2).min(1000),
            "timeout_ms": 3_600_000
        }
    })
    .to_string();
    let texts = Texts {
        project: Some(Source::new("loopctl.json", project)),
        embedded: vec![("echo".to_owned(), Echo.description().to_owned(), Echo.parameters(), Echo.idempotent())],
        ..Texts::new(Source::new("loop.json", document))
    };
    let program = load_texts(&texts, folder.to_owned())
        .map_err(|unsound| {
            let faults: Vec<_> = unsound.diagnostics.iter().map(|fault| fault.message.as_str()).collect();
            faults.join("; ")
        })?
        .program;
    let journal: Arc<dyn Journal> = if arguments.durable {
        Arc::new(SqliteJournal::open(&folder.join("load.db"))?)
    } else {
        Arc::new(MemoryJournal::new())
    };
    let engine = Engine::builder(Arc::clone(&program.project), folder).journal(journal).tool("echo", Echo).build();
    Ok((engine, program))
}

/// One run, and its answer.
async fn run_once(shared: &Shared) -> Result<String, String> {
    let start = Start { input: json!({}), ..Start::default() };
    let finished =
        shared.engine.run(&shared.program, start, Watch::default()).await.map_err(|fault| fault.to_string())?;
    let Phase::Ended(ending) = &finished.state.phase else { return Err("the run did not end".to_owned()) };
    match (&ending.answer, &ending.error) {
        (Some(answer), _) => Ok(answer.answer.as_str().unwrap_or_default().to_owned()),
        (None, Some(error)) => Err(format!("{}: {}", error.code, error.message)),
        (None, None) => Err("no answer".to_owned()),
    }
}

/// Plays runs until all are begun.
async fn work(shared: Arc<Shared>) {
    let expected = format!("Done after {} ", shared.arguments.steps);
    while shared.started.fetch_add(1, Ordering::Relaxed) < shared.arguments.runs {
        match run_once(&shared).await {
            Ok(answer) if answer.starts_with(&expected) => {
                shared.ok.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) => note(&shared, format!("answer: {answer}")),
            Err(error) => note(&shared, error),
        }
    }
}

fn note(shared: &Shared, error: String) {
    if let Ok(mut errors) = shared.errors.lock() {
        *errors.entry(error).or_default() += 1;
    }
}

fn report(shared: &Shared, wall_s: f64) -> Result<(), Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    // Tenths of a millisecond, and KiB: both fit for days and terabytes.
    let cpu = i32::try_from((usage.user_time() + usage.system_time()).num_microseconds() / 100)?;
    let rss = i32::try_from(usage.max_rss())?;
    let arguments = &shared.arguments;
    let errors = shared.errors.lock().map_err(|error| error.to_string())?;
    let line = json!({
        "peer": "loopctl",
        "version": env!("CARGO_PKG_VERSION"),
        "runs": arguments.runs,
        "steps": arguments.steps,
        "dialect": arguments.dialect,
        "concurrency": arguments.concurrency,
        "wall_s": wall_s,
        "cpu_s": f64::from(cpu) / 10_000.0,
        "peak_rss_mb": f64::from(rss) / 1024.0,
        "ok_runs": shared.ok.load(Ordering::Relaxed),
        "errors": &*errors,
    });
    println!("{line}");
    Ok(())
}
