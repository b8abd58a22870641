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
mod tests {
    use super::*;

    fn shown(code: &'static str, text: &str, secret: &str) -> String {
        let source = Source::new("x.json", text);
        let start = text.find(secret).unwrap();
        let fault = Diagnostic::error(code, "found", "", source.place(start, start + secret.len()));
        let other = Source::new("y.json", text);
        let hidden = hide(&[fault], &[source, other]);
        assert_eq!(&*hidden[1].text, text, "another file is left alone");
        hidden[0].text.to_string()
    }

    #[test]
    fn a_secret_that_is_reported_is_not_shown_and_places_stay() {
        assert_eq!(shown(codes::SECRET, "{\"k\": \"sk-\u{e9}1\"}", "\"sk-\u{e9}1\""), "{\"k\": \"******\"}");
        assert_eq!(shown(codes::CREDENTIALS, "\"https://a:b@h/\"", "a:b@"), "\"https://****h/\"");
        let url = "{\"u\": \"http://a:b@h/v1\"}";
        assert_eq!(shown(codes::BAD_BASE_URL, url, "\"http://a:b@h/v1\""), "{\"u\": \"***************\"}");
        assert_eq!(shown(codes::BAD_BASE_URL, "{\"u\": \"h/v1\"}", "\"h/v1\""), "{\"u\": \"h/v1\"}");
        assert_eq!(shown(codes::UNKNOWN_FIELD, "{\"k\": 1}", "\"k\""), "{\"k\": 1}");
    }

    #[test]
    fn the_name_of_a_variable_is_shown_and_what_may_be_a_secret_is_not() {
        let source = Source::new("x.json", "\"$KEY\"");
        let fault = Diagnostic::error(codes::WRITTEN_KEY, "found", "", source.place(0, 6));
        let text = |fault: Diagnostic| hide(&[fault], std::slice::from_ref(&source))[0].text.to_string();
        assert_eq!(text(fault.clone()), "\"****\"");
        assert_eq!(text(fault.suggest("\"env:KEY\"")), "\"$KEY\"");
    }
}
