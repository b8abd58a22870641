//! Copies what people did with the runs of a store, and which loops are switched off: a loop that nobody may start is not
//! started from the copy either.

use std::collections::HashMap;

use crate::journal::{AuditFilter, AuditLine, Journal, LoopSwitch, StoreError};
use loopctl_engine::digest::Sha256;

/// The number of lines that are read at a time.
const PAGE_LINES: usize = 1_000;

/// Lines, each as often as it is there.
#[derive(Default)]
struct LineCounts(HashMap<Sha256, u64>);

impl LineCounts {
    async fn of(store: &dyn Journal) -> Result<Self, StoreError> {
        let (mut counts, mut after) = (Self::default(), 0);
        loop {
            let page = page(store, after).await?;
            let Some(last) = page.last() else { return Ok(counts) };
            after = last.id;
            for line in &page {
                *counts.0.entry(digest(line)).or_default() += 1;
            }
        }
    }

    /// Whether a line is there; it then counts once less.
    fn take(&mut self, line: &AuditLine) -> bool {
        let known = self.0.get_mut(&digest(line)).filter(|count| **count > 0);
        known.map(|count| *count -= 1).is_some()
    }
}

/// What a line says, whatever its number is.
fn digest(line: &AuditLine) -> Sha256 {
    Sha256::of(&format!("{:?}", AuditLine { id: 0, ..line.clone() }))
}

/// The lines after a number, the oldest first.
async fn page(store: &dyn Journal, after: u64) -> Result<Vec<AuditLine>, StoreError> {
    store.audit(AuditFilter { after: Some(after), limit: PAGE_LINES, ..AuditFilter::default() }).await
}

/// The switches that the target does not know, or not as late.
async fn missing_switches(from: &dyn Journal, to: &dyn Journal) -> Result<Vec<LoopSwitch>, StoreError> {
    let there = to.loop_switches().await?;
    let mut switches = from.loop_switches().await?;
    switches.retain(|switch| !there.iter().any(|known| known.name == switch.name && known.at_ms >= switch.at_ms));
    Ok(switches)
}

/// Copies the lines that the target does not have, in their order, and the switches; returns the number of lines. One that was
/// cut off is continued.
pub(super) async fn copy_audit(from: &dyn Journal, to: &dyn Journal) -> Result<u64, StoreError> {
    let (mut there, mut switches) = (LineCounts::of(to).await?, missing_switches(from, to).await?);
    let (mut copied, mut after) = (0_u64, 0);
    loop {
        let page = page(from, after).await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        let mut lines = Vec::new();
        for line in page.into_iter().map(|line| AuditLine { id: 0, ..line }).filter(|line| !there.take(line)) {
            copied += 1;
            match switches.iter().position(|switch| switch.line() == line) {
                None => lines.push(line),
                // A switch and its line are written together.
                Some(at) => {
                    to.note_audit(std::mem::take(&mut lines)).await?;
                    to.switch_loop(switches.swap_remove(at)).await?;
                }
            }
        }
        to.note_audit(lines).await?;
    }
    for switch in switches {
        to.switch_loop(switch).await?;
    }
    Ok(copied)
}
