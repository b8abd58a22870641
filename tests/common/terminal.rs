//! A pseudo terminal that runs the program: reads its output, and writes what a human types.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use nix::pty::{OpenptyResult, Winsize, openpty};

use super::Place;

/// Longer than anything here takes: a test that waits in vain ends with the output so far.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program in a terminal of 100 columns; its stdout is a file, to keep the result separate.
pub struct Terminal {
    child: Child,
    master: File,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    /// How much of the output was already waited for.
    at: usize,
}

#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    ended: bool,
}

impl Terminal {
    pub fn start(place: &Place, args: &[&str]) -> Self {
        let size = Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let OpenptyResult { master, slave } = openpty(Some(&size), None).expect("a terminal");
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().expect("a file"));
        let stdout = File::create(place.path().join("stdout")).expect("a file");
        let mut command = place.command(args);
        command.env("TERM", "xterm").stdin(end(&slave)).stderr(end(&slave)).stdout(stdout);
        let child = command.spawn().expect("the program starts");
        drop((slave, command));
        let seen = Arc::new((Mutex::new(Seen::default()), Condvar::new()));
        let mut reader = File::from(master.try_clone().expect("a file"));
        std::thread::spawn({
            let seen = Arc::clone(&seen);
            move || {
                let mut buffer = [0; 4096];
                loop {
                    let read = match reader.read(&mut buffer) {
                        Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                        read => read.unwrap_or(0),
                    };
                    let mut all = seen.0.lock().expect("the lock");
                    all.bytes.extend_from_slice(&buffer[..read]);
                    all.ended = read == 0;
                    seen.1.notify_all();
                    if read == 0 {
                        return;
                    }
                }
            }
        });
        Self { child, master: File::from(master), seen, at: 0 }
    }

    /// Waits until this text appears after the last one; returns the output until then.
    pub fn sees(&mut self, text: &str) -> String {
        let (lock, changed) = &*self.seen;
        let from = self.at;
        let found = |seen: &Seen| {
            let rest = &seen.bytes[from..];
            rest.windows(text.len()).position(|window| window == text.as_bytes()).map(|at| from + at + text.len())
        };
        let waits = |seen: &mut Seen| found(seen).is_none() && !seen.ended;
        let (seen, _) = changed.wait_timeout_while(lock.lock().expect("the lock"), PATIENCE, waits).expect("the lock");
        let Some(to) = found(&seen) else {
            let shown = String::from_utf8_lossy(&seen.bytes[from..]).into_owned();
            drop(seen);
            panic!("{text:?} is not shown:\n{shown}");
        };
        self.at = to;
        String::from_utf8_lossy(&seen.bytes[from..to]).into_owned()
    }

    /// Types a line.
    pub fn types(&mut self, text: &str) {
        self.master.write_all(format!("{text}\n").as_bytes()).expect("it is typed");
    }

    /// The end of the input: Ctrl-D.
    pub fn types_the_end(&mut self) {
        self.master.write_all(&[4]).expect("it is typed");
    }

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The exit code, the whole output, and stdout. A process that does not end is killed.
    pub fn ends(mut self, place: &Place) -> (i32, String, String) {
        let (lock, changed) = &*self.seen;
        let waits = |seen: &mut Seen| !seen.ended;
        let (seen, late) =
            changed.wait_timeout_while(lock.lock().expect("the lock"), PATIENCE, waits).expect("the lock");
        if late.timed_out() {
            self.child.kill().expect("it is killed");
        }
        let code = self.child.wait().expect("it ends").code().unwrap_or(-1);
        let stdout = std::fs::read_to_string(place.path().join("stdout")).expect("it was written");
        (code, String::from_utf8_lossy(&seen.bytes).into_owned(), stdout)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // No process of a failed test may survive.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
