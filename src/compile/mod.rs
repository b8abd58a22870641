//! MEANING: documents become a [`Program`], best effort, with all faults gathered. Texts are
//! handed in; nothing here opens a file, knows a check rule, or knows the loop.

pub mod builtin;
pub mod document;
pub mod parse;
pub mod program;
pub mod reference;
pub mod schema;
pub mod shape;
pub mod template;
pub mod tool;

pub use program::{Builtin, Program, Tool, ToolKind};
pub use schema::{Schema, SchemaFault};
