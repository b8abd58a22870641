//! The part of a growing text in which nothing can change any more: whatever follows, no secret reaches into it that
//! is not found in it already.

use std::collections::HashMap;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};

use super::{PASSED, ScrubReading, Scrubber};
use crate::drive::secret::decode::{DecodedView, begins, decoded};

/// The most bytes of an escape, with a backslash before it. What is cut at the end of a text has fewer.
const ESCAPE: usize = 16;
/// The bytes behind a secret that may still be added to it, as its padding.
const BEHIND: usize = 256;

impl Scrubber {
    /// The settled part of a text that grows, without the secrets. What [`Scrubber::text`] gives of the whole begins with
    /// it.
    pub fn settled(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut open = bytes.len();
        let mut view: Option<DecodedView> = None;
        // Each layer may leave an escape undecoded at the end.
        let unsure = ESCAPE.saturating_mul(self.layers.saturating_add(1));
        for _ in 0..=self.layers {
            let here = view.as_ref().map_or(bytes, |view| &view.bytes);
            for reading in &self.readings {
                let at = reading.open_from(here, unsure);
                open = open.min(view.as_ref().map_or(at, |view| view.original(at, at.saturating_add(1)).0));
            }
            let Some(next) = decoded(here, view.as_ref()) else { break };
            view = Some(next);
        }
        let mut spans = self.find(bytes, false);
        for span in spans.iter().rev() {
            if span.end > open || bytes.len().saturating_sub(span.end) < BEHIND {
                open = open.min(span.start);
            }
        }
        spans.retain(|span| span.end <= open);
        self.labelled(text.get(..text.floor_char_boundary(open)).unwrap_or_default(), spans)
    }
}

impl ScrubReading {
    /// Where the first secret begins that is not complete, or may be none: the end of the bytes, when there is none.
    /// In the last `unsure` bytes, an escape may not be complete.
    fn open_from(&self, bytes: &[u8], unsure: usize) -> usize {
        let tail = bytes.len().saturating_sub(unsure);
        let escape = bytes.iter().skip(tail).position(|byte| begins(*byte));
        let known = bytes.get(..escape.map_or(bytes.len(), |at| at.saturating_add(tail))).unwrap_or_default();
        let mut state = self.start;
        for byte in known.iter().map(|byte| self.compared(*byte)).filter(|byte| *byte != PASSED) {
            state = self.automaton.next_state(Anchored::No, state, byte);
        }
        let mut depth = self.depths().get(&state).copied().unwrap_or_default();
        let mut start = known.len();
        for (at, byte) in known.iter().enumerate().rev() {
            if depth == 0 {
                break;
            }
            if self.compared(*byte) != PASSED {
                depth = depth.saturating_sub(1);
                start = at;
            }
        }
        let before = known.get(..start).unwrap_or_default().iter().rev();
        start.saturating_sub(self.edge_of(before))
    }

    fn depths(&self) -> &HashMap<StateID, usize> {
        self.depths.get_or_init(|| {
            let mut depths = HashMap::new();
            for pattern in &self.patterns {
                let mut state = self.start;
                for (index, byte) in pattern.iter().enumerate() {
                    state = self.automaton.next_state(Anchored::No, state, *byte);
                    depths.insert(state, index.saturating_add(1));
                }
            }
            depths
        })
    }
}
