//! The search for the one object of a reply that is meant.
//!
//! One pass over the text. Braces that begin no object (`use {x}`, `\frac{1}{2}`) are prose. An
//! object that starts and can't be read ends the search: its inner text is never taken for
//! the reply, because it may be the input of something else.

use super::marks::{self, Before, Behind, MarkupTag};
use super::refusal::ReplyRefusal;
use super::shape::{ReplyField, field_of, has};
use crate::dialect::relaxed::{self, Opening, ParsedObject, RelaxedFault, RelaxedFaultKind, UnclosedBrackets};

/// How long a placeholder may be, in bytes.
const PLACEHOLDER: usize = 400;

/// What was seen in a reply.
pub struct Sighting {
    /// The object that is meant, or why there is none.
    pub found: Result<ParsedObject, ReplyRefusal>,
    /// What the model thought outside of the object.
    pub thinking: String,
    /// The text before the first object.
    pub prose: String,
    /// How many bytes of the text count: those before an invented observation.
    pub counts: usize,
}

/// Searches a reply.
pub fn search(text: &str, unclosed: UnclosedBrackets) -> Sighting {
    if let Some((thinking, rest)) = closed_only(text) {
        let mut sighting = plain_search(rest, unclosed);
        let sole = sighting.found.as_ref().is_ok_and(|found| is_end(rest.get(found.end..).unwrap_or_default()));
        // The tag may be inside a string of an object that starts before it.
        let before = plain_search(thinking, UnclosedBrackets::Refuse).found;
        if sole && !matches!(before, Err(ReplyRefusal::Broken(_) | ReplyRefusal::CutOff | ReplyRefusal::Tangled)) {
            thinking.trim().clone_into(&mut sighting.thinking);
            sighting.counts = text.len();
            return sighting;
        }
    }
    plain_search(text, unclosed)
}

fn is_end(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text == "```"
}

fn plain_search(text: &str, unclosed: UnclosedBrackets) -> Sighting {
    let mut search = ObjectSearch {
        text,
        unclosed,
        at: 0,
        spent: 0,
        chosen: None,
        seen: Surroundings::default(),
        thinking: String::new(),
        invented: None,
    };
    let ended = search.run();
    let prose = text.get(..search.seen.first.unwrap_or(text.len())).unwrap_or_default();
    // A reply that is refused keeps what is enough for its thought, however long it was.
    let prose = prose.get(..prose.char_indices().nth(super::MAX_THOUGHT + 1).map_or(prose.len(), |(end, _)| end));
    let prose = if search.thinking.is_empty() { prose.unwrap_or_default().to_owned() } else { String::new() };
    let counts = search.invented.unwrap_or(text.len());
    Sighting { found: ended.and_then(|()| search.judge()), thinking: search.thinking, prose, counts }
}

/// Some models' thinking block has its beginning in the prompt and only its end in the reply:
/// `… </think> {…}`. Read so only when nothing else is possible: one closing tag, no opening one, no
/// object that starts before it, and an object after it that nothing follows.
fn closed_only(text: &str) -> Option<(&str, &str)> {
    let mut tags = text.match_indices('<').filter_map(|(at, _)| marks::tag(text, at).map(|tag| (at, tag)));
    let (at, MarkupTag::ClosesThinking(end)) = tags.next()? else { return None };
    if tags.any(|(_, tag)| tag != MarkupTag::Observation) {
        return None;
    }
    let (before, rest) = (text.get(..at)?, text.get(end..)?);
    let starts_object = before.trim_start().starts_with(['{', '[', '`']);
    let object = rest.trim_start().trim_start_matches("```").trim_start_matches("json").trim_start();
    (!starts_object && object.starts_with('{')).then_some((before, rest))
}

/// What the reply holds besides the chosen object.
#[derive(Default)]
struct Surroundings {
    /// Where the first object begins.
    first: Option<usize>,
    /// An object without an action.
    other: bool,
    /// An object with a final answer and without an action.
    answer: bool,
    /// An object without an action that is called an input, or is the value of a key.
    input: bool,
    /// An item of a list.
    item: bool,
    /// A thinking block without its end.
    open_thinking: bool,
    /// A quoted key of a reply with its colon, outside of any object that could be read.
    loose_key: bool,
}

struct ObjectSearch<'a> {
    text: &'a str,
    unclosed: UnclosedBrackets,
    at: usize,
    /// How many bytes were looked at in vain. Bounded, so that the time is.
    spent: usize,
    chosen: Option<ParsedObject>,
    seen: Surroundings,
    thinking: String,
    /// Where an invented observation begins.
    invented: Option<usize>,
}

/// What a `{` turned out to be.
enum Brace {
    Object(ParsedObject),
    /// Prose up to this byte.
    Prose(usize),
}

impl ObjectSearch<'_> {
    /// Goes through the text, up to an invented observation or the end.
    fn run(&mut self) -> Result<(), ReplyRefusal> {
        let head = self.text.trim_start();
        if head.is_empty() {
            return Err(ReplyRefusal::Empty);
        }
        if ["<!doctype", "<html"].iter().any(|tag| head.get(..tag.len()).is_some_and(|h| h.eq_ignore_ascii_case(tag))) {
            return Err(ReplyRefusal::Html);
        }
        while let Some(byte) = self.next() {
            let go_on = match byte {
                b'{' => self.brace()?,
                b'<' => self.tag()?,
                b'"' | b'\'' => {
                    self.seen.loose_key |=
                        marks::quoted_key(self.text, self.at).is_some_and(|key| field_of(key) != ReplyField::Other);
                    self.pass(1)
                }
                _ if marks::is_observation(self.text, self.at) => self.invents(self.at),
                _ => self.pass(1),
            };
            if !go_on {
                break;
            }
        }
        Ok(())
    }

    /// Goes to the next byte that may matter.
    fn next(&mut self) -> Option<u8> {
        let acted = self.chosen.is_some();
        let rest = self.text.as_bytes().get(self.at..)?;
        let matters = |byte: &u8| matches!(byte, b'{' | b'<' | b'"' | b'\'') || (acted && matches!(byte, b'o' | b'O'));
        let found = rest.iter().position(matters)?;
        self.at = self.at.saturating_add(found);
        rest.get(found).copied()
    }

    fn pass(&mut self, bytes: usize) -> bool {
        self.at = self.at.saturating_add(bytes);
        true
    }

    /// An invented observation: nothing from here on counts.
    fn invents(&mut self, at: usize) -> bool {
        self.invented = Some(at);
        false
    }

    fn tag(&mut self) -> Result<bool, ReplyRefusal> {
        match marks::tag(self.text, self.at) {
            Some(MarkupTag::OpensThinking(name, begin)) => {
                let Some((inner_end, end)) = marks::thinking_end(self.text, name, begin) else {
                    self.seen.open_thinking = true;
                    self.think(begin, self.text.len());
                    return Ok(false);
                };
                self.think(begin, inner_end);
                self.at = end;
            }
            Some(MarkupTag::ClosesThinking(_)) if self.chosen.is_some() => return Err(ReplyRefusal::LateThinking),
            Some(MarkupTag::ClosesThinking(end)) => self.at = end,
            Some(MarkupTag::Observation) if self.chosen.is_some() => return Ok(self.invents(self.at)),
            Some(MarkupTag::Observation) | None => self.at = self.at.saturating_add(1),
        }
        Ok(true)
    }

    fn think(&mut self, begin: usize, end: usize) {
        let inner = self.text.get(begin..end).unwrap_or_default().trim();
        if !self.thinking.is_empty() && !inner.is_empty() {
            self.thinking.push('\n');
        }
        self.thinking.push_str(inner);
    }

    fn brace(&mut self) -> Result<bool, ReplyRefusal> {
        let begin = self.at;
        let found = match self.read()? {
            Brace::Prose(end) => {
                self.at = end;
                return Ok(true);
            }
            Brace::Object(found) => found,
        };
        self.seen.first.get_or_insert(begin);
        self.at = found.end;
        let before = marks::before(self.text, begin);
        if !has(&found.map, &[ReplyField::Action, ReplyField::Tool]) {
            return self.other(&found, before, begin);
        }
        match &self.chosen {
            Some(chosen) if chosen.map == found.map => Ok(true),
            Some(_) => Err(ReplyRefusal::TwoActions),
            None => {
                self.stands_alone(&found, before)?;
                self.chosen = Some(found);
                Ok(true)
            }
        }
    }

    /// An object without an action: prose, unless it says otherwise. False: an invented observation.
    fn other(&mut self, found: &ParsedObject, before: Before, begin: usize) -> Result<bool, ReplyRefusal> {
        if found.supplied > 0 {
            return Err(ReplyRefusal::CutOff);
        }
        if self.chosen.is_some() && has(&found.map, &[ReplyField::Observation]) {
            return Ok(self.invents(begin));
        }
        self.seen.other = true;
        self.seen.answer |= has(&found.map, &[ReplyField::Answer]);
        self.seen.input |= matches!(before, Before::Member | Before::Input);
        self.seen.item |= before == Before::Item;
        Ok(true)
    }

    /// That the object is not a part of something.
    fn stands_alone(&self, found: &ParsedObject, before: Before) -> Result<(), ReplyRefusal> {
        let declared = found.map.contains_key("action") && found.map.contains_key("action_input");
        match before {
            Before::Item => return Err(ReplyRefusal::List),
            Before::Member => return Err(ReplyRefusal::Fragment),
            Before::Input if !declared => return Err(ReplyRefusal::Fragment),
            Before::Input | Before::Free => {}
        }
        match marks::behind(self.text, found.end) {
            Behind::Item => Err(ReplyRefusal::List),
            Behind::Member => Err(ReplyRefusal::RunsOn),
            // A brace too many at the end and a key that is not ours: it may belong into the input.
            Behind::Surplus if has(&found.map, &[ReplyField::Other, ReplyField::Answer]) => Err(ReplyRefusal::RunsOn),
            Behind::Surplus | Behind::Free => Ok(()),
        }
    }

    /// Reads what begins with this `{`.
    fn read(&mut self) -> Result<Brace, ReplyRefusal> {
        let (opening, reach) = relaxed::opening(self.text, self.at);
        let prose = Brace::Prose(self.at.saturating_add(1));
        let (key, quoted) = match opening {
            Ok(Opening::Object { key }) => match relaxed::object(self.text, self.at, self.unclosed) {
                Ok(found) => return Ok(Brace::Object(found)),
                Err(fault) => return self.broken(&fault, key.as_deref()),
            },
            Ok(Opening::Word { word, quoted }) => (word, quoted),
            Ok(Opening::Other) => {
                self.spend(reach)?;
                return Ok(prose);
            }
            Err(fault) => return self.broken(&fault, None),
        };
        self.spend(reach)?;
        let kind = if reach == self.text.len() { RelaxedFaultKind::CutOff } else { RelaxedFaultKind::Colon };
        let fault = RelaxedFault { kind, at: reach };
        if quoted || field_of(&key) != ReplyField::Other { self.broken(&fault, Some(&key)) } else { Ok(prose) }
    }

    /// An object that can't be read: a placeholder like `{name: value}` is prose, if it contains no key of a
    /// reply; anything else ends the search.
    fn broken(&mut self, fault: &RelaxedFault, key: Option<&str>) -> Result<Brace, ReplyRefusal> {
        let begin = self.at.saturating_add(1);
        let bytes = self.text.as_bytes().get(begin..).unwrap_or_default();
        let end = bytes.iter().take(PLACEHOLDER).position(|byte| matches!(byte, b'{' | b'}'));
        if let Some(end) = end
            && bytes.get(end) == Some(&b'}')
            && key.is_some_and(|key| field_of(key) == ReplyField::Other)
            && !self.seen_key(begin, begin.saturating_add(end))
        {
            self.spend(fault.at)?;
            return Ok(Brace::Prose(begin.saturating_add(end).saturating_add(1)));
        }
        self.seen.first.get_or_insert(self.at);
        if fault.kind == RelaxedFaultKind::CutOff
            || fault.kind == RelaxedFaultKind::OpenString && self.unclosed == UnclosedBrackets::Refuse
        {
            return Err(ReplyRefusal::CutOff);
        }
        Err(ReplyRefusal::Broken(fault.words(self.text)))
    }

    /// Whether a word of this part of the text is a key of a reply.
    fn seen_key(&self, begin: usize, end: usize) -> bool {
        let part = self.text.get(begin..end).unwrap_or_default();
        let mut words = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| matches!(field_of(word), ReplyField::Action | ReplyField::Tool | ReplyField::Input))
    }

    fn spend(&mut self, reach: usize) -> Result<(), ReplyRefusal> {
        self.spent = self.spent.saturating_add(reach.saturating_sub(self.at));
        let most = self.text.len().saturating_mul(4).saturating_add(4096);
        if self.spent > most { Err(ReplyRefusal::Tangled) } else { Ok(()) }
    }

    /// What all that was seen comes to.
    fn judge(&mut self) -> Result<ParsedObject, ReplyRefusal> {
        let Some(chosen) = self.chosen.take() else {
            return Err(match &self.seen {
                seen if seen.open_thinking => ReplyRefusal::OpenThinking,
                seen if seen.answer => ReplyRefusal::AnswerAlone,
                seen if seen.item => ReplyRefusal::List,
                seen if seen.other => ReplyRefusal::NoAction,
                _ => ReplyRefusal::NoObject,
            });
        };
        if self.seen.answer {
            return Err(ReplyRefusal::AnswerBeside);
        }
        // The object may be a part of one whose beginning or end is broken; or the other object may
        // be its input.
        if self.seen.loose_key || (self.seen.input && !has(&chosen.map, &[ReplyField::Input])) {
            return Err(ReplyRefusal::Fragment);
        }
        Ok(chosen)
    }
}
