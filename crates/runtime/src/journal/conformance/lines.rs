//! Lines of runs.

use super::*;

/// A run that joins a line.
fn in_line(id: &str, line: &str, limit: u32, rule: LineRule) -> NewRun {
    NewRun { line: Some(Box::new(NewRunLine { line: line.to_owned(), limit, rule })), ..new_run(id) }
}

/// Starts a run that nobody drives yet.
fn join(journal: &dyn Journal, new: NewRun) {
    let id = new.run_id.clone();
    let Created::New(lease) = wait(journal.create(new)).unwrap() else { panic!("{id} is new") };
    wait(journal.release(&id, lease.fence)).unwrap();
}

fn ahead(journal: &dyn Journal, id: &str) -> Vec<String> {
    wait(journal.line(id)).unwrap().ahead.into_iter().map(|run| run.run_id).collect()
}

fn behind(journal: &dyn Journal, id: &str) -> Option<String> {
    let found = wait(journal.find(id)).unwrap().unwrap().behind.map(String::from);
    let listed = wait(journal.list(RunFilter::default())).unwrap().into_iter().find(|run| run.run_id == id).unwrap();
    assert_eq!(found, listed.behind.map(String::from));
    found
}

/// The runs that a driver may take now.
fn free(journal: &dyn Journal) -> Vec<String> {
    let waiting = QueueQuery { now_ms: 10_000, except: Vec::new() };
    let counted: u64 = wait(journal.queue(waiting.clone())).unwrap().iter().map(|of| of.runs).sum();
    let share = QueueShare { org: None, token: None, runs: 100 };
    let claimed = wait(journal.claim(waiting, vec![share])).unwrap();
    let mut free: Vec<String> = claimed.iter().map(|run| run.run_id.clone()).collect();
    assert_eq!(counted, u64::try_from(free.len()).unwrap());
    for run in claimed {
        wait(journal.release(&run.run_id, run.lease.unwrap().fence)).unwrap();
    }
    free.sort();
    free
}

/// Takes a run, adds an event that leaves it like this, and leaves it.
fn leave_as(journal: &dyn Journal, id: &str, status: Status, termination: Option<Termination>, reopens: bool) {
    let lease = wait(journal.lease(id)).unwrap();
    let record = StatusRecord { termination, ..StatusRecord::new(status, 2_000) };
    let entry = event(id, lease.fence, lease.events);
    wait(journal.append(Append { status_record: Some(record), reopens, release: true, ..entry })).unwrap();
}

pub(super) fn runs_of_a_line_have_places_in_the_order_in_which_they_joined_it(journal: &dyn Journal) {
    for id in ["d", "c", "b", "a"] {
        join(journal, in_line(id, "line", 2, LineRule::Wait));
    }
    join(journal, in_line("other", "another", 2, LineRule::Wait));
    join(journal, new_run("plain"));
    assert_eq!(free(journal), ["c", "d", "other", "plain"]);
    assert_eq!(
        (ahead(journal, "a"), behind(journal, "a")),
        (vec!["d".into(), "c".into(), "b".into()], Some("d".into()))
    );
    assert_eq!((ahead(journal, "c"), behind(journal, "c")), (vec!["d".to_owned()], None));
    assert_eq!(wait(journal.line("plain")).unwrap(), PlaceInLine::default());
    assert!(wait(journal.line("plain")).unwrap().has_place() && wait(journal.line("c")).unwrap().has_place());
    assert!(!wait(journal.line("b")).unwrap().has_place());
    assert_eq!(wait(journal.line("none")).unwrap_err(), StoreError::NoSuchRun("none".to_owned()));
    // One that waits and is cancelled takes nobody's place with it, and lets nobody in.
    leave_as(journal, "b", Status::Cancelled, Some(Termination::Cancelled), false);
    assert_eq!(free(journal), ["c", "d", "other", "plain"]);
    leave_as(journal, "d", Status::Completed, Some(Termination::Complete), false);
    assert_eq!(free(journal), ["a", "c", "other", "plain"]);
    assert_eq!(behind(journal, "a"), None);
}

pub(super) fn a_run_that_can_continue_has_its_place(journal: &dyn Journal) {
    join(journal, in_line("first", "line", 1, LineRule::Wait));
    join(journal, in_line("second", "line", 1, LineRule::Wait));
    let waits = |status, termination| {
        leave_as(journal, "first", status, termination, false);
        behind(journal, "second").is_some() && !free(journal).contains(&"second".to_owned())
    };
    assert!(waits(Status::Paused, Some(Termination::Human)));
    assert!(waits(Status::Paused, Some(Termination::ModelError)));
    // A signal stopped it.
    assert!(waits(Status::Cancelled, None));
    assert!(waits(Status::Running, None));
    assert!(!waits(Status::Failed, Some(Termination::StepFailed)));
}

pub(super) fn a_run_that_continues_after_its_end_joins_its_line_anew(journal: &dyn Journal) {
    join(journal, in_line("first", "line", 1, LineRule::Wait));
    leave_as(journal, "first", Status::Failed, Some(Termination::StepFailed), false);
    join(journal, in_line("second", "line", 1, LineRule::Wait));
    // Where it would be.
    assert_eq!(ahead(journal, "first"), ["second"]);
    leave_as(journal, "first", Status::Running, None, true);
    assert_eq!((ahead(journal, "first"), ahead(journal, "second")), (vec!["second".to_owned()], Vec::new()));
    assert_eq!((free(journal), behind(journal, "first")), (vec!["second".to_owned()], Some("second".to_owned())));
    leave_as(journal, "second", Status::Completed, Some(Termination::Complete), false);
    assert_eq!(free(journal), ["first"]);
}

pub(super) fn a_run_that_does_not_wait_is_refused_or_may_be_driven(journal: &dyn Journal) {
    join(journal, in_line("first", "line", 1, LineRule::Wait));
    let refused = in_line("refused", "line", 1, LineRule::Refuse);
    assert_eq!(wait(journal.create(refused.clone())).unwrap(), Created::LineFull("first".to_owned()));
    assert_eq!(wait(journal.find("refused")).unwrap(), None);
    let other = NewRun { identity: "other".to_owned(), ..in_line("first", "line", 1, LineRule::Refuse) };
    assert_eq!(wait(journal.create(in_line("first", "line", 1, LineRule::Refuse))).unwrap(), Created::Same);
    assert_eq!(wait(journal.create(other)).unwrap(), Created::Conflict);
    join(journal, in_line("replaces", "line", 1, LineRule::Replace));
    assert_eq!(free(journal), ["first", "replaces"]);
    assert_eq!(wait(journal.line("replaces")).unwrap().rule, LineRule::Replace);
    assert_eq!(behind(journal, "replaces"), Some("first".to_owned()));
    for id in ["first", "replaces"] {
        leave_as(journal, id, Status::Completed, Some(Termination::Complete), false);
    }
    assert!(matches!(wait(journal.create(refused)).unwrap(), Created::New(_)));
}

pub(super) fn of_many_that_do_not_wait_one_starts_and_the_others_leave_nothing(journal: &dyn Journal) {
    let start = |number: usize| {
        let new = in_line(&format!("r{number:02}"), "line", 2, LineRule::Refuse);
        NewRun { start_key: Some(format!("key-{number}")), ..new }
    };
    let created: Vec<Created> = std::thread::scope(|scope| {
        let starts = (0..24).map(|number| scope.spawn(move || wait(journal.create(start(number))).unwrap()));
        starts.collect::<Vec<_>>().into_iter().map(|start| start.join().unwrap()).collect()
    });
    let mut there = Vec::new();
    for (number, created) in created.iter().enumerate() {
        let id = format!("r{number:02}");
        let found = wait(journal.find(&id)).unwrap();
        match created {
            Created::New(lease) => {
                wait(journal.release(&id, lease.fence)).unwrap();
                there.push(id);
            }
            Created::LineFull(_) => assert_eq!(found, None, "{id}"),
            other => panic!("{id}: {other:?}"),
        }
    }
    assert_eq!(there.len(), 2, "{created:?}");
    assert!(created.iter().all(|created| !matches!(created, Created::LineFull(by) if !there.contains(by))));
    assert_eq!(wait(journal.list(RunFilter::default())).unwrap().len(), 2);
    // The keys of the others are free.
    for id in &there {
        leave_as(journal, id, Status::Completed, Some(Termination::Complete), false);
    }
    let refused = created.iter().position(|created| matches!(created, Created::LineFull(_))).unwrap();
    let again = NewRun { run_id: "again".to_owned(), ..start(refused) };
    assert!(matches!(wait(journal.create(again)).unwrap(), Created::New(_)));
}

pub(super) fn of_many_that_join_a_line_at_once_one_is_first(journal: &dyn Journal) {
    std::thread::scope(|scope| {
        let starts = (0..24).map(|number| {
            scope.spawn(move || join(journal, in_line(&format!("r{number:02}"), "line", 1, LineRule::Wait)))
        });
        for start in starts.collect::<Vec<_>>() {
            start.join().unwrap();
        }
    });
    let mut places: Vec<usize> = (0..24).map(|number| ahead(journal, &format!("r{number:02}")).len()).collect();
    places.sort_unstable();
    assert_eq!(places, (0..24).collect::<Vec<_>>());
    assert_eq!(free(journal).len(), 1);
}
