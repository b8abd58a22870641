//! Decisions that wait for the driver of their run.

use super::*;
use loopctl_engine::outcome::Status;

fn decision(id: &str, subject: &str) -> QueuedDecision {
    QueuedDecision {
        id: id.to_owned(),
        subject: subject.to_owned(),
        decision: format!("{{\"of\": \"{id}\", \"nul\": \"\u{0}\"}}"),
        refused: None,
    }
}

fn refused(why: &str) -> SettledDecision {
    SettledDecision::Refused { why: why.to_owned(), due_at_ms: None }
}

/// The last event of a run, which pauses.
fn pause(fence: u64, seq: u64) -> Append {
    let record = StatusRecord {
        status: Status::Paused,
        termination: Some(Termination::Human),
        iterations: 0,
        at_ms: 1_000,
        due_at_ms: Some(9_000),
        ..StatusRecord::new(Status::Running, 0)
    };
    Append { status_record: Some(record), ..event("r", fence, seq) }
}

fn waiting(journal: &dyn Journal, now_ms: i64) -> usize {
    wait(journal.queue(QueueQuery { now_ms, except: Vec::new() })).unwrap().len()
}

pub(super) fn a_decision_waits_for_the_driver_one_for_each_step(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    begin(journal, "other");
    let queue = |run: &str, id: &str, subject: &str| wait(journal.queue_decision(run, decision(id, subject)));
    assert_eq!(queue("r", "b", "each.2").unwrap(), Queueing::Queued);
    assert_eq!(queue("r", "a", "each.1").unwrap(), Queueing::Queued);
    assert_eq!(queue("r", "a", "each.1").unwrap(), Queueing::Queued, "sent again");
    assert_eq!(queue("r", "c", "each.1").unwrap(), Queueing::Occupied);
    assert_eq!(queue("nobody", "c", "each.1").unwrap_err(), StoreError::NoSuchRun("nobody".to_owned()));
    let queued = || wait(journal.queued_decisions("r")).unwrap();
    assert_eq!(queued(), [decision("a", "each.1"), decision("b", "each.2")]);
    assert_eq!(wait(journal.queued_decisions("other")).unwrap(), []);
    // The driver refuses one; then another one about that step may come.
    wait(journal.settle_decision("r", "a", refused("no"))).unwrap();
    assert_eq!(queued()[0].refused.as_deref(), Some("no"));
    assert_eq!(queue("r", "c", "each.1").unwrap(), Queueing::Queued);
    assert_eq!(queued()[0], decision("c", "each.1"));
    wait(journal.settle_decision("r", "c", refused("no"))).unwrap();
    wait(journal.settle_decision("r", "c", SettledDecision::Read)).unwrap();
    assert_eq!(queued(), [decision("b", "each.2")]);
    wait(journal.release("r", fence)).unwrap();
    assert_eq!(queue("r", "d", "each.3").unwrap(), Queueing::NotDriven);
}

pub(super) fn a_decision_is_taken_with_its_event_or_not_at_all(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    for (id, subject) in [("a", "each.1"), ("b", "each.2")] {
        assert_eq!(wait(journal.queue_decision("r", decision(id, subject))).unwrap(), Queueing::Queued);
    }
    let by = |fence, seq| Append { decision: Some("a".to_owned()), ..event("r", fence, seq) };
    let queued = || wait(journal.queued_decisions("r")).unwrap().len();
    assert!(wait(journal.append(by(fence, 7))).is_err(), "not the next event");
    assert_eq!(wait(journal.append(by(fence + 1, 1))).unwrap_err(), StoreError::Fenced("r".to_owned()));
    assert_eq!(queued(), 2, "a refused event takes nothing");
    wait(journal.append(by(fence, 1))).unwrap();
    assert_eq!(queued(), 1);
    // What the driver has not taken is there for the next one.
    wait(journal.release("r", fence)).unwrap();
    let next = wait(journal.lease("r")).unwrap();
    assert_eq!((next.events, queued()), (2, 1));
}

pub(super) fn a_run_that_pauses_before_its_decision_is_taken_is_claimed(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    assert_eq!(wait(journal.queue_decision("r", decision("a", "each.1"))).unwrap(), Queueing::Queued);
    wait(journal.append(pause(fence, 1))).unwrap();
    assert_eq!(wait(journal.queue_decision("r", decision("b", "each.2"))).unwrap(), Queueing::Queued);
    wait(journal.release("r", fence)).unwrap();
    assert_eq!(waiting(journal, 2_000), 1, "its decisions wait");
    let fence = wait(journal.lease("r")).unwrap().fence;
    wait(journal.append(Append { decision: Some("a".to_owned()), ..pause(fence, 2) })).unwrap();
    wait(journal.release("r", fence)).unwrap();
    assert_eq!(waiting(journal, 2_000), 1, "one still waits");
    let fence = wait(journal.lease("r")).unwrap().fence;
    let settled = SettledDecision::Refused { why: "no".to_owned(), due_at_ms: Some(9_000) };
    wait(journal.settle_decision("r", "b", settled)).unwrap();
    wait(journal.release("r", fence)).unwrap();
    assert_eq!((waiting(journal, 2_000), waiting(journal, 9_000)), (0, 1), "it waits for what it waited for before");
    // A decision that the pause itself takes leaves nothing behind.
    let fence = wait(journal.lease("r")).unwrap().fence;
    assert_eq!(wait(journal.queue_decision("r", decision("c", "each.3"))).unwrap(), Queueing::Queued);
    wait(journal.append(Append { decision: Some("c".to_owned()), ..pause(fence, 3) })).unwrap();
    wait(journal.release("r", fence)).unwrap();
    assert_eq!(waiting(journal, 2_000), 0);
}
