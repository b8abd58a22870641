//! Signals: the first ends the run after its step, the second ends it at once. The end of the terminal (SIGHUP) is a first
//! signal and never a second one: a terminal that is closed may send it twice, by the kernel and by the shell.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use super::progress::ProgressDisplay;
use crate::drive::stop::Stop;
use futures_util::FutureExt as _;

/// How long a run may take to end after the second signal. After that, it is dropped with its calls: the
/// journal has what was acknowledged.
const STORE_GRACE: Duration = Duration::from_millis(900);

/// Drives a run to its end and handles signals. `None`: the run did not stop within the grace period after
/// the second signal.
pub async fn drive<T>(run: impl Future<Output = T>, stop: &Stop, progress: &ProgressDisplay) -> Option<T> {
    let mut run = pin!(run);
    let mut signals = Signals::new();
    let mut first = true;
    loop {
        tokio::select! {
            biased;
            result = &mut run => return Some(result),
            () = progress.break_silence() => {}
            () = signals.next() => {
                if !first {
                    break;
                }
                first = false;
                stop.after_step();
                progress.note("stopping after this step; Ctrl-C again stops now");
            }
        }
    }
    stop.now();
    progress.note("stopping now");
    tokio::time::timeout(STORE_GRACE, run).await.ok()
}

/// Counts the signals of a process that serves: the first asks it to end, the second ends it.
pub struct SignalCounter {
    count: tokio::sync::watch::Receiver<u32>,
}

impl SignalCounter {
    /// From now on these signals do not end the process by themselves.
    pub fn of(mut signals: Signals) -> Self {
        let (sender, count) = tokio::sync::watch::channel(0);
        tokio::spawn(
            async move {
                loop {
                    signals.next().await;
                    sender.send_modify(|count| *count += 1);
                }
            }
            .boxed(),
        );
        Self { count }
    }

    /// The same for a server: without a terminal, SIGHUP asks it to read its folder again.
    pub fn of_server() -> Self {
        Self::of(if has_terminal() { Signals::new() } else { Signals::without_hangup() })
    }

    /// How many have arrived.
    pub fn count(&self) -> u32 {
        *self.count.borrow()
    }

    /// Waits until `wanted` signals have arrived.
    pub async fn reach(&self, wanted: u32) {
        let mut count = self.count.clone();
        // The counting task never ends.
        drop(count.wait_for(|count| *count >= wanted).await);
    }
}

/// Whether the end of a terminal ends the process.
fn has_terminal() -> bool {
    use std::io::IsTerminal as _;
    std::io::stdin().is_terminal() || std::io::stdout().is_terminal() || std::io::stderr().is_terminal()
}

/// The signals that ask a server without a terminal to read its folder again.
#[cfg(unix)]
pub struct Hangups(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Hangups {
    /// Listens from now on.
    pub fn of_server() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self(if has_terminal() { None } else { signal(SignalKind::hangup()).ok() })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        one(&mut self.0).await;
    }
}

/// Other systems have no such signal.
#[cfg(not(unix))]
pub struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    /// Nothing is listened to.
    pub fn of_server() -> Self {
        Self
    }

    /// None comes.
    pub async fn next(&mut self) {
        std::future::pending::<()>().await;
    }
}

/// A file that exceeds `ulimit -f` ends the process by a signal; with a handler the write fails instead, and
/// the store reports it. Keep the value as long as that is needed.
#[cfg(unix)]
pub fn survive_file_limit() -> Option<tokio::signal::unix::Signal> {
    use nix::sys::signal::Signal;
    use tokio::signal::unix::{SignalKind, signal};
    #[expect(clippy::as_conversions, reason = "the signal's number is what the enum's value is")]
    signal(SignalKind::from_raw(Signal::SIGXFSZ as i32)).ok()
}

/// Other systems have no such signal.
#[cfg(not(unix))]
pub fn survive_file_limit() {}

/// Receives the signals that ask to stop, from its creation on. The end of the terminal is one, unless the process was
/// started to outlive it.
#[cfg(unix)]
pub struct Signals {
    interrupt: Option<tokio::signal::unix::Signal>,
    terminate: Option<tokio::signal::unix::Signal>,
    /// None as soon as any signal came.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    /// Listens from now on.
    pub fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        // Without a handler the signal ends the process, which the journal survives.
        let (interrupt, terminate) = (signal(SignalKind::interrupt()).ok(), signal(SignalKind::terminate()).ok());
        let hangup = if ignores_hangup() { None } else { signal(SignalKind::hangup()).ok() };
        Self { interrupt, terminate, hangup }
    }

    /// The same without SIGHUP, which means something else.
    pub fn without_hangup() -> Self {
        Self { hangup: None, ..Self::new() }
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            () = one(&mut self.interrupt) => {}
            () = one(&mut self.terminate) => {}
            () = one(&mut self.hangup) => {}
        }
        // The process keeps the handler: a later one is not received, and ends nothing.
        self.hangup = None;
    }
}

/// Whether the process was started with SIGHUP ignored, as `nohup` does. Only Linux says so.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is signal 1, SIGHUP.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(unix)]
async fn one(signal: &mut Option<tokio::signal::unix::Signal>) {
    let received = match signal {
        Some(signal) => signal.recv().await.is_some(),
        None => false,
    };
    if !received {
        std::future::pending::<()>().await;
    }
}

/// Receives the signals that ask to stop, from its creation on.
#[cfg(not(unix))]
pub struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Listens from now on.
    pub fn new() -> Self {
        Self
    }

    /// The same.
    pub fn without_hangup() -> Self {
        Self
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
