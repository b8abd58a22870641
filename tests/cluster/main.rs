//! What several machines before one PostgreSQL database need: the commands of the store's administrator, and what happens
//! when something breaks. Without a PostgreSQL server on this machine, these tests are skipped.
#![cfg(all(unix, debug_assertions))]

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../common/mod.rs"]
mod common;

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../serve/client.rs"]
mod client;
mod copied;
mod failover;
mod store_admin;
mod tls;
mod workers;

#[path = "../../src/journal/postgres/test_server.rs"]
mod test_server;
