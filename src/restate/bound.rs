//! How much a run may have in Restate's journal. Restate sends all of it to each new attempt, and an attempt that can't be sent can't
//! be repeated: a run without a bound would neither end nor be cancelled.

use super::record::DurableStep;

/// The most that a step may have in Restate's journal: the server refuses messages of 32 MiB and more, and its own parts of a message
/// and the status that is stored beside an end need room.
const MAX_STEP_BYTES: usize = 24 << 20;
/// The driver's writes are stored together up to so many bytes: more of them wait for the next step.
pub const MAX_GATHERED_BYTES: usize = 4 << 20;

/// The most that a run may have in Restate's journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalBound {
    /// Steps of the workflow.
    pub steps: usize,
    /// Bytes of events and texts.
    pub bytes: usize,
}

/// What a run has in Restate's journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalUse {
    bound: JournalBound,
    steps: usize,
    bytes: usize,
}

impl JournalUse {
    /// Nothing yet.
    pub fn new(bound: JournalBound) -> Self {
        Self { bound, steps: 0, bytes: 0 }
    }

    /// With one more step.
    pub fn and(self, step: &DurableStep) -> Self {
        let (steps, bytes) = (self.steps.saturating_add(1), self.bytes.saturating_add(step.bytes()));
        Self { steps, bytes, ..self }
    }

    /// Why the run ends, when it has more than it may.
    pub fn excess(&self) -> Option<String> {
        let JournalBound { steps, bytes } = self.bound;
        let what = if self.steps > steps {
            format!("{steps} steps")
        } else if self.bytes > bytes {
            format!("{bytes} bytes")
        } else {
            return None;
        };
        Some(format!(
            "the run has more than {what} in the journal of Restate, which sends all of it to each attempt: divide the work into \
             several runs, or use `loopctl serve`"
        ))
    }

    /// Why a step can't be stored.
    pub fn refusal(&self, step: &DurableStep) -> Option<String> {
        let most = MAX_STEP_BYTES.min(self.bound.bytes);
        // Escapes make a text longer, up to seven times: only what may be too long is written to find out.
        let bytes = if step.bytes() > most / 8 { written_bytes(step) } else { 0 };
        (bytes > most).then(|| {
            format!(
                "one step of the run has {bytes} bytes, and Restate stores at most {most}: let the tool return less, or use `loopctl \
                 serve`"
            )
        })
    }
}

fn written_bytes(step: &DurableStep) -> usize {
    serde_json::to_vec(step).map_or(usize::MAX, |written| written.len())
}
