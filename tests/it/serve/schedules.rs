//! Schedules: runs that a server starts by itself, each time once.

use std::sync::Arc;

use loopctl::engine::outcome::{Status, Termination};
use loopctl::journal::memory::MemoryJournal;
use loopctl::journal::{Created, Journal, LoopSwitch, NewRun, StatusRecord};
use loopctl::serve::app::App;
use loopctl::serve::schedules::ScheduledStarts;
use serde_json::{Value, json};

use crate::common::server::Server;
use crate::common::{Place, with};
use crate::serve::client::{Serving, served};
use crate::serve::workflows::{STORES, act, asks, place, tools};

const HOUR: i64 = 3_600_000;
/// 2026-11-22T10:00:00Z.
const TEN: i64 = 1_795_341_600_000;

/// A workflow that is started every hour, and asks nothing, or asks in each run.
fn hourly(tools: &Server, asking: bool) -> Place {
    let ask = asks(json!({ "comment": "Go on?", "request_payload": {} }));
    let steps = if asking { json!([ask, act("@input.n", None)]) } else { json!([act("@input.n", None)]) };
    place(tools, json!({ "schedule": { "every": "1h", "input": { "n": 7 } }, "actions": steps }))
}

fn ids(server: &Serving) -> Vec<String> {
    let list = server.get("/agents").json();
    let mut ids: Vec<String> =
        list["agents"].as_array().unwrap().iter().map(|run| run["agent_run_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// The status of a run once it is one of these.
fn until(server: &Serving, id: &str, words: &[&str]) -> Value {
    loop {
        let reply = server.get(&format!("/runs/{id}/status"));
        if reply.status == 200 && words.iter().any(|word| reply.json()["status"] == *word) {
            return reply.json();
        }
        crate::common::wait_poll_interval();
    }
}

#[test]
fn a_server_starts_the_run_of_each_time_by_itself_and_the_next_one_catches_up_with_the_last() {
    let tools = tools();
    let place = hourly(&tools, false);
    let real = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    // The file says how far the clock is ahead: the moments below are those of a clock that stands at about ten.
    let ahead = |at_ms: i64| place.file("clock", (at_ms - real).to_string());
    ahead(TEN + HOUR / 2);
    let clock = place.path().join("clock").to_str().unwrap().to_owned();
    let start = || Serving::start_with(&place, &["--store", "sqlite:runs.db"], &[("LOOPCTL_CLOCK", &clock)]);
    let server = start();
    // It answers once it looks at its schedules.
    assert_eq!(server.get("/healthz").status, 200);
    ahead(TEN + HOUR + HOUR / 2);
    let run = until(&server, "pay@20261122T110000Z", &["completed"]);
    assert_eq!((&run["context"]["input"], &run["loop"]), (&json!({ "n": 7 }), &json!("pay")), "{run:#}");
    drop(server);
    ahead(TEN + 5 * HOUR + HOUR / 2);
    let server = start();
    until(&server, "pay@20261122T150000Z", &["completed"]);
    ahead(TEN + 6 * HOUR + HOUR / 2);
    until(&server, "pay@20261122T160000Z", &["completed"]);
    assert_eq!(ids(&server), ["pay@20261122T110000Z", "pay@20261122T150000Z", "pay@20261122T160000Z"]);
    assert_eq!(tools.requests().len(), 3);
}

#[test]
fn a_time_that_was_skipped_because_the_line_was_full_stays_skipped() {
    let tools = tools();
    let ask = asks(json!({ "comment": "Go on?", "request_payload": {} }));
    let schedule = json!({ "every": "1h" });
    let place =
        place(&tools, json!({ "schedule": schedule, "concurrency": { "when_full": "refuse" }, "actions": [ask] }));
    // It is looked at after the other one, so its runs say how far that is.
    let tick = json!({ "schedule": schedule, "actions": [act("@now", None)] });
    place.json("workflows/tick.json", &json!({ "name": "tick", "definition": tick }));
    let real = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let ahead = |at_ms: i64| place.file("clock", (at_ms - real).to_string());
    ahead(TEN + HOUR / 2);
    let clock = place.path().join("clock").to_str().unwrap().to_owned();
    let start = || Serving::start_with(&place, &["--store", "sqlite:runs.db"], &[("LOOPCTL_CLOCK", &clock)]);
    let server = start();
    assert_eq!(server.get("/healthz").status, 200);
    let holder = server.post("/workflows/pay/execute", &json!({ "input": {} })).json()["run_id"].clone();
    ahead(TEN + HOUR + HOUR / 2);
    until(&server, "tick@20261122T110000Z", &["completed"]);
    let cancelled = server.send("DELETE", &format!("/agents/{}", holder.as_str().unwrap()), &[], b"");
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    drop(server);
    let server = start();
    assert_eq!(server.get("/healthz").status, 200);
    ahead(TEN + 2 * HOUR + HOUR / 2);
    until(&server, "tick@20261122T120000Z", &["completed"]);
    until(&server, "pay@20261122T120000Z", &["paused"]);
    assert!(!ids(&server).contains(&"pay@20261122T110000Z".to_owned()), "{:?}", ids(&server));
}

#[test]
fn the_listing_names_the_schedule_and_its_next_time() {
    for store in STORES {
        let tools = tools();
        let schedule = json!({ "every": "1d", "at": "06:00", "timezone": "America/New_York" });
        let place = place(&tools, json!({ "schedule": schedule, "actions": [act("@now", None)] }));
        let server = Serving::start(&place, store);
        let row = server.get("/loops").json()["loops"][0].clone();
        assert_eq!(with(row["schedule"].clone(), json!({ "next": null })), with(schedule, json!({ "next": null })));
        let next = row["schedule"]["next"].as_str().unwrap();
        assert!(next.ends_with("T10:00:00.000Z") || next.ends_with("T11:00:00.000Z"), "{next}");
    }
}

/// Starts what is due, without a server or a clock.
struct Looking {
    app: Arc<App>,
    starts: ScheduledStarts,
}

impl Looking {
    fn new(place: &Place, journal: &Arc<dyn Journal>, since_ms: i64) -> Self {
        Self { app: served(place, Arc::clone(journal)), starts: ScheduledStarts::since(since_ms) }
    }

    async fn look(&mut self, now_ms: i64) {
        self.starts.look(&self.app, now_ms).await;
    }

    /// The scheduled runs once none of them runs. One that was just made has no driver yet.
    async fn runs(&self) -> Vec<String> {
        loop {
            let runs = self.app.runs.journal.list(Default::default()).await.unwrap();
            if runs.iter().all(|run| !run.driven && run.status != Status::Running) {
                let mut runs: Vec<String> =
                    runs.into_iter().map(|run| format!("{} {}", run.run_id, run.status.word())).collect();
                runs.sort();
                return runs;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn journals(place: &Place) -> [Arc<dyn Journal>; 2] {
    [Arc::new(MemoryJournal::new()), loopctl::journal::open("sqlite:runs.db", place.path()).unwrap()]
}

fn block(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(work);
}

#[test]
fn a_time_waits_for_the_run_before_it_and_a_later_one_takes_its_place() {
    let tools = tools();
    let place = hourly(&tools, true);
    for journal in journals(&place) {
        block(async {
            let mut server = Looking::new(&place, &journal, TEN);
            server.look(TEN).await;
            assert!(server.runs().await.is_empty(), "no time has come since the start");
            server.look(TEN + HOUR).await;
            assert_eq!(server.runs().await, ["pay@20261122T110000Z paused"]);
            for hours in [2, 3, 4] {
                server.look(TEN + hours * HOUR).await;
            }
            assert_eq!(server.runs().await, ["pay@20261122T110000Z paused"]);
            let leave = server
                .app
                .scheduler
                .cancel("pay@20261122T110000Z", &Default::default(), Default::default())
                .await
                .unwrap();
            assert!(leave.is_some());
            server.look(TEN + 4 * HOUR + 1).await;
            server.look(TEN + 4 * HOUR + 2).await;
            assert_eq!(server.runs().await, ["pay@20261122T110000Z cancelled", "pay@20261122T140000Z paused"]);
        });
    }
}

#[test]
fn two_servers_and_a_restart_begin_a_time_once() {
    let tools = tools();
    let place = hourly(&tools, false);
    for journal in journals(&place) {
        block(async {
            let mut one = Looking::new(&place, &journal, TEN);
            let mut other = Looking::new(&place, &journal, TEN);
            tokio::join!(one.look(TEN + HOUR), other.look(TEN + HOUR));
            assert_eq!(one.runs().await, ["pay@20261122T110000Z completed"]);
            drop(one);
            let mut third = Looking::new(&place, &journal, TEN + HOUR + 1);
            third.look(TEN + HOUR + 2).await;
            // Three times were missed.
            third.look(TEN + 4 * HOUR).await;
            assert_eq!(third.runs().await, ["pay@20261122T110000Z completed", "pay@20261122T140000Z completed"]);
        });
    }
    assert_eq!(tools.requests().len(), 4);
}

#[test]
fn a_loop_without_a_schedule_is_not_started() {
    let tools = tools();
    let place = place(&tools, json!({ "actions": [act("@input.n", None)] }));
    for journal in journals(&place) {
        block(async {
            let mut server = Looking::new(&place, &journal, TEN);
            server.look(TEN + 1_000 * HOUR).await;
            assert!(server.runs().await.is_empty());
        });
    }
}

/// A run that no schedule started; it has ended.
async fn make(journal: &Arc<dyn Journal>, id: &str) {
    let record = StatusRecord {
        status: Status::Completed,
        termination: Some(Termination::Complete),
        iterations: 1,
        at_ms: TEN,
        ..StatusRecord::new(Status::Running, 0)
    };
    let new = NewRun {
        run_id: id.to_owned(),
        loop_name: "pay".to_owned(),
        session: None,
        org: None,
        token: None,
        callback_url: None,
        parent_run_id: None,
        identity: "by hand".to_owned(),
        start_key: None,
        at_ms: TEN,
        event: "{}".to_owned(),
        texts: Vec::new(),
        scheduled: None,
        status_record: Some(record),
        search_text: None,
        title: None,
        audit: None,
        line: None,
    };
    let Created::New(lease) = journal.create(new).await.unwrap() else { panic!("{id} is not new") };
    journal.release(id, lease.fence).await.unwrap();
}

#[test]
fn a_run_waits_for_the_one_before_it_whatever_other_runs_are_called() {
    let tools = tools();
    let place = hourly(&tools, true);
    for journal in journals(&place) {
        block(async {
            let mut server = Looking::new(&place, &journal, TEN);
            server.look(TEN + HOUR).await;
            for id in ["pay@extra", "pay@20261122T110000Z.1.0", "pay@20991122T110000Z"] {
                make(&journal, id).await;
            }
            server.look(TEN + 2 * HOUR).await;
            let paused =
                |runs: Vec<String>| -> Vec<String> { runs.into_iter().filter(|run| run.ends_with("paused")).collect() };
            assert_eq!(paused(server.runs().await), ["pay@20261122T110000Z paused"]);
            server.app.scheduler.cancel("pay@20261122T110000Z", &Default::default(), Default::default()).await.unwrap();
            server.look(TEN + 2 * HOUR + 1).await;
            assert_eq!(paused(server.runs().await), ["pay@20261122T120000Z paused"]);
        });
    }
}

#[test]
fn a_scheduled_run_whose_id_is_taken_gets_another_one() {
    let tools = tools();
    let place = hourly(&tools, false);
    for journal in journals(&place) {
        block(async {
            let mut server = Looking::new(&place, &journal, TEN);
            make(&journal, "pay@20261122T110000Z").await;
            server.look(TEN + HOUR).await;
            server.look(TEN + HOUR + 1).await;
            let runs = ["pay@20261122T110000Z completed", "pay@20261122T110000Z-2 completed"];
            assert_eq!(server.runs().await, runs);
            Looking::new(&place, &journal, TEN + HOUR + 2).look(TEN + HOUR + 3).await;
            assert_eq!(server.runs().await, runs);
        });
    }
}

#[test]
fn a_clock_that_was_ahead_stops_no_schedule() {
    let tools = tools();
    let place = hourly(&tools, false);
    for journal in journals(&place) {
        block(async {
            let mut ahead = Looking::new(&place, &journal, TEN + 2 * HOUR);
            ahead.look(TEN + 2 * HOUR).await;
            ahead.look(TEN + 3 * HOUR).await;
            assert_eq!(ahead.runs().await, ["pay@20261122T130000Z completed"]);
            drop(ahead);
            let mut right = Looking::new(&place, &journal, TEN);
            right.look(TEN + 1).await;
            assert_eq!(right.runs().await.len(), 1, "nothing was due since it looks");
            right.look(TEN + HOUR).await;
            right.runs().await;
            right.look(TEN + 2 * HOUR).await;
            let runs = ["pay@20261122T110000Z completed", "pay@20261122T120000Z completed"];
            assert_eq!(right.runs().await[..2], runs);
            // The time that the wrong clock took comes.
            right.look(TEN + 3 * HOUR).await;
            let runs = [runs[0], runs[1], "pay@20261122T130000Z completed", "pay@20261122T130000Z-2 completed"];
            assert_eq!(right.runs().await, runs);
        });
    }
}

#[test]
fn a_clock_that_is_set_back_under_a_server_stops_none_of_its_schedules() {
    let tools = tools();
    let place = hourly(&tools, false);
    for journal in journals(&place) {
        block(async {
            let mut server = Looking::new(&place, &journal, TEN + 5 * HOUR);
            server.look(TEN + 6 * HOUR).await;
            server.runs().await;
            server.look(TEN).await;
            server.look(TEN + HOUR).await;
            assert_eq!(server.runs().await, ["pay@20261122T110000Z completed", "pay@20261122T160000Z completed"]);
        });
    }
}

#[test]
fn times_before_a_schedule_was_first_seen_as_it_is_do_not_count() {
    let tools = tools();
    let of = |schedule: Value| place(&tools, json!({ "schedule": schedule, "actions": [act("@input.n", None)] }));
    let first = of(json!({ "every": "1d", "at": "06:00", "input": { "n": 7 } }));
    let others = [
        json!({ "every": "1d", "at": "07:00" }),
        json!({ "every": "12h" }),
        json!({ "every": "1d", "at": "06:00", "timezone": "America/New_York" }),
    ];
    let day = 24 * HOUR;
    let six = TEN - 4 * HOUR;
    for other in others {
        let other = of(with(other, json!({ "input": { "n": 7 } })));
        for journal in journals(&first) {
            block(async {
                let mut server = Looking::new(&first, &journal, six - 1_000);
                server.look(six - 1_000).await;
                server.look(six).await;
                let first_runs = server.runs().await;
                assert_eq!(first_runs.len(), 1);
                // Times of it have passed today; it was not there yet.
                let late = six + 16 * HOUR;
                let mut edited = Looking::new(&other, &journal, late);
                edited.look(late).await;
                assert_eq!(edited.runs().await, first_runs);
                edited.look(late + day).await;
                assert_eq!(edited.runs().await.len(), 2, "its next time");
                // Edited back: as if it were new.
                let mut back = Looking::new(&first, &journal, late + day + 1);
                back.look(late + day + 1).await;
                assert_eq!(back.runs().await.len(), 2);
                back.look(six + 2 * day).await;
                assert_eq!(back.runs().await.len(), 3);
                // While no server ran, times passed of a schedule that stays as it is.
                Looking::new(&first, &journal, late + 4 * day).look(late + 4 * day).await;
                assert_eq!(back.runs().await.len(), 4);
            });
        }
        std::fs::remove_file(first.path().join("runs.db")).unwrap();
    }
}

#[test]
fn the_listing_names_the_run_that_a_schedule_waits_for() {
    let tools = tools();
    let place = hourly(&tools, true);
    let real = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let ahead = |at_ms: i64| place.file("clock", (at_ms - real).to_string());
    ahead(TEN + HOUR / 2);
    let clock = place.path().join("clock").to_str().unwrap().to_owned();
    let server = Serving::start_with(&place, &["--store", "sqlite:runs.db"], &[("LOOPCTL_CLOCK", &clock)]);
    assert_eq!(server.get("/healthz").status, 200);
    let waited = || server.get("/loops").json()["loops"][0]["schedule"]["waits_for"].clone();
    assert_eq!(waited(), Value::Null);
    ahead(TEN + HOUR + HOUR / 2);
    until(&server, "pay@20261122T110000Z", &["paused"]);
    assert_eq!(waited(), Value::Null, "its next time has not come");
    ahead(TEN + 2 * HOUR + HOUR / 2);
    assert_eq!(waited(), json!({ "agent_run_id": "pay@20261122T110000Z", "status": "paused" }));
}

#[test]
fn a_schedule_that_waits_says_for_what_and_names_its_run_to_those_who_can_read_it() {
    let tools = tools();
    for asking in [false, true] {
        let pause = json!({ "id": "rest", "type": "wait", "properties": { "for": "30h" } });
        let ask = asks(json!({ "comment": "Go on?", "request_payload": {} }));
        let steps = json!([if asking { ask } else { pause }]);
        let place = place(&tools, json!({ "schedule": { "every": "1h", "input": {} }, "actions": steps }));
        let token = |name: &str, more: &[&str]| {
            let made = place.call(&[&["token", name, "--scope", "read"], more].concat());
            let (begin, end) = (made.stderr.find('{').unwrap(), made.stderr.rfind('}').unwrap());
            let entry: Value = serde_json::from_str(&made.stderr[begin..=end]).unwrap();
            (format!("Bearer {}", made.stdout.trim()), entry)
        };
        let ((ops, of_ops), (beta, of_beta)) = (token("ops", &[]), token("beta", &["--org", "beta"]));
        crate::serve::client::scripted(&place, &[], json!({ "serve": { "tokens": [of_ops, of_beta] } }));
        let real = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        let ahead = |at_ms: i64| place.file("clock", (at_ms - real).to_string());
        ahead(TEN + HOUR / 2);
        let (clock, log) = (place.path().join("clock"), place.path().join("log"));
        let env = [("LOOPCTL_CLOCK", clock.to_str().unwrap()), ("LOOPCTL_LOG", "info")];
        let server = Serving::start_logged_with(&place, &["--store", "sqlite:runs.db"], &log, &env);
        assert_eq!(server.get("/healthz").status, 200);
        ahead(TEN + HOUR + HOUR / 2);
        let id = "pay@20261122T110000Z";
        let read = |by: &str, path: &str| server.send("GET", path, &[("Authorization", by)], b"").json();
        while read(&ops, &format!("/agents/{id}/status"))["status"] != "paused" {
            crate::common::wait_poll_interval();
        }
        ahead(TEN + 2 * HOUR + HOUR / 2);
        let waited = |by: &str| read(by, "/loops")["loops"][0]["schedule"]["waits_for"].clone();
        assert_eq!(waited(&ops), json!({ "agent_run_id": id, "status": "paused" }));
        assert_eq!(waited(&beta), Value::Null);
        let said = |words: &str| std::fs::read_to_string(&log).unwrap().contains(words);
        while !said("the schedule of pay ") {
            crate::common::wait_poll_interval();
        }
        assert_eq!(said("waits for a decision"), asking, "{}", std::fs::read_to_string(&log).unwrap());
    }
}

#[test]
fn a_schedule_that_is_switched_off_starts_no_run_and_what_it_missed_is_over() {
    let tools = tools();
    let place = hourly(&tools, false);
    for journal in journals(&place) {
        block(async {
            let mut server = Looking::new(&place, &journal, TEN);
            let switch = |is_off: bool, at_ms: i64| LoopSwitch {
                name: "pay".to_owned(),
                is_off,
                at_ms,
                actor: None,
                reason: None,
            };
            server.look(TEN).await;
            server.app.switches.switch(&*journal, switch(true, TEN + HOUR / 2)).await.unwrap();
            server.look(TEN + HOUR).await;
            server.look(TEN + 2 * HOUR).await;
            assert!(server.runs().await.is_empty());
            server.app.switches.switch(&*journal, switch(false, TEN + 2 * HOUR + 1)).await.unwrap();
            server.look(TEN + 2 * HOUR + 2).await;
            // A server that starts now finds no missed time either.
            Looking::new(&place, &journal, TEN + 2 * HOUR + 3).look(TEN + 2 * HOUR + 3).await;
            assert!(server.runs().await.is_empty());
            server.look(TEN + 3 * HOUR).await;
            assert_eq!(server.runs().await, ["pay@20261122T130000Z completed"]);
        });
    }
}
