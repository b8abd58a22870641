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

/// How often all processes are looked through: until none is found that was not killed yet, or one that
/// forks faster than it is looked for has won.
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
            let before = killed.len();
            for pid in pids() {
                if !killed.contains(&pid) && has(pid, &entry) && kill(pid, &entry) {
                    killed.insert(pid);
                }
            }
            // What was killed forks no more: the next look finds what it had forked until then.
            if killed.len() == before {
                return;
            }
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

/// Whether a process was started with this variable. One of another user does not show it.
#[cfg(target_os = "linux")]
fn has(pid: i32, entry: &[u8]) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == entry)
}

/// Kills one that has the variable; whether it was.
#[cfg(target_os = "linux")]
fn kill(pid: i32, entry: &[u8]) -> bool {
    let handle = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // Looked at once more: the number may have gone to another process before there was a handle. After
    // that, the handle is of the one that is looked at, or of one that is gone.
    handle.is_some_and(|handle| has(pid, entry) && pidfd_send_signal(handle, Signal::KILL).is_ok())
}
