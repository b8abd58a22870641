//! Where an operation is in its run: `2.0` is the first call of turn 2, `review.57.1` a step of item 57.

use std::fmt::{self, Debug, Display};
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use loopctl_lang::program::flow::ON_FAILURE;

/// A call of a run: the iteration that it belongs to, from 1, and its place in the turn, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CallId {
    /// The iteration, from 1.
    pub iteration: u32,
    /// The place in the turn, from 0.
    pub index: u32,
}

impl Display for CallId {
    /// `2.0`: the first call of the second iteration.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.iteration, self.index)
    }
}

impl FromStr for CallId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split_once('.')
            .and_then(|(iteration, index)| {
                Some(Self { iteration: iteration.parse().ok()?, index: index.parse().ok()? })
            })
            .ok_or("write the iteration and the index in the turn, like 2.0")
    }
}

/// The address of a step: its name, or the names and the items of the loops around it and its name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepAddress {
    text: Arc<str>,
}

impl StepAddress {
    /// Reads an address.
    pub fn new(text: &str) -> Self {
        Self { text: text.into() }
    }

    /// The item of the loop at an address that the step is of.
    pub(super) fn item_of(&self, loop_at: &str) -> Option<u32> {
        self.text.strip_prefix(loop_at)?.strip_prefix('.')?.split('.').next()?.parse().ok()
    }

    /// Whether it is one of the steps that run when others have failed.
    pub fn is_for_failure(&self) -> bool {
        self.text.split('.').any(|part| part == ON_FAILURE)
    }

    /// The address as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Deref for StepAddress {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Display for StepAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Debug for StepAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&*self.text, formatter)
    }
}

/// Whether an address is meant by another one, in which `*` stands for any part.
pub fn is_at(address: &str, meant: &str) -> bool {
    let (mut parts, mut others) = (address.split(['.', '/']), meant.split(['.', '/']));
    loop {
        match (parts.next(), others.next()) {
            (None, None) => return true,
            (Some(part), Some(other)) if other == "*" || part == other => {}
            _ => return false,
        }
    }
}

/// The address of the workflow's own step, and that in the workflow which the step calls in turn.
pub fn split_address(at: &str) -> (&str, Option<&str>) {
    at.split_once('/').map_or((at, None), |(own, below)| (own, Some(below)))
}
