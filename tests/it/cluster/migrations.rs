//! Stores of each older version get the tables of this one, in one go, and keep their runs.

use rusqlite::Connection;
use serde_json::json;

use crate::common::{Place, complete, is_sampled};
use crate::serve::client;
use crate::test_server::{PostgresServer, server};

/// The version of the tables in PostgreSQL.
pub const POSTGRES_VERSION: u32 = 14;
/// The run that a schedule started: until the last version, only its id says for which time.
const SCHEDULED: &str = "test@20260601T100100Z";
/// The id of one that none started.
const LOOKS_SCHEDULED: &str = "test@20261301T100100Z";
/// What is computed from the key of a start, and the runs of it: until the last version, only their ids say it, and more than one
/// could have it.
const START_KEY: &str = "e3427024-9a1b-8c2d-9e3f-0123456789ab";
const OF_KEY: [&str; 2] = ["agent-e3427024-9a1b-8c2d-9e3f-0123456789ab", "test-e3427024-9a1b-8c2d-9e3f-0123456789ab"];
/// What lists show of that, once it is noted.
const NAMED: &str = "\"schedule\":\"test\",\"scheduled_for\":\"2026-06-01T10:01:00.000Z\",";
/// That time.
const DUE_MS: &str = "1780308060000";

/// What takes tables in PostgreSQL back to each version from the next one: the newest first. `@` is the schema.
const POSTGRES: [(u32, &str); 13] = [
    (13, "DROP TABLE @.ledger, @.ledger_parts, @.reservations;"),
    (
        12,
        "DROP INDEX @.runs_by_line; ALTER TABLE @.runs DROP COLUMN line, DROP COLUMN line_limit, DROP COLUMN line_rule,
         DROP COLUMN place; ALTER TABLE @.loopctl DROP COLUMN line_joins;",
    ),
    (11, "DROP TABLE @.outside_events; DROP INDEX @.runs_by_awaited; ALTER TABLE @.runs DROP COLUMN awaits;"),
    (10, "DROP TABLE @.audit, @.loop_switches;"),
    (9, "ALTER TABLE @.drivers DROP COLUMN address, DROP COLUMN clock_ahead_ms;"),
    (8, "ALTER TABLE @.runs DROP COLUMN title;"),
    (
        7,
        "ALTER TABLE @.runs DROP COLUMN progress_at_ms, DROP COLUMN tokens, DROP COLUMN cost_usd, DROP COLUMN error,
         DROP COLUMN question, DROP COLUMN search_text;",
    ),
    (6, "DROP INDEX @.runs_by_start_key; ALTER TABLE @.runs DROP COLUMN start_key;"),
    (5, "DROP TABLE @.schedules, @.scheduled_runs;"),
    (
        4,
        "DROP INDEX @.runs_by_waiting; ALTER TABLE @.runs DROP COLUMN waits_since_ms, DROP COLUMN cancel_by;
         ALTER TABLE @.drivers DROP COLUMN process;",
    ),
    (3, "UPDATE @.loopctl SET oldest_reader = 1;"),
    (2, "DROP TABLE @.decisions;"),
    (1, "DROP INDEX @.run_texts_by_text, @.runs_by_end; ALTER TABLE @.runs DROP COLUMN folder;"),
];

/// The same of a file. Until version 8 the texts had another digest: `tests/it/run/journals.rs` has such a store.
const FILE: [(u32, &str); 17] = [
    (18, "DROP TABLE ledger; DROP TABLE ledger_parts; DROP TABLE reservations;"),
    (
        17,
        "DROP INDEX runs_by_line; ALTER TABLE runs DROP COLUMN line; ALTER TABLE runs DROP COLUMN line_limit;
         ALTER TABLE runs DROP COLUMN line_rule; ALTER TABLE runs DROP COLUMN place;",
    ),
    (16, "DROP TABLE outside_events; DROP INDEX runs_by_awaited; ALTER TABLE runs DROP COLUMN awaits;"),
    (15, "DROP TABLE audit; DROP TABLE loop_switches;"),
    (14, "ALTER TABLE drivers DROP COLUMN address;"),
    (13, "ALTER TABLE runs DROP COLUMN title;"),
    (
        12,
        "ALTER TABLE runs DROP COLUMN tokens; ALTER TABLE runs DROP COLUMN cost_usd; ALTER TABLE runs DROP COLUMN error;
         ALTER TABLE runs DROP COLUMN question; ALTER TABLE runs DROP COLUMN search_text;",
    ),
    (11, "DROP INDEX runs_by_start_key; ALTER TABLE runs DROP COLUMN start_key;"),
    (10, "DROP TABLE schedules; DROP TABLE scheduled_runs;"),
    (
        9,
        "DROP INDEX runs_by_waiting; ALTER TABLE runs DROP COLUMN waits_since_ms;
         ALTER TABLE runs DROP COLUMN cancel_by; ALTER TABLE drivers DROP COLUMN process;",
    ),
    (8, ""),
    (7, "DROP TABLE decisions;"),
    (
        6,
        "DROP INDEX runs_by_end; DROP INDEX run_texts_by_text; ALTER TABLE runs DROP COLUMN folder;
         ALTER TABLE drivers DROP COLUMN folder; ALTER TABLE drivers DROP COLUMN version;
         ALTER TABLE drivers DROP COLUMN since_ms;",
    ),
    (
        5,
        "DROP INDEX runs_by_queue; ALTER TABLE runs DROP COLUMN token; ALTER TABLE runs DROP COLUMN callback_at_ms;
         ALTER TABLE runs DROP COLUMN callback_by;",
    ),
    (
        4,
        "DROP TABLE answer_tokens; DROP INDEX runs_by_due; ALTER TABLE runs DROP COLUMN due_at_ms;
         ALTER TABLE runs DROP COLUMN callback_pause;",
    ),
    (3, "ALTER TABLE runs DROP COLUMN parent_run_id;"),
    (
        2,
        "DROP INDEX runs_by_owner; ALTER TABLE runs DROP COLUMN failed_take_ups;
         ALTER TABLE runs DROP COLUMN take_up_events;",
    ),
];

/// The statements that take tables back to a version.
fn back(steps: &[(u32, &str)], version: u32) -> String {
    steps.iter().filter(|(to, _)| *to >= version).map(|(_, statements)| *statements).collect()
}

/// Takes the tables of a schema back to a version.
pub fn age(server: &PostgresServer, schema: &str, version: u32) {
    let statements = format!("{} UPDATE @.loopctl SET version = {version};", back(&POSTGRES, version));
    server.psql(&statements.replace('@', schema));
}

/// What the tables of a schema are, and which version they say they have.
fn postgres_tables(server: &PostgresServer, schema: &str) -> String {
    let sql = "
        SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = '@' ORDER BY 1, 2;
        SELECT indexdef FROM pg_indexes WHERE schemaname = '@' ORDER BY 1;
        SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = '@'::regnamespace ORDER BY 1, 2;
        SELECT version, oldest_reader FROM @.loopctl;";
    server.psql(&sql.replace('@', schema)).replace(&format!("{schema}."), "")
}

/// What the tables of a file are, a line each, and its version at the end.
fn file_tables(store: &Connection) -> Vec<String> {
    let mut tables = rows(
        store,
        "SELECT concat_ws(' ', tables.name, columns.name, type, \"notnull\", dflt_value, pk)
         FROM (SELECT name FROM sqlite_schema WHERE type = 'table') AS tables, pragma_table_info(tables.name) AS columns
         ORDER BY 1",
    );
    let indexes = rows(store, "SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY 1");
    tables.extend(indexes.iter().map(|sql| sql.split_whitespace().collect::<Vec<_>>().join(" ")));
    tables.extend(rows(store, "SELECT CAST(user_version AS TEXT) FROM pragma_user_version"));
    tables
}

fn rows(store: &Connection, sql: &str) -> Vec<String> {
    let mut statement = store.prepare(sql).unwrap();
    statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// A folder with a loop that ends at once.
fn place() -> Place {
    client::place(json!({}), &[complete(json!("ok"))])
}

/// Starts the runs of a store: one of a schedule, one whose id only looks like that, and two of one key.
fn start(place: &Place, store: &str) {
    for id in [SCHEDULED, LOOKS_SCHEDULED, OF_KEY[0], OF_KEY[1]] {
        let ran = place.call(&["run", "loop.json", "--run-id", id, "--store", store]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}

/// Migrates a store, which a second call leaves as it is; returns what it says of its runs.
fn migrated(place: &Place, store: &str) -> String {
    for command in [["store", "migrate"], ["store", "migrate"], ["store", "check"]] {
        let ran = place.call(&[command.as_slice(), &["--store", store]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    said(place, store)
}

/// What a store says of its runs. The row of a run that an older version wrote is completed when its events are read.
fn said(place: &Place, store: &str) -> String {
    let mut traced = String::new();
    for id in place.call(&["runs", "--ids", "--store", store]).stdout.lines().chain([SCHEDULED]) {
        let trace = place.call(&["trace", id, "--format", "json", "--store", store]);
        assert_eq!(trace.code, 0, "{trace:?}");
        traced.push_str(&trace.stdout);
    }
    // Ids that a shell would have to quote are in no such list.
    assert_eq!(place.call(&["trace", LOOKS_SCHEDULED, "--store", store]).code, 0);
    let listed = place.call(&["runs", "--output", "json", "--store", store]);
    assert_eq!(listed.code, 0, "{listed:?}");
    for word in ["\"completed\"", "\"tokens\":"] {
        assert_eq!(listed.stdout.matches(word).count(), 4, "{listed:?}");
    }
    listed.stdout + &traced
}

/// Of these steps back, the first one, the last one, and a third of those between.
fn played(steps: &[(u32, &str)]) -> impl Iterator<Item = u32> {
    let last = steps.len() - 1;
    let all = steps.iter().enumerate();
    all.filter(move |(nth, _)| is_sampled(*nth) || *nth == last).map(|(_, (version, _))| *version)
}

#[test]
fn tables_of_each_older_version_become_those_of_this_one_and_keep_their_runs() {
    let Some(server) = server("tables_of_each_older_version_become_those_of_this_one") else { return };
    let place = place();
    let of = |url: &str| url.split_once("schema=").unwrap().1.to_owned();
    let new = server.store();
    assert_eq!(place.call(&["store", "migrate", "--store", &new]).code, 0);
    let expected = postgres_tables(server, &of(&new));
    assert!(expected.ends_with(&format!("{POSTGRES_VERSION}|4")), "{expected}");
    assert_eq!(POSTGRES_VERSION, POSTGRES[0].0 + 1, "a new version is added to the steps");
    start(&place, &new);
    let before = said(&place, &new);
    for version in played(&POSTGRES) {
        let url = server.store();
        let schema = of(&url);
        let copied = place.call(&["store", "copy", &new, &url]);
        assert_eq!(copied.code, 0, "{copied:?}");
        age(server, &schema, version);
        assert_ne!(postgres_tables(server, &schema), expected, "version {version}");
        let after = migrated(&place, &url);
        assert_eq!(after.contains(NAMED), version < 6, "version {version}");
        assert_eq!(after.replace(NAMED, ""), before, "version {version}");
        assert_eq!(postgres_tables(server, &schema), expected, "version {version}");
        let noted = format!(
            "SELECT run_id, convert_from(schedule, 'UTF8'), due_at_ms, timetable FROM {schema}.scheduled_runs;
             SELECT convert_from(name, 'UTF8'), timetable, seen_at_ms FROM {schema}.schedules"
        );
        // From version 6 on, what a schedule started is noted when it starts.
        let known = if version < 6 { format!("{SCHEDULED}|test|{DUE_MS}|\ntest||{DUE_MS}") } else { String::new() };
        assert_eq!(server.psql(&noted), known, "version {version}");
        let keys = server.psql(&format!("SELECT run_id, start_key FROM {schema}.runs WHERE start_key IS NOT NULL"));
        // From version 7 on, it is noted when the run starts.
        let known = if version < 7 { format!("{}|{START_KEY}", OF_KEY[0]) } else { String::new() };
        assert_eq!(keys, known, "version {version}");
    }
}

#[test]
fn a_file_of_each_older_version_becomes_one_of_this_version_and_keeps_its_runs() {
    let place = place();
    let open = |name: &str| Connection::open(place.path().join(name)).unwrap();
    assert_eq!(place.call(&["store", "migrate", "--store", "sqlite:new.db"]).code, 0);
    let expected = file_tables(&open("new.db"));
    assert_eq!(expected.last(), Some(&(FILE[0].0 + 1).to_string()), "a new version is added to the steps");
    start(&place, "sqlite:new.db");
    let before = said(&place, "sqlite:new.db");
    for version in played(&FILE) {
        let (name, store) = (format!("{version}.db"), format!("sqlite:{version}.db"));
        // No process has it open: all of it is in the one file.
        std::fs::copy(place.path().join("new.db"), place.path().join(&name)).unwrap();
        let older = format!("{} PRAGMA user_version = {version};", back(&FILE, version));
        open(&name).execute_batch(&older).unwrap();
        assert_ne!(file_tables(&open(&name)), expected, "version {version}");
        let after = migrated(&place, &store);
        assert_eq!(after.contains(NAMED), version < 11, "version {version}");
        assert_eq!(after.replace(NAMED, ""), before, "version {version}");
        assert_eq!(file_tables(&open(&name)), expected, "version {version}");
        let noted = "SELECT concat_ws('|', run_id, schedule, due_at_ms, timetable) FROM scheduled_runs UNION ALL
                     SELECT concat_ws('|', name, timetable, seen_at_ms) FROM schedules";
        let noted = rows(&open(&name), noted);
        let known = [format!("{SCHEDULED}|test|{DUE_MS}|"), format!("test||{DUE_MS}")];
        assert_eq!(noted, if version < 11 { known.as_slice() } else { &[] }, "version {version}");
        let keys = "SELECT concat_ws('|', run_id, start_key) FROM runs WHERE start_key IS NOT NULL";
        let known = [format!("{}|{START_KEY}", OF_KEY[0])];
        assert_eq!(rows(&open(&name), keys), if version < 12 { known.as_slice() } else { &[] }, "version {version}");
    }
}
