//! HTTP: starts, shows and resumes runs. The API is Hyphen's agents API over our engine; each route is a file in
//! `route`. [`Service`] is a router to mount in a program of your own, [`Server`] adds a listener.

mod answer_page;
mod answer_subject;
pub mod app;
pub mod authorizer;
mod callback;
mod compile_pool;
mod connections;
pub mod feed;
mod fold_cache;
pub mod folder;
mod folder_files;
mod listener;
pub mod live_folder;
pub(crate) mod mcp;
mod metrics;
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
pub mod route;
mod run_heads;
pub mod run_query;
pub mod run_store;
pub mod scheduler;
pub mod schedules;
mod service;
mod shown_faults;
mod start_key;
mod starter_rights;
mod step_reader;
pub mod switches;
mod token_notices;
pub(crate) mod view;
mod webhook;
mod worker_folders;

pub use folder::{Folder, FolderError};

pub use service::{ServeError, Server, ServerOptions, Service, ServiceBuilder};
