//! This process: the user of the machine who starts it, and its memory, which holds secrets.

/// Who decides at a terminal: the user of this machine, as the record names them. The system says who that is: a
/// variable could name anybody, and one person would be two approvers.
#[cfg(unix)]
pub fn local_user() -> Option<String> {
    let uid = nix::unistd::Uid::current();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    Some(user.map_or_else(|| format!("uid {uid}"), |user| user.name.chars().take(64).collect()))
}

/// Who decides at a terminal: the user of this machine, as the record names them.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "the command line reads the environment of its user")]
pub fn local_user() -> Option<String> {
    let user = std::env::var("USERNAME").ok().filter(|value| !value.is_empty());
    user.map(|name| name.chars().take(64).collect())
}

/// Who asks for what no second person has to confirm: the user of this machine, and who became it by `sudo`. Only root is
/// believed about that: any other user could name anybody in a variable.
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "the command line reads the environment of its user")]
pub fn acting_user() -> Option<String> {
    let user = local_user()?;
    let before = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty() && *name != user);
    Some(match before.filter(|_| nix::unistd::Uid::current().is_root()) {
        Some(before) => format!("{user} (sudo by {})", before.chars().take(64).collect::<String>()),
        None => user,
    })
}

/// Who asks for what no second person has to confirm.
#[cfg(not(unix))]
pub fn acting_user() -> Option<String> {
    local_user()
}

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
