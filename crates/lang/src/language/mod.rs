//! WORDS: what is written. One serde + schemars type for everything that a user can write, in
//! small groups, with defaults and bounds. Nothing here decides what a field does, and nothing
//! here knows of files.

pub mod action;
pub mod agent_request;
pub mod approval;
pub mod call_limits;
pub mod choose;
pub mod concurrency;
pub mod condition;
pub mod document_file;
mod editor;
pub mod ending;
pub mod event_keeping;
mod examples;
pub mod fallback;
pub(crate) mod fields;
pub mod foreach;
pub mod form;
pub mod loop_document;
pub mod mcp;
pub mod mcp_offer;
pub mod model_rate;
mod named_step;
pub mod notify;
pub mod openapi;
pub mod project;
pub mod react;
pub mod recording;
pub mod retention;
pub mod retry;
pub mod scenario;
pub mod schema;
pub mod script;
mod secret_source;
pub mod serving;
pub mod spending_limit;
pub mod step;
pub mod tool;
pub mod wait;
pub mod webhook;
pub mod workflow;

pub use action::{Action, ActionHead};
pub use agent_request::AgentRequest;
pub use condition::{Condition, Filter};
pub use foreach::ForeachProperties;
pub use loop_document::{LoopDocument, LoopProperties};
pub use project::Project;
pub use react::ReactProperties;
pub use recording::Recording;
pub use scenario::ScenarioFile;
pub use script::Script;
pub use secret_source::{ModelAuth, SecretCommand, SecretSource};
pub use step::Step;
pub use tool::ToolDeclaration;
pub use workflow::WorkflowDocument;
