//! How many events a store appends in a second: runs that each append an event as soon as the one before it is durable.
//!
//! One line of JSON: the appends, how many of them a second, and the microseconds of this process's CPU for each.
#![expect(clippy::print_stdout, reason = "the figures are what the caller reads")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use loopctl::Status;
use loopctl::journal::{Append, Created, Journal, NewRun, StatusRecord, StoreError, open};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::json;

/// Appends events to a store.
#[derive(Parser)]
struct Arguments {
    /// The store: sqlite:PATH, or postgres://USER@HOST/DATABASE.
    #[arg(long)]
    store: String,
    /// How many runs append at once.
    #[arg(long, default_value_t = 64)]
    runs: usize,
    /// The bytes of an event.
    #[arg(long, default_value_t = 500)]
    bytes: usize,
    /// Whether each second event is a reply: it changes what lists show of its run.
    #[arg(long)]
    replies: bool,
    /// How long it is measured.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// What `cargo bench` adds to every program.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let journal = open(&arguments.store, Path::new("."))?;
    let event: Arc<str> = Arc::from("x".repeat(arguments.bytes));
    let mut fences = Vec::new();
    for number in 0..arguments.runs {
        let run_id = format!("{}-{number}", std::process::id());
        match journal.create(new_run(&run_id)).await? {
            Created::New(lease) => fences.push((run_id, lease.fence)),
            Created::Same | Created::Conflict | Created::KeyTaken(_) | Created::LineFull(_) => {
                return Err(format!("{run_id} is there already").into());
            }
        }
    }
    let (started, cpu) = (Instant::now(), cpu_us()?);
    let end = started + Duration::from_secs_f64(arguments.seconds);
    let tasks: Vec<_> = fences
        .into_iter()
        .map(|(run_id, fence)| {
            let load = Load { event: Arc::clone(&event), replies: arguments.replies, end };
            tokio::spawn(load.append(Arc::clone(&journal), run_id, fence))
        })
        .collect();
    let mut appends = 0_u64;
    for task in tasks {
        appends += task.await??;
    }
    let (elapsed, cpu) = (started.elapsed(), cpu_us()? - cpu);
    let count = f64::from(u32::try_from(appends)?);
    let rate = (count / elapsed.as_secs_f64()).round();
    let each = (f64::from(u32::try_from(cpu)?) / count * 10.0).round() / 10.0;
    println!("{}", json!({ "runs": arguments.runs, "appends": appends, "appends_s": rate, "cpu_us": each }));
    Ok(())
}

/// What each run appends.
struct Load {
    event: Arc<str>,
    replies: bool,
    end: Instant,
}

impl Load {
    /// Appends events to a run until the time is over; how many.
    async fn append(self, journal: Arc<dyn Journal>, run_id: String, fence: u64) -> Result<u64, StoreError> {
        let mut seq = 1;
        while Instant::now() < self.end {
            let status_record = (self.replies && seq % 2 == 0).then(|| StatusRecord {
                iterations: u32::try_from(seq / 2).unwrap_or(u32::MAX),
                tokens: Some(seq),
                cost_usd: Some(0.001),
                ..StatusRecord::new(Status::Running, 0)
            });
            let entry = Append::new(run_id.clone(), fence, seq, self.event.to_string());
            journal.append(Append { status_record, ..entry }).await?;
            seq += 1;
        }
        Ok(seq - 1)
    }
}

fn new_run(run_id: &str) -> NewRun {
    NewRun {
        run_id: run_id.to_owned(),
        loop_name: "appends".to_owned(),
        session: None,
        org: None,
        token: None,
        callback_url: None,
        parent_run_id: None,
        identity: "appends".to_owned(),
        start_key: None,
        at_ms: 0,
        event: "{}".to_owned(),
        texts: Vec::new(),
        scheduled: None,
        status_record: None,
        search_text: None,
        title: None,
        audit: None,
        line: None,
    }
}

/// Microseconds of CPU of this process so far.
fn cpu_us() -> Result<i64, Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
}
