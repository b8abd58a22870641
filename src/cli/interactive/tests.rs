//! What a human types, and the decision that it means.

use serde_json::json;

use super::*;

#[test]
fn a_number_chooses_an_option_and_any_other_text_is_the_answer() {
    let options = ["refund".to_owned(), "3".to_owned()];
    assert_eq!(chosen("1", &options), "refund");
    assert_eq!(chosen("2", &options), "3");
    for text in ["0", "3", "-1", "one", "1.5", "99999999999999999999"] {
        assert_eq!(chosen(text, &options), text);
    }
    assert_eq!(chosen("1", &[]), "1");
}

#[test]
fn a_placeholder_of_a_hidden_value_is_found_at_any_depth() {
    assert!(holds_placeholder(&json!({ "a": [{ "password": "[hidden]" }] })));
    assert!(!holds_placeholder(&json!({ "a": "is [hidden] here", "[hidden]": 1 })));
}
