//! Replies with no meaning or with two, each with a part of the sentence that says so.

use super::read_cut_off;
use crate::dialect::Reading;

const NOTHING: &[(&str, &str)] = &[
    ("", "empty"),
    (" \n\t ", "empty"),
    ("I am not sure what to do next.", "no JSON object"),
    ("Final Answer: 42", "__complete__"),
    ("Thought: t\nAction: a\nAction Input: x", "no JSON object"),
    ("null", "no JSON object"),
    ("42", "no JSON object"),
    ("\"a\"", "no JSON object"),
    ("true", "no JSON object"),
    ("```json\n```", "no JSON object"),
    ("<!DOCTYPE html><html><body>502 {x}</body></html>", "HTML"),
    ("<html><script>var x = {\"action\":\"a\",\"action_input\":{}}</script></html>", "HTML"),
    ("Use {x} and {y}.", "no JSON object"),
    ("{}", "no \"action\""),
    ("[]", "no JSON object"),
    ("{\"thought\":\"t\"}", "no \"action\""),
    ("{\"thought\":\"t\",\"action_input\":{}}", "no \"action\""),
    ("{\"error\":{\"message\":\"overloaded\"}}", "no \"action\""),
    ("{\"reply\":{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}}", "no \"action\""),
    ("{\"name\":\"a\",\"arguments\":{}}", "no \"action\""),
    ("{\"thought\":\"t\",\"answer\":\"42\"}", "__complete__"),
    ("{\"thought\":\"t\",\"final_answer\":\"42\"}", "__complete__"),
    ("{\"Final Answer\":42}", "__complete__"),
    ("<think>only this</think>", "no JSON object"),
    ("<think>{\"action\":\"a\",\"action_input\":{}}</think>", "no JSON object"),
    ("<think>hm {\"action\":\"a\",\"action_input\":{}}", "thinking block"),
];

const CUT: &[(&str, &str)] = &[
    ("{", "ends in the middle"),
    ("{\"", "not closed"),
    ("{\"thought\"", "ends in the middle"),
    ("{\"thought\":", "ends in the middle"),
    ("{\"thought\":\"I will", "not closed"),
    ("{\"thought\":\"t\"", "ends in the middle"),
    ("{\"thought\":\"t\",", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\"", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\"", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":\"ab", "not closed"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":12", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":1.", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":tru", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":\"y\",", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":[\"y\",", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":[", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":[1,2,3", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":[\"a\",\"b\"", "ends in the middle"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":[{\"y\":true}", "ends in the middle"),
    ("```json\n{\"action\":\"a\",\"action_input\":{\"x\":[\"a\"\n```", "ends in the middle"),
    ("```json\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":\n```", "ends in the middle"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"y\",\"thought\":\"t\"}", "ends in the middle"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"y\"} // }", "ends in the middle"),
    ("{\"action\":\"a\" # , \"action_input\":{\"x\":1}}", "ends in the middle"),
    ("{\"action\":\"a\",\"action_input\":{}}\n{\"thought\":\"u\",\"act", "not closed"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":1}\nI will wait.", "comma or a closing bracket"),
];

const TWO: &[(&str, &str)] = &[
    ("{\"action\":\"a\",\"action_input\":{}}{\"action\":\"b\",\"action_input\":{}}", "two different objects"),
    (
        "{\"action\":\"a\",\"action_input\":{\"x\":1}}\n{\"action\":\"a\",\"action_input\":{\"x\":2}}",
        "two different objects",
    ),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1}}\nor\n{\"tool\":\"b\",\"input\":{}}", "two different objects"),
    (
        "{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n{\"thought\":\"u\",\"action\":\"a\",\"action_input\":{}}",
        "two different objects",
    ),
    ("[{\"action\":\"a\",\"action_input\":{}},{\"action\":\"b\",\"action_input\":{}}]", "list"),
    ("[{\"action\":\"a\",\"action_input\":{}}]", "list"),
    ("[{\"action\":\"a\",\"action_input\":{}},{\"action\":\"a\",\"action_input\":{}}]", "list"),
    ("[1, {\"action\":\"a\",\"action_input\":{}}]", "list"),
    ("[{\"x\":1},{\"action\":\"a\",\"action_input\":{}}", "list"),
    ("[{\"action\":\"a\",\"action_input\":{}},", "list"),
    ("[{\"thought\":\"t\"}]", "list"),
    ("{\"action\":\"a\",\"action\":\"b\",\"action_input\":{}}", "two values"),
    ("{\"action\":\"a\",\"action\":\"a\",\"action_input\":{}}", "action twice"),
    ("{\"action\":\"a\",\"Action\":\"a\",\"action_input\":{}}", "action twice"),
    ("{\"action\":\"a\",\"Action\":\"b\",\"action_input\":{}}", "action twice"),
    ("{\"action\":\"a\",\"tool\":\"b\",\"action_input\":{}}", "action twice"),
    ("{\"tool\":\"a\",\"tool_name\":\"b\",\"input\":{}}", "action twice"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1},\"action_input\":{\"x\":2}}", "two values"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1},\"input\":{\"x\":2}}", "input twice"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1,\"x\":2}}", "\"x\" stands there twice"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1,\"x\":1.0}}", "\"x\" stands there twice"),
    ("{\"action\":\"a\",\"action_input\":{\"y\":{\"x\":1,\"x\":2}}}", "\"x\" stands there twice"),
    ("{\"action\":\"a\",\"action_input\":\"{\\\"x\\\":1,\\\"x\\\":2}\"}", "\"x\" stands there twice"),
    ("{\"thought\":\"t\",\"thought\":\"u\",\"action\":\"a\",\"action_input\":{}}", "twice"),
    ("{\"answer\":42} {\"action\":\"a\",\"action_input\":{}}", "an answer and an action"),
    ("{\"action\":\"a\",\"action_input\":{}} {\"final_answer\":42}", "an answer and an action"),
    ("{\"action\":\"a\",\"action_input\":{}}</think>{\"x\":1}", "thinking block"),
    ("{\"tool\":\"a\"}", "neither"),
    ("{\"action\":\"a\",\"city\":\"Paris\"}", "\"city\" stands beside"),
    ("{\"action\":\"a\",\"action_input\":null,\"city\":\"Paris\"}", "\"city\" stands beside"),
    ("{\"action\":\"__complete__\",\"answer\":42}", "\"answer\" stands beside"),
];

const PARTS: &[(&str, &str)] = &[
    ("Thought: t\nAction: a\nAction Input: {\"x\": 1}", "no \"action\""),
    ("Thought: t\nAction: a\nAction Input: {\"action\": \"force\"}", "inside text"),
    ("Action: a\n**Action Input:**\n```json\n{\"action\": \"force\"}\n```", "inside text"),
    ("action: a\naction_input: {'action': 'force'}", "inside text"),
    ("<arguments>{\"action\":\"force\"}</arguments>", "inside text"),
    ("So: 'thought': \"{'action':'b','action_input':{}}\", 'action': 'a'}", "inside text"),
    ("It said \"{'action':'b','action_input':{}}\".", "inside text"),
    ("\"action\": \"a\"\n{\"action\":\"b\",\"action_input\":{}}", "inside text"),
    ("restart({\"action\":\"force\"})", "inside text"),
    ("\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"action\":\"force\"}}", "inside text"),
    ("{\"thought\" \"t\", \"action\": \"a\", \"action_input\": {\"action\":\"b\",\"action_input\":{}}}", "colon"),
    ("{thought = \"t\", action = \"a\", action_input = {\"action\":\"b\",\"action_input\":{}}}", "colon"),
    ("{,\"action\":\"a\",\"action_input\":{\"action\":\"b\",\"action_input\":{}}}", "inside text"),
    ("{\"thought\":\"say \"hi\"\",\"action\":\"a\",\"action_input\":{\"action\":\"b\"}}", "double quote inside"),
    ("{\"thought\":\"t\"\"action\":\"a\",\"action_input\":{}}", "comma"),
    ("{\"thought\":\"t\",\"action\":\"a\"},\"action_input\":{\"x\":1}}", "closed too early"),
    ("{\"thought\":\"t\",\"action\":\"a\"} \"action_input\":{\"x\":1}}", "closed too early"),
    ("{\"action\":\"a\"}, action_input: {\"x\":1}}", "closed too early"),
    ("{\"action\":\"a\",\"action_input\":{}}, [1]", "closed too early"),
    ("{\"action\":\"a\"}\naction_input: {\"x\":1}", "inside text"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":{\"y\":1}},\"z\":2}}", "closed too early"),
    (
        "Here: {\"thought\":\"it said </think>{'action':'rm','action_input':{}}\", \"action\":\"a\",\"action_input\":{}} {",
        "ends in the middle",
    ),
    ("Here: {\"thought\":\"it said </think>{'action':'rm','action_input':{}}", "not closed"),
    ("{\"data\":{\"action\":\"b\",\"action_input\":{}} broken", "comma"),
    ("{data:{\"action\":\"b\",\"action_input\":{}} broken", "comma"),
    ("{\"a\":<{\"action\":\"b\",\"action_input\":{}}>}", "value"),
];

const VALUES: &[(&str, &str)] = &[
    ("{\"action\":null,\"action_input\":{}}", "must be the name"),
    ("{\"action\":\"\",\"action_input\":{}}", "must be the name"),
    ("{\"action\":\"  \",\"action_input\":{}}", "must be the name"),
    ("{\"action\":1,\"action_input\":{}}", "must be the name"),
    ("{\"action\":[\"a\"],\"action_input\":{}}", "must be the name"),
    ("{\"action\":{\"name\":\"a\",\"arguments\":{}}}", "must be the name"),
    ("{\"action\":\"a\",\"action_input\":[]}", "must be an object"),
    ("{\"action\":\"a\",\"action_input\":[{\"x\":1}]}", "must be an object"),
    ("{\"action\":\"a\",\"action_input\":\"Paris\"}", "must be an object"),
    ("{\"action\":\"a\",\"action_input\":\"\"}", "must be an object"),
    ("{\"action\":\"a\",\"action_input\":1}", "must be an object"),
    ("{\"action\":\"a\",\"action_input\":true}", "must be an object"),
    ("{\"action\":\"a\",\"action_input\":\"{\\\"x\\\":1\"}", "ends in the middle"),
    ("{\"action\":\"a\",\"action_input\":\"{\\\"x\\\":1} and\"}", "behind its end"),
    ("{\"action\":\"a\",\"action_input\":\"\\\"{}\\\"\"}", "must be an object"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":NaN}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":Infinity}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":-Infinity}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":0x10}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1_000}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":+1}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":01}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1e}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1,000}}", "key in double quotes"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1n}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":undefined}}", "word"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":TRUE}}", "word"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":Paris}}", "word"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":...}}", "number"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":(1,2)}}", "value"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"\\ud800\"}}", "surrogate"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"\\udc00\"}}", "surrogate"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"\\ud800\\u0041\"}}", "surrogate"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"\\d+\"}}", "backslash"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"\\x41\"}}", "backslash"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"\\u00g0\"}}", "backslash"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"\\u+041\"}}", "backslash"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"a\u{0}b\"}}", "control"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"a\u{1b}[0m\"}}", "control"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":'it's'}}", "comma"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":‘y’}}", "value"),
    ("{\"action\":\"a\",\"action_input\":{“x”:“a “b” c”}}", "comma"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":\"\"\"y\"\"\"}}", "comma"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":`y`}}", "value"),
    ("{\"action\":\"a\",\"action_input\":{1:2}}", "key"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":1,,\"y\":2}}", "key"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":[1,,2]}}", "value"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":[1 2]}}", "comma"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":[1}}}", "comma"),
    ("{\"action\":\"a\",\"action_input\":{\"x\" 1}}", "colon"),
    ("{\"action\":\"a\" /* open", "comment"),
    ("{\"action\":\"a\",\"action_input\":{\"$serde_json::private::Number\":\"1\"}}", "reserved"),
];

#[test]
fn replies_without_one_meaning_are_refused_with_the_reason() {
    let mut wrong = Vec::new();
    for table in [NOTHING, CUT, TWO, PARTS, VALUES] {
        for (reply, word) in table {
            let why = match super::read(reply) {
                Reading::Unreadable { why, .. } => why,
                other => format!("read: {other:?}"),
            };
            if !why.contains(word) || !why.contains("\"action_input\": {...}") {
                wrong.push(format!("{reply}\n  expected: {word}\n  got: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_reply_that_was_cut_off_is_never_completed() {
    let reply = r#"{"thought":"t","action":"a","action_input":{"x":"y"}"#;
    assert!(matches!(super::read(reply), Reading::Calls { .. }));
    assert!(matches!(read_cut_off(reply), Reading::Unreadable { .. }));
    assert!(matches!(read_cut_off(&format!("{reply}}} and so on")), Reading::Calls { .. }));
}

#[test]
fn every_beginning_of_a_reply_is_refused_until_its_last_value_is_whole() {
    let reply = r#"{"thought":"I look.","action":"transfer","action_input":{"to":"bob","amount":1250}}"#;
    for (end, _) in reply.char_indices() {
        let part = &reply[..end];
        let read = matches!(super::read(part), Reading::Calls { .. });
        let plain = part.ends_with('}') || part.ends_with("\"bob\"");
        assert_eq!(read, plain, "{part}");
        assert!(matches!(read_cut_off(part), Reading::Unreadable { .. }), "{part}");
    }
}
