//! A secret is not shown, and everything else keeps its place.
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
