//! What listeners hear, and the place of a notice in its run.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

use loopctl_engine::notice::{Listener, Notice};

/// Lets a listener hear a notice. It is code of the host: a panic of it is logged, and the run continues.
pub(super) fn report(listener: &dyn Listener, notice: Notice) {
    if catch_unwind(AssertUnwindSafe(|| listener.on(notice))).is_err() {
        tracing::error!("a listener panicked at a notice: the run continues");
    }
}

/// The most digits of a number in a position.
const MOST_DIGITS: usize = 9;

/// The place of a notice in its run. It is written as `EVENT.NOTICE`, like `12.0`: what `Last-Event-ID` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoticePosition {
    /// The event's number in the journal, from 0.
    pub event: usize,
    /// The notice's number in the event, from 0.
    pub notice: usize,
}

impl fmt::Display for NoticePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.event, self.notice)
    }
}

/// A text that is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the position of a notice is two numbers, like 12.0")]
pub struct PositionError;

impl FromStr for NoticePosition {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let (event, notice) = text.split_once('.').ok_or(PositionError)?;
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.len() <= MOST_DIGITS;
            let digits = text.bytes().map(|byte| byte.is_ascii_digit().then(|| usize::from(byte - b'0')));
            let number = digits.filter(|_| is_plain).try_fold(0usize, |number, digit| Some(number * 10 + digit?));
            number.filter(|_| is_plain).ok_or(PositionError)
        };
        Ok(Self { event: number(event)?, notice: number(notice)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_written_and_nothing_else_is() {
        let position = NoticePosition { event: 12, notice: 3 };
        assert_eq!((position.to_string().as_str(), "12.3".parse()), ("12.3", Ok(position)));
        for text in ["", ".", "1", "1.", ".1", "1.-1", "+1.0", "1.2.3", "1234567890.0", "1.x"] {
            assert_eq!(text.parse::<NoticePosition>(), Err(PositionError), "{text}");
        }
    }
}
