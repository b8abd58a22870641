//! The tests of the program and of the library, in one program: what they share is built and linked once, and while some
//! wait, others have the processors. `cargo test --test it serve::` plays a part of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stdout)]
#![allow(clippy::needless_pass_by_value, clippy::as_conversions, clippy::string_slice, missing_docs)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../crates/runtime/src/journal/postgres/test_server.rs"]
mod test_server;

mod agreement;
mod book;
mod check;
mod check_command;
mod check_hostile;
mod cluster;
mod crash;
mod crash_ask;
mod crash_concurrency;
mod crash_mcp;
mod crash_nested;
mod crash_notify;
mod crash_on_cancel;
mod crash_wait;
mod crash_workflow;
mod crash_workflow_step;
mod crash_workflow_tool;
mod diagnostics_doc;
mod editor_schemas;
mod embed;
mod embed_handles;
mod embed_keeper;
mod embed_parts;
mod embedded_tools;
mod erasure;
mod estimate;
mod fmt_command;
mod gallery;
mod hyphen_pages;
mod json_suite;
mod links;
mod mcp;
mod mcp_serve;
mod openapi;
mod packaging;
mod pasted;
mod picture;
mod readme;
mod record;
mod replay;
mod run;
mod runbook;
mod sarif;
mod scenario;
mod schemas;
mod serve;
mod simulation;
mod tasks;
mod wide;
