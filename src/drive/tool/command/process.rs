//! A process with its group: started with nothing but what is declared, read within bounds, and
//! never left behind.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

use super::Prepared;
use super::left::{self, Mark};
use crate::drive::descriptors::{self, Patience};
use crate::drive::tool::output::{fault, value};
use crate::engine::event::ToolFault;

/// The most bytes that a program may print.
const MAX_STDOUT: usize = 1024 * 1024;

/// The most bytes that are kept of what it prints as errors; the rest is read and thrown away.
const MAX_STDERR: usize = 64 * 1024;

/// How long the rest of the output is waited for after the end of the program and its group. Only
/// a process that left the group and cleared its environment can still hold the pipes then.
const DRAIN: Duration = Duration::from_millis(500);

/// What a program printed.
#[derive(Default)]
struct Printed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Runs a program to its end. It, and the processes that it started, are killed when this future is
/// dropped and when the program has ended.
///
/// # Errors
/// When it can't be started, prints more than 1 MiB, or ends with another status than 0.
pub(in crate::drive::tool) async fn run(prepared: &Prepared) -> Result<Value, ToolFault> {
    let mark = Mark::new();
    let mut patience = Patience::default();
    let mut child = loop {
        match start(prepared, &mark) {
            Err(error) if descriptors::none_left(&error) => patience.wait().await,
            started => break started.map_err(|error| not_started(&error, prepared))?,
        }
    };
    // Made before anything can fail, and dropped however this future ends.
    let mut group = Group::of(&child, mark);
    let mut printed = Printed::default();
    let status = attend(&mut child, &mut group, prepared.stdin.as_deref(), &mut printed).await?;
    drop(group);
    if !status.success() {
        let said = if printed.stderr.is_empty() { &printed.stdout } else { &printed.stderr };
        return Err(fault(ended(status), String::from_utf8_lossy(said)));
    }
    if printed.stdout.is_empty() {
        return Ok(json!({ "status": 0 }));
    }
    Ok(match value(printed.stdout, None)? {
        Value::String(text) => Value::String(text.strip_suffix('\n').map_or_else(|| text.clone(), str::to_owned)),
        other => other,
    })
}

fn start(prepared: &Prepared, mark: &Mark) -> io::Result<Child> {
    let mut command = Command::new(&prepared.program);
    command
        .args(&prepared.args)
        .env_clear()
        .envs(prepared.env.iter().map(|(name, value)| (name, value)))
        .env(left::VARIABLE, mark.value())
        .current_dir(&prepared.cwd)
        .stdin(if prepared.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    command.spawn()
}

/// Feeds the program, reads what it prints, and waits for its end.
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
        // What it printed is known to be too much before its end is.
        biased;
        talked = &mut talk => {
            talked?;
            child.wait().await
        }
        waited = child.wait() => {
            // What it left running would hold the pipes open.
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
        // A program that does not want its input closes the pipe: that is no fault.
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
    Ok(())
}

/// What happens with more output than the limit.
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

fn not_started(error: &io::Error, prepared: &Prepared) -> ToolFault {
    let class = match error.kind() {
        io::ErrorKind::NotFound => "program not found",
        io::ErrorKind::ArgumentListTooLong => "arguments too long",
        _ => "program can't be started",
    };
    fault(class, format!("{}: {error}", prepared.program.display()))
}

fn ended(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("program ended by signal {signal}");
    }
    status.code().map_or_else(|| "program was killed".to_owned(), |code| format!("program ended with status {code}"))
}

/// The process group of a program and what left it, killed when this is dropped.
struct Group {
    #[cfg(unix)]
    leader: Option<nix::unistd::Pid>,
    mark: Mark,
    killed: bool,
}

impl Group {
    fn of(child: &Child, mark: Mark) -> Self {
        #[cfg(unix)]
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).map(nix::unistd::Pid::from_raw);
        #[cfg(not(unix))]
        let _ = child;
        Self {
            #[cfg(unix)]
            leader,
            mark,
            killed: false,
        }
    }

    fn kill(&mut self) {
        if std::mem::replace(&mut self.killed, true) {
            return;
        }
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            // A group without members is what we want: that there is none is no fault. Its number
            // is not given to others as long as a member lives.
            let _ = nix::sys::signal::killpg(leader, nix::sys::signal::Signal::SIGKILL);
        }
        self.mark.kill();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
