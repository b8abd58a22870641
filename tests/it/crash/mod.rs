//! The real process is killed, stopped, locked out and starved at every boundary of its journal, and resumed:
//! every run ends the same, no finished call is repeated, and a human is asked about calls that may have
//! happened.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

mod approvals;
mod at_random;
mod call_order;
mod clock;
mod continued;
mod drivers;
mod items;
mod kills;
mod network;
mod pairs;
mod reasoning;
mod reference;
mod store;
mod summaries;
mod tool_retries;
mod window;
