//! What the load driver and its floor share: their arguments, how runs are counted, and the JSON line.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use clap::Args;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;

/// The work: N runs of K steps, C at a time.
#[derive(Debug, Clone, Args)]
pub struct Work {
    /// The server, up to and without `/chat/completions`.
    #[arg(long)]
    pub base_url: String,
    /// How many tools a run calls.
    #[arg(long, default_value_t = 10)]
    pub steps: u32,
    /// How many runs.
    #[arg(long, default_value_t = 100)]
    pub runs: u32,
    /// How many at a time.
    #[arg(long, default_value_t = 1)]
    pub concurrency: u32,
    /// Milliseconds that the server waits before each reply.
    #[arg(long, default_value_t = 0)]
    pub latency: u64,
    /// The dialect of the model: json, tool_calls, tags or final_answer.
    #[arg(long, default_value = "json")]
    pub dialect: String,
    /// What is done is kept in a fresh SQLite store too.
    #[arg(long)]
    pub durable: bool,
    /// What the runs call: echo, a tool of the driver's own process, or progress, the built-in tool that
    /// a served document has too.
    #[arg(long, default_value = "echo", value_parser = ["echo", "progress"])]
    pub action: String,
}

/// What came of the runs so far.
pub struct Count {
    work: Work,
    began: Instant,
    started: AtomicU32,
    ok: AtomicU32,
    errors: Mutex<BTreeMap<String, u64>>,
}

impl Work {
    /// The model's name, which selects what the server plays.
    pub fn model(&self) -> String {
        let dialect = if self.dialect == "json" { String::new() } else { format!("-d{}", self.dialect) };
        let action = if self.action == "echo" { String::new() } else { format!("-a{}", self.action) };
        format!("mock-k{}-l{}{dialect}{action}", self.steps, self.latency)
    }

    /// How many run at the same time.
    pub fn workers(&self) -> u32 {
        self.concurrency.min(self.runs).max(1)
    }
}

impl Count {
    /// Begins to count, and to measure the time.
    pub fn new(work: Work) -> Self {
        let (started, ok) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { work, began: Instant::now(), started, ok, errors: Mutex::default() }
    }

    /// The number of the next run, from 0; none when all have started.
    pub fn next(&self) -> Option<u32> {
        let run = self.started.fetch_add(1, Ordering::Relaxed);
        (run < self.work.runs).then_some(run)
    }

    /// Takes the answer of a run, and counts it as right only if it begins with the words that the server was
    /// asked for.
    pub fn take(&self, answer: Result<String, String>) {
        let error = match answer {
            Ok(answer) if answer.starts_with(&format!("Done after {} ", self.work.steps)) => {
                self.ok.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Ok(answer) => format!("answer: {answer}"),
            Err(error) => error,
        };
        if let Ok(mut errors) = self.errors.lock() {
            *errors.entry(error).or_default() += 1;
        }
    }

    /// The figures of `peer`, with what the process used until now.
    pub fn figures(&self, peer: &str) -> Result<serde_json::Value, Box<dyn Error>> {
        let wall_s = self.began.elapsed().as_secs_f64();
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        // Tenths of a millisecond, and KiB: both fit for days and terabytes.
        let cpu = i32::try_from((usage.user_time() + usage.system_time()).num_microseconds() / 100)?;
        let rss = i32::try_from(usage.max_rss())?;
        let errors = self.errors.lock().map_err(|error| error.to_string())?;
        Ok(serde_json::json!({
            "peer": peer,
            "version": env!("CARGO_PKG_VERSION"),
            "runs": self.work.runs,
            "steps": self.work.steps,
            "dialect": self.work.dialect,
            "action": self.work.action,
            "concurrency": self.work.concurrency,
            "wall_s": wall_s,
            "cpu_s": f64::from(cpu) / 10_000.0,
            "peak_rss_mb": f64::from(rss) / 1024.0,
            "ok_runs": self.ok.load(Ordering::Relaxed),
            "errors": &*errors,
        }))
    }
}

/// Lets the process have as many connections as it may.
pub fn raise_file_limit() -> Result<(), Box<dyn Error>> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}
