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
mod tests {
    use super::*;

    fn part(attempt: u32, text: &str, output_tokens: u64) -> Notice {
        let (time_to_first_token_ms, last) = ((output_tokens == 1).then_some(9), false);
        Notice::ModelDelta {
            iteration: 1,
            attempt,
            text: text.to_owned(),
            output_tokens,
            estimated: true,
            time_to_first_token_ms,
            last,
        }
    }

    fn text(notice: Option<Notice>) -> Option<(u32, String, Option<u64>)> {
        match notice? {
            Notice::ModelDelta { attempt, text, time_to_first_token_ms, .. } => {
                Some((attempt, text, time_to_first_token_ms))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_reader_gets_what_it_lacks_as_one_part() {
        let mut reply = LiveReply::new(Redaction::default());
        let (mut first, mut second) = (LivePosition::default(), LivePosition::default());
        assert_eq!(reply.since(&mut first), None, "there is no reply yet");
        reply.take(&part(1, "It is ", 1));
        assert_eq!(text(reply.since(&mut first)), Some((1, "It is ".to_owned(), Some(9))));
        assert_eq!(reply.since(&mut first), None);
        reply.take(&part(1, "the ", 2));
        reply.take(&part(1, "cable ", 3));
        assert_eq!(text(reply.since(&mut first)), Some((1, "the cable ".to_owned(), None)));
        assert_eq!(
            text(reply.since(&mut second)),
            Some((1, "It is the cable ".to_owned(), Some(9))),
            "one that came later"
        );
        reply.take(&part(2, "", 0));
        assert_eq!(text(reply.since(&mut first)), Some((2, String::new(), None)), "the first attempt is void");
        reply.clear();
        assert_eq!(reply.since(&mut second), None);
    }

    #[test]
    fn a_secret_in_parts_is_hidden_and_the_last_part_gives_what_was_held_back() {
        let mut reply = LiveReply::new(Redaction::default());
        let mut position = LivePosition::default();
        let mut shown = String::new();
        for (at, piece) in
            ["{\"thought\": \"T\", \"pass", "word\": \"hun", "ter2\", ", "\"n\": 1} done"].iter().enumerate()
        {
            reply.take(&part(1, piece, at as u64 + 1));
            shown.extend(text(reply.since(&mut position)).map(|(_, text, _)| text));
            assert!(!shown.contains("hun"), "{shown}");
        }
        assert!(!shown.ends_with("done"), "it may go on");
        let mut end = part(1, "", 4);
        if let Notice::ModelDelta { last, .. } = &mut end {
            *last = true;
        }
        reply.take(&end);
        shown.extend(text(reply.since(&mut position)).map(|(_, text, _)| text));
        assert_eq!(shown, "{\"thought\": \"T\", \"password\": \"[hidden]\", \"n\": 1} done");
    }
}
