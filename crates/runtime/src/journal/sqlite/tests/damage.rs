//! Damaged files give a fault that names the run, never a panic, and never a text that nobody wrote.

use std::fs;

use super::*;
use crate::journal::tests::{event, new_run, wait};

const RUNS: [&str; 3] = ["alpha", "beta", "gamma"];

/// A small store: three runs, one of them driven when it was cut off.
fn small(path: &Path) -> Vec<Vec<String>> {
    let journal = open(path);
    for id in RUNS {
        let texts = vec![SHARED.into(), format!("the document of {id}").as_str().into()];
        wait(journal.create(NewRun { texts, ..new_run(id) })).unwrap();
        let fence = 1;
        for seq in 1..12 {
            let text =
                format!("{{\"number\":{seq},\"text\":\"{}\"}}", "lorem ".repeat(usize::try_from(seq).unwrap() * 20));
            wait(journal.append(Append { event: text, ..event(id, fence, seq) })).unwrap();
        }
        wait(journal.release(id, fence)).unwrap();
    }
    RUNS.iter().map(|id| wait(journal.read(id)).unwrap()).collect()
}

/// What all runs of a small store begin with.
const SHARED: &str = "You are an agent. You work towards an objective step by step.";

/// What a damaged store still gives: for each run its events or a fault.
fn left(path: &Path) -> Result<Vec<Result<Vec<String>, StoreError>>, StoreError> {
    let journal = SqliteJournal::open(path)?;
    let _ = wait(journal.list(RunFilter::default()));
    let _ = wait(journal.recall("ada"));
    let read = RUNS
        .iter()
        .map(|id| {
            let _ = wait(journal.find(id));
            let _ = wait(journal.cancel_requested(id));
            let before = wait(journal.read(id)).and_then(|events| {
                let texts = wait(journal.texts(id))?;
                let own = format!("the document of {id}");
                let wrong = texts.iter().find(|text| ***text != *SHARED && ***text != *own);
                assert!(wrong.is_none(), "{id} has a text that it was not given: {wrong:?}");
                Ok(events)
            });
            if let Ok(lease) = wait(journal.lease(id)) {
                let _ = wait(journal.append(event(id, lease.fence, lease.events)));
                let _ = wait(journal.release(id, lease.fence));
            }
            before
        })
        .collect();
    Ok(read)
}

#[test]
fn damaged_files_never_panic_and_never_return_a_wrong_text() {
    let (folder, path) = place();
    let whole = small(&path);
    let bytes = fs::read(&path).unwrap();
    let (mut unopened, mut hurt, mut spared) = (0, 0, 0);
    for seed in 0..400_u64 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut damaged = bytes.clone();
        if seed % 5 == 0 {
            damaged.truncate(random.usize(1..bytes.len()));
        } else {
            damaged[random.usize(..bytes.len())] ^= 1 << random.u8(..8);
        }
        let copy = folder.path().join("damaged.db");
        fs::write(&copy, &damaged).unwrap();
        match left(&copy) {
            Err(_) => unopened += 1,
            Ok(runs) => {
                let faults = runs.iter().filter(|run| run.is_err()).count();
                hurt += usize::from(faults > 0);
                spared += usize::from(faults > 0 && faults < RUNS.len());
                for ((run, whole), id) in runs.iter().zip(&whole).zip(RUNS) {
                    match run {
                        Ok(events) => assert!(whole == events, "seed {seed}: {id} reads as something else"),
                        Err(fault) => assert!(fault.to_string().contains(id), "seed {seed}: {fault}"),
                    }
                }
            }
        }
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(schema::beside(&copy, suffix));
        }
    }
    println!("unopened {unopened}, hurt {hurt}, some runs spared {spared}");
    assert!(unopened > 3 && hurt > 30 && spared > 30, "{unopened} {hurt} {spared}");
}

/// Changes a small store by SQL.
fn changed(sql: &str) -> (tempfile::TempDir, SqliteJournal) {
    let (folder, path) = place();
    small(&path);
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (folder, open(&path))
}

/// Reads all three runs; the second one's fault.
fn fault_of_beta(journal: &SqliteJournal) -> String {
    let [alpha, beta, gamma] = RUNS.map(|id| wait(journal.read(id)));
    assert!(alpha.is_ok() && gamma.is_ok(), "the others stay readable");
    let fault = beta.unwrap_err();
    assert_eq!(fault.code(), "store_corrupt");
    assert!(fault.to_string().contains("run beta"), "{fault}");
    fault.to_string()
}

#[test]
fn an_event_that_was_changed_makes_only_its_run_unreadable() {
    let (_folder, journal) =
        changed("UPDATE events SET event = replace(event, 'lorem', 'Lorem') WHERE run = 2 AND seq = 4");
    assert!(fault_of_beta(&journal).contains("event 4 is not what was written"));
}

#[test]
fn an_event_that_is_missing_makes_only_its_run_unreadable() {
    let (_folder, journal) = changed("DELETE FROM events WHERE run = 2 AND seq = 4");
    assert!(fault_of_beta(&journal).contains("event 4 is missing"));
    let (_folder, journal) = changed("DELETE FROM events WHERE run = 2");
    assert!(fault_of_beta(&journal).contains("its last events are missing"));
}

#[test]
fn a_run_that_lost_its_last_event_is_not_read_and_not_gone_on_with() {
    let (_folder, journal) = changed("DELETE FROM events WHERE run = 2 AND seq = 11");
    assert!(fault_of_beta(&journal).contains("its last events are missing"));
    assert_eq!(wait(journal.lease("beta")).unwrap_err().code(), "store_corrupt");
}

#[test]
fn an_event_that_is_no_text_makes_only_its_run_unreadable() {
    let (_folder, journal) = changed("UPDATE events SET event = CAST(x'fffe' AS TEXT) WHERE run = 2 AND seq = 0");
    assert!(fault_of_beta(&journal).contains("event 0 is no text"));
}

#[test]
fn events_of_another_run_are_not_taken_for_its_own() {
    let (_folder, journal) = changed(
        "DELETE FROM events WHERE run = 2 AND seq = 3;
         INSERT INTO events SELECT 2, seq, sum, event FROM events WHERE run = 1 AND seq = 3",
    );
    assert!(fault_of_beta(&journal).contains("event 3 is not what was written"));
}

#[test]
fn a_record_that_can_t_be_read_is_listed_as_damaged_and_hides_no_other() {
    let (_folder, journal) = changed("UPDATE runs SET status = 'runnimg' WHERE id = 2");
    let runs = wait(journal.list(RunFilter::default())).unwrap();
    let seen: Vec<_> = runs.iter().map(|run| (run.run_id.as_str(), run.damaged.is_some())).collect();
    assert_eq!(seen, [("gamma", false), ("beta", true), ("alpha", false)]);
    let fault = wait(journal.find("beta")).unwrap_err();
    assert_eq!(fault.code(), "store_corrupt");
    assert!(fault.to_string().contains("run beta"), "{fault}");
    assert!(wait(journal.find("alpha")).unwrap().is_some());
}

/// The fault of the second run's texts; the others' are read.
fn fault_of_the_texts_of_beta(journal: &SqliteJournal) -> String {
    let [alpha, beta, gamma] = RUNS.map(|id| wait(journal.texts(id)));
    assert_eq!([alpha.unwrap().len(), gamma.unwrap().len()], [2, 2]);
    let fault = beta.unwrap_err();
    assert_eq!(fault.code(), "store_corrupt");
    assert!(fault.to_string().contains("run beta"), "{fault}");
    fault.to_string()
}

#[test]
fn a_changed_or_missing_text_is_reported_for_the_runs_that_have_it() {
    let (_folder, journal) = changed("UPDATE texts SET text = 'other' WHERE text LIKE '%beta'");
    assert!(fault_of_the_texts_of_beta(&journal).contains("not what was written"));
    let (_folder, journal) = changed("DELETE FROM texts WHERE text LIKE '%beta'");
    assert!(fault_of_the_texts_of_beta(&journal).contains("is missing"));
    let (_folder, journal) = changed("UPDATE texts SET text = 'other' WHERE text LIKE 'You%'");
    assert!(RUNS.iter().all(|id| wait(journal.texts(id)).is_err()), "all three have it");
}

#[test]
fn a_text_that_many_runs_have_is_written_once_also_by_another_process() {
    let (folder, path) = place();
    small(&path);
    wait(open(&path).create(NewRun { texts: vec![SHARED.into()], ..new_run("later") })).unwrap();
    let count = |sql: &str| Connection::open(&path).unwrap().query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM texts"), 4);
    assert_eq!(count("SELECT count(*) FROM run_texts"), 7);
    drop(folder);
}

#[test]
fn texts_with_the_same_digest_are_kept_apart_by_their_content() {
    let (_folder, path) = place();
    let connection = {
        small(&path);
        Connection::open(&path).unwrap()
    };
    // As if the first of them had the second's digest.
    let digest = Blob::new("mine").sha256().to_string();
    connection.execute("UPDATE texts SET digest = ?1 WHERE text LIKE '%alpha'", [digest]).unwrap();
    drop(connection);
    let journal = open(&path);
    wait(journal.create(NewRun { texts: vec!["mine".into()], ..new_run("r") })).unwrap();
    assert_eq!(wait(journal.texts("r")).unwrap(), ["mine".into()]);
}

#[test]
fn a_memory_that_is_no_json_is_reported() {
    let (_folder, journal) = changed("INSERT INTO session_memory VALUES ('ada', 'k', '{oops')");
    let fault = wait(journal.recall("ada")).unwrap_err();
    assert_eq!(fault.code(), "store_corrupt");
    assert!(fault.to_string().contains("session ada remembers as k"), "{fault}");
}

#[test]
fn a_store_without_its_tables_is_reported() {
    let (_folder, journal) = changed("DROP TABLE events");
    let fault = wait(journal.read("alpha")).unwrap_err();
    assert_eq!(fault.code(), "store_corrupt");
}
