//! A variable of the input in the spelling of another language: the model gets it unchanged.

use std::ops::Range;

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::language::Action;
use crate::syntax::Node;

/// The rule.
pub const RULE: Rule = Rule { code: codes::PLAIN_VARIABLE, check };

/// What each of the spellings has in it.
const INPUT: &str = "input.";
/// The most faults that are reported of one text.
const MAX_FOUND: usize = 50;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for name in ["objective", "system_prompt"] {
        if let Some(cursor) = subject.property(name) {
            in_text(&cursor, found);
        }
    }
    for used in subject.actions() {
        let mut judge = |pointer: &str, text: &str| {
            if text.contains(INPUT) {
                in_text(&used.at(pointer), found);
            }
        };
        used.each_secret_string(&mut judge);
        match &used.action {
            Action::Command(command) => {
                command.args.iter().enumerate().for_each(|(at, text)| judge(&format!("/args/{at}"), text));
            }
            Action::Llm(llm) => judge("/template", &llm.template),
            _ => {}
        }
        few_of_many(found);
    }
}

fn in_text(cursor: &Cursor<'_>, found: &mut Vec<Diagnostic>) {
    let Some(text) = cursor.node().and_then(Node::as_str) else { return };
    for (range, name) in spelled_otherwise(text).take(MAX_FOUND) {
        let written = text.get(range.clone()).unwrap_or_default();
        let instead = format!("{{{{input.{name}}}}}");
        let message = format!("`{written}` is no variable here, and stays as it is written");
        let fault = cursor.clone().inside(range).report(&RULE, message);
        found.push(fault.help(format!("inside a text a variable is written `{instead}`")).suggest(instead));
    }
}

/// `@input.x` inside a text, `${input.x}` and `{input.x}`: their places, and the name behind `input.`.
fn spelled_otherwise(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut tags = Tags { text: text.as_bytes(), at: 0, open: false };
    text.match_indices(INPUT).filter_map(move |(at, _)| spelled_at(text, at).filter(|_| !tags.is_open_at(at)))
}

fn spelled_at(text: &str, at: usize) -> Option<(Range<usize>, &str)> {
    let (before, rest) = (text.get(..at)?, text.get(at + INPUT.len()..)?);
    // Looked at first: a name may be as long as the text.
    if !before.ends_with(['@', '{']) {
        return None;
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let name = rest.get(..length)?.trim_end_matches('.');
    let end = at + INPUT.len() + name.len();
    if name.is_empty() {
        return None;
    }
    if let Some(before) = before.strip_suffix('@') {
        // Neither a whole string, which is a path, nor a part of an address of mail.
        let apart = before.chars().next_back().is_none_or(|c| !is_name(c) && !matches!(c, '-' | '+' | '@' | '\\'));
        return (apart && (at > 1 || end < text.len())).then_some((at - 1..end, name));
    }
    let before = before.strip_suffix('{').filter(|_| text.get(end..).is_some_and(|rest| rest.starts_with('}')))?;
    let begin = before.strip_suffix('$').map_or(at - 1, |_| at - 2);
    (!before.ends_with(['{', '\\'])).then_some((begin..end + 1, name))
}

/// Where tags are open in a text, asked for from its beginning to its end.
struct Tags<'t> {
    text: &'t [u8],
    at: usize,
    open: bool,
}

impl Tags<'_> {
    /// Whether a tag is open before a byte, which is none before those that were asked for.
    fn is_open_at(&mut self, byte: usize) -> bool {
        while self.at + 2 <= byte {
            match self.text.get(self.at..self.at + 2) {
                Some(b"{{") => self.open = true,
                Some(b"}}") => self.open = false,
                _ => {}
            }
            self.at += 1;
        }
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::spelled_otherwise;

    #[test]
    fn other_spellings_are_found_and_what_only_looks_like_one_is_not() {
        for (text, written) in [
            ("Who owns @input.host?", vec!["@input.host"]),
            ("@input.a and @input.b.c.", vec!["@input.a", "@input.b.c"]),
            ("https://h/${input.a}/{input.b}", vec!["${input.a}", "{input.b}"]),
            ("{\"a\": {input.a}}", vec!["{input.a}"]),
            ("@input.host", vec![]),
            ("{{input.host}} ${{input.amount}} {{{input.raw}}}", vec![]),
            ("{{#if @input.x}}{{else}}{{/if}}", vec![]),
            ("mail me@input.com or a-b@input.org", vec![]),
            ("see input.host, @input, {input}, @input. and {input.}", vec![]),
            ("${input.a", vec![]),
        ] {
            let found: Vec<_> = spelled_otherwise(text).map(|(range, _)| &text[range]).collect();
            assert_eq!(found, written, "{text}");
        }
    }
}
