//! What several machines before one PostgreSQL database need: the commands of the store's administrator, and what happens
//! when something breaks. Without a PostgreSQL server on this machine, these tests are skipped.
#![cfg(all(unix, debug_assertions))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, dead_code, missing_docs)]
#![allow(clippy::needless_pass_by_value, clippy::as_conversions, clippy::string_slice)]

#[path = "../common/mod.rs"]
mod common;

mod at_once;
#[path = "../serve/client.rs"]
mod client;
mod copied;
mod dead_connections;
mod failover;
mod faults;
mod harness;
mod list_append;
mod migrations;
mod pgbouncer;
mod rolling;
mod store_admin;
mod stored;
mod tls;
mod watched;
mod workers;

#[path = "../../crates/runtime/src/journal/postgres/test_server.rs"]
mod test_server;
