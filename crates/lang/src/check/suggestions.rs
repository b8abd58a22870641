//! Suggestions are judged before anybody sees one: the text with them is examined, and one that is an error itself is taken
//! back. `check`, `--fix`, `run` and the server all show what is left.

use std::ops::Range;

use super::fix;
use crate::compile::{Compiled, Texts};
use crate::diagnostic::{Diagnostic, Source, Suggestion};
use crate::syntax::document::{self, DocumentKind};

/// How often a document is examined again: first all suggestions that do not overlap, then those that are left, or that failed
/// beside others.
const MAX_LOOKS: usize = 6;

/// Takes back the suggestions for a document that are errors themselves. `examine` is what examines it.
pub(super) fn judge(
    texts: &Texts,
    kind: Option<DocumentKind>,
    diagnostics: &mut [Diagnostic],
    examine: impl Fn(&Texts, document::Document) -> Compiled,
) {
    let is_judged = |fault: &Diagnostic| fault.place.file == texts.main.name && !fix::is_of_syntax(fault.code);
    let suggested = diagnostics.iter().enumerate().filter(|(_, fault)| fault.suggestion.is_some() && is_judged(fault));
    let mut left: Vec<usize> = suggested.map(|(at, _)| at).collect();
    let mut is_alone = false;
    for _ in 0..MAX_LOOKS {
        if left.is_empty() {
            return;
        }
        let picked = apart(&left, diagnostics, if is_alone { 1 } else { usize::MAX });
        let wrong = wrong(texts, kind, diagnostics, &picked, &examine);
        let is_one = picked.len() == 1;
        for at in wrong.iter().filter(|_| is_one) {
            take_back(diagnostics, *at);
        }
        left.retain(|at| !picked.contains(at) || !is_one && wrong.contains(at));
        // Those that failed may have failed because of each other.
        is_alone = true;
    }
    left.into_iter().for_each(|at| take_back(diagnostics, at));
}

/// The first of these suggestions that do not touch each other, in the order of the text.
fn apart(left: &[usize], diagnostics: &[Diagnostic], most: usize) -> Vec<usize> {
    let of = |at: &usize| diagnostics.get(*at).and_then(|fault| fault.suggestion.as_ref());
    let mut sorted: Vec<(usize, &Suggestion)> = left.iter().filter_map(|at| Some((*at, of(at)?))).collect();
    sorted.sort_by_key(|(_, suggestion)| (suggestion.start, suggestion.end));
    let mut end = None;
    let mut picked = Vec::new();
    for (at, suggestion) in sorted {
        if picked.len() < most && end.is_none_or(|end| suggestion.start > end) {
            end = Some(suggestion.end);
            picked.push(at);
        }
    }
    picked
}

/// Those of the picked suggestions in which the document has an error that it did not have before.
fn wrong(
    texts: &Texts,
    kind: Option<DocumentKind>,
    diagnostics: &[Diagnostic],
    picked: &[usize],
    examine: impl Fn(&Texts, document::Document) -> Compiled,
) -> Vec<usize> {
    let text = &texts.main.text;
    let (mut now, mut ranges, mut end) = (String::with_capacity(text.len() + 64), Vec::new(), 0);
    for at in picked {
        let Some(suggestion) = diagnostics.get(*at).and_then(|fault| fault.suggestion.as_ref()) else { continue };
        now.push_str(text.get(end..suggestion.start).unwrap_or_default());
        let start = now.len();
        now.push_str(&suggestion.replacement);
        ranges.push((*at, suggestion.start..suggestion.end, start..now.len()));
        end = suggestion.end;
    }
    now.push_str(text.get(end..).unwrap_or_default());
    let source = Source::new(texts.main.name.clone(), now);
    let examined = examine(&with_main(texts, &source), document::read_as(&source, kind));
    // Also those of the whole value, of which a suggestion may replace a part.
    let errors = |of: &'_ [Diagnostic], within: &Range<usize>, path: &str| -> Vec<(&'static str, String)> {
        let is_in = |fault: &&Diagnostic| {
            let place = &fault.place;
            let is_inside = place.start >= within.start && place.end <= within.end;
            let is_around = fault.path == path && place.start <= within.start && place.end >= within.end;
            fault.is_error() && place.file == source.name && (is_inside || is_around)
        };
        of.iter().filter(is_in).map(|fault| (fault.code, fault.message.clone())).collect()
    };
    let is_wrong = |(at, before, after): (usize, Range<usize>, Range<usize>)| {
        let fault = diagnostics.get(at)?;
        let known = errors(diagnostics, &before, &fault.path);
        let found = errors(&examined.diagnostics, &after, &fault.path);
        let is_new = found.iter().any(|error| !known.contains(error));
        // One that leaves what it is for is none.
        let stays = fault.is_error() && after.start < after.end && found.contains(&(fault.code, fault.message.clone()));
        (is_new || stays).then_some(at)
    };
    ranges.into_iter().filter_map(is_wrong).collect()
}

/// The same texts with another document.
fn with_main(texts: &Texts, source: &Source) -> Texts {
    let mut texts = texts.clone();
    for same in texts.loops.iter_mut().chain(&mut texts.workflows).filter(|same| same.name == source.name) {
        *same = source.clone();
    }
    texts.main = source.clone();
    texts
}

/// Leaves the fault without its suggestion, and without a help that says the same.
fn take_back(diagnostics: &mut [Diagnostic], at: usize) {
    let Some(fault) = diagnostics.get_mut(at) else { return };
    let Some(suggestion) = fault.suggestion.take() else { return };
    if fault.help.as_ref().is_some_and(|help| help.contains(&suggestion.replacement)) {
        fault.help = None;
    }
}
