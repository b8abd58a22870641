//! Forgets the deaths of drivers: a run that waits for its model is not what they died of.

use super::queue::listed;
use super::trouble::Trouble;
use super::writer::{Transaction, WriteRequest};

/// Forgets the drivers that died of these runs.
pub(super) struct Absolve(pub(super) Vec<String>);

impl WriteRequest for Absolve {
    type Answer = ();

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), Trouble> {
        transaction
            .connection
            .prepare_cached(
                "UPDATE runs SET failed_take_ups = 0
                 WHERE run_id IN (SELECT value FROM json_each(?1)) AND failed_take_ups > 0",
            )?
            .execute([listed(&self.0)])?;
        Ok(())
    }
}
