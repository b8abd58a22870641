//! A command waits itself where its run waits for a time that is near.

use std::sync::Arc;
use std::time::Duration;

use super::signals::Signals;
use super::watch::Watched;
use crate::drive::clock;
use crate::drive::engine::{Engine, Finished, Resume};
use crate::drive::fault::Fault;
use crate::engine::state::{Phase, State};
use crate::engine::wait_deadline::due_at_ms;
use crate::journal::StoreError;
use crate::program::Program;
use crate::trace::units::rfc3339;

/// The longest time that a command waits for. A run that waits longer is left to whoever resumes it.
const MOST_FOREGROUND_WAIT: Duration = Duration::from_secs(60);

/// Waits with a run that waits for a time, as long as that is near, and resumes it then. A signal leaves the run waiting.
pub async fn in_foreground(
    watched: &Watched,
    engine: &Engine,
    program: &Arc<Program>,
    mut finished: Option<Result<Finished, Fault>>,
) -> Option<Result<Finished, Fault>> {
    loop {
        let Some(Ok(Finished { state })) = &finished else { return finished };
        let (Some(until_ms), Some(left)) = (waits_until(state), left_until(state)) else { return finished };
        if !left.is_zero() {
            watched.remark(&format!("waiting until {}; Ctrl-C leaves the run waiting", rfc3339(until_ms)));
        }
        let mut signals = Signals::new();
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            () = signals.next() => return finished,
        }
        let run_id = state.header.run_id.clone();
        let resumed = watched.drive(engine.resume(program, &run_id, Resume::default(), watched.watch())).await;
        if matches!(&resumed, Some(Err(Fault::Store(StoreError::Driven(_))))) {
            watched.remark("another process drives the run now");
            return finished;
        }
        finished = resumed;
    }
}

/// How long a run still waits that waits for a time alone, as long as that is near.
pub fn left_until(state: &State) -> Option<Duration> {
    let left_ms = waits_until(state)?.saturating_sub(clock::wall_ms());
    let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or_default());
    (left <= MOST_FOREGROUND_WAIT).then_some(left)
}

/// Until when a run waits that waits for a time alone, in milliseconds since 1970.
fn waits_until(state: &State) -> Option<i64> {
    match &state.phase {
        Phase::Paused { pause, .. } if pause.question.kind.is_wait() => due_at_ms(state),
        _ => None,
    }
}
