//! The request in its form for people.

use super::*;

#[test]
fn messages_stand_under_their_roles() {
    let request = br#"{"model":"m","messages":[{"role":"system","content":"Be\nbrief."},{"role":"user","content":"Go\u001b[2J"}]}"#;
    let text = readable(request, &Look::plain(80));
    assert_eq!(text, "model: m\n\n── system \nBe\nbrief.\n\n── user \nGo\\u{1B}[2J\n");
}

#[test]
fn what_is_no_request_is_shown_as_it_is() {
    assert_eq!(readable(b"not json", &Look::plain(80)), "not json\n");
}
