//! Events from outside, and the runs that wait for them.

use serde_json::json;

use super::*;
use crate::journal::outside_event::{KEPT_PAGE_EVENTS, MOST_EVENTS, awaits_column, queued_id};
use loopctl_engine::outcome::Status;
use loopctl_engine::question::EventMatch;

fn of(org: Option<&str>, id: &str, event: &str) -> OutsideEvent {
    OutsideEvent {
        org: org.map(str::to_owned),
        id: id.to_owned(),
        event: event.to_owned(),
        data: json!({ "of": id, "nul": "\u{0}" }).to_string(),
        at_ms: 1_000,
        keep_until_ms: 5_000,
    }
}

fn put(journal: &dyn Journal, event: OutsideEvent) -> EventPut {
    wait(journal.put_event(event)).unwrap()
}

fn kept(journal: &dyn Journal, run_id: &str, names: &[&str], now_ms: i64) -> Vec<String> {
    kept_after(journal, run_id, names, now_ms, 0).into_iter().map(|kept| kept.event.id).collect()
}

fn kept_after(journal: &dyn Journal, run_id: &str, names: &[&str], now_ms: i64, after: i64) -> Vec<KeptEvent> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    wait(journal.kept_events(run_id, KeptQuery { names, now_ms, after })).unwrap()
}

pub(super) fn an_event_is_kept_once_for_its_organisation_and_for_its_time(journal: &dyn Journal) {
    wait(journal.create(NewRun { org: Some("acme".to_owned()), ..new_run("of-acme") })).unwrap();
    begin(journal, "of-none");
    let acme = Some("acme");
    assert_eq!(put(journal, of(acme, "b", "paid")), EventPut::New);
    assert_eq!(put(journal, of(acme, "a", "paid")), EventPut::New);
    assert_eq!(put(journal, of(acme, "c", "sent")), EventPut::New);
    let again = OutsideEvent { at_ms: 1_500, keep_until_ms: 5_500, ..of(acme, "a", "paid") };
    assert_eq!(put(journal, again.clone()), EventPut::Same { keep_until_ms: 5_000 });
    let other_order = OutsideEvent { data: "{\"nul\": \"\\u0000\", \"of\": \"a\"}".to_owned(), ..again };
    assert_eq!(
        put(journal, other_order),
        EventPut::Same { keep_until_ms: 5_000 },
        "whatever the order of the members is"
    );
    assert_eq!(put(journal, of(acme, "a", "sent")), EventPut::Conflict);
    assert_eq!(put(journal, OutsideEvent { data: "1".to_owned(), ..of(acme, "a", "paid") }), EventPut::Conflict);
    assert_eq!(put(journal, of(None, "a", "paid")), EventPut::New, "another organisation has ids of its own");
    assert_eq!(kept(journal, "of-acme", &["paid"], 2_000), ["b", "a"], "in the order in which they came");
    assert_eq!(kept(journal, "of-acme", &["paid", "sent", "other"], 2_000), ["b", "a", "c"]);
    assert_eq!(kept(journal, "of-acme", &[], 2_000), Vec::<String>::new());
    let of_none = kept_after(journal, "of-none", &["paid"], 2_000, 0).into_iter().map(|kept| kept.event);
    assert_eq!(of_none.collect::<Vec<_>>(), [of(None, "a", "paid")], "and its data comes back as it was");
    let mark = |id: &str, is_taken| wait(journal.mark_event("of-acme", id, is_taken)).unwrap();
    assert_eq!([mark("b", true), mark("b", true), mark("nobody's", true)], [true, false, false]);
    assert_eq!(kept(journal, "of-acme", &["paid"], 2_000), ["a"]);
    assert_eq!([mark("b", false), mark("b", false), mark("b", true)], [true, false, true]);
    assert_eq!(kept(journal, "of-none", &["paid"], 2_000), ["a"], "that of another organisation is another one");
    assert_eq!(put(journal, of(acme, "b", "paid")), EventPut::Same { keep_until_ms: 5_000 }, "its id is known");
    assert_eq!(kept(journal, "of-acme", &["paid"], 5_000), Vec::<String>::new(), "its time is over");
    let later = OutsideEvent { at_ms: 5_000, keep_until_ms: 9_000, ..of(acme, "b", "sent") };
    assert_eq!(put(journal, later), EventPut::New, "and then its id is free");
}

pub(super) fn an_organisation_has_a_bounded_number_of_events(journal: &dyn Journal) {
    for number in 0..MOST_EVENTS {
        let tickets = journal.put_event(of(None, &format!("e{number}"), "paid"));
        assert_eq!(wait(tickets).unwrap(), EventPut::New);
    }
    assert_eq!(put(journal, of(None, "more", "paid")), EventPut::Full);
    assert_eq!(put(journal, of(None, "e7", "paid")), EventPut::Same { keep_until_ms: 5_000 });
    begin(journal, "looks");
    // A run that looks at them gets all of them, page by page.
    let (mut seen, mut after) = (0, 0);
    while let Some(last) = kept_after(journal, "looks", &["paid"], 2_000, after).last() {
        (seen, after) = (seen + KEPT_PAGE_EVENTS, last.number);
    }
    assert_eq!(u64::try_from(seen).unwrap(), MOST_EVENTS);
    assert_eq!(put(journal, of(Some("acme"), "more", "paid")), EventPut::New, "that of another one has room");
}

pub(super) fn the_runs_that_wait_for_an_event_are_found_by_its_name_and_woken(journal: &dyn Journal) {
    let awaits = |event: &str| {
        let matches = json!({ "text": "\"event\":\"other\"" }).as_object().unwrap().clone();
        let takes = EventMatch { event: event.to_owned(), matches };
        vec![AwaitedEvent { at: "0".to_owned(), hash: Some("0f".to_owned()), takes, until_ms: Some(90_000) }]
    };
    let record = |status, event: Option<&str>| StatusRecord {
        termination: Some(Termination::WaitingEvent).filter(|_| status == Status::Paused),
        awaits: event.and_then(|event| awaits_column(&awaits(event))),
        due_at_ms: Some(90_000).filter(|_| status == Status::Paused),
        ..StatusRecord::new(status, 1)
    };
    let acme = |id: &str| NewRun { org: Some("acme".to_owned()), ..new_run(id) };
    for (run, status, event) in [
        (acme("waits"), Status::Paused, Some("paid")),
        (acme("beside"), Status::Running, Some("paid")),
        (acme("other"), Status::Paused, Some("sent")),
        (acme("works"), Status::Running, None),
        (acme("over"), Status::Cancelled, Some("paid")),
        (new_run("of-none"), Status::Paused, Some("paid")),
        (NewRun { parent_run_id: Some("waits".to_owned()), ..acme("waits.1.0") }, Status::Paused, Some("paid")),
    ] {
        let id = run.run_id.clone();
        wait(journal.create(run)).unwrap();
        let append = Append { status_record: Some(record(status, event)), ..event_of(&id) };
        wait(journal.append(append)).unwrap();
        wait(journal.release(&id, 1)).unwrap();
    }
    let waiters = |org: Option<&str>, event: &str| wait(journal.event_waiters(org, event)).unwrap();
    let ids = |waiters: Vec<EventWaiter>| waiters.into_iter().map(|waiter| waiter.run_id).collect::<Vec<_>>();
    let found = waiters(Some("acme"), "paid");
    assert_eq!(found[0].awaits, awaits("paid"));
    assert_eq!(ids(found), ["waits", "beside"]);
    assert_eq!(ids(waiters(None, "paid")), ["of-none"]);
    assert_eq!(ids(waiters(Some("acme"), "pai")), Vec::<String>::new());
    assert_eq!(ids(waiters(Some("other"), "paid")), Vec::<String>::new());
    // A run that waits no longer is not found.
    let lease = wait(journal.lease("beside")).unwrap();
    let next = Append { fence: lease.fence, seq: lease.events, ..event_of("beside") };
    wait(journal.append(Append { status_record: Some(record(Status::Running, None)), ..next })).unwrap();
    assert_eq!(ids(waiters(Some("acme"), "paid")), ["waits"]);
    // What is queued for a run that nobody drives makes it due.
    let decision =
        QueuedDecision { id: "e 0".to_owned(), subject: "0".to_owned(), decision: "{}".to_owned(), refused: None };
    let queue = || wait(journal.queue(QueueQuery { now_ms: 10, except: vec!["works".to_owned()] })).unwrap();
    assert_eq!(queue().len(), 0);
    assert_eq!(wait(journal.queue_event("waits", decision.clone())).unwrap(), Queueing::Queued);
    assert_eq!(wait(journal.queue_event("waits", decision.clone())).unwrap(), Queueing::Queued, "sent again");
    let other = QueuedDecision { id: "other".to_owned(), ..decision.clone() };
    assert_eq!(wait(journal.queue_event("waits", other)).unwrap(), Queueing::Occupied);
    assert_eq!(wait(journal.queue_event("nobody", decision)).unwrap_err(), StoreError::NoSuchRun("nobody".to_owned()));
    assert_eq!(queue().iter().map(|queued| queued.runs).sum::<u64>(), 1);
    let share = QueueShare { org: Some("acme".to_owned()), token: None, runs: 9 };
    let waiting = QueueQuery { now_ms: 10, except: vec!["works".to_owned()] };
    let claimed = wait(journal.claim(waiting, vec![share])).unwrap();
    assert_eq!(claimed.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["waits"]);
    assert_eq!(wait(journal.queued_decisions("waits")).unwrap().len(), 1);
}

pub(super) fn an_event_that_is_queued_for_a_run_is_kept_for_no_other_one(journal: &dyn Journal) {
    let acme = |id: &str| NewRun { org: Some("acme".to_owned()), ..new_run(id) };
    for run in [acme("waits"), acme("begins"), new_run("of-none")] {
        wait(journal.create(run)).unwrap();
    }
    for (org, id) in [(Some("acme"), "e 1"), (Some("acme"), "e"), (None, "e 1")] {
        assert_eq!(put(journal, of(org, id, "paid")), EventPut::New);
    }
    let sees = |run: &str| kept(journal, run, &["paid"], 2_000);
    let queued = QueuedDecision {
        id: queued_id("e 1", "lines.0.wait"),
        subject: "lines.0.wait".to_owned(),
        decision: "{}".to_owned(),
        refused: None,
    };
    assert_eq!(sees("begins"), ["e 1", "e"]);
    assert_eq!(wait(journal.queue_event("waits", queued.clone())).unwrap(), Queueing::Queued);
    assert_eq!(sees("begins"), ["e"], "the run is about to take it");
    assert_eq!(sees("of-none"), ["e 1"], "that of another organisation is another one");
    let refused = SettledDecision::Refused { why: "the step has ended".to_owned(), due_at_ms: None };
    wait(journal.settle_decision("waits", &queued.id, refused)).unwrap();
    assert_eq!(sees("begins"), ["e 1", "e"], "it did not after all");
    assert_eq!(wait(journal.queue_event("waits", queued)).unwrap(), Queueing::Queued);
    assert_eq!(sees("begins"), ["e"]);
    let over = StatusRecord::new(Status::Cancelled, 1);
    wait(journal.append(Append { status_record: Some(over), ..event_of("waits") })).unwrap();
    assert_eq!(sees("begins"), ["e 1", "e"], "a run that has ended takes none");
}

/// The second event of a run.
fn event_of(run_id: &str) -> Append {
    event(run_id, 1, 1)
}

pub(super) fn what_is_queued_of_an_event_says_whether_it_was_marked_for_its_run(journal: &dyn Journal) {
    begin(journal, "one");
    begin(journal, "other");
    assert_eq!(put(journal, of(None, "a b", "paid")), EventPut::New);
    let queued = |id: &str, at: &str| QueuedDecision {
        id: queued_id(id, at),
        subject: format!("{at} {id}"),
        decision: "{\"event\":\"paid\"}".to_owned(),
        refused: None,
    };
    for (run, id) in [("one", "a b"), ("one", "a"), ("other", "a b")] {
        assert_eq!(wait(journal.queue_event(run, queued(id, "0"))).unwrap(), Queueing::Queued);
    }
    let of_run = |run: &str| {
        let queued = wait(journal.queued_decisions(run)).unwrap();
        queued.into_iter().map(|queued| (queued.id, queued.decision.contains("\"marked\":true"))).collect::<Vec<_>>()
    };
    let (long, short) = (queued_id("a b", "0"), queued_id("a", "0"));
    assert!(wait(journal.mark_event("one", "a b", true)).unwrap());
    assert!(!wait(journal.mark_event("other", "a b", true)).unwrap());
    // The same event may be sent again.
    assert_eq!(wait(journal.queue_event("one", queued("a b", "0"))).unwrap(), Queueing::Queued);
    assert_eq!(of_run("one"), [(short.clone(), false), (long.clone(), true)]);
    assert_eq!(of_run("other"), [(long.clone(), false)]);
    let is_json = |queued: &QueuedDecision| serde_json::from_str::<serde_json::Value>(&queued.decision).is_ok();
    assert!(wait(journal.queued_decisions("one")).unwrap().iter().all(is_json));
    assert!(wait(journal.mark_event("one", "a b", false)).unwrap());
    assert_eq!(of_run("one"), [(short, false), (long, false)]);
    assert!(wait(journal.queued_decisions("one")).unwrap().iter().all(is_json));
}
