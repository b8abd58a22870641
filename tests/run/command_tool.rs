//! The `command` tool
