//! What holds after each play, whatever happened in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Cluster;
use super::history::History;
use super::world::CallName;

/// What came of a play.
#[derive(Debug, Clone, Default)]
pub struct Report {
    name: String,
    seeded: String,
    pub runs: usize,
    pub completed: usize,
    /// Runs that ask a human whether a call was made.
    pub uncertain: usize,
    pub takeovers: usize,
    /// How often a run was set aside and resumed.
    set_aside: usize,
    pub calls: usize,
    /// Calls that were made again.
    pub again: usize,
    violations: Vec<String>,
    /// How often a run was read during the play.
    reads: usize,
}

/// A run, as its row and its events are.
struct JudgedRun {
    number: usize,
    status: String,
    termination: String,
    iterations: i64,
    /// How often its driver was another than before. Who writes its first event only puts it into the queue.
    takeovers: usize,
}

impl Report {
    fn holds(&mut self, condition: bool, why: impl FnOnce() -> String) {
        if !condition {
            self.violations.push(why());
        }
    }

    /// What was read must be explained by one order of appends and reads.
    pub fn explained(&mut self, history: &History) {
        self.reads = history.counts().1;
        self.violations.extend(history.violations());
    }

    /// Fails the test when something does not hold; a play whose fault makes takeovers must have made some.
    pub fn sound(mut self, least_takeovers: usize) -> Self {
        let Self { runs, completed, uncertain, takeovers, set_aside, calls, again, reads, .. } = self;
        let line = format!(
            "{}: {runs} runs, {completed} completed, {uncertain} uncertain, {takeovers} takeovers, {set_aside} set aside, {calls} calls, {again} of them again, {reads} reads, {}",
            self.name, self.seeded
        );
        eprintln!("{line}");
        self.holds(takeovers >= least_takeovers, || format!("fewer than {least_takeovers} takeovers"));
        assert!(self.violations.is_empty(), "{line}\n{}", self.violations.join("\n"));
        self
    }
}

/// Holds a settled cluster against the invariants.
pub fn judge(cluster: &Cluster, name: &str) -> Report {
    let (seeded, set_aside) = (cluster.seeded(), cluster.set_aside());
    let mut report = Report { name: name.to_owned(), seeded, set_aside, ..Report::default() };
    let runs = runs(cluster, &mut report);
    stored(cluster, &mut report);
    calls(cluster, &runs, &mut report);
    folds(cluster, &runs, &mut report);
    let started = cluster.runs().len();
    report.holds(runs.len() == started, || format!("{} runs of {started} are there", runs.len()));
    let progressed = runs.values().filter(|run| run.iterations > 1 || run.status == "completed").count();
    let all = report.runs;
    report.holds(progressed * 10 >= all * 9, || format!("{progressed} of {all} runs made progress"));
    report
}

/// Holds a settled cluster against what holds although acknowledged events are gone.
pub fn judge_what_is_left(cluster: &Cluster, name: &str) -> Report {
    let (seeded, set_aside) = (cluster.seeded(), cluster.set_aside());
    let mut report = Report { name: name.to_owned(), seeded, set_aside, ..Report::default() };
    let runs = runs(cluster, &mut report);
    stored(cluster, &mut report);
    folds(cluster, &runs, &mut report);
    report
}

/// Each run ended, or waits with a cause; none is lost, none is doubled.
fn runs(cluster: &Cluster, report: &mut Report) -> BTreeMap<String, JudgedRun> {
    let numbers: BTreeMap<String, usize> = cluster.runs().into_iter().map(|(number, id)| (id, number)).collect();
    let rows = cluster.store.tell(
        "SELECT r.run_id, r.status, coalesce(r.termination, '-'), r.iterations,
           (SELECT greatest(count(DISTINCT e.fence), 1) - 1 FROM @.events e WHERE e.run = r.id AND e.seq > 0) FROM @.runs r",
    );
    let mut runs = BTreeMap::new();
    for row in rows.lines() {
        let [id, status, termination, iterations, takeovers] = row.split('|').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let Some(number) = numbers.get(id).copied() else {
            report.violations.push(format!("nobody started {id}"));
            continue;
        };
        let run = JudgedRun {
            number,
            status: status.to_owned(),
            termination: termination.to_owned(),
            iterations: iterations.parse().unwrap(),
            takeovers: takeovers.parse().unwrap(),
        };
        report.runs += 1;
        report.completed += usize::from(status == "completed");
        report.uncertain += usize::from(termination == "uncertain");
        report.takeovers += run.takeovers;
        let has_cause = matches!((status, termination), ("completed", _) | ("paused", "uncertain"));
        report.holds(has_cause, || format!("run {id} ({number}) is {status}, {termination}"));
        runs.insert(id.to_owned(), run);
    }
    runs
}

/// The events of a run have no gap, and their fences never fall.
fn stored(cluster: &Cluster, report: &mut Report) {
    for (what, sql) in [
        ("has a gap", "SELECT run FROM @.events GROUP BY run HAVING count(*) <> max(seq) + 1 OR min(seq) <> 0"),
        (
            "has an event of an older driver behind a newer one's",
            "SELECT DISTINCT run FROM (SELECT run, fence < lag(fence) OVER (PARTITION BY run ORDER BY seq) AS fell
               FROM @.events) e WHERE fell",
        ),
        (
            "has a fence below that of its events",
            "SELECT r.id FROM @.runs r WHERE r.fence < (SELECT max(e.fence) FROM @.events e WHERE e.run = r.id)",
        ),
        (
            "has events and no row",
            "SELECT DISTINCT run FROM @.events e WHERE NOT EXISTS (SELECT 1 FROM @.runs r WHERE r.id = e.run)",
        ),
    ] {
        for run in cluster.store.tell(sql).lines() {
            report.violations.push(format!("the run of row {run} {what}"));
        }
    }
}

/// A call that is idempotent was made at most once for each driver, always with its key; any other at most once. No call
/// of a run that completed is missing.
fn calls(cluster: &Cluster, runs: &BTreeMap<String, JudgedRun>, report: &mut Report) {
    let log = cluster.world.log();
    let by_number: BTreeMap<usize, &JudgedRun> = runs.values().map(|run| (run.number, run)).collect();
    let mut all_keys = BTreeSet::new();
    for (call, keys) in &log {
        report.calls += keys.len();
        report.again += keys.len() - 1;
        let takeovers = by_number.get(&call.run).map_or(0, |run| run.takeovers);
        let most = if cluster.play.is_idempotent(call.at) { 1 + takeovers } else { 1 };
        report.holds(keys.len() <= most, || {
            format!("{call:?} was made {} times, and its run was taken over {takeovers} times", keys.len())
        });
        let distinct: BTreeSet<&String> = keys.iter().collect();
        report.holds(distinct.len() == 1, || format!("{call:?} was made with the keys {distinct:?}"));
        report.holds(all_keys.insert(keys[0].clone()), || format!("{call:?} has the key of another call"));
    }
    for run in runs.values().filter(|run| run.status == "completed") {
        let lost = (0..cluster.play.calls).find(|at| !log.contains_key(&CallName { run: run.number, at: *at }));
        report.holds(lost.is_none(), || format!("run {} completed without its call {lost:?}", run.number));
        let iterations = i64::try_from(cluster.play.calls + 1).unwrap();
        report.holds(run.iterations == iterations, || format!("run {} has {} iterations", run.number, run.iterations));
    }
}

/// What the events of a run come to is what its row says.
fn folds(cluster: &Cluster, runs: &BTreeMap<String, JudgedRun>, report: &mut Report) {
    let worker = cluster.workers.iter().find(|worker| worker.get("/healthz").is_some()).unwrap();
    for (id, run) in runs {
        let Some(reply) = worker.get(&format!("/agents/{id}/trace")) else {
            report.violations.push(format!("run {id} can't be read"));
            continue;
        };
        let fold: Value = reply.json();
        let termination = fold["termination"].as_str().unwrap_or("-");
        let is_same = fold["status"] == run.status.as_str()
            && termination == run.termination
            && fold["iterations"] == run.iterations;
        report.holds(is_same, || {
            format!(
                "run {id} is {}, {}, {} by its row; its events: {}, {termination}, {}",
                run.status, run.termination, run.iterations, fold["status"], fold["iterations"]
            )
        });
    }
}
