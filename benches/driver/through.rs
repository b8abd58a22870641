//! The load driver's runs through HTTP: how many, what a status takes meanwhile, and what runs that wait for
//! a human cost those that do not.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::driver::{Count, Work};
use super::served::{Client, Served, ended};

/// How the runs go through HTTP.
#[derive(Debug, Clone, Args)]
pub struct Through {
    /// The runs go through HTTP to a `loopctl serve` process: this program, else the one that was built
    /// beside the driver. Needs `--action progress`.
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1)]
    pub serve: Option<Option<PathBuf>>,
    /// So many ask for the status of runs under way meanwhile, each up to 50 times a second.
    #[arg(long, default_value_t = 0, requires = "serve")]
    pub readers: u32,
    /// Two servers: one has so many runs that wait for a human. The runs are played one at a time, turn
    /// about, in turns of 80.
    #[arg(long, requires = "serve")]
    pub paused: Option<u32>,
}

/// How long a reader rests between two questions.
const REST: Duration = Duration::from_millis(20);
/// So many runs a server has had before it is measured.
const FIRST: u32 = 256;
/// So many runs each of two servers has in a turn.
const TURN: u32 = 40;

impl Through {
    /// The program that is to serve; none when the runs do not go through HTTP.
    pub fn program(&self) -> Result<Option<PathBuf>, Box<dyn Error>> {
        let beside = || {
            let own = std::env::current_exe()?;
            let folder = own.parent().and_then(Path::parent).ok_or("the driver has no folder")?;
            Ok::<_, Box<dyn Error>>(folder.join("loopctl"))
        };
        self.serve.clone().map(|given| given.map_or_else(beside, Ok)).transpose()
    }
}

/// What is served: the program, and the folder with the loops `load` and `human`.
pub struct Place<'a> {
    pub program: &'a Path,
    pub folder: &'a Path,
}

impl Place<'_> {
    fn start(&self, store: &str, work: &Work) -> Result<Served, Box<dyn Error>> {
        Served::start(self.program, self.folder, store, work.workers().max(64))
    }

    fn store(&self, name: &str) -> String {
        format!("sqlite:{}", self.folder.join(name).display())
    }

    /// All runs, and how long a status took; the figures.
    pub async fn load(&self, work: Work, readers: u32) -> Result<Value, Box<dyn Error>> {
        let store = if work.durable { self.store("load.db") } else { "memory".to_owned() };
        let server = self.start(&store, &work)?;
        let times: Arc<Mutex<Vec<f64>>> = Arc::default();
        let mut asking = JoinSet::new();
        let workers = work.workers();
        let count = Arc::new(Count::new(work));
        for _ in 0..readers {
            asking.spawn(ask(server.client().clone(), Arc::clone(&times)));
        }
        play(workers, &count, server.client()).await?;
        let mut figures = count.figures("loopctl-serve")?;
        // A reader ends by itself only when something is wrong.
        if let Some(ended) = asking.try_join_next() {
            ended??;
        }
        asking.abort_all();
        server.end()?;
        let (cpu, memory) = ended()?;
        add(&mut figures, "server_cpu_s", json!(cpu));
        add(&mut figures, "server_peak_rss_mb", json!(memory));
        if readers > 0 {
            let times = times.lock().unwrap_or_else(PoisonError::into_inner).clone();
            add(&mut figures, "statuses", json!(times.len()));
            add(&mut figures, "status_p50_ms", json!(share(times.clone(), 50)));
            add(&mut figures, "status_p99_ms", json!(share(times, 99)));
        }
        Ok(figures)
    }

    /// What runs that wait for a human cost; the figures.
    pub async fn paused(&self, work: Work, paused: u32) -> Result<Value, Box<dyn Error>> {
        let (empty, full) = (self.store("empty.db"), self.store("full.db"));
        let server = self.start(&full, &work)?;
        warm(&server, &work, FIRST).await?;
        let before = server.resident_mb()?;
        pause(work.workers(), paused, server.client()).await?;
        let grown = server.resident_mb()? - before;
        server.end()?;
        let idle = self.found(&empty, &work).await?;
        let found = self.found(&full, &work).await?;
        // Where the system puts a process and its file falls on both: each turn has servers of its own.
        let all = work.runs.div_ceil(2 * TURN).max(1);
        let count = Count::new(Work { runs: all * 2 * TURN, ..work.clone() });
        let mut turns = Vec::new();
        for turn in 0..all {
            turns.push(self.turn((&empty, &full), &work, (turn, &count)).await?);
        }
        // The tenth of a hundred: what a run takes that nothing else of the machine disturbs.
        let calm = |of: fn(&Turn) -> &Vec<f64>| share(turns.iter().flat_map(of).copied().collect(), 10);
        let calm = calm(|turn| &turn.all_with) / calm(|turn| &turn.all);
        let middle = |of: fn(&Turn) -> f64| share(turns.iter().map(of).collect(), 50);
        let mut figures = count.figures("loopctl-serve")?;
        for (name, figure) in [
            ("grown_mb", grown),
            ("idle_mb", idle),
            ("found_mb", found - idle),
            ("run_ms", middle(|turn| turn.run)),
            ("run_with_paused_ms", middle(|turn| turn.run_with)),
            ("ratio", middle(|turn| turn.run_with / turn.run)),
            ("calm_ratio", calm),
            ("cpu_ratio", middle(|turn| turn.cpu_with / turn.cpu)),
        ] {
            add(&mut figures, name, json!(figure));
        }
        add(&mut figures, "paused", json!(paused));
        Ok(figures)
    }

    /// Some runs on each of two new servers, turn about.
    async fn turn(
        &self,
        (empty, full): (&str, &str),
        work: &Work,
        (turn, count): (u32, &Count),
    ) -> Result<Turn, Box<dyn Error>> {
        let order = if turn.is_multiple_of(2) { [empty, full] } else { [full, empty] };
        let [mut one, mut other] = [Vec::new(), Vec::new()];
        let servers = [self.start(order[0], work)?, self.start(order[1], work)?];
        for server in &servers {
            warm(server, work, 8).await?;
        }
        for run in 0..2 * TURN {
            let is_first = matches!(run % 4, 0 | 3);
            let (server, times) = if is_first { (&servers[0], &mut one) } else { (&servers[1], &mut other) };
            let sent = Instant::now();
            let answer = run_once(server.client()).await;
            times.push(sent.elapsed().as_secs_f64() * 1000.0);
            count.take(answer);
        }
        let mut cpu = [0.0, 0.0];
        for (cpu, server) in cpu.iter_mut().zip(servers) {
            let before = ended()?.0;
            server.end()?;
            *cpu = ended()?.0 - before;
        }
        let [cpu, cpu_with] = if turn.is_multiple_of(2) { cpu } else { [cpu[1], cpu[0]] };
        let (all, all_with) = if turn.is_multiple_of(2) { (one, other) } else { (other, one) };
        Ok(Turn { run: share(all.clone(), 50), run_with: share(all_with.clone(), 50), all, all_with, cpu, cpu_with })
    }

    /// The memory of a new server of a store that is there.
    async fn found(&self, store: &str, work: &Work) -> Result<f64, Box<dyn Error>> {
        let server = self.start(store, work)?;
        warm(&server, work, FIRST).await?;
        let memory = server.resident_mb()?;
        server.end()?;
        Ok(memory)
    }
}

/// What some runs took without runs that wait and with them: each and the median in milliseconds, and
/// the servers' seconds of CPU.
struct Turn {
    all: Vec<f64>,
    all_with: Vec<f64>,
    run: f64,
    run_with: f64,
    cpu: f64,
    cpu_with: f64,
}

/// What a server needs once, for its first runs, is no run's: it has had some.
async fn warm(server: &Served, work: &Work, runs: u32) -> Result<(), Box<dyn Error>> {
    let count = Arc::new(Count::new(Work { runs, ..work.clone() }));
    play(work.workers(), &count, server.client()).await?;
    all_right(&count, runs)
}

fn add(figures: &mut Value, name: &str, figure: Value) {
    if let Some(figures) = figures.as_object_mut() {
        figures.insert(name.to_owned(), figure);
    }
}

/// Fails when one of so many runs was not right.
fn all_right(count: &Count, runs: u32) -> Result<(), Box<dyn Error>> {
    let figures = count.figures("")?;
    if figures.get("ok_runs") == Some(&json!(runs)) {
        return Ok(());
    }
    Err(format!("not all of {runs} runs were right: {figures}").into())
}

/// A text of an answer.
fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// Plays the runs, so many at a time.
async fn play(workers: u32, count: &Arc<Count>, client: &Client) -> Result<(), Box<dyn Error>> {
    let mut set = JoinSet::new();
    for _ in 0..workers {
        let (client, count) = (client.clone(), Arc::clone(count));
        set.spawn(async move {
            while count.next().is_some() {
                count.take(run_once(&client).await);
            }
        });
    }
    while let Some(ended) = set.join_next().await {
        ended?;
    }
    Ok(())
}

/// One run, and its answer.
async fn run_once(client: &Client) -> Result<String, String> {
    let run = client.execute("load").await?;
    text(&run, "final_answer").map(str::to_owned).ok_or_else(|| format!("no answer: {run}"))
}

/// Brings so many runs to their pause.
async fn pause(workers: u32, paused: u32, client: &Client) -> Result<(), Box<dyn Error>> {
    let started = Arc::new(AtomicU32::new(0));
    let mut set = JoinSet::new();
    for _ in 0..workers {
        let (client, started) = (client.clone(), Arc::clone(&started));
        set.spawn(async move {
            while started.fetch_add(1, Ordering::Relaxed) < paused {
                let run = client.execute("human").await?;
                if text(&run, "status") != Some("paused") {
                    return Err(format!("a run does not wait: {run}"));
                }
            }
            Ok(())
        });
    }
    while let Some(ended) = set.join_next().await {
        ended??;
    }
    Ok(())
}

/// Asks for the status of runs under way, and notes how long it took in milliseconds.
async fn ask(client: Client, times: Arc<Mutex<Vec<f64>>>) -> Result<(), String> {
    loop {
        let list = client.get("/agents?status=running&limit=100").await?;
        let rows = list.get("agents").and_then(Value::as_array).into_iter().flatten();
        for run in rows.filter_map(|row| text(row, "agent_run_id")) {
            let sent = Instant::now();
            client.get(&format!("/agents/{run}/status")).await?;
            let time = sent.elapsed().as_secs_f64() * 1000.0;
            times.lock().unwrap_or_else(PoisonError::into_inner).push(time);
            tokio::time::sleep(REST).await;
        }
        tokio::time::sleep(REST).await;
    }
}

/// The time that so many of a hundred did not take longer than; 0 without any.
fn share(mut times: Vec<f64>, percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or_default()
}
