//! A request to stop, made from outside the run: after the step, or now.

use std::sync::Arc;

use tokio::sync::watch;

/// Stops the runs that watch it. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Stop {
    level: Arc<watch::Sender<Level>>,
    /// A stop of more runs than those of this one.
    above: Option<Arc<watch::Sender<Level>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Go,
    Leave,
    AfterStep,
    Now,
}

impl Default for Stop {
    fn default() -> Self {
        Self { level: Arc::new(watch::Sender::new(Level::Go)), above: None }
    }
}

impl Stop {
    /// A stop that nobody has requested yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same stop, which is requested too when `above` is. Nothing that is requested of it is requested of `above`.
    #[must_use]
    pub fn below(&self, above: &Self) -> Self {
        Self { level: Arc::clone(&self.level), above: Some(Arc::clone(&above.level)) }
    }

    fn level(&self) -> Level {
        let above = self.above.as_ref().map_or(Level::Go, |above| *above.borrow());
        above.max(*self.level.borrow())
    }

    /// Lets the current iteration end, and interrupts the run: it is `cancelled` without a termination, so that no server takes
    /// it up by itself, and continues when it is resumed. `Engine::unfinished` finds it after a restart.
    /// [`Self::leave`] leaves it to the next process, also to a server.
    pub fn after_step(&self) {
        self.raise(Level::AfterStep);
    }

    /// Lets the current step end, and leaves the run as it is: still running, with no driver, for the next
    /// process that resumes it.
    pub fn leave(&self) {
        self.raise(Level::Leave);
    }

    /// Whether leaving was requested, and no more.
    pub(super) fn is_leaving(&self) -> bool {
        self.level() == Level::Leave
    }

    /// Drops the current work; the run can be resumed, and a call that was under way is uncertain.
    pub fn now(&self) {
        self.raise(Level::Now);
    }

    fn raise(&self, to: Level) {
        self.level.send_if_modified(|level| {
            let higher = *level < to;
            *level = (*level).max(to);
            higher
        });
    }

    /// Whether a stop was requested, in either way.
    pub(super) fn is_asked(&self) -> bool {
        self.level() != Level::Go
    }

    /// Waits for the request to stop now.
    pub(super) async fn asked_now(&self) {
        self.reached(Level::Now).await;
    }

    /// Waits for the request to stop, in whichever way.
    pub(super) async fn asked(&self) {
        self.reached(Level::Leave).await;
    }

    async fn reached(&self, least: Level) {
        let above = async {
            match &self.above {
                Some(above) => raised(above, least).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = raised(&self.level, least) => {}
            () = above => {}
        }
    }
}

async fn raised(level: &watch::Sender<Level>, least: Level) {
    let mut level = level.subscribe();
    // The caller holds the sender, so waiting can't fail before the request.
    if level.wait_for(|level| *level >= least).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_below_another_is_requested_by_both_and_requests_only_its_own() {
        let (all, one, other) = (Stop::new(), Stop::new(), Stop::new());
        let (below, beside) = (one.below(&all), other.below(&all));
        one.after_step();
        below.asked().await;
        assert!(below.is_asked() && !beside.is_asked() && !all.is_asked());
        all.leave();
        beside.asked().await;
        assert!(beside.is_leaving() && !below.is_leaving());
        all.now();
        below.asked_now().await;
    }
}
