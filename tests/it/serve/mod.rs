//! `loopctl serve`, black box: the real program on a port of its own.

mod answer_links;
mod answer_rights;
mod answers;
mod answers_steps;
mod approvals;
mod asked;
mod audited;
mod back_pressure;
mod browser;
mod bulk;
mod call_limits;
mod callbacks;
#[cfg(unix)]
mod called;
pub mod client;
mod composed;
mod concurrency;
mod concurrent_answers;
mod concurrent_questions;
mod continued;
mod counted;
mod counting;
mod decisions;
mod deltas;
mod deputy;
mod described;
mod documented;
mod edited;
mod events;
mod execute;
mod followed;
mod guard;
mod heavy_schemas;
mod hooks;
mod idempotency;
mod in_flight;
mod judged;
mod keep_alive;
mod lists;
#[cfg(unix)]
mod logs;
mod machines;
mod many_approvals;
mod metrics;
mod metrics_fold;
mod mounted;
mod on_cancel;
mod one_person;
mod operated;
#[cfg(unix)]
mod outages;
mod outside_events;
mod owner;
mod page;
mod page_decided;
mod page_faults;
#[cfg(unix)]
mod page_flow;
mod page_list;
mod page_live;
mod page_markup;
mod page_outages;
mod page_run;
mod page_time;
mod page_views;
mod previous;
#[cfg(unix)]
mod quarantine;
mod questions_below;
mod queue;
mod readers;
mod readiness;
#[cfg(unix)]
pub mod reloads;
mod reminders;
mod required_secrets;
mod reruns;
#[cfg(unix)]
mod restart;
mod retention;
mod run_files;
mod schedules;
mod server_questions;
#[cfg(unix)]
mod several_waits;
mod shares;
#[cfg(unix)]
mod slow;
mod spending;
mod stats_fold;
mod steps;
mod tokens;
mod too_much;
mod tool_outcomes;
mod waits;
mod who;
mod workflow_tools;
pub mod workflows;
