//! The memory of a process that holds secrets: what it reads of them, and the environment that it was started with.

/// Shows neither to other processes of the same user, programs that a tool starts among them, and writes them into no
/// core dump. A program that is started shows its own again. On Linux only; root sees everything.
#[cfg(target_os = "linux")]
pub fn keep_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // A kernel that refuses leaves everything as it was.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Other systems have no such switch.
#[cfg(not(target_os = "linux"))]
pub fn keep_private() {}
