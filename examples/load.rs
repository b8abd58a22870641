//! The load driver: N fresh runs, C at a time, of a loop whose only tool is an in-process `echo`,
//! against an OpenAI-protocol server that plays `mock-k<K>-l<MS>`; with `--serve`, through HTTP. It
//! prints one JSON line.
#![expect(clippy::print_stdout, reason = "the figures are what the caller reads")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use loopctl::compile::Texts;
use loopctl::diagnostic::Source;
use loopctl::drive::engine::Watch;
use loopctl::drive::start::Start;
use loopctl::engine::state::Phase;
use loopctl::journal::Journal;
use loopctl::journal::memory::MemoryJournal;
use loopctl::journal::sqlite::SqliteJournal;
use loopctl::{BoxFuture, DynTool, Engine, Program, ToolCall, ToolFault, load_texts};
use serde_json::{Value, json};
use tokio::task::JoinSet;

#[path = "../benches/driver/mod.rs"]
mod driver;
#[path = "../benches/driver/served.rs"]
mod served;
#[path = "../benches/driver/through.rs"]
mod through;

use driver::{Count, Work};
use through::Through;

/// Runs one loop of K steps N times, C at a time.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    work: Work,
    #[command(flatten)]
    through: Through,
}

/// The only tool: gives back its text.
struct Echo;

impl DynTool for Echo {
    fn name(&self) -> &str {
        "echo"
    }

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
    count: Count,
    engine: Engine,
    program: Arc<Program>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    driver::raise_file_limit()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let figures = match arguments.through.program()? {
            None => play(arguments.work, folder.path()).await?,
            Some(program) => serve(arguments.work, &arguments.through, (&program, folder.path())).await?,
        };
        println!("{figures}");
        Ok(())
    })
}

/// Through HTTP.
async fn serve(work: Work, through: &Through, (program, folder): (&Path, &Path)) -> Result<Value, Box<dyn Error>> {
    if work.action != "progress" {
        return Err("a document that is served can't have a tool of this process: use --action progress".into());
    }
    std::fs::write(folder.join("loopctl.json"), project(&work).to_string())?;
    std::fs::write(folder.join("load.json"), document(&work, "load", "m").to_string())?;
    std::fs::write(folder.join("human.json"), document(&work, "human", "human").to_string())?;
    let place = through::Place { program, folder };
    match through.paused {
        Some(paused) => place.paused(work, paused).await,
        None => place.load(work, through.readers).await,
    }
}

async fn play(work: Work, folder: &Path) -> Result<Value, Box<dyn Error>> {
    let (engine, program) = prepare(&work, folder)?;
    let workers = work.workers();
    let shared = Arc::new(Shared { count: Count::new(work), engine, program });
    let mut set = JoinSet::new();
    for _ in 0..workers {
        set.spawn(play_all(Arc::clone(&shared)));
    }
    while let Some(ended) = set.join_next().await {
        ended?;
    }
    shared.count.figures("loopctl")
}

/// The project: `human` is a model that asks a human before anything else.
fn project(work: &Work) -> Value {
    let model = |name: String| json!({ "provider": "openai", "base_url": work.base_url, "model": name });
    json!({ "model": "m", "models": { "m": model(work.model()), "human": model("mock-k1-l0-ahuman".to_owned()) } })
}

/// The document of a loop.
fn document(work: &Work, name: &str, model: &str) -> Value {
    let echo = json!([{ "type": "action", "name": "echo" }]);
    json!({
        "type": "loop",
        "name": name,
        "properties": {
            "mode": "react",
            "objective": "Call echo as often as you are told to, then complete.",
            "tools": if work.action == "echo" { echo } else { json!([]) },
            "model": model,
            "dialect": work.dialect,
            "max_iterations": work.steps.saturating_add(2).min(1000),
            "timeout_ms": 3_600_000
        }
    })
}

/// The engine and the compiled loop: the only uses of the library but [`run_once`].
fn prepare(work: &Work, folder: &Path) -> Result<(Engine, Arc<Program>), Box<dyn Error>> {
    let texts = Texts {
        project: Some(Source::new("loopctl.json", project(work).to_string())),
        embedded: vec![Echo.signature()],
        ..Texts::new(Source::new("loop.json", document(work, "load", "m").to_string()))
    };
    let program = load_texts(&texts, folder.to_owned())
        .map_err(|unsound| {
            let faults: Vec<_> = unsound.diagnostics.iter().map(|fault| fault.message.as_str()).collect();
            faults.join("; ")
        })?
        .program;
    let journal: Arc<dyn Journal> = if work.durable {
        Arc::new(SqliteJournal::open(&folder.join("load.db"))?)
    } else {
        Arc::new(MemoryJournal::new())
    };
    let engine = Engine::builder(Arc::clone(&program.project), folder).journal(journal).tool(Echo).build();
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

/// Plays runs until all have started.
async fn play_all(shared: Arc<Shared>) {
    while shared.count.next().is_some() {
        shared.count.take(run_once(&shared).await);
    }
}
