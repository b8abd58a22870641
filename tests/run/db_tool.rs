//! The `db` tool
