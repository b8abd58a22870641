//! Systems without cgroups: calls have no group.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use super::leftover_processes::ProcessMark;

/// There is none.
#[derive(Debug)]
pub(super) struct CallGroup(Infallible);

/// A failed start of one.
#[derive(Debug)]
pub(super) enum StartFailure {
    Group(io::Error),
    Program(io::Error),
}

impl CallGroup {
    pub(super) fn new(_: &ProcessMark) -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(super) fn command(&self, _: &Path) -> tokio::process::Command {
        match self.0 {}
    }

    pub(super) fn held<'a>(&self, _: &'a str) -> Cow<'a, str> {
        match self.0 {}
    }

    pub(super) fn failure(&self, _: ExitStatus, _: &[u8]) -> Option<StartFailure> {
        match self.0 {}
    }

    pub(super) fn took_too_much_memory(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn kill(&self) {
        match self.0 {}
    }
}

/// No program is started in this way.
pub fn enter_group() -> Option<ExitCode> {
    None
}
