//! Runs that could not be driven here: this server leaves them alone for a while, then tries again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::drive::clock;

/// The wait after the first failure; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The longest wait.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// The runs that could not be driven here.
#[derive(Debug, Default)]
pub(super) struct RunBackoffs {
    runs: HashMap<String, RunBackoff>,
}

#[derive(Debug, Default)]
struct RunBackoff {
    failures: u32,
    /// None: as long as this server lives.
    until: Option<Instant>,
}

impl RunBackoffs {
    /// The run failed: it is left alone for a while.
    pub(super) fn rest(&mut self, run_id: &str) {
        let rest = self.runs.entry(run_id.to_owned()).or_default();
        let wait = FIRST_WAIT.saturating_mul(1_u32.checked_shl(rest.failures).unwrap_or(u32::MAX)).min(MAX_WAIT);
        rest.failures = rest.failures.saturating_add(1);
        rest.until = clock::instant().checked_add(wait);
    }

    /// The run made its driver panic: this server never drives it again.
    pub(super) fn rest_for_good(&mut self, run_id: &str) {
        self.runs.insert(run_id.to_owned(), RunBackoff::default());
    }

    /// The run was driven.
    pub(super) fn forget(&mut self, run_id: &str) {
        self.runs.remove(run_id);
    }

    /// Whether the run is left alone now.
    pub(super) fn has(&self, run_id: &str) -> bool {
        self.runs.get(run_id).is_some_and(RunBackoff::lasts)
    }

    /// The runs that are left alone now.
    pub(super) fn resting(&self) -> Vec<String> {
        self.runs.iter().filter(|(_, rest)| rest.lasts()).map(|(run_id, _)| run_id.clone()).collect()
    }

    /// All runs that failed.
    pub(super) fn runs(&self) -> impl Iterator<Item = &String> {
        self.runs.keys()
    }
}

impl RunBackoff {
    fn lasts(&self) -> bool {
        self.until.is_none_or(|until| until > clock::instant())
    }
}
