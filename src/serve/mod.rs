//! HTTP: starts, shows and resumes runs. The API is Hyphen's agents API over our engine; each route is a file in
//! `route`. [`Service`] is a router to mount in a program of your own, [`Server`] adds a listener.

mod answer_page;
mod answer_subject;
#[doc(hidden)]
pub mod app;
#[doc(hidden)]
pub mod authorizer;
mod callback;
mod compile_pool;
mod connections;
#[doc(hidden)]
pub mod feed;
mod fold_cache;
#[doc(hidden)]
pub mod folder;
mod folder_files;
mod listener;
#[doc(hidden)]
pub mod live_folder;
pub(crate) mod mcp;
mod metrics;
#[doc(hidden)]
pub mod middleware;
mod openapi;
mod problem;
mod program_cache;
mod questions_below;
mod quotas;
mod refusals;
mod reload;
mod request;
mod retention;
#[doc(hidden)]
pub mod route;
mod run_heads;
#[doc(hidden)]
pub mod run_query;
#[doc(hidden)]
pub mod run_store;
#[doc(hidden)]
pub mod scheduler;
#[doc(hidden)]
pub mod schedules;
mod service;
mod shown_faults;
mod start_key;
mod starter_rights;
mod step_reader;
#[doc(hidden)]
pub mod switches;
mod token_notices;
pub(crate) mod view;
mod webhook;
mod worker_folders;

pub use authorizer::Caller;
pub use folder::{Folder, FolderError};
pub use route::RouteGroup;

pub use crate::language::serving::TokenScope;
pub use service::{ServeError, Server, ServerOptions, Service, ServiceBuilder};
