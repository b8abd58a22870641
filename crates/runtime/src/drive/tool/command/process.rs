//! A process with its group: it gets only the declared environment, its output is limited, and nothing of it is
//! left running.

use std::borrow::Cow;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

use super::Prepared;
use super::cgroup::{CallGroup, StartFailure};
use super::leftover_processes::{self, ProcessMark};
use crate::drive::descriptors::{self, Patience};
use crate::drive::tool::output::{fault, value};
use crate::drive::tool::runner::RawFault;
use loopctl_engine::event::ToolFault;

/// The most bytes that a program may print.
const MAX_STDOUT: usize = 1024 * 1024;

/// The most bytes of its error output that are kept; the rest is read and discarded.
const MAX_STDERR: usize = 64 * 1024;

/// How long to wait for the rest of the output after the end of the program and its group. Only a process that
/// left the group and cleared its environment can still hold the pipes then.
const DRAIN: Duration = Duration::from_millis(500);

/// What a program printed.
#[derive(Default)]
struct Printed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Runs a program to its end. `is_step`: what it prints is the value of a step. The program, and the processes that it started, are killed when this future is
/// dropped and when the program has ended.
///
/// # Errors
/// When it can't be started, prints more than 1 MiB, or ends with another status than 0.
pub(in crate::drive::tool) async fn run(prepared: &Prepared, is_step: bool) -> Result<Value, RawFault> {
    let Ended { status, printed, much_memory } = to_its_end(prepared).await?;
    if !status.success() {
        let shown = if printed.stderr.is_empty() { &printed.stdout } else { &printed.stderr };
        let raw = RawFault::from(fault(ended(status, much_memory), String::from_utf8_lossy(shown)));
        // A program that was killed says nothing of its work.
        return Err(if status.code().is_none() { raw.sent() } else { raw });
    }
    if printed.stdout.is_empty() {
        return Ok(json!({ "status": 0 }));
    }
    Ok(match value(&printed.stdout, None, is_step).map_err(|fault| RawFault::from(fault).sent())? {
        Value::String(text) => Value::String(without_line_end(text)),
        other => other,
    })
}

/// A text without one line end at its end, as programs of any system write it.
fn without_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// Runs a program that prints a secret; returns what it printed.
///
/// # Errors
/// As [`run`]. What it printed is not in them, only what it said of its failure.
pub(super) async fn printed(prepared: &Prepared) -> Result<Vec<u8>, ToolFault> {
    let Ended { status, printed, much_memory } = to_its_end(prepared).await.map_err(|raw| raw.fault)?;
    if status.success() {
        return Ok(printed.stdout);
    }
    let secret = String::from_utf8_lossy(&printed.stdout);
    let mut said = String::from_utf8_lossy(&printed.stderr).into_owned();
    // It may have said the secret that it printed, too.
    for word in secret.split(|c: char| c.is_whitespace() || matches!(c, '"' | ',')).filter(|word| word.len() >= 4) {
        if said.contains(word) {
            said = said.replace(word, "[hidden]");
        }
    }
    Err(fault(ended(status, much_memory), said))
}

async fn to_its_end(prepared: &Prepared) -> Result<Ended, RawFault> {
    let mut patience = Patience::default();
    let mut grouped = true;
    loop {
        match once(prepared, grouped).await? {
            Ok(ended) => return Ok(ended),
            Err(StartFailure::Group(error) | StartFailure::Program(error)) if descriptors::none_left(&error) => {
                patience.wait().await;
            }
            Err(StartFailure::Group(error)) if grouped => {
                tracing::debug!(%error, "a program runs without a cgroup");
                grouped = false;
            }
            Err(StartFailure::Group(error) | StartFailure::Program(error)) => {
                return Err(not_started(&error, prepared).into());
            }
        }
    }
}

/// How a program ended.
struct Ended {
    status: ExitStatus,
    printed: Printed,
    /// Whether it used more memory than its group allows.
    much_memory: bool,
}

/// Starts a program, in a group of its own if there is one, and waits for its end.
async fn once(prepared: &Prepared, grouped: bool) -> Result<Result<Ended, StartFailure>, RawFault> {
    let mark = ProcessMark::new();
    let cgroup = match if grouped { CallGroup::new(&mark) } else { Ok(None) } {
        Ok(cgroup) => cgroup,
        Err(error) => return Ok(Err(StartFailure::Group(error))),
    };
    let mut child = match start(prepared, &mark, cgroup.as_ref()) {
        Ok(child) => child,
        // Arguments that are too long for our program are too long for the other one.
        Err(error) if cgroup.is_none() || error.kind() == io::ErrorKind::ArgumentListTooLong => {
            return Ok(Err(StartFailure::Program(error)));
        }
        Err(error) => return Ok(Err(StartFailure::Group(error))),
    };
    // Created before anything can fail, and dropped however this future ends.
    let mut group = Group::of(&child, mark, cgroup);
    let mut printed = Printed::default();
    let attended = attend(&mut child, &mut group, prepared.stdin.as_deref(), &mut printed).await;
    let status = attended.map_err(|fault| RawFault::from(fault).sent())?;
    if let Some(failure) = group.failure(status, &printed) {
        return Ok(Err(failure));
    }
    let much_memory = group.took_too_much_memory();
    drop(group);
    Ok(Ok(Ended { status, printed, much_memory }))
}

pub(super) fn start(prepared: &Prepared, mark: &ProcessMark, cgroup: Option<&CallGroup>) -> io::Result<Child> {
    let program = &prepared.program;
    let mut command = cgroup.map_or_else(|| Command::new(program), |cgroup| cgroup.command(program));
    let named = |name| cgroup.map_or(Cow::Borrowed(name), |cgroup| cgroup.held(name));
    command
        .args(&prepared.args)
        .env_clear()
        .envs(prepared.env.iter().map(|(name, value)| (named(name).into_owned(), value)))
        .env(leftover_processes::VARIABLE, mark.value())
        .current_dir(&prepared.cwd)
        .stdin(if prepared.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    command.spawn()
}

/// Writes the input of the program, reads its output, and waits for its end.
async fn attend(
    child: &mut Child,
    group: &mut Group,
    input: Option<&[u8]>,
    printed: &mut Printed,
) -> Result<ExitStatus, ToolFault> {
    let feeding = feed(child.stdin.take(), input.unwrap_or_default());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let talk = async {
        let out = read(stdout, &mut printed.stdout, MAX_STDOUT, Beyond::Refused);
        let err = read(stderr, &mut printed.stderr, MAX_STDERR, Beyond::Dropped);
        tokio::try_join!(feeding, out, err).map(|_| ())
    };
    tokio::pin!(talk);
    let waited = tokio::select! {
        // The limit of the output is noticed before the end of the program.
        biased;
        talked = &mut talk => {
            talked?;
            child.wait().await
        }
        waited = child.wait() => {
            // Processes that it left running would hold the pipes open.
            group.kill();
            if let Ok(talked) = tokio::time::timeout(DRAIN, &mut talk).await {
                talked?;
            }
            waited
        }
    };
    waited.map_err(|error| fault("program was lost", error.to_string()))
}

async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> Result<(), ToolFault> {
    if let Some(mut stdin) = stdin {
        // A program that does not read its input closes the pipe: that is no fault.
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
    Ok(())
}

/// What happens to output beyond the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Refused,
    Dropped,
}

async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
    limit: usize,
    beyond: Beyond,
) -> Result<(), ToolFault> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let length = match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(length) => length,
        };
        let room = limit.saturating_sub(into.len());
        into.extend(chunk.iter().take(length.min(room)));
        if length > room && beyond == Beyond::Refused {
            return Err(fault("output too large", format!("more than {limit} bytes")));
        }
    }
}

pub(super) fn not_started(error: &io::Error, prepared: &Prepared) -> ToolFault {
    let class = match error.kind() {
        io::ErrorKind::NotFound => "program not found",
        io::ErrorKind::ArgumentListTooLong => "arguments too long",
        _ => "program can't be started",
    };
    fault(class, format!("{}: {error}", prepared.program.display()))
}

pub(super) fn ended(status: ExitStatus, much_memory: bool) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        if much_memory && signal == 9 {
            return "program was killed for the memory that it took".to_owned();
        }
        return format!("program ended by signal {signal}");
    }
    #[cfg(not(unix))]
    let _ = much_memory;
    status.code().map_or_else(|| "program was killed".to_owned(), |code| format!("program ended with status {code}"))
}

/// The process group of a program and the processes outside of it, killed on drop.
pub(super) struct Group {
    #[cfg(unix)]
    leader: Option<nix::unistd::Pid>,
    cgroup: Option<CallGroup>,
    mark: ProcessMark,
    killed: bool,
}

impl Group {
    pub(super) fn of(child: &Child, mark: ProcessMark, cgroup: Option<CallGroup>) -> Self {
        #[cfg(unix)]
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).map(nix::unistd::Pid::from_raw);
        #[cfg(not(unix))]
        let _ = child;
        Self {
            #[cfg(unix)]
            leader,
            cgroup,
            mark,
            killed: false,
        }
    }

    /// Why the program did not start, when it did not.
    fn failure(&self, status: ExitStatus, printed: &Printed) -> Option<StartFailure> {
        self.cgroup.as_ref()?.failure(status, &printed.stderr)
    }

    fn took_too_much_memory(&self) -> bool {
        self.cgroup.as_ref().is_some_and(CallGroup::took_too_much_memory)
    }

    /// Asks the processes of the group to end.
    pub(super) fn terminate(&self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader.filter(|_| !self.killed) {
            let _ = nix::sys::signal::killpg(leader, nix::sys::signal::Signal::SIGTERM);
        }
    }

    pub(super) fn kill(&mut self) {
        if std::mem::replace(&mut self.killed, true) {
            return;
        }
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            // If the group has no members, there is nothing to kill: that is no fault. Its number is not reused
            // as long as a member lives.
            let _ = nix::sys::signal::killpg(leader, nix::sys::signal::Signal::SIGKILL);
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        self.mark.kill();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
