//! A reply while it arrives, with secrets hidden: what readers are shown until the run has recorded the whole.

use super::redact::Redaction;
use crate::notice::Notice;

/// The reply that is arriving.
#[derive(Debug)]
pub struct LiveReply {
    redact: Redaction,
    iteration: u32,
    attempt: u32,
    /// What came.
    source: String,
    /// Its settled part, with secrets hidden.
    text: String,
    output_tokens: u64,
    estimated: bool,
    time_to_first_token_ms: Option<u64>,
    last: bool,
}

/// How much of it a reader has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LivePosition {
    iteration: u32,
    attempt: u32,
    bytes: usize,
    output_tokens: u64,
    is_timed: bool,
    last: bool,
}

impl LiveReply {
    /// No reply yet.
    pub fn new(redact: Redaction) -> Self {
        Self {
            redact,
            iteration: 0,
            attempt: 0,
            source: String::new(),
            text: String::new(),
            output_tokens: 0,
            estimated: false,
            time_to_first_token_ms: None,
            last: false,
        }
    }

    /// Takes in a part of a reply; other notices are not of interest.
    pub fn take(&mut self, notice: &Notice) {
        let Notice::ModelDelta { iteration, attempt, text, output_tokens, estimated, time_to_first_token_ms, last } =
            notice
        else {
            return;
        };
        if (self.iteration, self.attempt) != (*iteration, *attempt) {
            (self.iteration, self.attempt) = (*iteration, *attempt);
            self.source.clear();
            self.text.clear();
            self.time_to_first_token_ms = None;
        }
        self.source.push_str(text);
        if *last {
            self.text = self.redact.whole(&self.source).into_owned();
        } else if !text.is_empty() {
            let settled = self.redact.settled(&self.source);
            // What was shown of it stays: less of it may be settled now, and nothing else.
            if settled.len() > self.text.len() {
                self.text = settled;
            }
        }
        (self.output_tokens, self.estimated, self.last) = (*output_tokens, *estimated, *last);
        self.time_to_first_token_ms = self.time_to_first_token_ms.or(*time_to_first_token_ms);
    }

    /// Forgets it: the run has recorded the whole.
    pub fn clear(&mut self) {
        (self.iteration, self.attempt) = (0, 0);
        self.source = String::new();
        self.text = String::new();
    }

    /// What a reader lacks, as one notice; it is not redacted again.
    pub fn since(&self, position: &mut LivePosition) -> Option<Notice> {
        let had = (position.iteration, position.attempt) == (self.iteration, self.attempt);
        if self.iteration == 0 {
            return None;
        }
        let before = if had { *position } else { LivePosition::default() };
        let text = self.text.get(before.bytes..).unwrap_or_default();
        let is_same = text.is_empty() && before.output_tokens == self.output_tokens && before.last == self.last;
        if had && is_same {
            return None;
        }
        let time_to_first_token_ms = self.time_to_first_token_ms.filter(|_| !before.is_timed);
        *position = LivePosition {
            iteration: self.iteration,
            attempt: self.attempt,
            bytes: self.text.len(),
            output_tokens: self.output_tokens,
            is_timed: before.is_timed || time_to_first_token_ms.is_some(),
            last: self.last,
        };
        Some(Notice::ModelDelta {
            iteration: self.iteration,
            attempt: self.attempt,
            text: text.to_owned(),
            output_tokens: self.output_tokens,
            estimated: self.estimated,
            time_to_first_token_ms,
            last: self.last,
        })
    }

    /// The iteration of the reply, from 1; 0 for none.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// The text that is shown of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tokens so far, and whether they are estimated.
    pub fn output_tokens(&self) -> (u64, bool) {
        (self.output_tokens, self.estimated)
    }

    /// The milliseconds to its first token.
    pub fn time_to_first_token_ms(&self) -> Option<u64> {
        self.time_to_first_token_ms
    }
}

#[cfg(test)]
mod tests;
