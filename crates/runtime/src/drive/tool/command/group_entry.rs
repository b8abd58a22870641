//! Starts a program inside of its call's group: our own program is started, enters the group, and executes the
//! other program.
//!
//! The code between fork and exec can't be written in safe Rust, so a whole process does it. It reads its
//! arguments and its environment and nothing else.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first argument of such a start: `loopctl __enter-group TOKEN GROUP PROGRAM ARGS...`.
const WORD: &str = "__enter-group";

/// The exit code of a start that failed.
const FAILED: u8 = 125;

/// The prefix of variables that would affect our own program before it executes the other.
const HELD: &str = "LOOPCTL_ENTER_";

/// Our program, also when its file was replaced or removed since it was started.
const OURSELVES: &str = "/proc/self/exe";

/// Whether this process can be started in this way: an embedder's program can't.
static AVAILABLE: AtomicBool = AtomicBool::new(false);

/// Why a start failed.
#[derive(Debug)]
pub(super) enum StartFailure {
    /// Our program could not enter the group.
    Group(io::Error),
    /// The program could not be started.
    Program(io::Error),
}

/// A program that starts itself in this way must call this first. If it was started so, it becomes the other
/// program, or returns the exit code that reports the failure.
pub fn enter_group() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_none_or(|first| first != WORD) {
        AVAILABLE.store(true, Ordering::Relaxed);
        return None;
    }
    let (Some(token), Some(group), Some(program)) = (args.next(), args.next(), args.next()) else {
        return Some(ExitCode::from(FAILED));
    };
    let (what, error) = match enter(Path::new(&group)) {
        Err(error) => ("group", error),
        Ok(()) => ("program", become_program(program, args)),
    };
    let code = error.raw_os_error().unwrap_or_default();
    // If nobody reads it, nobody waits for it.
    let _ = io::stderr().write_all(format!("{} {what} {code}\n", token.to_string_lossy()).as_bytes());
    Some(ExitCode::from(FAILED))
}

/// Whether programs can be started in this way.
pub(super) fn is_available() -> bool {
    AVAILABLE.load(Ordering::Relaxed)
}

/// Our program with its own arguments; add those of `program`.
pub(super) fn command(token: &str, group: &Path, program: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(OURSELVES);
    command.arg(WORD).arg(token).arg(group).arg(program);
    command
}

/// The name under which a variable of the program is passed to ours.
pub(super) fn held(name: &str) -> Cow<'_, str> {
    if name.starts_with("LD_") || name == "GLIBC_TUNABLES" || name.starts_with(HELD) {
        Cow::Owned(format!("{HELD}{name}"))
    } else {
        Cow::Borrowed(name)
    }
}

fn released(name: &OsStr) -> &OsStr {
    name.as_bytes().strip_prefix(HELD.as_bytes()).map_or(name, OsStr::from_bytes)
}

/// Why a start failed, if it did. Only our program can print this, because no other program has seen the token.
pub(super) fn failure(code: Option<i32>, printed: &[u8], token: &str) -> Option<StartFailure> {
    if code != Some(i32::from(FAILED)) {
        return None;
    }
    let rest = std::str::from_utf8(printed).ok()?.strip_prefix(token)?.strip_prefix(' ')?;
    let (what, code) = rest.strip_suffix('\n')?.split_once(' ')?;
    let error = io::Error::from_raw_os_error(code.parse().ok()?);
    match what {
        "group" => Some(StartFailure::Group(error)),
        "program" => Some(StartFailure::Program(error)),
        _ => None,
    }
}

/// `0` is the process that writes it.
fn enter(group: &Path) -> io::Result<()> {
    File::options().write(true).open(group)?.write_all(b"0")
}

/// Returns only when the program can't be started.
fn become_program(program: OsString, args: impl Iterator<Item = OsString>) -> io::Error {
    // A folder can't be executed. Before this call fails, it resets the signals that Rust's own start ignores
    // (SIGPIPE), as it does for every program that it starts. It can't start the program itself, because it
    // would run a file of unknown format in a shell.
    let _ = Command::new("/").exec();
    let text = |text: OsString| CString::new(text.into_vec());
    let args: Result<Vec<CString>, _> = std::iter::once(program).chain(args).map(text).collect();
    // In the order of the variables of a program that is started without a group.
    let env: BTreeMap<OsString, OsString> =
        std::env::vars_os().map(|(name, value)| (released(&name).to_owned(), value)).collect();
    let pair = |(mut name, value): (OsString, OsString)| {
        name.push("=");
        name.push(value);
        text(name)
    };
    let env: Result<Vec<CString>, _> = env.into_iter().map(pair).collect();
    let (Ok(args), Ok(env)) = (args, env) else { return io::ErrorKind::InvalidInput.into() };
    let Some(program) = args.first() else { return io::ErrorKind::InvalidInput.into() };
    match nix::unistd::execve(program, &args, &env) {
        Ok(never) => match never {},
        Err(errno) => errno.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_steers_our_program_too_is_held_back_and_comes_out_as_it_was() {
        for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "LOOPCTL_ENTER_X", "LOOPCTL_ENTER_LD_PRELOAD"] {
            let held = held(name);
            assert_ne!(held, name);
            assert_eq!(released(OsStr::new(&*held)), name);
        }
        for name in ["PATH", "LOOPCTL_CALL", "ld_x", "OLD_PATH"] {
            assert_eq!(held(name), name);
            assert_eq!(released(OsStr::new(name)), name);
        }
    }

    #[test]
    fn only_what_our_program_says_is_a_start_that_failed() {
        let kind = |code, printed: &[u8]| match failure(code, printed, "token") {
            Some(StartFailure::Group(error)) => format!("group {:?}", error.kind()),
            Some(StartFailure::Program(error)) => format!("program {:?}", error.kind()),
            None => "none".to_owned(),
        };
        assert_eq!(kind(Some(125), b"token program 2\n"), "program NotFound");
        assert_eq!(kind(Some(125), b"token group 13\n"), "group PermissionDenied");
        for printed in
            [&b"token program 2"[..], b"token program 2\nmore\n", b"other program 2\n", b"token x 2\n", b"\xff"]
        {
            assert_eq!(kind(Some(125), printed), "none", "{printed:?}");
        }
        assert_eq!(kind(Some(1), b"token program 2\n"), "none");
        assert_eq!(kind(None, b"token program 2\n"), "none");
    }
}
