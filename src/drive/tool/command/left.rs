//! What a program leaves running outside of its process group: found by a mark that each process inherits.
//!
//! A process that makes itself a session of its own leaves the group, but it keeps the environment that
//! it was started with, and so the mark of its call. Linux shows that environment; elsewhere nothing is
//! found. One that cleared its environment, too, is not found.

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

/// How long, in milliseconds, processes are waited for that are just being started: until they show what they
/// were started with, nobody knows whose they are. The kernel ends such a moment by itself, on a busy machine late.
#[cfg(target_os = "linux")]
const PATIENCE_MS: u64 = 5_000;

/// How often they are looked at in a row before the thread sleeps in between.
#[cfg(target_os = "linux")]
const LOOKS: u32 = 50;

/// The mark of one start of a program: no other process ever has it.
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
    /// All processes are looked through until a look finds nothing new: one that was killed forks no more, not even
    /// when it was in the middle of it. (One that is only stopped could still end a fork that it had started, and be
    /// continued by a friend.) One that ended while it was looked for may have left another one; one that is just
    /// being started does not show what it is yet, and is waited for.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(&self) {
        let entry = format!("{VARIABLE}={}", self.0).into_bytes();
        let start = clock::instant();
        // Those of which nothing more is to be learned: they are not the call's, were killed, or have ended.
        let mut settled = HashSet::new();
        let mut again = true;
        while again {
            again = false;
            // The youngest first: what leaves a next one and ends is among them, and is not there for long.
            let Some(pids) = pids() else {
                again = clock::elapsed_ms(start) <= PATIENCE_MS;
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            let mut unsettled: Vec<i32> = pids.filter(|pid| !settled.contains(pid)).collect();
            unsettled.sort_unstable_by(|one, other| other.cmp(one));
            // Whether that is news, from which all are looked through again; none while it is just being started.
            let mut news = |pid: i32| {
                let news = match look(pid, &entry) {
                    ProcessSeen::Other => false,
                    // One that ends may have had the mark, and have left another one.
                    ProcessSeen::Gone => true,
                    ProcessSeen::Marked if kill(pid, &entry) => true,
                    // It may begin another program, or end, before it is killed.
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

/// Lets others run, the longer the more often that was done.
#[cfg(target_os = "linux")]
pub(super) fn rest(looks: u32) {
    if looks < LOOKS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All processes; none while there is no descriptor to list them by.
#[cfg(target_os = "linux")]
fn pids() -> Option<impl Iterator<Item = i32>> {
    let entries = match std::fs::read_dir("/proc") {
        Err(error) if descriptors::says_so(&error) => return None,
        entries => entries.into_iter().flatten().flatten(),
    };
    Some(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// What a process shows of its environment.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessSeen {
    /// It was started with the variable.
    Marked,
    /// It begins another program at this moment, and shows the environment of none.
    Starting,
    /// It has ended.
    Gone,
    /// It was started without, is the kernel's, or of another user, who does not show it.
    Other,
}

/// The most bytes of an environment that are read at once.
#[cfg(target_os = "linux")]
const AT_ONCE: usize = 64 * 1024;

/// One read sees one program's environment. Of two, the second may be of the next program, and find nothing
/// where the first one ended.
#[cfg(target_os = "linux")]
fn look(pid: i32, entry: &[u8]) -> ProcessSeen {
    let path = format!("/proc/{pid}/environ");
    let mut environment = vec![0; AT_ONCE];
    let read = match File::open(&path).and_then(|mut file| file.read(&mut environment)) {
        // Nothing was seen: it is looked at again.
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

/// Where a process has its environment.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanBounds {
    /// Somewhere, so many bytes of it.
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

/// What a process is that shows no environment.
#[cfg(target_os = "linux")]
fn without_environment(pid: i32) -> ProcessSeen {
    match bounds(pid) {
        ScanBounds::Gone => ProcessSeen::Gone,
        // While it begins a program: it has a file then, and what the kernel runs itself has none.
        ScanBounds::None if std::fs::read_link(format!("/proc/{pid}/exe")).is_ok() => ProcessSeen::Starting,
        ScanBounds::None | ScanBounds::Of(0) => ProcessSeen::Other,
        // It has started another program since its environment was looked for.
        ScanBounds::Of(_) => ProcessSeen::Starting,
    }
}

/// Kills one that has the variable; whether it was.
#[cfg(target_os = "linux")]
fn kill(pid: i32, entry: &[u8]) -> bool {
    let handle = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // Looked at once more: the number may have gone to another process before there was a handle. After
    // that, the handle is of the one that is looked at, or of one that is gone.
    let marked = || look(pid, entry) == ProcessSeen::Marked;
    handle.is_some_and(|handle| marked() && pidfd_send_signal(handle, Signal::KILL).is_ok())
}
