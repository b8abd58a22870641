//! Finds processes that a program leaves outside of its process group, by a mark that each process inherits.
//!
//! A process that starts its own session leaves the group, but it keeps its environment, and so the mark of its
//! call. Linux shows that environment; elsewhere nothing is found. A process that also cleared its environment
//! is not found.

#[cfg(target_os = "linux")]
use std::collections::HashSet;
#[cfg(target_os = "linux")]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::Read;
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

#[cfg(target_os = "linux")]
use crate::drive::{clock, descriptors};

/// The variable that holds the mark.
pub(super) const VARIABLE: &str = "LOOPCTL_CALL";

/// How long, in milliseconds, to wait for processes that are just being started: until they show their
/// environment, it is not known whose they are. The kernel ends this moment by itself, on a busy machine late.
#[cfg(target_os = "linux")]
const PATIENCE_MS: u64 = 5_000;

/// How often they are polled before the thread sleeps between polls.
#[cfg(target_os = "linux")]
const LOOKS: u32 = 50;

/// The mark of one start of a program: unique to it.
#[derive(Debug)]
pub(super) struct ProcessMark(String);

impl ProcessMark {
    pub(super) fn new() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// The value of the variable.
    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// Kills every process that has the mark.
    ///
    /// All processes are scanned until a scan finds nothing new: a killed process forks no more, not even when
    /// it was in the middle of a fork. (A process that is only stopped could finish a fork that it had started,
    /// and be continued by another one.) A process that ended during the scan may have left another one; a
    /// process that is just being started does not show its environment yet, and is waited for.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(&self) {
        let entry = format!("{VARIABLE}={}", self.0).into_bytes();
        let start = clock::instant();
        // Nothing more is to be learned about these: they do not belong to the call, were killed, or have
        // ended.
        let mut settled = HashSet::new();
        let mut again = true;
        while again {
            again = false;
            // The youngest first: a process that starts the next one and ends lives only for a moment.
            let Some(pids) = pids() else {
                again = clock::elapsed_ms(start) <= PATIENCE_MS;
                pause();
                continue;
            };
            let mut unsettled: Vec<i32> = pids.filter(|pid| !settled.contains(pid)).collect();
            unsettled.sort_unstable_by(|one, other| other.cmp(one));
            // Whether a process is news, after which all are scanned again; none while it is just being
            // started.
            let mut news = |pid: i32| {
                let news = match look(pid, &entry) {
                    ProcessSeen::Other => false,
                    // A process that ends may have had the mark, and have started another one.
                    ProcessSeen::Gone => true,
                    ProcessSeen::Marked if kill(pid, &entry) => true,
                    // It may execute another program, or end, before it is killed.
                    ProcessSeen::Marked | ProcessSeen::Starting => return None,
                };
                settled.insert(pid);
                Some(news)
            };
            let mut starting: Vec<i32> = Vec::new();
            for pid in unsettled {
                match news(pid) {
                    None => starting.push(pid),
                    Some(news) => again |= news,
                }
            }
            let mut looks = 0;
            while !again && !starting.is_empty() {
                if clock::elapsed_ms(start) > PATIENCE_MS {
                    return;
                }
                rest(looks);
                looks += 1;
                starting.retain(|pid| {
                    let news = news(*pid);
                    again |= news == Some(true);
                    news.is_none()
                });
            }
            again &= clock::elapsed_ms(start) <= PATIENCE_MS;
        }
    }

    /// Elsewhere a process's environment is not shown.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn kill(&self) {}
}

/// Waits for a millisecond: until a moment, and not for a length of time. Linux adds some 50 µs to what is left of a
/// sleep each time that a signal interrupts it, so that a flood of signals would make a sleep endless.
#[cfg(target_os = "linux")]
fn pause() {
    std::thread::park_timeout(Duration::from_millis(1));
}

/// Yields the processor; sleeps longer the more often that was done.
#[cfg(target_os = "linux")]
pub(super) fn rest(looks: u32) {
    if looks < LOOKS {
        std::thread::yield_now();
    } else {
        pause();
    }
}

/// All processes but this one; none while there is no descriptor to list them. What is hidden from other processes
/// (`cli::memory`) is hidden from a read of our own environment, too: it would look like a program that is just being
/// started, and be waited for.
#[cfg(target_os = "linux")]
fn pids() -> Option<impl Iterator<Item = i32>> {
    let entries = match std::fs::read_dir("/proc") {
        Err(error) if descriptors::says_so(&error) => return None,
        entries => entries.into_iter().flatten().flatten(),
    };
    let own = i32::try_from(std::process::id()).ok();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Some(pids.filter(move |pid| Some(*pid) != own))
}

/// What a process shows of its environment.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessSeen {
    /// It was started with the variable.
    Marked,
    /// It is executing another program at this moment, and shows no environment.
    Starting,
    /// It has ended.
    Gone,
    /// It was started without the variable, is a kernel thread, or belongs to another user.
    Other,
}

/// The most bytes of an environment that are read at once.
#[cfg(target_os = "linux")]
const AT_ONCE: usize = 64 * 1024;

/// One read returns the environment of one program. A second read may be of the next program, and find nothing
/// where the first one ended.
#[cfg(target_os = "linux")]
fn look(pid: i32, entry: &[u8]) -> ProcessSeen {
    let path = format!("/proc/{pid}/environ");
    let mut environment = vec![0; AT_ONCE];
    let read = match File::open(&path).and_then(|mut file| file.read(&mut environment)) {
        // Nothing was read: try again.
        Err(error) if descriptors::says_so(&error) => return ProcessSeen::Starting,
        read => read.unwrap_or_default(),
    };
    environment.truncate(read);
    if read == AT_ONCE {
        environment = std::fs::read(path).unwrap_or_default();
    }
    if environment.split(|byte| *byte == 0).any(|variable| variable == entry) {
        ProcessSeen::Marked
    } else if environment.is_empty() || (read == AT_ONCE && bounds(pid) != ScanBounds::Of(environment.len())) {
        without_environment(pid)
    } else {
        ProcessSeen::Other
    }
}

/// Where the environment of a process is.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanBounds {
    /// At this place, with this number of bytes.
    Of(usize),
    /// Nowhere.
    None,
    /// The process is gone.
    Gone,
}

#[cfg(target_os = "linux")]
fn bounds(pid: i32) -> ScanBounds {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    if matches!(fields.next(), None | Some("Z" | "X")) {
        return ScanBounds::Gone;
    }
    // Where it begins and ends: the 50th and 51st field, the fourth being the first of these.
    let mut bounds = fields.skip(46).map(|field| field.parse::<usize>().unwrap_or(0));
    match (bounds.next(), bounds.next()) {
        (Some(begin), Some(end)) if (begin, end) != (0, 0) => ScanBounds::Of(end.wrapping_sub(begin)),
        _ => ScanBounds::None,
    }
}

/// What a process without a visible environment is.
#[cfg(target_os = "linux")]
fn without_environment(pid: i32) -> ProcessSeen {
    match bounds(pid) {
        ScanBounds::Gone => ProcessSeen::Gone,
        // It is executing a program: it has a file then, and kernel threads have none.
        ScanBounds::None if std::fs::read_link(format!("/proc/{pid}/exe")).is_ok() => ProcessSeen::Starting,
        ScanBounds::None | ScanBounds::Of(0) => ProcessSeen::Other,
        // It has executed another program since its environment was located.
        ScanBounds::Of(_) => ProcessSeen::Starting,
    }
}

/// Kills a process that has the variable; returns whether it had it.
#[cfg(target_os = "linux")]
fn kill(pid: i32, entry: &[u8]) -> bool {
    let handle = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // Checked again: the number may have passed to another process before the handle was opened. From now on,
    // the handle refers to the checked process, or to one that has ended.
    let marked = || look(pid, entry) == ProcessSeen::Marked;
    handle.is_some_and(|handle| marked() && pidfd_send_signal(handle, Signal::KILL).is_ok())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_does_not_wait_for_itself_when_it_looks_for_what_was_left() {
        let own = i32::try_from(std::process::id()).unwrap();
        let seen: Vec<i32> = pids().unwrap().collect();
        assert!(seen.contains(&1) && !seen.contains(&own), "{seen:?}");
    }
}
