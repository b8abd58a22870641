//! A run that comes from elsewhere, while it is written: nobody can drive it before it is finished.

use crate::journal::{Append, Journal, StatusRecord, StoreError};
use loopctl_engine::blob::Blob;

/// The maximum number of events that wait for the store at a time.
const IN_FLIGHT: usize = 128;

/// A run that is leased to its writer, and that is not whole.
pub(super) struct UnfinishedRun {
    pub run_id: String,
    pub fence: u64,
    /// The record of the whole run.
    pub record: StatusRecord,
}

impl UnfinishedRun {
    /// Writes the events from a number on, of all that the run has, with its texts.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn write(
        &self,
        to: &dyn Journal,
        events: &[String],
        from: usize,
        texts: &[Blob],
    ) -> Result<(), StoreError> {
        let mut waiting = Vec::new();
        for (seq, event) in events.iter().enumerate().skip(from) {
            let number = u64::try_from(seq).unwrap_or(u64::MAX);
            let mut entry = Append::new(self.run_id.clone(), self.fence, number, event.clone());
            if seq == from {
                // Also where the run was whole, with fewer events.
                entry.status_record = Some(StatusRecord::unfinished(self.record.at_ms));
                entry.texts = texts.to_vec();
            }
            waiting.push(to.append(entry));
            if waiting.len() == IN_FLIGHT {
                for appended in waiting.drain(..) {
                    appended.await?;
                }
            }
        }
        for appended in waiting {
            appended.await?;
        }
        Ok(())
    }

    /// Gives the run its record: from now on it is whole.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn finish(self, to: &dyn Journal) -> Result<(), StoreError> {
        to.finish_copy(&self.run_id, self.fence, self.record).await
    }
}
