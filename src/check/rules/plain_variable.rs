//! A variable of the input in another language's spelling: it goes to the model as it stands.

use std::ops::Range;

use crate::check::used::Used;
use crate::check::{Rule, Subject};
use crate::compile::parse::Node;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;

/// The rule.
pub const RULE: Rule = Rule {
    code: codes::PLAIN_VARIABLE,
    name: "plain-variable",
    severity: Severity::Warning,
    page: include_str!("plain_variable.md"),
    look: Some(look),
};

/// What each of the spellings has in it.
const INPUT: &str = "input.";

fn look(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let own = ["objective", "system_prompt"].into_iter().filter_map(|name| subject.property(name));
    let of_actions = subject.actions().iter().flat_map(|used| pointers(used).into_iter().map(|at| used.at(&at)));
    for spot in own.chain(of_actions) {
        let Some(text) = spot.node().and_then(Node::as_str) else { continue };
        for (range, name) in spelled_otherwise(text) {
            let written = text.get(range.clone()).unwrap_or_default();
            let instead = format!("{{{{input.{name}}}}}");
            let message = format!("`{written}` is no variable here, and stays as it is written");
            let fault = spot.clone().inside(range).tell(&RULE, message);
            found.push(fault.help(format!("inside a text a variable is written `{instead}`")).suggest(instead));
        }
    }
}

/// Where an action has templates.
fn pointers(used: &Used<'_>) -> Vec<String> {
    let mut pointers: Vec<String> = used.secret_strings().into_iter().map(|(pointer, _)| pointer).collect();
    match &used.action {
        Action::Command(command) => pointers.extend((0..command.args.len()).map(|at| format!("/args/{at}"))),
        Action::Llm(_) => pointers.push("/template".to_owned()),
        _ => {}
    }
    pointers
}

/// `@input.x` inside a text, `${input.x}` and `{input.x}`: their places, and the name behind `input.`.
fn spelled_otherwise(text: &str) -> Vec<(Range<usize>, &str)> {
    text.match_indices(INPUT).filter_map(|(at, _)| spelled_at(text, at)).collect()
}

fn spelled_at(text: &str, at: usize) -> Option<(Range<usize>, &str)> {
    let (before, rest) = (text.get(..at)?, text.get(at + INPUT.len()..)?);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let name = rest.get(..length)?.trim_end_matches('.');
    let end = at + INPUT.len() + name.len();
    if name.is_empty() || is_in_tag(before) {
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

/// Whether a tag is open at the end of this text.
fn is_in_tag(before: &str) -> bool {
    before.rfind("{{").is_some_and(|open| before.rfind("}}").is_none_or(|close| close < open))
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
            let found: Vec<_> = spelled_otherwise(text).into_iter().map(|(range, _)| &text[range]).collect();
            assert_eq!(found, written, "{text}");
        }
    }
}
