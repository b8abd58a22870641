//! Facts that several rooms must agree on. Each is written once, here: `check` and `run` apply the same.

pub mod address;
pub mod aws_host;
pub mod call_form;
pub mod characters;
pub mod database_address;
pub mod durations;
pub mod echo;
pub mod held_address;
pub mod host;
pub mod media;
pub mod model_header;
pub mod mysql;
pub mod placeholder;
pub mod provider;
pub mod public_url;
pub mod quota;
pub mod reasoning;
pub mod redact;
pub mod row_count;
pub mod secret_names;
pub mod secret_shapes;
pub mod sql;
pub mod statement;
pub mod variables;
pub mod window;
pub mod word;
