//! `loopctl store schema`, `store migrate` and `store check`: what a store needs, in one sentence.

use serde_json::json;

use crate::cluster::migrations::{POSTGRES_VERSION, age};
use crate::common::{Place, Ran, complete};
use crate::serve::client;
use crate::test_server::{PostgresServer, server};

/// A folder with a loop that ends at once.
fn place() -> Place {
    client::place(json!({}), &[complete(json!("ok"))])
}

/// The schema of an address.
fn schema(url: &str) -> String {
    let (_, schema) = url.split_once("schema=").unwrap();
    schema.split('&').next().unwrap().to_owned()
}

/// How many tables a schema has.
fn tables(server: &PostgresServer, url: &str) -> String {
    server.psql(&format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{}'", schema(url)))
}

/// What `store check` and `store migrate` say of tables of this version.
fn of_this_version() -> String {
    format!("version {POSTGRES_VERSION}; this loopctl knows {POSTGRES_VERSION}\n")
}

/// That a command refused the store with one sentence that says what to do.
fn refused(ran: &Ran, what_to_do: &str) {
    ended_with(2, ran, what_to_do);
}

fn ended_with(code: i32, ran: &Ran, what_to_do: &str) {
    assert_eq!(ran.code, code, "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert!(ran.stderr.contains(what_to_do) && ran.stderr.starts_with("error: "), "{ran:?}");
    assert!(!ran.stderr.contains("s3cret") && !ran.stdout.contains("s3cret"), "{ran:?}");
}

#[test]
fn an_administrator_makes_the_tables_and_a_role_without_other_rights_uses_them() {
    let Some(server) = server("an_administrator_makes_the_tables") else { return };
    let (place, url) = (place(), server.store());
    let role = format!("plain_{}", schema(&url));
    server.psql(&format!("CREATE ROLE {role} LOGIN"));
    let plain = url.replace("loopctl@", &format!("{role}@"));
    let checked = place.call(&["store", "check", "--store", &plain]);
    refused(&checked, "call `loopctl store migrate` with a role that may");
    refused(&place.call(&["run", "loop.json", "--store", &plain]), "call `loopctl store migrate` with a role that may");
    refused(&place.call(&["store", "migrate", "--store", &plain]), "call `loopctl store migrate` with a role that may");
    assert_eq!(tables(server, &url), "0");

    let printed = place.call(&["store", "schema", "--store", &plain]);
    assert_eq!(tables(server, &url), "0", "nothing is opened");
    server.psql(&printed.stdout.replace("-- GRANT", "GRANT").replace("loopctl_user", &role));
    let checked = place.call(&["store", "check", "--store", &plain]);
    assert_eq!(checked.code, 0, "{checked:?}");
    for fact in ["PostgreSQL ", "synchronous_commit", "another role migrates them", &of_this_version()] {
        assert!(checked.stdout.contains(fact), "{fact}: {checked:?}");
    }
    let ran = place.call(&["run", "loop.json", "--store", &plain]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.call(&["store", "migrate", "--store", &plain]).code, 0, "there is nothing to migrate");
    server.psql(&format!("REVOKE UPDATE ON {}.events FROM {role}", schema(&url)));
    for command in [["store", "check"], ["run", "loop.json"], ["runs", "--limit=1"]] {
        let ran = place.call(&[command.as_slice(), &["--store", &plain]].concat());
        refused(
            &ran,
            "may not use its tables events: give it USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE",
        );
    }
    server.psql(&format!("REVOKE ALL ON SCHEMA {} FROM {role}", schema(&url)));
    refused(&place.call(&["store", "check", "--store", &plain]), "may not use its schema: give it USAGE");
    server.psql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn tables_of_an_older_version_are_migrated_by_who_may_and_their_runs_stay() {
    let Some(server) = server("tables_of_an_older_version_are_migrated") else { return };
    let (place, url) = (place(), server.store());
    assert_eq!(place.call(&["run", "loop.json", "--run-id", "old", "--store", &url]).code, 0);
    let tables = schema(&url);
    age(server, &tables, 1);
    let role = format!("plain_{tables}");
    server.psql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {tables} TO {role};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {tables} TO {role}"
    ));
    let plain = url.replace("loopctl@", &format!("{role}@"));
    for command in [["store", "check"], ["store", "migrate"], ["run", "loop.json"]] {
        let ran = place.call(&[command.as_slice(), &["--store", &plain]].concat());
        refused(&ran, "of an older version");
        assert!(ran.stderr.contains("`loopctl store migrate` with a role that may"), "{ran:?}");
    }
    let migrated = place.call(&["store", "migrate", "--store", &url]);
    assert_eq!((migrated.code, migrated.stdout.contains(&of_this_version())), (0, true), "{migrated:?}");
    // The tables that are new.
    server.psql(&format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {tables} TO {role}"));
    assert_eq!(place.call(&["run", "loop.json", "--store", &plain]).code, 0);
    let listed = place.call(&["runs", "--store", &plain, "--ids"]).stdout;
    assert!(listed.lines().count() == 2 && listed.contains("old"), "{listed}");
    server.psql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn a_store_that_loses_runs_or_is_newer_or_away_is_refused_and_nothing_is_written() {
    let Some(server) = server("a_store_that_loses_runs_or_is_newer_or_away_is_refused") else { return };
    let (place, url) = (place(), server.store());
    let careless = format!("{url}&options=-c%20synchronous_commit%3Doff");
    let nowhere = "postgres://ada:s3cret@127.0.0.1:9/d".to_owned();
    let unknown = url.replace("/postgres?", "/no_such_database?");
    for (url, code, what_to_do) in [
        (&careless, 2, "set it to `on` for this role"),
        (&nowhere, 75, "start its server, or correct its host, port"),
        (&unknown, 2, "create it, or correct the address"),
    ] {
        for command in [["store", "check"], ["store", "migrate"], ["run", "loop.json"]] {
            ended_with(code, &place.call(&[command.as_slice(), &["--store", url]].concat()), what_to_do);
        }
    }
    assert_eq!(tables(server, &url), "0");
    assert_eq!(place.call(&["store", "migrate", "--store", &url]).code, 0);
    let newer = POSTGRES_VERSION + 1;
    server.psql(&format!("UPDATE {}.loopctl SET version = {newer}, oldest_reader = {newer}", schema(&url)));
    for command in [["store", "check"], ["store", "migrate"], ["run", "loop.json"]] {
        refused(&place.call(&[command.as_slice(), &["--store", &url]].concat()), "made by a newer loopctl");
    }
}

#[test]
fn a_store_in_a_file_is_made_checked_and_printed_too() {
    let place = place();
    let missing = place.call(&["store", "check"]);
    refused(&missing, "call `loopctl store migrate`, or start a run");
    assert!(!place.path().join(".loopctl").exists(), "nothing is written");
    let made = place.call(&["store", "migrate"]);
    assert_eq!((made.code, made.stdout.contains("SQLite 3.")), (0, true), "{made:?}");
    assert_eq!(place.call(&["store", "check"]).stdout, made.stdout);
    let printed = place.call(&["store", "schema"]).stdout;
    assert!(printed.contains("CREATE TABLE runs") && printed.contains("PRAGMA user_version"), "{printed}");
    place.file("other.db", "no database");
    refused(
        &place.call(&["store", "check", "--store", "sqlite:other.db"]),
        "it is no SQLite database; name another file",
    );
    refused_memory(&place);
}

fn refused_memory(place: &Place) {
    for task in ["check", "schema", "migrate"] {
        let ran = place.call(&["store", task, "--store", "memory"]);
        assert_eq!((ran.code, ran.stderr.contains("keeps no runs")), (2, true), "{ran:?}");
    }
}
