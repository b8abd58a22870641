//! A process is killed at the boundaries of its journal: at each commit at a third of them, so that each event and each
//! kind of boundary has its kills, and at night at all (`just nightly`).
//!
//! The fail points are compiled into debug builds only, so the tests that use this are too.
#![allow(dead_code, reason = "not all test programs use it")]

/// The kinds of boundaries, as `LOOPCTL_FAIL` names them.
pub const BOUNDARIES: [&str; 4] = ["before-write", "after-write", "after-sync", "before-effect"];

/// The distance of two kills at boundaries of one kind.
fn stride() -> usize {
    if super::is_nightly() { 1 } else { 3 }
}

/// Whether a kill at this event and this kind of boundary, by its number in [`BOUNDARIES`], is played.
pub fn is_played(event: usize, boundary: usize) -> bool {
    event % stride() == boundary % stride()
}

/// Strikes at the events of each kind of boundary until no process is killed there. `strike` is given the event, and what
/// `LOOPCTL_FAIL` is to be; it says whether the process was killed. How many kills there were of each kind.
pub fn kill_everywhere(mut strike: impl FnMut(usize, &str) -> bool) -> [usize; 4] {
    let mut number = 0;
    BOUNDARIES.map(|boundary| {
        let first = number % stride();
        number += 1;
        let hit = |event: &usize| strike(*event, &format!("journal:{event}:{boundary}"));
        (first..).step_by(stride()).take_while(hit).count()
    })
}

/// How many of these events have a kill, for the first three kinds of boundaries: each event has those.
pub fn kills_of(events: usize) -> [usize; 3] {
    [0, 1, 2].map(|boundary| (0..events).filter(|event| is_played(*event, boundary)).count())
}

/// How many of `whole` kills at all boundaries are played at least.
pub fn least(whole: usize) -> usize {
    let rounded_off = BOUNDARIES.len() * (stride() - 1);
    (whole.saturating_sub(rounded_off) / stride()).max(1)
}
