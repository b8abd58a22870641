//! Fail points for crash tests: places at which a test build kills or stops itself, or at which a call
//! to the store fails; times that it waits, and a clock that can be moved. A release build has none of
//! this is nothing.
//!
//! `LOOPCTL_FAIL` is a list, parted by commas, of
//! - `journal:N:POINT`: the process kills itself (SIGKILL) around the N-th event, from 0, that it
//!   appends to a journal on disk. POINT is `before-write`, `after-write` (and before the sync),
//!   `after-sync` (and before anyone is answered), or `before-effect` (before what follows event N is done).
//!   With `-stop` behind it the process stops itself there (SIGSTOP) and continues on SIGCONT; with
//!   `-hold` this thread alone waits there, for the end of what the FIFO `LOOPCTL_HOLD` gives it; with
//!   `-panic` it panics.
//! - `way:N:after-sync`: the same kill after the N-th event, from 0, other than those that say that a run was
//!   resumed. A process that dies at this point has made progress, however many runs it had to resume.
//! - `store:N:FAULT`: the N-th call to a store, from 0, fails without being done. FAULT is `busy`,
//!   `full`, `ioerr` or `readonly`.
//! - `statement:N:CODE`: the N-th statement that is sent to PostgreSQL, from 0, fails with this code of its list, without
//!   being done; with `-done` behind it, it is done and its answer is lost.
//! - `time:MS:WHAT`: how long something lasts in this process, in milliseconds. WHAT is `lease` (how long
//!   others leave the runs of a hanging driver alone), `busy` (how long a locked store is waited for), `quiet`
//!   (after how long the command line says what a run waits for), `on_pause` (how long the program of `--on-pause` may
//!   take) or `secret_program` (the same of a program that prints a secret).
//!
//! `LOOPCTL_CLOCK` is a file with the milliseconds by which the machine's clock is ahead (or, with a minus,
//! behind). It is read each time that the clock is read, so that a test can move the clock during a run.

#[cfg(feature = "postgres")]
pub use imp::statement;
pub use imp::{appended, before_effect, clock_ahead_ms, count_appended, hit, store_call, time, way, written};

/// Before the transaction.
pub const BEFORE_WRITE: &str = "before-write";
/// After the write and before the sync.
pub const AFTER_WRITE: &str = "after-write";
/// After the sync and before the answer.
pub const AFTER_SYNC: &str = "after-sync";
/// Before the effect that follows the event.
pub const BEFORE_EFFECT: &str = "before-effect";

#[cfg(debug_assertions)]
mod imp {
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use crate::journal::StoreError;

    static APPENDED: AtomicU64 = AtomicU64::new(0);
    static CALLS: AtomicU64 = AtomicU64::new(0);
    static WAY: AtomicU64 = AtomicU64::new(0);
    #[cfg(feature = "postgres")]
    static STATEMENTS: AtomicU64 = AtomicU64::new(0);

    /// One entry of the list.
    pub(super) struct FailPlan {
        pub(super) room: String,
        pub(super) number: u64,
        pub(super) what: String,
    }

    pub(super) fn parse(list: &str) -> Vec<FailPlan> {
        let entry = |text: &str| {
            let mut parts = text.trim().splitn(3, ':');
            let (room, number, what) = (parts.next()?, parts.next()?, parts.next()?);
            Some(FailPlan { room: room.to_owned(), number: number.parse().ok()?, what: what.to_owned() })
        };
        list.split(',').filter_map(entry).collect()
    }

    fn plans() -> &'static [FailPlan] {
        static PLANS: OnceLock<Vec<FailPlan>> = OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "crash tests steer a test build from outside")]
        PLANS.get_or_init(|| parse(&std::env::var("LOOPCTL_FAIL").unwrap_or_default()))
    }

    fn planned(room: &str, number: u64) -> Option<&'static str> {
        plans().iter().find(|plan| plan.room == room && plan.number == number).map(|plan| plan.what.as_str())
    }

    /// Kills or stops the process when this is where the plan says so.
    pub fn hit(room: &str, number: u64, point: &str) {
        let Some(planned) = planned(room, number) else { return };
        if planned == point {
            die();
        }
        if planned.strip_suffix("-stop") == Some(point) {
            stop();
        }
        if planned.strip_suffix("-hold") == Some(point) {
            hold();
        }
        #[expect(clippy::panic, reason = "a test that a panic costs a server nothing needs one")]
        if planned.strip_suffix("-panic") == Some(point) {
            panic!("a fail point");
        }
    }

    /// Called for each event that is written: every event other than "resumed" is progress.
    pub fn written(event: &str) {
        if !event.ends_with(r#""what":"resumed"}"#) {
            WAY.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// To be called when what was written is durable.
    pub fn way() {
        let progress = WAY.load(Ordering::SeqCst);
        if plans().iter().any(|plan| plan.room == "way" && plan.number < progress) {
            die();
        }
    }

    /// How long this lasts by the plan; `None` when the plan does not set it.
    pub fn time(what: &str) -> Option<Duration> {
        let plan = plans().iter().find(|plan| plan.room == "time" && plan.what == what)?;
        Some(Duration::from_millis(plan.number))
    }

    /// By how many milliseconds the machine's clock is ahead, as the test sets it.
    pub fn clock_ahead_ms() -> i64 {
        static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "tests move the clock of a test build from outside")]
        let file = FILE.get_or_init(|| std::env::var_os("LOOPCTL_CLOCK").map(PathBuf::from));
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    fn stop() {
        // To this very thread, so that it stops here, and not a little later while it holds a lock.
        #[cfg(unix)]
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP);
    }

    fn hold() {
        #[expect(clippy::disallowed_methods, reason = "crash tests steer a test build from outside")]
        if let Some(file) = std::env::var_os("LOOPCTL_HOLD") {
            // The test that opens it for writing knows that this point is reached, and closes it to continue.
            drop(std::fs::read(file));
        }
    }

    fn die() -> ! {
        #[cfg(unix)]
        let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
        #[cfg(not(unix))]
        std::process::abort();
        // The signal is on its way: nothing more may happen on this thread.
        #[cfg(unix)]
        loop {
            std::thread::park();
        }
    }

    /// How many events this process has appended to journals on disk.
    pub fn appended() -> u64 {
        APPENDED.load(Ordering::SeqCst)
    }

    /// Counts events that were appended.
    pub fn count_appended(more: u64) {
        APPENDED.fetch_add(more, Ordering::SeqCst);
    }

    /// To be called right before an effect is performed: the point `before-effect` of the last event.
    pub fn before_effect() {
        if let Some(last) = appended().checked_sub(1) {
            hit("journal", last, super::BEFORE_EFFECT);
        }
    }

    /// The code with which the next statement fails by the plan, and whether it is done.
    #[cfg(feature = "postgres")]
    pub fn statement() -> Option<(&'static str, bool)> {
        let planned = planned("statement", STATEMENTS.fetch_add(1, Ordering::SeqCst))?;
        Some(planned.strip_suffix("-done").map_or((planned, false), |code| (code, true)))
    }

    /// To be called at the head of each call to a store.
    ///
    /// # Errors
    /// The fault that the plan names for this call.
    pub fn store_call() -> Result<(), StoreError> {
        let number = CALLS.fetch_add(1, Ordering::SeqCst);
        match planned("store", number) {
            Some("busy") => Err(StoreError::Locked),
            Some("full") => Err(StoreError::Full),
            Some("ioerr") => Err(StoreError::Other("disk I/O error".to_owned())),
            Some("readonly") => Err(StoreError::ReadOnly("attempt to write a readonly database".to_owned())),
            _ => Ok(()),
        }
    }
}

#[cfg(not(debug_assertions))]
mod imp {
    use std::time::Duration;

    use crate::journal::StoreError;

    /// Nothing in a release build.
    #[inline(always)]
    pub const fn time(_what: &str) -> Option<Duration> {
        None
    }

    /// Nothing in a release build.
    #[inline(always)]
    pub const fn clock_ahead_ms() -> i64 {
        0
    }

    /// Nothing in a release build.
    #[inline(always)]
    pub const fn hit(_room: &str, _number: u64, _point: &str) {}

    /// Nothing in a release build.
    #[inline(always)]
    pub const fn written(_event: &str) {}

    /// Nothing in a release build.
    #[inline(always)]
    pub const fn way() {}

    /// Nothing in a release build.
    #[inline(always)]
    pub const fn appended() -> u64 {
        0
    }

    /// Nothing in a release build.
    #[inline(always)]
    pub const fn count_appended(_more: u64) {}

    /// Nothing in a release build.
    #[inline(always)]
    pub const fn before_effect() {}

    /// Nothing in a release build.
    #[cfg(feature = "postgres")]
    #[inline(always)]
    pub const fn statement() -> Option<(&'static str, bool)> {
        None
    }

    /// Nothing in a release build.
    ///
    /// # Errors
    /// None in a release build.
    #[inline(always)]
    pub const fn store_call() -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    #[test]
    fn a_list_is_read_and_what_is_no_entry_is_left_out() {
        let plans = super::imp::parse("journal:17:after-sync, store:3:busy,nonsense,journal:x:after-sync");
        let read: Vec<_> = plans.iter().map(|plan| (plan.room.as_str(), plan.number, plan.what.as_str())).collect();
        assert_eq!(read, [("journal", 17, "after-sync"), ("store", 3, "busy")]);
    }
}
