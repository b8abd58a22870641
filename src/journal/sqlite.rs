//! The journal in SQLite.
