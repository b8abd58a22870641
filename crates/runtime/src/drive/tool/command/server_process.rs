//! A program that lives as long as its owner: a server that speaks over its standard streams. It gets only the declared
//! environment, is started without a shell in a process group of its own, and nothing of it is left running.

use std::collections::BTreeMap;
use std::path::Path;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::leftover_processes::ProcessMark;
use super::process::{Group, ended, not_started, start};
use super::{Prepared, fixed_variables, folder, locate, variable};
use crate::drive::descriptors::{self, Patience};
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;

/// The variables that a server gets from ours, where we have them: it keeps its files by them.
const PASSED_ON: [&str; 2] = ["HOME", "TMPDIR"];

/// A server that is to be started.
pub(in crate::drive::tool) struct ServerProgram<'a> {
    /// The program, as `allow.commands` has it.
    pub program: &'a str,
    pub args: &'a [String],
    /// Its folder, inside of the project's.
    pub cwd: Option<&'a str>,
    /// What it gets beside the four variables.
    pub env: BTreeMap<String, String>,
}

/// A server that runs. It is killed with all that it started when this is dropped.
pub(in crate::drive::tool) struct ServerProcess {
    // Dropped first: the number of the group is not reused as long as the child was not waited for.
    group: Group,
    child: Child,
}

/// The streams of a server.
pub(in crate::drive::tool) struct ServerStreams {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

impl ServerProcess {
    /// Starts a server in the project's folder.
    ///
    /// # Errors
    /// When the program is not allowed or not there, or can't be started.
    pub(in crate::drive::tool) async fn start(
        server: ServerProgram<'_>,
        allowed: &[String],
        root: &Path,
    ) -> Result<(Self, ServerStreams), ToolFault> {
        let program = locate(server.program, allowed, root)?;
        if server.args.iter().any(|arg| arg.contains('\0')) {
            return Err(fault("argument not allowed", "it has a zero byte"));
        }
        let mut env = fixed_variables();
        env.extend(PASSED_ON.into_iter().filter_map(|name| Some((name.to_owned(), own_variable(name)?))));
        for (name, text) in server.env {
            let pair = variable(&name, text)?;
            env.retain(|(name, _)| *name != pair.0);
            env.push(pair);
        }
        let cwd = folder(root, server.cwd)?;
        let prepared = Prepared { program, args: server.args.to_vec(), env, stdin: Some(Vec::new()), cwd };
        let mut patience = Patience::default();
        loop {
            let mark = ProcessMark::new();
            let mut child = match start(&prepared, &mark, None) {
                Err(error) if descriptors::none_left(&error) => {
                    patience.wait().await;
                    continue;
                }
                child => child.map_err(|error| not_started(&error, &prepared))?,
            };
            // Made before anything can fail, and dropped however this ends.
            let group = Group::of(&child, mark, None);
            let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let process = Self { group, child };
            let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
                return Err(fault("program can't be started", "it has no standard streams"));
            };
            return Ok((process, ServerStreams { stdin, stdout, stderr }));
        }
    }

    /// Waits for its end, in words.
    pub(in crate::drive::tool) async fn wait(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => ended(status, false),
            Err(error) => format!("program was lost: {error}"),
        }
    }

    /// Asks it to end.
    pub(in crate::drive::tool) fn terminate(&self) {
        self.group.terminate();
    }

    /// Kills all that is left of it.
    pub(in crate::drive::tool) fn kill(&mut self) {
        self.group.kill();
    }
}

#[expect(clippy::disallowed_methods, reason = "a server keeps its files where the user keeps theirs")]
fn own_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
