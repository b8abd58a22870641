//! How much a run may have in Restate's journal. Restate sends all of it to each new attempt, and an attempt that can't be sent can't
//! be repeated: a run without a bound would neither end nor be cancelled.

use std::io;

use super::record::{DurableStep, JournalWrite};

/// The most that a step, or what a workflow begins with, may have in Restate's journal: the server refuses messages of 32 MiB and more,
/// and its own parts of a message and the status that is stored beside an end need room.
const MAX_ENTRY_BYTES: usize = 24 << 20;
/// The driver's writes are stored together up to this number of bytes: more of them wait for the next step.
pub const MAX_GATHERED_BYTES: usize = 4 << 20;

/// The most that a run may have in Restate's journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalBound {
    /// Steps of one workflow.
    pub steps: usize,
    /// Bytes of events and texts, of all workflows of the run.
    pub bytes: usize,
    /// Workflows, one after the other.
    pub parts: usize,
}

/// What a run has in Restate's journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalUse {
    bound: JournalBound,
    /// The number of the workflow, from 1.
    part: usize,
    steps: usize,
    bytes: usize,
    /// The bytes of the writes as Restate stores them.
    stored_bytes: usize,
}

impl JournalUse {
    /// At the beginning of a workflow: it has what the workflow before it handed over.
    pub fn new(bound: JournalBound, part: usize, handed: &[JournalWrite]) -> Self {
        Self { bound, part, steps: 0, bytes: bytes(handed), stored_bytes: stored_bytes(handed) }
    }

    /// With one more step.
    pub fn and(self, step: &DurableStep) -> Self {
        Self {
            steps: self.steps.saturating_add(1),
            bytes: self.bytes.saturating_add(bytes(&step.writes)),
            stored_bytes: self.stored_bytes.saturating_add(stored_bytes(&step.writes)),
            ..self
        }
    }

    /// Whether the run has all the steps of its workflow, and may continue in a further one.
    pub fn hands_over(&self) -> bool {
        self.steps > self.bound.steps && self.part < self.bound.parts
    }

    /// Whether the events fit into one entry.
    pub fn fits(&self) -> bool {
        self.stored_bytes <= MAX_ENTRY_BYTES
    }

    /// Why the run ends, when it has more than it may. `hands_over`: the run is to continue in a further workflow already.
    pub fn excess(&self, hands_over: bool) -> Option<String> {
        let JournalBound { steps, bytes, parts } = self.bound;
        let what = if self.bytes > bytes {
            format!("{bytes} bytes in the journal of Restate, which sends all of it to each attempt")
        } else if hands_over && !self.fits() {
            let has = self.stored_bytes;
            format!(
                "{steps} steps in the journal of Restate, and its events have {has} bytes there: a further workflow can begin \
                     with {MAX_ENTRY_BYTES}"
            )
        } else if !hands_over && self.steps > steps {
            format!(
                "{steps} steps in the journal of Restate, which sends all of it to each attempt, and may have no workflow after \
                     its {parts}"
            )
        } else {
            return None;
        };
        Some(format!("the run has more than {what}: divide the work into several runs, or use `loopctl serve`"))
    }

    /// Why a step can't be stored.
    pub fn refusal(&self, step: &DurableStep) -> Option<String> {
        let most = MAX_ENTRY_BYTES.min(self.bound.bytes);
        // Escapes make a text longer, up to seven times: only what may be too long is written to find out.
        let bytes = if bytes(&step.writes) > most / 8 { stored_bytes(step) } else { 0 };
        (bytes > most).then(|| {
            format!(
                "one step of the run has {bytes} bytes, and Restate stores at most {most}: let the tool return less, or use `loopctl \
                 serve`"
            )
        })
    }
}

fn bytes(writes: &[JournalWrite]) -> usize {
    writes.iter().map(JournalWrite::bytes).sum()
}

fn stored_bytes(stored: &(impl serde::Serialize + ?Sized)) -> usize {
    let mut counter = ByteCounter(0);
    serde_json::to_writer(&mut counter, stored).map_or(usize::MAX, |()| counter.0)
}

/// Counts what is written to it.
struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
