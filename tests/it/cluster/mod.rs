//! What several machines before one PostgreSQL database need: the commands of the store's administrator, and what happens
//! when something breaks. Without a PostgreSQL server on this machine, these tests are skipped.
#![cfg(all(unix, debug_assertions))]

mod at_once;
mod call_limits;
mod copied;
mod dead_connections;
mod failover;
mod faults;
mod harness;
mod lines;
mod list_append;
mod migrations;
mod pgbouncer;
mod rates;
mod rolling;
mod spending;
mod store_admin;
mod stored;
mod tls;
mod watched;
mod workers;
