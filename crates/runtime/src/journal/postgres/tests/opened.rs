//! What is checked when a store is opened, and the plan of its most frequent statement.

use super::*;
use crate::journal::StatusRecord;
use crate::journal::column_words::sum;
use crate::journal::postgres::append::AppendExtent;
use crate::journal::tests::{begin, event, wait};
use loopctl_engine::outcome::Status;

#[test]
fn a_server_that_loses_what_it_acknowledged_is_refused() {
    let Some(server) = server("a_server_that_loses_what_it_acknowledged_is_refused") else { return };
    let fault = refused(&server.url("schema=careless&options=-c%20synchronous_commit=off"));
    assert!(fault.to_string().contains("set it to `on` for this role"), "{fault}");
    drop(open(&server.url("schema=careful&options=-c%20synchronous_commit=local")));
}

#[test]
fn tables_of_a_newer_loopctl_are_refused_and_those_that_it_only_added_to_are_used() {
    let Some(server) = server("tables_of_a_newer_loopctl_are_refused_and_those_that_it_only_added_to_are_used") else {
        return;
    };
    let url = server.store();
    let store = open(&url);
    begin(&store, "r");
    store.sql("UPDATE @.loopctl SET version = 99");
    assert!(wait(open(&url).find("r")).unwrap().is_some());
    store.sql("UPDATE @.loopctl SET oldest_reader = 99");
    let fault = refused(&url);
    assert_eq!((fault.code(), fault.to_string().contains("version 99")), ("store_newer", true), "{fault}");
}

#[test]
fn a_role_without_rights_to_make_tables_uses_those_that_are_there() {
    let Some(server) = server("a_role_without_rights_to_make_tables_uses_those_that_are_there") else { return };
    let url = server.store();
    let schema = url.rsplit_once("schema=").unwrap().1.to_owned();
    let plain = url.replace("loopctl@", "plain@");
    let owner = open(&url);
    owner.sql("DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN");
    let fault = refused(&plain.replace(&schema, "nowhere"));
    assert!(fault.to_string().contains("call `loopctl store migrate` with a role that may"), "{fault}");
    owner.sql(
        "GRANT USAGE ON SCHEMA @ TO plain; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA @ TO plain",
    );
    let store = open(&plain);
    let fence = begin(&store, "r");
    wait(store.append(event("r", fence, 1))).unwrap();
    assert_eq!(wait(owner.read("r")).unwrap().len(), 2);
    drop(store);
    owner.sql("DROP OWNED BY plain; DROP ROLE plain");
}

#[test]
fn a_role_that_may_not_use_the_tables_is_refused_with_the_rights_that_it_needs() {
    let Some(server) = server("a_role_that_may_not_use_the_tables_is_refused_with_the_rights_that_it_needs") else {
        return;
    };
    let url = server.store();
    let owner = open(&url);
    begin(&owner, "r");
    owner.sql("DROP ROLE IF EXISTS barred; CREATE ROLE barred LOGIN");
    let barred = url.replace("loopctl@", "barred@");
    for granted in ["", "GRANT USAGE ON SCHEMA @ TO barred", "GRANT SELECT ON ALL TABLES IN SCHEMA @ TO barred"] {
        owner.sql(granted);
        let fault = refused(&barred).to_string();
        let rights = "USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on its tables";
        assert!(fault.contains(rights) && fault.contains("barred"), "{granted}: {fault}");
    }
    assert_eq!(owner.rows("SELECT count(*)::text FROM @.drivers"), ["1"], "nothing was written");
    owner.sql("DROP OWNED BY barred; DROP ROLE barred");
}

#[test]
fn processes_that_open_a_new_store_at_once_make_its_tables_once() {
    let Some(server) = server("processes_that_open_a_new_store_at_once_make_its_tables_once") else { return };
    let url = server.store();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| drop(open(&url)))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(open(&url).rows("SELECT count(*)::text FROM @.loopctl"), ["1"]);
}

#[test]
fn an_event_that_is_not_what_was_written_is_found() {
    let Some(server) = server("an_event_that_is_not_what_was_written_is_found") else { return };
    let store = open(&server.store());
    begin(&store, "r");
    store.sql("UPDATE @.events SET event = 'fjrst'");
    let fault = wait(store.read("r")).unwrap_err();
    assert!(matches!(&fault, StoreError::Corrupt(why) if why.contains("event 0 is not what was written")), "{fault}");
    assert_eq!(store.rows("SELECT sum::text FROM @.events"), [sum("r", 0, "first").to_string()]);
}

/// The plans of the appends with these settings, as they are made without knowing how many rows come.
fn append_plans(store: &PostgresJournal, settings: &str) -> Vec<String> {
    let sets: String = settings.split("-c ").filter(|set| !set.is_empty()).map(|set| format!("SET {set};")).collect();
    let plan = |extent: AppendExtent| {
        let statement = extent.statement();
        let (types, nulls) = (statement.types().join(", "), vec!["NULL"; statement.types().len()].join(", "));
        store.sql(&format!("{sets} DEALLOCATE ALL; PREPARE append ({types}) AS {}", statement.text()));
        store.rows(&format!("EXPLAIN EXECUTE append ({nulls})")).join("\n")
    };
    [AppendExtent::Events, AppendExtent::Rows, AppendExtent::All].map(plan).into()
}

/// Whether a plan looks each run up by its key.
fn looks_up(plan: &str) -> bool {
    let scans =
        ["runs", "events", "answer_tokens", "decisions"].map(|table| plan.contains(&format!("Seq Scan on {table}")));
    let by_driver = plan.contains("runs_by_driver");
    plan.contains("LockRows") && !plan.contains("Join Filter") && !by_driver && !scans.contains(&true)
}

#[test]
fn the_append_of_many_runs_looks_each_of_them_up() {
    let Some(server) = server("the_append_of_many_runs_looks_each_of_them_up") else { return };
    let store = open(&server.store());
    for plan in append_plans(&store, connection::PLANNED_ONCE) {
        assert!(looks_up(&plan), "the tables are empty: {plan}");
    }
    // Half of them are one driver's.
    store.sql(
        "INSERT INTO @.runs (run_id, fence, driver, birth, format, status, iterations, started_at_ms, updated_at_ms,
           loop_name, identity)
         SELECT 'r' || n, 1, CASE WHEN n % 2 = 0 THEN gen_random_uuid() ELSE '00000000-0000-0000-0000-000000000001' END,
           gen_random_uuid(), 1, 'running', 0, 0, 0, 'l', ''
         FROM generate_series(1, 20000) n;
         INSERT INTO @.events (run, seq, fence, sum, event) SELECT id, 0, 1, 0, 'first' FROM @.runs;
         INSERT INTO @.answer_tokens SELECT 'h' || id, id, 1, NULL, 0, false FROM @.runs;
         INSERT INTO @.decisions SELECT id, 's', 'd' || id, '' FROM @.runs; ANALYZE",
    );
    // A pooler may refuse the other settings.
    for settings in [connection::PLANNED_ONCE, "-c enable_seqscan=on -c plan_cache_mode=force_generic_plan"] {
        for plan in append_plans(&store, settings) {
            assert!(looks_up(&plan), "{settings}: {plan}");
        }
    }
}

#[test]
fn what_a_reply_changes_in_a_row_is_in_no_index() {
    let Some(server) = server("what_a_reply_changes_in_a_row_is_in_no_index") else { return };
    let store = open(&server.store());
    let fence = begin(&store, "r");
    let place = || store.rows("SELECT concat_ws(' ', xmin, status, updated_at_ms, due_at_ms, callback_at) FROM @.runs");
    let before = place();
    let record = StatusRecord {
        iterations: 3,
        tokens: Some(7),
        cost_usd: Some(0.5),
        ..StatusRecord::new(Status::Running, 2_000)
    };
    wait(store.append(Append { status_record: Some(record), ..event("r", fence, 1) })).unwrap();
    let after = place();
    let indexed = |row: &[String]| row[0].split_once(' ').unwrap().1.to_owned();
    assert!(before != after && indexed(&before) == indexed(&after), "{before:?} {after:?}");
    let indexes =
        store.rows("SELECT indexdef FROM pg_indexes WHERE schemaname = '@' AND tablename = 'runs'").join("\n");
    for column in ["progress_at_ms", "iterations", "tokens", "cost_usd", "error", "question", "callback_by"] {
        assert!(
            !indexes.contains(&format!("({column}")) && !indexes.contains(&format!(" {column}")),
            "{column}: {indexes}"
        );
    }
}
