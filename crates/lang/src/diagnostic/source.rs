//! A text with a name, and positions in it.

use std::sync::Arc;

use serde::Serialize;

/// A text that an author wrote, with the name by which it is shown.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file's name as the user gave it; `-` for standard input.
    pub name: Arc<str>,
    /// Its text.
    pub text: Arc<str>,
    /// The byte at which each line begins.
    lines: Arc<[u32]>,
    /// How many characters come before each block of [`BLOCK`] bytes; empty for an ASCII text, whose bytes are
    /// its characters. Columns in a text with one line of megabytes are counted from here.
    blocks: Arc<[u32]>,
}

/// The bytes of a block.
const BLOCK: usize = 1024;

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file's name.
    pub file: Arc<str>,
    /// The first line, from 1.
    pub line: u32,
    /// The first column, from 1, in Unicode scalar values.
    pub column: u32,
    /// The line of the end.
    pub end_line: u32,
    /// The column after the last character.
    pub end_column: u32,
    /// The first byte.
    #[serde(skip)]
    pub start: usize,
    /// The byte after the last one.
    #[serde(skip)]
    pub end: usize,
}

impl Source {
    /// A text with its name.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let ends = text.match_indices('\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| width(at + 1))).collect();
        let blocks = if text.is_ascii() { Arc::default() } else { blocks(text.as_bytes()) };
        Self { name: name.into(), text, lines, blocks }
    }

    /// The place of the bytes from `start` to `end`; both are clamped to the text.
    pub fn place(&self, start: usize, end: usize) -> Place {
        let end = end.min(self.text.len());
        let start = start.min(end);
        let (line, column) = self.line_and_column(start);
        let (end_line, end_column) = self.line_and_column(end);
        Place { file: Arc::clone(&self.name), line, column, end_line, end_column, start, end }
    }

    /// The place of the start of the text, for faults without their own place.
    pub fn whole(&self) -> Place {
        self.place(0, 0)
    }

    /// The line of a byte, from 1.
    pub fn line(&self, byte: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= width(byte)).max(1)
    }

    fn line_and_column(&self, byte: usize) -> (u32, u32) {
        let byte = (0..=byte).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
        let line = self.lines.partition_point(|begin| *begin <= width(byte)).saturating_sub(1);
        let begin = self.lines.get(line).and_then(|begin| usize::try_from(*begin).ok()).unwrap_or(0);
        (count(line), count(self.characters_before(byte).saturating_sub(self.characters_before(begin))))
    }

    /// How many characters begin before a byte.
    fn characters_before(&self, byte: usize) -> usize {
        if self.blocks.is_empty() {
            return byte;
        }
        let block = byte / BLOCK;
        let before = self.blocks.get(block).and_then(|count| usize::try_from(*count).ok()).unwrap_or(0);
        before + self.text.as_bytes().get(block * BLOCK..byte).map_or(0, count_characters)
    }
}

fn blocks(text: &[u8]) -> Arc<[u32]> {
    let counts = text.chunks(BLOCK).scan(0, |before, block| {
        let here = *before;
        *before += count_characters(block);
        Some(width(here))
    });
    // A byte after the last block has a count too.
    counts.chain(std::iter::once(width(count_characters(text)))).collect()
}

/// How many characters begin in a part of a text: all bytes except continuation bytes.
fn count_characters(part: &[u8]) -> usize {
    part.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// Converts a count from 0 to one from 1, saturating.
fn count(from_zero: usize) -> u32 {
    width(from_zero).saturating_add(1)
}

/// Converts a position, saturating; files over 16 MiB are refused long before.
fn width(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
