//! Where in the text the parts of a parsed template are.
//!
//! Handlebars' tree has the line and column at which an element begins, and nothing else: not where its tag ends,
//! not where a path in it is, and nothing at all for `{{else if ...}}`. The list of tags has the rest.

use std::ops::Range;

use super::tag::TemplateTag;

/// Finds the places of elements and of the words in their tags.
#[derive(Clone, Copy)]
pub(super) struct Locator<'t> {
    text: &'t str,
    tags: &'t [TemplateTag],
    /// The tag of the element that is lowered now.
    current: Option<usize>,
    /// How many of its words are behind those that were found.
    word: usize,
}

impl<'t> Locator<'t> {
    pub fn new(text: &'t str, tags: &'t [TemplateTag]) -> Self {
        Self { text, tags, current: None, word: 0 }
    }

    /// Goes to the tag at a line and a column, as Handlebars counts them: from 1, columns in characters.
    pub fn go_to(&mut self, line: usize, column: usize) {
        self.enter(self.at(line, column));
    }

    /// Goes to the tag with this number.
    pub fn enter(&mut self, tag: Option<usize>) {
        self.current = tag;
        self.word = 0;
    }

    /// Goes from a tag of a block to the `{{else}}` that ends its part. True when that one has a condition.
    pub fn go_to_else(&mut self, from: Option<usize>) -> bool {
        let same_block = |from: usize| {
            let block = self.tags.get(from)?.block?;
            self.tags.iter().enumerate().skip(from + 1).find(|(_, tag)| tag.block == Some(block)).map(|(at, _)| at)
        };
        self.enter(from.and_then(same_block));
        self.tag().is_some_and(|tag| !tag.words.is_empty())
    }

    pub fn current(&self) -> Option<usize> {
        self.current
    }

    /// The tag at a line and a column, or the one around it.
    pub fn at(&self, line: usize, column: usize) -> Option<usize> {
        let before: usize = self.text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
        let rest = self.text.get(before..)?;
        let within = rest.char_indices().nth(column.checked_sub(1)?).map_or(rest.len(), |(at, _)| at);
        let offset = before + within;
        let started = self.tags.partition_point(|tag| tag.range.start <= offset);
        let last = started.checked_sub(1)?;
        self.tags.get(last).is_some_and(|tag| offset <= tag.range.end).then_some(last)
    }

    /// The whole of the current tag; the whole text where the tree names none.
    pub fn tag_range(&self) -> Range<usize> {
        self.tag().map_or(0..self.text.len(), |tag| tag.range.clone())
    }

    /// The place of a word of the current tag, behind those found before it; the tag when it has no such word.
    pub fn word(&mut self, raw: &str) -> Range<usize> {
        let words = self.tag().map(|tag| tag.words.as_slice()).unwrap_or_default();
        let same = |word: &Range<usize>| self.text.get(word.clone()) == Some(raw);
        match words.iter().enumerate().skip(self.word).find(|(_, word)| same(word)) {
            Some((at, word)) => {
                self.word = at + 1;
                word.clone()
            }
            None => self.tag_range(),
        }
    }

    fn tag(&self) -> Option<&'t TemplateTag> {
        self.current.and_then(|at| self.tags.get(at))
    }
}
