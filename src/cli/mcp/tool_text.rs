//! What servers say, as people review it: whole, with each character that could hide something by its number.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::language::mcp::{LockedServer, LockedTool};
use crate::policy::server_text::{suspicions, texts_of};
use crate::trace::escape;

/// A tool in full.
pub fn whole(tool: &LockedTool) -> String {
    let mut text = indented(&tool.description);
    let mut part = |name: &str, value: &Value| {
        // Writing to a string can't fail.
        let _ = writeln!(text, "      {name}: {}", escape::exact_line(&value.to_string()));
    };
    part("input", &tool.input_schema);
    if let Some(output) = &tool.output_schema {
        part("output", output);
    }
    if !tool.annotations.is_empty() {
        part("annotations", &Value::Object(tool.annotations.clone()));
    }
    text
}

/// A text of a server, line by line.
pub fn indented(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let _ = writeln!(shown, "      {}", escape::exact_line(line));
    }
    shown
}

/// The head of a server: `files: secure-filesystem-server 0.2.0, protocol 2025-11-25, 14 tools`.
pub fn head(name: &str, server: &LockedServer) -> String {
    let own = match (&server.name, &server.version) {
        (Some(own), Some(version)) => format!("{} {}, ", escape::exact_line(own), escape::exact_line(version)),
        (Some(own), None) => format!("{}, ", escape::exact_line(own)),
        _ => String::new(),
    };
    let count = server.tools.len();
    let tools = if count == 1 { "tool" } else { "tools" };
    format!("{}: {own}protocol {}, {count} {tools}", escape::line(name), server.protocol.word())
}

/// What is suspicious about the texts of a tool, or of a server.
pub fn warnings(server: &str, texts: &[String], all: &BTreeMap<String, LockedServer>) -> Vec<String> {
    let others = all.iter().filter(|(name, _)| *name != server).flat_map(|(_, other)| other.tools.keys());
    // A name that several servers have is its own.
    let is_own = |tool: &str| all.get(server).is_some_and(|own| own.tools.contains_key(tool));
    let others: Vec<&str> = others.map(String::as_str).filter(|tool| !is_own(tool)).collect();
    let mut found: Vec<String> = texts.iter().flat_map(|text| suspicions(text, others.iter().copied())).collect();
    found.sort();
    found.dedup();
    found
}

/// The texts of a tool that a model reads.
pub fn texts(tool: &LockedTool) -> Vec<String> {
    let read = std::iter::once(tool.description.as_str()).chain(texts_of(&tool.input_schema));
    read.map(str::to_owned).collect()
}
