//! What a program leaves running outside of its process group: found by a mark that each process inherits.
//!
//! A process that makes itself a session of its own leaves the group, but it keeps the environment that
//! it was started with, and so the mark of its call. Linux shows that environment; elsewhere nothing is
//! found. One that cleared its environment, too, is not found.

#[cfg(target_os = "linux")]
use std::collections::HashSet;

#[cfg(target_os = "linux")]
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The variable that holds the mark.
pub(super) const VARIABLE: &str = "LOOPCTL_CALL";

/// How often all processes are looked through: until none is found that was not killed yet and none is just
/// being started, or one that forks faster than it is looked for has won.
#[cfg(target_os = "linux")]
const PASSES: usize = 50;

/// The mark of one start of a program: no other process ever has it.
#[derive(Debug)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// The value of the variable.
    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// Kills every process that has the mark.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(&self) {
        let entry = format!("{VARIABLE}={}", self.0).into_bytes();
        let mut killed = HashSet::new();
        for _ in 0..PASSES {
            let (before, mut starting) = (killed.len(), false);
            for pid in pids() {
                if killed.contains(&pid) {
                    continue;
                }
                match look(pid, &entry) {
                    Seen::Marked if kill(pid, &entry) => drop(killed.insert(pid)),
                    // It may have begun another program in between.
                    Seen::Marked | Seen::Starting => starting = true,
                    Seen::Other => {}
                }
            }
            // What was killed forks no more: the next look finds what it had forked until then.
            if killed.len() == before && !starting {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Elsewhere a process's environment is not shown.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn kill(&self) {}
}

#[cfg(target_os = "linux")]
fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What a process shows of its environment.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// It was started with the variable.
    Marked,
    /// It begins another program at this moment, and shows the environment of none.
    Starting,
    /// It was started without, is gone, is the kernel's, or of another user, who does not show it.
    Other,
}

#[cfg(target_os = "linux")]
fn look(pid: i32, entry: &[u8]) -> Seen {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    if environment.split(|byte| *byte == 0).any(|variable| variable == entry) {
        Seen::Marked
    } else if environment.is_empty() && is_starting(pid) {
        Seen::Starting
    } else {
        Seen::Other
    }
}

/// Whether a process that shows no environment may have one.
#[cfg(target_os = "linux")]
fn is_starting(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    // Where its environment begins and ends: the 50th and 51st field, the third being the first of these.
    let mut bounds = fields.skip(47);
    match (bounds.next(), bounds.next()) {
        // Nowhere, while it begins a program: it has a file then, and what the kernel runs itself has none.
        (Some("0"), Some("0")) => std::fs::read_link(format!("/proc/{pid}/exe")).is_ok(),
        // Somewhere: it has begun another program since its environment was looked for.
        (Some(begin), Some(end)) => begin != end,
        _ => false,
    }
}

/// Kills one that has the variable; whether it was.
#[cfg(target_os = "linux")]
fn kill(pid: i32, entry: &[u8]) -> bool {
    let handle = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // Looked at once more: the number may have gone to another process before there was a handle. After
    // that, the handle is of the one that is looked at, or of one that is gone.
    let marked = || look(pid, entry) == Seen::Marked;
    handle.is_some_and(|handle| marked() && pidfd_send_signal(handle, Signal::KILL).is_ok())
}
