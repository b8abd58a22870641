//! One pass over a reply, from tag to tag. The text of a call's object never counts as a tag.

use super::call;
use crate::dialect::Wanted;
use crate::dialect::json::marks::{self, MarkupTag};
use crate::dialect::relaxed::UnclosedBrackets;

/// What a reply has that counts.
#[derive(Debug, Clone, PartialEq)]
pub enum TaggedPart {
    /// A call.
    Call(Wanted),
    /// An answer.
    Answer(String),
}

/// What a pass found.
pub struct TagScan {
    /// The calls and the answer in their order, at least one; or why there are none that can be taken.
    pub found: Result<Vec<TaggedPart>, String>,
    /// The text of the thinking blocks.
    pub thinking: String,
    /// The text outside of all tags.
    pub prose: String,
    /// How many bytes of the reply count.
    pub counts: usize,
}

const OPEN_THINKING: &str = "Your reply begins a <think> block and does not close it.";
const LATE_THINKING: &str = "Your reply closes a <think> block behind a call or an answer.";
const NEITHER: &str = "Your reply has neither a <tool_call> nor an <answer>.";
const OPEN_ANSWER: &str = "Your reply begins an <answer> and does not close it.";
const MIXED_ANSWER: &str = "The <answer> of your reply has another tag inside; it is not clear what belongs to it.";
const EMPTY_ANSWER: &str = "The <answer> of your reply is empty.";
const TWO_ANSWERS: &str = "Your reply has two different <answer> blocks.";

/// Goes through a reply.
pub fn scan(text: &str, unclosed: UnclosedBrackets) -> TagScan {
    let mut pass =
        Pass { text, unclosed, at: 0, found: Vec::new(), thoughts: Vec::new(), prose: Vec::new(), counts: text.len() };
    let ended = pass.run();
    let Pass { found, thoughts, prose, counts, .. } = pass;
    let found = ended.and_then(|()| if found.is_empty() { Err(NEITHER.to_owned()) } else { Ok(found) });
    TagScan { found, thinking: joined(&thoughts), prose: joined(&prose), counts }
}

fn joined(pieces: &[&str]) -> String {
    let pieces: Vec<&str> = pieces.iter().map(|piece| piece.trim()).filter(|piece| !piece.is_empty()).collect();
    pieces.join("\n")
}

struct Pass<'a> {
    text: &'a str,
    unclosed: UnclosedBrackets,
    at: usize,
    found: Vec<TaggedPart>,
    thoughts: Vec<&'a str>,
    prose: Vec<&'a str>,
    counts: usize,
}

impl<'a> Pass<'a> {
    fn run(&mut self) -> Result<(), String> {
        let mut begin = 0;
        while let Some(next) = self.rest().find('<') {
            let at = self.at.saturating_add(next);
            self.at = at.saturating_add(1);
            let word = word(self.text, at);
            let tag = marks::tag(self.text, at);
            if word.is_none() && tag.is_none() {
                continue;
            }
            self.prose.push(self.piece(begin, at));
            match (word, tag) {
                (Some(Word { closing: false, name: "tool_call", end }), _) => self.call(end)?,
                (Some(Word { closing: false, end, .. }), _) => self.answer(end)?,
                // The end of a block that was taken already.
                (Some(Word { end, .. }), _) => self.at = end,
                (None, Some(MarkupTag::OpensThinking(name, end))) => {
                    let (close, behind) = marks::thinking_end(self.text, name, end).ok_or_else(|| {
                        self.thoughts.push(self.text.get(end..).unwrap_or_default());
                        OPEN_THINKING.to_owned()
                    })?;
                    self.thoughts.push(self.piece(end, close));
                    self.at = behind;
                }
                (None, Some(MarkupTag::ClosesThinking(_))) if !self.found.is_empty() => {
                    return Err(LATE_THINKING.to_owned());
                }
                // The block began in the prompt.
                (None, Some(MarkupTag::ClosesThinking(end))) => {
                    self.thoughts.append(&mut self.prose);
                    self.at = end;
                }
                (None, Some(MarkupTag::Observation)) => {
                    self.counts = at;
                    return Ok(());
                }
                (None, None) => {}
            }
            begin = self.at;
        }
        self.prose.push(self.piece(begin, self.text.len()));
        Ok(())
    }

    fn call(&mut self, begin: usize) -> Result<(), String> {
        let (wanted, end) = call::call(self.text, begin, self.unclosed)?;
        self.found.push(TaggedPart::Call(wanted));
        self.at = end;
        Ok(())
    }

    fn answer(&mut self, begin: usize) -> Result<(), String> {
        let rest = self.text.get(begin..).unwrap_or_default();
        let inside = |text: &str| {
            text.match_indices('<').any(|(at, _)| {
                let word = word(text, at).is_some_and(|word| !word.closing || word.name == "answer");
                word || marks::tag(text, at).is_some()
            })
        };
        let close = rest.match_indices('<').find_map(|(at, _)| {
            word(rest, at).filter(|word| word.closing && word.name == "answer").map(|word| (at, word.end))
        });
        let (length, behind) = match close {
            Some(found) => found,
            None if self.unclosed == UnclosedBrackets::Refuse || inside(rest) => return Err(OPEN_ANSWER.to_owned()),
            None => (rest.len(), rest.len()),
        };
        let answer = rest.get(..length).unwrap_or_default();
        if inside(answer) {
            return Err(MIXED_ANSWER.to_owned());
        }
        // An answer with two closing tags: either could be its end.
        let later = rest.get(behind..).unwrap_or_default();
        let next = later.match_indices('<').find_map(|(at, _)| word(later, at).filter(|word| word.name == "answer"));
        if next.is_some_and(|word| word.closing) {
            return Err(MIXED_ANSWER.to_owned());
        }
        let answer = answer.trim();
        if answer.is_empty() {
            return Err(EMPTY_ANSWER.to_owned());
        }
        let mut others = self.found.iter().filter_map(|found| match found {
            TaggedPart::Answer(other) => Some(other),
            TaggedPart::Call(_) => None,
        });
        match others.next() {
            Some(other) if other != answer => return Err(TWO_ANSWERS.to_owned()),
            Some(_) => {}
            None => self.found.push(TaggedPart::Answer(answer.to_owned())),
        }
        self.at = begin.saturating_add(behind);
        Ok(())
    }

    fn piece(&self, begin: usize, end: usize) -> &'a str {
        self.text.get(begin..end).unwrap_or_default()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

/// A tag of a call or an answer.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    /// Whether it closes.
    pub closing: bool,
    /// Its name.
    pub name: &'static str,
    /// The byte behind it.
    pub end: usize,
}

/// The tag of a call or an answer that begins at this byte.
pub fn word(text: &str, at: usize) -> Option<Word> {
    let rest = text.get(at..)?.strip_prefix('<')?;
    let (closing, inner) = rest.strip_prefix('/').map_or((false, rest), |inner| (true, inner));
    let length = inner.bytes().take(24).position(|byte| byte == b'>')?;
    let written = inner.get(..length)?.trim();
    let name = ["tool_call", "answer"].into_iter().find(|known| known.eq_ignore_ascii_case(written))?;
    let end = text.len().saturating_sub(inner.len()).saturating_add(length).saturating_add(1);
    Some(Word { closing, name, end })
}
