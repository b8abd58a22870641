//! What the store in PostgreSQL promises: what every store does, and what several machines need.

#[path = "test_server.rs"]
mod test_server;

mod created;
mod drivers;
mod opened;

use std::path::Path;

use test_server::{PostgresServer, server};

use super::*;
use crate::journal::conformance;

/// Opens the store of this address.
fn open(url: &str) -> PostgresJournal {
    PostgresJournal::open(url, Path::new(".")).unwrap()
}

/// The fault of a store that must not open.
fn refused(url: &str) -> StoreError {
    match PostgresJournal::open(url, Path::new(".")) {
        Ok(_) => panic!("{url} was opened"),
        Err(fault) => fault,
    }
}

impl PostgresJournal {
    /// Runs statements on the store's own connection for lists.
    fn sql(&self, sql: &str) {
        let (database, sql) = (Arc::clone(&self.database), sql.to_owned());
        let (done, received) = std::sync::mpsc::channel();
        self.runtime.spawn(async move { drop(done.send(database.slow.batch(&sql).await)) });
        received.recv().unwrap().unwrap();
    }

    /// Renews the lease, which is old by this driver's clock.
    fn renew(&self) {
        self.database.held.renewed((0, 0));
        let database = Arc::clone(&self.database);
        let (done, received) = std::sync::mpsc::channel();
        self.runtime.spawn(async move { drop(done.send(database.ensure().await)) });
        received.recv().unwrap().unwrap();
    }

    /// The first column of the rows of a statement, as text.
    fn rows(&self, sql: &str) -> Vec<String> {
        let (database, sql) = (Arc::clone(&self.database), sql.to_owned());
        let (done, received) = std::sync::mpsc::channel();
        self.runtime.spawn(async move { drop(done.send(database.slow.query_once(&sql, &[]).await)) });
        received.recv().unwrap().unwrap().iter().map(|row| row.get::<_, String>(0)).collect()
    }
}

#[test]
fn postgres_passes_every_case() {
    let Some(server) = server("postgres_passes_every_case") else { return };
    for (name, case) in conformance::CASES {
        eprintln!("{name}");
        case(&open(&server.store()));
    }
}

#[test]
fn postgres_passes_every_case_without_prepared_statements() {
    let Some(server) = server("postgres_passes_every_case_without_prepared_statements") else { return };
    for (name, case) in conformance::CASES {
        eprintln!("{name}");
        case(&open(&format!("{}&prepare=off", server.store())));
    }
}
