//! `loopctl` as a server of the Model Context Protocol: loops and workflows are its tools. What is the same over stdio and HTTP is
//! here: the messages, the two ways to open, the tools, and what a run gives. Who carries a call out is the transport.

pub mod answer_notes;
pub mod call_registry;
pub mod call_result;
pub mod client_message;
pub mod http_headers;
pub mod offered_tools;
pub mod progress;
pub mod protocol;
pub mod put_question;
pub mod request_state;
pub mod result_schema;
pub mod task_view;

/// The most bytes of a message.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// The most bytes of an id of a request, as it is written.
pub const MAX_ID_BYTES: usize = 256;
