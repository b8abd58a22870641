//! The floor: the same requests as the engine's, sent by the plainest program that can send them.
//! reqwest, serde, a growing `Vec` of messages, `echo` in place; no engine. With `--durable` each
//! step writes two records into SQLite (WAL, `synchronous=FULL`).
//!
//! What the engine costs is what it needs more than this, in the same run on the same machine.
#![expect(clippy::print_stdout, reason = "the figures are what the caller reads")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use clap::Parser;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

mod driver;

use driver::{Count, Work};

/// Sends what a loop of K steps sends, N times, C at a time.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    work: Work,
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
    client: reqwest::Client,
    url: String,
    model: String,
    system: String,
    padding: String,
    store: Option<Store>,
    count: Count,
    tokens: AtomicU64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    driver::raise_file_limit()?;
    // The address is plain http: the provider is never used, and reqwest wants one.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(play(arguments))
}

async fn play(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = arguments.work.durable.then(|| Store::open(&folder.path().join("floor.db"))).transpose()?;
    let (workers, peer) = (arguments.work.workers(), if arguments.work.durable { "floor-durable" } else { "floor" });
    let shared = Arc::new(Shared {
        client: reqwest::Client::builder().no_proxy().tcp_nodelay(true).pool_max_idle_per_host(usize::MAX).build()?,
        url: format!("{}/chat/completions", arguments.work.base_url.trim_end_matches('/')),
        model: arguments.work.model(),
        system: filler(arguments.system_bytes),
        padding: filler(arguments.observation_bytes),
        store,
        count: Count::new(arguments.work),
        tokens: AtomicU64::new(0),
    });
    let mut set = JoinSet::new();
    for _ in 0..workers {
        set.spawn(play_all(Arc::clone(&shared)));
    }
    while let Some(ended) = set.join_next().await {
        ended?;
    }
    println!("{}", shared.count.figures(peer)?);
    Ok(())
}

/// Plays runs until all have started.
async fn play_all(shared: Arc<Shared>) {
    while let Some(run) = shared.count.next() {
        shared.count.take(run_once(&shared, run).await.map_err(|error| error.to_string()));
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
