//! Protects the memory of a process that holds secrets, and its environment.

/// Hides both from other processes of the same user, also from programs that a tool starts, and from core
/// dumps. A started program shows its own memory again. On Linux only; root sees everything.
#[cfg(target_os = "linux")]
pub fn keep_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // If the kernel refuses, nothing changes.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Other systems have no such switch.
#[cfg(not(target_os = "linux"))]
pub fn keep_private() {}
