//! The events of a run in memory.

use loopctl_engine::compaction::push_tight;

const BLOCK_BYTES: usize = 1000;

/// The events of a run, one after the other, in blocks of one size. A string for each event would outlive the
/// step that made it and fragment the memory between shorter allocations; one growing string would leave holes.
#[derive(Debug, Default)]
pub(super) struct Log {
    blocks: Vec<Vec<u8>>,
    /// Where each event ends.
    ends: Vec<usize>,
}

impl Log {
    /// How many events there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Adds an event.
    pub(super) fn push(&mut self, event: &str) {
        let end = self.end();
        let mut rest = event.as_bytes();
        let mut room = (BLOCK_BYTES - end % BLOCK_BYTES) % BLOCK_BYTES;
        while !rest.is_empty() {
            if room == 0 {
                push_tight(&mut self.blocks, Vec::with_capacity(BLOCK_BYTES));
                room = BLOCK_BYTES;
            }
            let (fits, later) = rest.split_at(rest.len().min(room));
            if let Some(block) = self.blocks.last_mut() {
                block.extend_from_slice(fits);
            }
            (rest, room) = (later, room.saturating_sub(fits.len()));
        }
        push_tight(&mut self.ends, end.saturating_add(event.len()));
    }

    /// The events from this number on, until they amount to `most` bytes.
    pub(super) fn from(&self, first: usize, most: usize) -> Vec<String> {
        let begin = first.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        let mut begin = begin.unwrap_or_else(|| self.end());
        let ends = self.ends.get(first..).unwrap_or_default();
        let whole = ends.partition_point(|end| end - begin < most);
        let ends = ends.get(..=whole).unwrap_or(ends);
        let end = ends.last().copied().unwrap_or(begin);
        let bytes = self.blocks.get(begin / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)).unwrap_or_default().concat();
        let skipped = begin / BLOCK_BYTES * BLOCK_BYTES;
        ends.iter()
            .map(|end| {
                let event = bytes.get(begin - skipped..*end - skipped).unwrap_or_default();
                begin = *end;
                // Only whole strings were put in.
                String::from_utf8_lossy(event).into_owned()
            })
            .collect()
    }
}
