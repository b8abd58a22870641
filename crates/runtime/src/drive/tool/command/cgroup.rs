//! The cgroup v2 of a call, below our own, if the system provides one. Processes of the program stay in it,
//! whatever they change about session, parents and environment, and are killed with it.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};

use super::group_entry;
pub(super) use super::group_entry::StartFailure;
use super::leftover_processes::{ProcessMark, rest};
use crate::drive::{clock, descriptors};

/// The limits of each group. The first four exist if our own group delegates the controllers. The last two
/// bound what has to be removed.
const LIMITS: [(&str, &str); 6] = [
    // 2 GiB. The kernel then kills the whole group: half a program is of no use.
    ("memory.max", "2147483648"),
    ("memory.swap.max", "0"),
    ("memory.oom.group", "1"),
    ("pids.max", "512"),
    ("cgroup.max.descendants", "64"),
    ("cgroup.max.depth", "8"),
];

/// The controllers of these limits.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// How long, in milliseconds, the kernel may take to end killed processes.
const PATIENCE_MS: u64 = 1_000;

/// How many groups inside of one are removed with it, and how many groups of dead processes are removed, at
/// most.
const REMOVED: usize = 256;

/// The number of attempts to remove a group.
const REMOVALS: u32 = 60;

/// The group of a call. Kill what runs in it before this is dropped; the drop removes the group.
#[derive(Debug)]
pub(super) struct CallGroup {
    folder: PathBuf,
    /// Our own program prints this token when a start fails.
    token: String,
}

impl CallGroup {
    /// A group for the call with this mark; none if the system provides none.
    ///
    /// # Errors
    /// When no descriptor is left, so that the limits could not be written.
    pub(super) fn new(mark: &ProcessMark) -> io::Result<Option<Self>> {
        if !group_entry::is_available() {
            return Ok(None);
        }
        own()?.map_or(Ok(None), |own| Self::below(&own, mark))
    }

    fn below(own: &Path, mark: &ProcessMark) -> io::Result<Option<Self>> {
        let folder = own.join(format!("{}{}", prefix(std::process::id()), mark.value()));
        if let Err(error) = fs::create_dir(&folder) {
            tracing::debug!(%error, "a program runs without a cgroup");
            return Ok(None);
        }
        let group = Self { folder, token: ProcessMark::new().value().to_owned() };
        limit(&group.folder)?;
        Ok(Some(group))
    }

    /// The command that starts a program in the group. Add the arguments, and the variables as
    /// [`CallGroup::held`] names them.
    pub(super) fn command(&self, program: &Path) -> tokio::process::Command {
        group_entry::command(&self.token, &self.folder.join("cgroup.procs"), program)
    }

    /// The name under which a variable is passed to the program.
    #[expect(clippy::unused_self, reason = "without a group it has its own name")]
    pub(super) fn held<'a>(&self, name: &'a str) -> Cow<'a, str> {
        group_entry::held(name)
    }

    /// Why the program did not start, when it did not.
    pub(super) fn failure(&self, status: ExitStatus, printed: &[u8]) -> Option<StartFailure> {
        group_entry::failure(status.code(), printed, &self.token)
    }

    /// Whether the kernel killed it because of its memory use.
    pub(super) fn took_too_much_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        number(&events, "oom_kill").is_some_and(|kills| kills > 0)
    }

    /// Kills all processes of the group, and waits until they have ended.
    pub(super) fn kill(&self) {
        let started = clock::instant();
        let (mut looks, mut sent) = (0, false);
        while is_populated(&self.folder) {
            if clock::elapsed_ms(started) > PATIENCE_MS {
                return;
            }
            if !sent {
                sent = write(&self.folder.join("cgroup.kill"), "1").is_ok();
            }
            rest(looks);
            looks += 1;
        }
    }
}

impl Drop for CallGroup {
    fn drop(&mut self) {
        for looks in 0..REMOVALS {
            if remove(&self.folder, &mut REMOVED.clone()) {
                return;
            }
            rest(looks);
        }
        tracing::debug!(folder = %self.folder.display(), "a cgroup is left; a later process removes it");
    }
}

/// Writes the limits that have controllers.
fn limit(folder: &Path) -> io::Result<()> {
    for (file, value) in LIMITS {
        match write(&folder.join(file), value) {
            Err(error) if descriptors::says_so(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The common prefix of the names of the groups that a process makes.
fn prefix(pid: u32) -> String {
    format!("loopctl-{pid}-")
}

/// The process that made a group.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix("loopctl-")?.split_once('-')?.0.parse().ok()
}

fn write(file: &Path, value: &str) -> io::Result<()> {
    File::options().write(true).open(file)?.write_all(value.as_bytes())
}

/// A number in a text of names and numbers.
fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Whether a process lives in a group, or in one inside of it. A group that can't be read counts as populated.
fn is_populated(folder: &Path) -> bool {
    match fs::read_to_string(folder.join("cgroup.events")) {
        Ok(events) => number(&events, "populated") != Some(0),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes a group without processes, with those inside of it, up to `left` groups. Returns whether it is gone.
fn remove(folder: &Path, left: &mut usize) -> bool {
    match fs::remove_dir(folder) {
        Ok(()) => return true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
        Err(_) => {}
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let Some(fewer) = left.checked_sub(1) else { return false };
            *left = fewer;
            remove(&entry.path(), left);
        }
    }
    fs::remove_dir(folder).is_ok()
}

/// Our own group, if others can be made in it. Looked up once.
fn own() -> io::Result<Option<PathBuf>> {
    static OWN: Mutex<Option<Option<PathBuf>>> = Mutex::new(None);
    // Locked during the lookup: the groups that it removes belong to no call under way.
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*own {
        return Ok(known.clone());
    }
    let found = match find() {
        Ok(folder) => Some(folder),
        Err(error) if descriptors::says_so(&error) => return Err(error),
        Err(error) => {
            tracing::debug!(%error, "no cgroup can be had: what programs leave running is found by its mark only");
            None
        }
    };
    Ok(own.insert(found).clone())
}

fn find() -> io::Result<PathBuf> {
    let cgroup = fs::read_to_string("/proc/self/cgroup")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let own = folder_of(&cgroup, &mounts).ok_or_else(|| io::Error::other("no cgroup v2 is mounted"))?;
    // Without write access here, no process can be moved from here into another group.
    File::options().write(true).open(own.join("cgroup.procs"))?;
    remove_left(&own)?;
    hand_on(&own);
    let probe = own.join(format!("{}probe", prefix(std::process::id())));
    fs::create_dir(&probe)?;
    // Since Linux 5.14.
    let kills = probe.join("cgroup.kill").exists();
    fs::remove_dir(&probe)?;
    if kills { Ok(own) } else { Err(io::Error::other("this kernel does not kill a cgroup")) }
}

/// Enables the memory and process controllers for the groups inside of this one. The kernel refuses that for a
/// group with processes, except the root: then these limits do not exist.
fn hand_on(own: &Path) {
    let offered = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
    let given = fs::read_to_string(own.join("cgroup.subtree_control")).unwrap_or_default();
    let has = |list: &str, name: &str| list.split_whitespace().any(|entry| entry == name);
    for name in CONTROLLERS.into_iter().filter(|name| has(&offered, name) && !has(&given, name)) {
        if let Err(error) = write(&own.join("cgroup.subtree_control"), &format!("+{name}")) {
            tracing::debug!(%error, controller = name, "programs run without this controller's limit");
        }
    }
}

/// Removes groups of processes that have ended, if nothing lives in them. Before our first call, groups with
/// our process number belong to an earlier process with that number.
fn remove_left(own: &Path) -> io::Result<()> {
    let entries = fs::read_dir(own)?.flatten();
    let left = entries.filter(|entry| {
        let pid = entry.file_name().to_str().and_then(maker);
        pid.is_some_and(|pid| pid == std::process::id() || !Path::new(&format!("/proc/{pid}")).exists())
    });
    for entry in left.take(REMOVED) {
        if !is_populated(&entry.path()) {
            remove(&entry.path(), &mut REMOVED.clone());
        }
    }
    Ok(())
}

/// The folder of our own cgroup v2, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn folder_of(cgroup: &str, mounts: &str) -> Option<PathBuf> {
    let path = Path::new(cgroup.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let inside = path.strip_prefix(root).ok()?;
        let plain = inside.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        // In practice nobody has a name that is written with escapes.
        (plain && !at.contains('\\')).then(|| Path::new(at).join(inside))
    })
}

#[cfg(test)]
#[path = "tests_cgroup.rs"]
mod tests;
