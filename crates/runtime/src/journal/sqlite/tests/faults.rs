//! Stores that can't be opened or written.

use std::fs;
use std::time::Duration;

use super::*;
use crate::journal::tests::{begin, event, new_run, wait};

#[test]
fn a_newer_store_is_refused_and_left_untouched() {
    let (folder, path) = place();
    begin(&open(&path), "r");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let fault = refused(&path);
    assert_eq!(fault.code(), "store_newer");
    assert!(fault.to_string().contains("schema version 99"), "{fault}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_store_from_before_the_first_release_is_refused_and_left_untouched() {
    let (_folder, path) = place();
    begin(&open(&path), "r");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 1).unwrap();
    let before = fs::read(&path).unwrap();
    let fault = refused(&path);
    assert_eq!(fault.code(), "store_open");
    assert!(
        fault.to_string().contains("schema version 1") && fault.to_string().contains("name another file"),
        "{fault}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_version_that_is_still_in_the_log_is_refused_and_the_log_is_kept() {
    let (folder, path) = place();
    begin(&open(&path), "r");
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    // As a crash would leave it: the log not yet in the file.
    let (crashed, name) = (folder.path().join("crashed.db"), |path: &Path| schema::beside(path, "-wal"));
    fs::copy(&path, &crashed).unwrap();
    fs::copy(name(&path), name(&crashed)).unwrap();
    let before = (fs::read(&crashed).unwrap(), fs::read(name(&crashed)).unwrap());
    assert_eq!(refused(&crashed).code(), "store_newer");
    assert!((fs::read(&crashed).unwrap(), fs::read(name(&crashed)).unwrap()) == before);
}

#[test]
fn what_is_no_store_is_refused_and_left_untouched() {
    let (_folder, path) = place();
    let other = |sql: &str| {
        let _ = fs::remove_file(&path);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        fs::read(&path).unwrap()
    };
    let tables = other("CREATE TABLE theirs (a);");
    let marked = other("PRAGMA application_id = 7; CREATE TABLE theirs (a);");
    let files: [&[u8]; 6] = [b"x", b"hello, I am a text\n", &[0; 8192], b"SQLite format 3\0 but cut", &tables, &marked];
    for bytes in files {
        fs::write(&path, bytes).unwrap();
        let fault = refused(&path);
        assert!(["store_open", "store_corrupt"].contains(&fault.code()), "{fault}");
        assert!(fault.to_string().contains("runs.db"), "{fault}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let (_folder, path) = place();
    fs::write(&path, "").unwrap();
    begin(&open(&path), "r");
    assert_eq!(wait(open(&path).read("r")).unwrap(), ["first"]);
}

#[test]
fn a_place_that_can_t_be_written_is_reported() {
    let (folder, path) = place();
    fs::write(&path, "I am a file").unwrap();
    for bad in [folder.path().to_owned(), path.join("runs.db"), PathBuf::from("/proc/loopctl/runs.db")] {
        let fault = refused(&bad);
        assert_eq!(fault.code(), "store_open", "{fault}");
        assert!(fault.to_string().contains(&bad.display().to_string()), "{fault}");
    }
}

#[cfg(unix)]
#[test]
fn a_read_only_store_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = place();
    drop(open(&path));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::File::options().write(true).open(&path).is_ok() {
        // For root nothing is read-only; then the database itself must refuse.
        let journal = open(&path);
        journal.sql("PRAGMA query_only = ON");
        assert_eq!(wait(journal.create(new_run("r"))).unwrap_err().code(), "store_read_only");
        journal.sql("PRAGMA query_only = OFF");
        begin(&journal, "r");
    } else {
        assert_eq!(refused(&path).code(), "store_read_only");
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged_and_the_run_goes_on_when_there_is_room() {
    let (_folder, path) = place();
    let journal = open(&path);
    let fence = begin(&journal, "r");
    journal.sql("PRAGMA max_page_count = 40");
    let long = |seq| Append { event: "x".repeat(3_000), ..event("r", fence, seq) };
    let mut next = 1;
    let fault = loop {
        match wait(journal.append(long(next))) {
            Ok(()) => next += 1,
            Err(fault) => break fault,
        }
        assert!(next < 1_000, "the disk was never full");
    };
    assert_eq!(fault, StoreError::Full);
    assert_eq!(wait(journal.append(long(next))).unwrap_err(), StoreError::Full, "and stays so");
    assert_eq!(wait(journal.read("r")).unwrap().len(), usize::try_from(next).unwrap());
    journal.sql("PRAGMA max_page_count = 100000");
    wait(journal.append(long(next))).unwrap();
    drop(journal);
    assert_eq!(wait(open(&path).read("r")).unwrap().len(), usize::try_from(next).unwrap() + 1);
}

#[test]
fn a_store_that_another_process_locks_is_reported_and_works_when_it_is_free() {
    let (_folder, path) = place();
    let options = SqliteOptions { busy_timeout: Duration::from_millis(20), ..SqliteOptions::default() };
    let journal = SqliteJournal::open_with(&path, options.clone()).unwrap();
    let fence = begin(&journal, "r");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(wait(journal.append(event("r", fence, 1))).unwrap_err(), StoreError::Locked);
    assert_eq!(wait(journal.lease("r")).unwrap_err(), StoreError::Locked);
    assert_eq!(wait(journal.release("r", fence)).unwrap_err(), StoreError::Locked);
    assert_eq!(wait(journal.read("r")).unwrap(), ["first"], "reading goes on");
    drop(SqliteJournal::open_with(&path, options).unwrap());
    other.execute_batch("ROLLBACK").unwrap();
    wait(journal.append(event("r", fence, 1))).unwrap();
    assert_eq!(wait(journal.read("r")).unwrap().len(), 2);
    // A lease that could not be released then is released with the next request that succeeds.
    wait(journal.request_cancel("r", CancelRequest::default())).unwrap();
    assert!(wait(journal.lease("r")).unwrap().fence > fence);
}

#[test]
fn a_new_store_that_stays_locked_is_reported() {
    let (_folder, path) = place();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let options = SqliteOptions { busy_timeout: Duration::from_millis(20), ..SqliteOptions::default() };
    assert!(matches!(SqliteJournal::open_with(&path, options), Err(StoreError::Locked)));
    other.execute_batch("ROLLBACK").unwrap();
    begin(&open(&path), "r");
}

#[test]
fn fifty_who_open_a_new_store_at_once_all_open_it() {
    let (_folder, path) = place();
    std::thread::scope(|scope| {
        for number in 0..50 {
            let path = &path;
            scope.spawn(move || begin(&open(path), &format!("r{number}")));
        }
    });
    assert_eq!(wait(open(&path).list(RunFilter::default())).unwrap().len(), 50);
}
