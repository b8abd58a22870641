//! Where a fork comes from, and what it begins with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Event, Tokens};
use crate::blob::Blob;

/// The run whose first steps another one begins with, and those steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The run.
    pub run_id: String,
    /// The first iteration that is not copied as it was, from 1.
    pub iteration: u32,
    /// The events that were copied, a line of JSON each, without the start of the run.
    pub events: Blob,
}

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ForkPoint {
    /// The run.
    pub run_id: Box<str>,
    /// The first iteration that is not copied as it was, from 1.
    pub iteration: u32,
}

/// What a fork copied as spent: it counts for the limits of the fork, and was spent by the run that it was copied from.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CopiedUsage {
    /// Tokens.
    pub tokens: Tokens,
    /// US dollars.
    pub cost_usd: f64,
}

impl Fork {
    /// The events that were copied.
    ///
    /// # Errors
    /// When one can't be read.
    pub fn copied(&self) -> Result<Vec<Event>, String> {
        let lines = self.events.lines().filter(|line| !line.is_empty());
        lines.map(|line| Event::read(line).map_err(|why| why.to_string())).collect()
    }

    /// The text of events that are copied.
    ///
    /// # Errors
    /// When one can't be written.
    pub fn text(events: &[Event]) -> Result<Blob, String> {
        let lines: Result<Vec<String>, _> = events.iter().map(serde_json::to_string).collect();
        lines.map(|lines| Blob::new(lines.join("\n"))).map_err(|why| why.to_string())
    }
}

impl ForkPoint {
    /// In a line that is not yet escaped.
    pub fn sentence(&self) -> String {
        format!("fork of {} at iteration {}", self.run_id, self.iteration)
    }
}
