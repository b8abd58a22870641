//! A tape of numbers that decides all that is chosen: the same tape gives the same document, and a
//! shorter tape a simpler one, so that a failing case shrinks.

use proptest::prelude::*;

/// A tape that is being read; at its end all choices are the first one.
pub struct Choices {
    tape: Vec<u16>,
    at: usize,
}

/// Tapes of at most so many choices.
pub fn tapes(length: usize) -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(any::<u16>(), 0..length)
}

impl Choices {
    pub fn new(tape: Vec<u16>) -> Self {
        Self { tape, at: 0 }
    }

    /// A number from 0 to before `count`.
    pub fn below(&mut self, count: usize) -> usize {
        let choice = self.tape.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(choice) % count.max(1)
    }

    /// One of them.
    pub fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// Whether something is done that is done once in `rarity` times.
    pub fn once_in(&mut self, rarity: usize) -> bool {
        self.below(rarity) == rarity - 1
    }
}
