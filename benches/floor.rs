//! The floor: the same requests as the engine's, sent by the plainest program that can send them.
//! reqwest, serde, a growing `Vec` of messages, `echo` in place; no engine. With `--durable` each
//! step writes two records into SQLite (WAL, `synchronous=FULL`).
//!
//! What the engine costs is what it needs more than this, in the same run on the same machine.
#![expect(clippy::print_stdout, reason = "the figures are what the caller reads")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use clap::Parser;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Sends what a loop of K steps sends, N times, C at a time.
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
    /// Two records a step in SQLite.
    #[arg(long)]
    durable: bool,
    /// The bytes of the first two messages, to be set to the engine's.
    #[arg(long, default_value_t = 1500)]
    system_bytes: usize,
    /// The bytes of an observation beside the echoed text, to be set to the engine's.
    #[arg(long, default_value_t = 60)]
    observation_bytes: usize,
    /// What `cargo bench` adds to every program.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: &'a [Message],
    max_tokens: u32,
    temperature: f64,
}

#[derive(Serialize)]
struct Message {
    role: &'static str,
    content: String,
}

#[derive(Deserialize)]
struct Response {
    choices: Vec<Choice>,
    usage: Usage,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
}

#[derive(Deserialize)]
struct Said {
    content: String,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

#[derive(Deserialize)]
struct Turn {
    thought: String,
    action: String,
    action_input: Input,
}

#[derive(Deserialize)]
struct Input {
    text: Option<String>,
    answer: Option<String>,
}

/// What all runs share.
struct Shared {
    arguments: Arguments,
    client: reqwest::Client,
    url: String,
    model: String,
    system: String,
    padding: String,
    store: Option<Store>,
    started: AtomicU32,
    tokens: AtomicU64,
    ok: AtomicU64,
    errors: Mutex<BTreeMap<String, u64>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    // The address is plain http: the provider is never used, and reqwest wants one.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(play(arguments))
}

async fn play(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = arguments.durable.then(|| Store::open(&folder.path().join("floor.db"))).transpose()?;
    let workers = arguments.concurrency.min(arguments.runs).max(1);
    let shared = Arc::new(Shared {
        client: reqwest::Client::builder().no_proxy().tcp_nodelay(true).pool_max_idle_per_host(usize::MAX).build()?,
        url: format!("{}/chat/completions", arguments.base_url.trim_end_matches('/')),
        model: format!("mock-k{}-l{}", arguments.steps, arguments.latency),
        system: filler(arguments.system_bytes),
        padding: filler(arguments.observation_bytes),
        store,
        started: AtomicU32::new(0),
        tokens: AtomicU64::new(0),
        ok: AtomicU64::new(0),
        errors: Mutex::new(BTreeMap::new()),
        arguments,
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

fn report(shared: &Shared, wall_s: f64) -> Result<(), Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let cpu_us = i32::try_from((usage.user_time() + usage.system_time()).num_microseconds() / 100)?;
    let rss_kb = i32::try_from(usage.max_rss())?;
    let arguments = &shared.arguments;
    let errors = shared.errors.lock().map_err(|error| error.to_string())?;
    let line = serde_json::json!({
        "peer": if arguments.durable { "floor-durable" } else { "floor" },
        "version": env!("CARGO_PKG_VERSION"),
        "runs": arguments.runs,
        "steps": arguments.steps,
        "concurrency": arguments.concurrency,
        "wall_s": wall_s,
        "cpu_s": f64::from(cpu_us) / 10_000.0,
        "peak_rss_mb": f64::from(rss_kb) / 1024.0,
        "ok_runs": shared.ok.load(Ordering::Relaxed),
        "errors": &*errors,
    });
    println!("{line}");
    Ok(())
}

/// Plays runs until all are begun.
async fn work(shared: Arc<Shared>) {
    loop {
        let run = shared.started.fetch_add(1, Ordering::Relaxed);
        if run >= shared.arguments.runs {
            return;
        }
        match run_once(&shared, run).await {
            Ok(answer) if answer.starts_with(&format!("Done after {} ", shared.arguments.steps)) => {
                shared.ok.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) => note(&shared, format!("answer: {answer}")),
            Err(error) => note(&shared, error.to_string()),
        }
    }
}

fn note(shared: &Shared, error: String) {
    if let Ok(mut errors) = shared.errors.lock() {
        *errors.entry(error).or_default() += 1;
    }
}

/// One run: ask, read, echo, and again.
async fn run_once(shared: &Shared, run: u32) -> Result<String, Box<dyn Error + Send + Sync>> {
    let mut messages = vec![
        Message { role: "system", content: shared.system.clone() },
        Message { role: "user", content: "Begin.".to_owned() },
    ];
    let mut record = 0;
    loop {
        let body = serde_json::to_vec(&Request {
            model: &shared.model,
            messages: &messages,
            max_tokens: 4096,
            temperature: 0.7,
        })?;
        let response = shared
            .client
            .post(&shared.url)
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await?
            .error_for_status()?
            .bytes()
            .await?;
        let response: Response = serde_json::from_slice(&response)?;
        let tokens = response.usage.prompt_tokens + response.usage.completion_tokens;
        shared.tokens.fetch_add(tokens, Ordering::Relaxed);
        let said = response.choices.into_iter().next().ok_or("no choice")?.message.content;
        let turn: Turn = serde_json::from_str(&said)?;
        if let Some(store) = &shared.store {
            store.append(run, record, serde_json::to_string(&said)?).await?;
            record += 1;
        }
        if turn.action == "__complete__" {
            return Ok(turn.action_input.answer.ok_or("no answer")?);
        }
        let observation = turn.action_input.text.ok_or_else(|| format!("no text after {}", turn.thought))?;
        if let Some(store) = &shared.store {
            store.append(run, record, serde_json::to_string(&observation)?).await?;
            record += 1;
        }
        messages.push(Message { role: "assistant", content: said });
        messages.push(Message { role: "user", content: format!("{}{observation}", shared.padding) });
    }
}

/// Text of so many bytes.
fn filler(bytes: usize) -> String {
    "The agent reads the tools and their schemas here. ".chars().cycle().take(bytes).collect()
}

/// SQLite in its own thread, a transaction a record.
struct Store {
    to: mpsc::Sender<Record>,
}

struct Record {
    run: u32,
    seq: u32,
    text: String,
    done: oneshot::Sender<rusqlite::Result<usize>>,
}

impl Store {
    fn open(path: &std::path::Path) -> rusqlite::Result<Self> {
        let connection = rusqlite::Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
             CREATE TABLE events (run INTEGER, seq INTEGER, event TEXT NOT NULL, PRIMARY KEY (run, seq)) WITHOUT ROWID;",
        )?;
        let (to, from) = mpsc::channel::<Record>();
        std::thread::spawn(move || {
            for record in from {
                let written = connection
                    .prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3)")
                    .and_then(|mut insert| insert.execute((record.run, record.seq, &record.text)));
                // A run that is gone waits for nothing.
                drop(record.done.send(written));
            }
        });
        Ok(Self { to })
    }

    async fn append(&self, run: u32, seq: u32, text: String) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (done, wait) = oneshot::channel();
        self.to.send(Record { run, seq, text, done })?;
        wait.await??;
        Ok(())
    }
}
