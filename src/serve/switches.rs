//! The loops that are switched off. The store knows them, so that every server of it refuses to start them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::problem::ProblemDetails;
use crate::drive::clock;
use crate::journal::{Journal, LoopSwitch, StoreError};
use crate::trace::units::rfc3339;

/// How long what was read counts: another server may have switched a loop since.
const SWITCHES_LAST: Duration = Duration::from_secs(1);

/// The switches of the store, as they were read last.
#[derive(Default)]
pub struct Switches {
    known: Mutex<ReadSwitches>,
}

#[derive(Default)]
struct ReadSwitches {
    last: Option<KnownSwitches>,
    /// How often a loop was switched here: what was read before that does not count.
    changes: u64,
}

struct KnownSwitches {
    read_at: Instant,
    by_name: Arc<BTreeMap<String, LoopSwitch>>,
}

impl Switches {
    /// The switches by the names of the loops.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn all(&self, journal: &dyn Journal) -> Result<Arc<BTreeMap<String, LoopSwitch>>, StoreError> {
        let changes = {
            let known = self.known();
            let is_fresh = |known: &&KnownSwitches| clock::elapsed(known.read_at) < SWITCHES_LAST;
            if let Some(known) = known.last.as_ref().filter(is_fresh) {
                return Ok(Arc::clone(&known.by_name));
            }
            known.changes
        };
        // Nobody waits for another one's read: a store that does not answer would take the time of each.
        let read_at = clock::instant();
        let switches = journal.loop_switches().await?.into_iter();
        let by_name = Arc::new(switches.map(|switch| (switch.name.clone(), switch)).collect());
        let mut known = self.known();
        if known.changes == changes {
            known.last = Some(KnownSwitches { read_at, by_name: Arc::clone(&by_name) });
        }
        Ok(by_name)
    }

    fn known(&self) -> MutexGuard<'_, ReadSwitches> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses to start a loop that is switched off.
    ///
    /// # Errors
    /// 409 then, and when the store can't be read.
    pub async fn refuse(&self, journal: &dyn Journal, name: &str) -> Result<(), ProblemDetails> {
        match self.all(journal).await?.get(name).filter(|switch| switch.is_off) {
            Some(switch) => Err(ProblemDetails::conflict("loop_off", sentence(switch))),
            None => Ok(()),
        }
    }

    /// Switches a loop off, or on again.
    ///
    /// # Errors
    /// When the store can't be written.
    pub async fn switch(&self, journal: &dyn Journal, switch: LoopSwitch) -> Result<(), StoreError> {
        let switched = journal.switch_loop(switch).await;
        let mut known = self.known();
        known.last = None;
        known.changes = known.changes.wrapping_add(1);
        switched
    }
}

/// Why a loop is not started.
pub fn sentence(switch: &LoopSwitch) -> String {
    let reason = switch.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("`{}` has been switched off since {}{reason}", switch.name, rfc3339(switch.at_ms))
}
