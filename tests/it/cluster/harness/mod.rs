//! A cluster to break: PostgreSQL, several `loopctl serve`, a model and tools that are played, and faults that follow
//! from a seed. After a play, [`invariants`] says what must hold whatever happened.

pub mod database;
pub mod elle;
pub mod history;
pub mod invariants;
pub mod proxy;
pub mod watch;
pub mod worker;
pub mod world;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::database::Store;
use self::invariants::Report;
use self::watch::Watch;
use self::worker::{Signals, Worker};
use self::world::World;

/// Longer than runs stand still on a busy machine, whatever fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// The variable that repeats a play.
const SEED: &str = "LOOPCTL_SEED";

/// What is played.
#[derive(Debug, Clone, Copy)]
pub struct Play {
    pub workers: usize,
    /// How many runs each worker executes at once.
    pub slots: usize,
    pub runs: usize,
    /// How many calls each run makes.
    pub calls: usize,
    /// How long the model thinks.
    pub model_ms: u64,
    /// How long a call takes.
    pub tool_ms: u64,
    /// Whether every second call must not be repeated.
    pub has_once: bool,
}

impl Play {
    /// Whether the call of this number may be repeated.
    pub fn is_idempotent(&self, at: usize) -> bool {
        !self.has_once || at.is_multiple_of(2)
    }
}

/// How long the runs of a worker that is silent are left alone: the shortest that a store takes.
pub const LEASE: Duration = Duration::from_secs(1);

/// A play under way.
pub struct Cluster {
    pub play: Play,
    pub store: Store,
    pub world: World,
    pub workers: Vec<Worker>,
    pub chance: fastrand::Rng,
    seed: u64,
    /// The address by which workers reach the store.
    address: String,
    /// The ids of the runs, by their number.
    runs: Arc<Mutex<BTreeMap<usize, String>>>,
    /// Where the workers listen.
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    /// Who reads the runs meanwhile.
    watch: Option<Watch>,
    /// How many calls there were when there were more than before, and when that was.
    progress: Mutex<(usize, Instant)>,
    /// How often a run was set aside, because three drivers in a row died before anything happened in it.
    set_aside: AtomicUsize,
}

/// The seed of a play: the one that is to be repeated, or that of the play.
fn seed(usual: u64) -> u64 {
    #![allow(clippy::disallowed_methods, reason = "the environment says which play is repeated")]
    std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(usual)
}

impl Cluster {
    /// Starts workers before a store; `address` is where they find it.
    pub fn start(play: Play, store: Store, address: &str, usual_seed: u64) -> Self {
        #![allow(clippy::disallowed_methods, reason = "a play that hangs must end")]
        let seed = seed(usual_seed);
        let world = World::new(&play);
        let mut cluster = Self {
            play,
            store,
            world,
            workers: Vec::new(),
            chance: fastrand::Rng::with_seed(seed),
            seed,
            address: address.to_owned(),
            runs: Arc::default(),
            addresses: Arc::default(),
            watch: None,
            progress: Mutex::new((0, Instant::now())),
            set_aside: AtomicUsize::new(0),
        };
        cluster.workers = (0..play.workers).map(|_| cluster.new_worker()).collect();
        *cluster.addresses.lock().unwrap() = cluster.workers.iter().map(|worker| worker.address).collect();
        cluster
    }

    /// One more worker, which is not in the list yet.
    pub fn new_worker(&self) -> Worker {
        Worker::start(&self.world.place, &self.address, self.play.slots)
    }

    /// The seed, for messages.
    pub fn seeded(&self) -> String {
        format!("{SEED}={}", self.seed)
    }

    /// Starts all runs, on all workers.
    pub fn load(&self) {
        std::thread::scope(|scope| {
            for (first, worker) in self.workers.iter().enumerate() {
                scope.spawn(move || {
                    for number in (first..self.play.runs).step_by(self.workers.len()) {
                        let reply = worker.begin(number).unwrap_or_else(|| panic!("run {number} is not started"));
                        assert_eq!(reply.status, 202, "{reply:?}");
                        self.note(number, &reply.json());
                    }
                });
            }
        });
    }

    /// Notes the id of a run: it never changes.
    pub fn note(&self, number: usize, started: &Value) {
        let id = started["agent_run_id"].as_str().unwrap_or_else(|| panic!("no run: {started}")).to_owned();
        let before = self.runs.lock().unwrap().insert(number, id.clone());
        assert!(before.is_none_or(|before| before == id), "run {number} has two ids, {}", self.seeded());
    }

    /// The ids of the runs that were started, by their number.
    pub fn runs(&self) -> BTreeMap<usize, String> {
        self.runs.lock().unwrap().clone()
    }

    /// Whether all runs ended or wait for a human. What is set aside is resumed, as an operator does.
    pub fn is_settled(&self) -> bool {
        let running = "SELECT count(*), string_agg(run_id, ' ') FILTER (WHERE failed_take_ups >= 3 AND driver IS NULL)
             FROM @.runs WHERE status = 'running'";
        let Some(answer) = self.store.ask(running) else { return false };
        let (running, set_aside) = answer.split_once('|').unwrap();
        for run in set_aside.split_whitespace() {
            let (target, body) = (format!("/agents/{run}/resume?async=true"), br#"{"resume":true}"#);
            let replies = self.workers.iter().filter_map(|worker| worker.ask("POST", &target, &[], body));
            // The worker may just be killed, or somebody else has it.
            if replies.take(1).any(|reply| reply.status < 300) {
                self.set_aside.fetch_add(1, Ordering::SeqCst);
            }
        }
        running == "0"
    }

    /// How often a run was set aside and resumed.
    pub fn set_aside(&self) -> usize {
        self.set_aside.load(Ordering::SeqCst)
    }

    /// Waits for some more calls; `false` when the runs settled before.
    pub fn goes_on(&self, calls: usize) -> bool {
        let aim = self.world.calls() + calls;
        loop {
            if self.world.wait_for(aim, Duration::from_millis(200)) {
                return true;
            }
            if self.is_settled() {
                return false;
            }
            self.must_end();
        }
    }

    /// Waits for some more calls. Between two requests of a client, all runs may be settled.
    pub fn wait_for_calls(&self, calls: usize) {
        let aim = self.world.calls() + calls;
        while !self.world.wait_for(aim, Duration::from_millis(200)) {
            self.must_end();
        }
    }

    /// Waits until all runs settled.
    pub fn settle(&self) {
        while !self.is_settled() {
            std::thread::sleep(Duration::from_millis(50));
            self.must_end();
        }
    }

    fn must_end(&self) {
        #![allow(clippy::disallowed_methods, reason = "a play that hangs must end")]
        let mut progress = self.progress.lock().unwrap();
        let calls = self.world.calls();
        if calls > progress.0 {
            *progress = (calls, Instant::now());
        }
        if progress.1.elapsed() < PATIENCE {
            return;
        }
        let stuck = self.store.ask(
            "SELECT string_agg(run_id || ' ' || fence || ' ' || coalesce(driver::text, '-') || ' ' || failed_take_ups, E'\\n')
             FROM @.runs WHERE status = 'running'",
        );
        panic!("these runs stand still, {}:\n{}", self.seeded(), stuck.unwrap_or_default());
    }

    /// Waits for a part of a lease, in hundredths.
    pub fn wait_leases(&self, hundredths: u32) {
        std::thread::sleep(LEASE * hundredths / 100);
    }

    /// A number that follows from the seed.
    pub fn pick(&mut self, below: usize) -> usize {
        self.chance.usize(0..below)
    }

    /// Kills a worker, and starts another in its place.
    pub fn replace(&mut self, worker: usize) {
        let new = self.new_worker();
        self.addresses.lock().unwrap()[worker] = new.address;
        std::mem::replace(&mut self.workers[worker], new).signal(Signals::Kill);
    }

    /// Reads runs at all workers from now on, and holds what they show against the calls that arrive.
    pub fn watch(&mut self) {
        self.watch = Some(Watch::start(Arc::clone(&self.addresses), Arc::clone(&self.runs), self.seed));
    }

    /// Settles, and holds what is there against the invariants.
    pub fn judge(mut self, name: &str) -> Report {
        self.settle();
        let mut report = invariants::judge(&self, name);
        if let Some(watch) = self.watch.take() {
            let history = watch.end();
            self.world.append_to(&history);
            report.explained(&history);
        }
        report
    }

    /// The same when the database lost what it had acknowledged: calls whose events are gone are made again.
    pub fn judge_what_is_left(self, name: &str) -> Report {
        self.settle();
        invariants::judge_what_is_left(&self, name)
    }
}

/// The body that starts a run.
pub fn start_body(number: usize) -> Value {
    json!({ "loop": "test", "input": { "n": number } })
}
