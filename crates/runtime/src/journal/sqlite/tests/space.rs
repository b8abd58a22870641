//! The file shrinks after runs are deleted, a bounded number of pages at a time, while others write.

use super::*;
use crate::journal::prune::prune_all;
use crate::journal::tests::{begin, event, new_run, wait};
use crate::journal::{Append, PruneQuery, StatusRecord};
use loopctl_engine::outcome::{Status, Termination};

const RUNS: usize = 60;

/// Makes runs of 100 KB that ended.
fn fill(journal: &SqliteJournal) {
    for number in 0..RUNS {
        let run_id = format!("r{number}");
        begin(journal, &run_id);
        let record =
            StatusRecord { termination: Some(Termination::Complete), ..StatusRecord::new(Status::Completed, 1) };
        let long = Append { event: "x".repeat(100_000), ..event(&run_id, 1, 1) };
        wait(journal.append(Append { status_record: Some(record), release: true, ..long })).unwrap();
    }
}

fn number(path: &Path, sql: &str) -> i64 {
    Connection::open(path).unwrap().query_row(sql, (), |row| row.get(0)).unwrap()
}

fn prune(journal: &SqliteJournal) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let which = PruneQuery::all_before(i64::MAX, vec![Status::Completed]);
    runtime.block_on(prune_all(journal, &which)).unwrap()
}

/// A store as an older version made it, which gives no pages back.
fn older(path: &Path) {
    let tables = schema::statements().replace(schema::SHRINKS, "");
    Connection::open(path).unwrap().execute_batch(&tables).unwrap();
}

#[test]
fn the_file_shrinks_when_runs_are_deleted_while_it_is_in_use() {
    let (_folder, path) = place();
    let journal = open(&path);
    fill(&journal);
    begin(&journal, "stays");
    journal.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    let full = std::fs::metadata(&path).unwrap().len();
    assert!(full > 5_000_000, "{full}");
    // Another connection reads meanwhile, as that of another server does.
    let reader = Connection::open(&path).unwrap();
    assert_eq!(prune(&journal), u64::try_from(RUNS).unwrap());
    wait(journal.append(event("stays", 1, 1))).unwrap();
    journal.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    let left = std::fs::metadata(&path).unwrap().len();
    assert!(left < full / 10, "{left} of {full}");
    let sound: String = reader.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    assert_eq!(wait(journal.read("stays")).unwrap().len(), 2);
    assert_eq!(wait(journal.give_back_space()).unwrap(), 0, "nothing is left to give back");
}

#[test]
fn at_most_a_mebibyte_is_given_back_at_a_time_and_a_part_stays_for_the_next_runs() {
    let (_folder, path) = place();
    let journal = open(&path);
    fill(&journal);
    let which = PruneQuery::all_before(i64::MAX, vec![Status::Completed]);
    wait(journal.prune(which)).unwrap();
    let mut steps = Vec::new();
    loop {
        match wait(journal.give_back_space()).unwrap() {
            0 => break,
            bytes => steps.push(bytes),
        }
    }
    assert!(steps.len() > 4 && steps.iter().all(|bytes| *bytes <= 1 << 20), "{steps:?}");
    drop(journal);
    let (free, pages) = (number(&path, "PRAGMA freelist_count"), number(&path, "PRAGMA page_count"));
    assert!(free <= pages / 16 + 1, "{free} of {pages}");
}

#[test]
fn the_store_of_an_older_version_keeps_its_size_and_its_copy_shrinks() {
    let (folder, path) = place();
    older(&path);
    let journal = open(&path);
    fill(&journal);
    assert!(examination::keeps_its_size(&path));
    let copy = folder.path().join("copy.db");
    backup::back_up(&path, "runs.db", &copy).unwrap();
    assert_eq!(prune(&journal), u64::try_from(RUNS).unwrap());
    assert_eq!(wait(journal.give_back_space()).unwrap(), 0);
    drop(journal);
    assert!(number(&path, "PRAGMA page_count") > 1_000, "it keeps its size");
    assert_eq!(number(&path, "PRAGMA auto_vacuum"), 0, "the copy changed nothing in it");
    assert!(!examination::keeps_its_size(&copy));
    let copied = open(&copy);
    assert_eq!(prune(&copied), u64::try_from(RUNS).unwrap());
    drop(copied);
    assert!(number(&copy, "PRAGMA page_count") < 200);
    // A copy of what can shrink can shrink, too.
    backup::back_up(&copy, "copy.db", &folder.path().join("again.db")).unwrap();
    assert!(!examination::keeps_its_size(&folder.path().join("again.db")));
    wait(open(&path).create(new_run("next"))).unwrap();
}
