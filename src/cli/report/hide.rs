//! Hides secrets in the lines of a document that a report shows: reports go to the logs of pipelines.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Source, codes};

/// The texts with a `*` for each byte of a reported secret, so that positions stay correct.
pub fn hide(diagnostics: &[Diagnostic], sources: &[Source]) -> Vec<Source> {
    let hidden: Vec<&Diagnostic> = diagnostics.iter().filter(|fault| shows_a_secret(fault)).collect();
    let of = |source: &Source| {
        let mut spans: Vec<Range<usize>> = hidden
            .iter()
            .filter(|fault| fault.place.file == source.name && !is_harmless(fault, &source.text))
            .map(|fault| fault.place.start..fault.place.end)
            .collect();
        spans.sort_by_key(|span| (span.start, span.end));
        if spans.is_empty() { source.clone() } else { Source::new(source.name.clone(), starred(&source.text, &spans)) }
    };
    sources.iter().map(of).collect()
}

fn shows_a_secret(fault: &Diagnostic) -> bool {
    match fault.code {
        codes::SECRET | codes::CREDENTIALS => true,
        // A suggestion means that it is the name of a variable, not a secret.
        codes::WRITTEN_SECRET | codes::WRITTEN_KEY => fault.suggestion.is_none(),
        // The address of a database may hold a password.
        codes::BAD_STORE | codes::BAD_DATASOURCE => fault.suggestion.is_none(),
        // That of a model may, too.
        codes::BAD_BASE_URL => true,
        _ => false,
    }
}

/// Whether the address of a model, which is often wrong in another way, has no place for a password.
fn is_harmless(fault: &Diagnostic, text: &str) -> bool {
    let written = text.get(fault.place.start..fault.place.end).unwrap_or_default();
    fault.code == codes::BAD_BASE_URL && !written.contains('@')
}

/// The text with stars in the spans, except for the characters of JSON's syntax.
fn starred(text: &str, spans: &[Range<usize>]) -> String {
    let mut shown = String::with_capacity(text.len());
    // The spans are sorted, so the furthest end of those that have started is enough.
    let (mut spans, mut end) = (spans.iter().peekable(), 0);
    for (at, c) in text.char_indices() {
        while let Some(span) = spans.next_if(|span| span.start <= at) {
            end = end.max(span.end);
        }
        if at < end && !matches!(c, '"' | '\n' | '\r') {
            shown.extend(std::iter::repeat_n('*', c.len_utf8()));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests;
