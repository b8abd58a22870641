//! Replies with one meaning, each with its thought, action and input.

use super::call;

const STRICT: &[(&str, &str, &str, &str)] = &[
    (r#"{"thought":"t","action":"a","action_input":{}}"#, "t", "a", "{}"),
    (r#"{"action_input":{"x":1},"action":"a","thought":"t"}"#, "t", "a", r#"{"x":1}"#),
    (
        "{\n  \"thought\": \"t\",\n  \"action\": \"a\",\n  \"action_input\": {\n    \"x\": [1, 2]\n  }\n}",
        "t",
        "a",
        r#"{"x":[1,2]}"#,
    ),
    ("\n\n  {\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\r\n\t", "t", "a", "{}"),
    ("\u{feff}{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    (r#"{"thought":"\u00e9\n\t\"\\\/","action":"a","action_input":{}}"#, "é\n\t\"\\/", "a", "{}"),
    (r#"{"thought":"\ud83d\ude00","action":"a","action_input":{"x":"\u0000"}}"#, "😀", "a", r#"{"x":"\u0000"}"#),
    (r#"{"thought":"braces { } [ ] in text","action":"a","action_input":{}}"#, "braces { } [ ] in text", "a", "{}"),
    (
        r#"{"thought":"```json {\"action\":\"b\"} ```","action":"a","action_input":{}}"#,
        r#"```json {"action":"b"} ```"#,
        "a",
        "{}",
    ),
    (r#"{"thought":"a </think> tag","action":"a","action_input":{}}"#, "a </think> tag", "a", "{}"),
    (r#"{"thought":"Observation: none","action":"a","action_input":{}}"#, "Observation: none", "a", "{}"),
    (
        r#"{"thought":"t","action":"a","action_input":{"action":"b","action_input":{}}}"#,
        "t",
        "a",
        r#"{"action":"b","action_input":{}}"#,
    ),
    (r#"{"thought":"t","action":"a","action_input":{"thought":"u"}}"#, "t", "a", r#"{"thought":"u"}"#),
    (
        r#"{"thought":"t","action":"__complete__","action_input":{"answer":"done","confidence":0.9}}"#,
        "t",
        "__complete__",
        r#"{"answer":"done","confidence":0.9}"#,
    ),
    (
        r#"{"thought":"t","action":"a","action_input":{"":null,"b":true,"c":[[],{}]}}"#,
        "t",
        "a",
        r#"{"":null,"b":true,"c":[[],{}]}"#,
    ),
    (r#"{"thought":"t","action":"lookup_tіcket","action_input":{}}"#, "t", "lookup_tіcket", "{}"),
    (r#"{"thought":"t","action":"Lookup","action_input":{}}"#, "t", "Lookup", "{}"),
    (r#"{"thought":"t","action":" a ","action_input":{}}"#, "t", " a ", "{}"),
    (r#"{"thought":"t","action":"{{x}}/@y","action_input":{}}"#, "t", "{{x}}/@y", "{}"),
];

const NUMBERS: &[&str] = &[
    "12345678901234567890123",
    "9007199254740993",
    "0.1",
    "1E400",
    "-0",
    "1.0",
    "1e-400",
    "1E+5",
    "0.10",
    "-1.50e-07",
    "123456789.123456789123456789",
    "0",
];

const AROUND: &[(&str, &str, &str, &str)] = &[
    (r#"'{"thought":"t","action":"a","action_input":{}}'"#, "t", "a", "{}"),
    ("```json\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n```", "t", "a", "{}"),
    ("```\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n```", "t", "a", "{}"),
    ("```JSON\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n```\n", "t", "a", "{}"),
    ("~~~\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n~~~", "t", "a", "{}"),
    ("```json5\r\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\r\n```", "t", "a", "{}"),
    ("```json {\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}```", "t", "a", "{}"),
    ("```json\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("`{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}`", "t", "a", "{}"),
    ("Sure! Here it is:\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\nI will wait for the result.", "t", "a", "{}"),
    ("Action: {\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("json\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("I use {x} and {{y}} and { z }.\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("The form is {name: value}, so {\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("The set {1, 2} and {'a', 'b'}. {\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("From \\frac{1}{2} and {} follows [1]: {\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    (
        "The ticket was {\"id\": 1}. {\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"id\":1}}",
        "t",
        "a",
        r#"{"id":1}"#,
    ),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}} as {x} says", "t", "a", "{}"),
    ("fn f() { g(); } \n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("Based on the input: {\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("reply = {\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}};", "t", "a", "{}"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}},", "t", "a", "{}"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}, and then I will read what it says.", "t", "a", "{}"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":1}},\n\nwaiting for {x}", "t", "a", r#"{"x":1}"#),
    ("{{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":1}}}", "t", "a", r#"{"x":1}"#),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}}", "t", "a", "{}"),
    (
        "{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}",
        "t",
        "a",
        "{}",
    ),
    ("<answer>{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}</answer>", "t", "a", "{}"),
    (r#""{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":\"\\\"\"}}""#, "t", "a", r#"{"x":"\""}"#),
];

const THINKING: &[(&str, &str, &str, &str)] = &[
    ("<think>hm</think>\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("<think>hm</think>{\"action\":\"a\",\"action_input\":{}}", "hm", "a", "{}"),
    ("<think>\n hm \n</think>{\"thought\":\"\",\"action\":\"a\",\"action_input\":{}}", "hm", "a", "{}"),
    (
        "<think>{\"action\":\"b\",\"action_input\":{}}</think>{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}",
        "t",
        "a",
        "{}",
    ),
    ("<think>{\"action\": ...</think>{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("<THINK>x</THINK>{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("<thinking>x</thinking> {\"action\":\"a\",\"action_input\":{}}", "x", "a", "{}"),
    ("<think>x</think><think>y</think>{\"action\":\"a\",\"action_input\":{}}", "x\ny", "a", "{}"),
    ("so it is\n</think>\n{\"action\":\"a\",\"action_input\":{}}", "so it is", "a", "{}"),
    ("so {x} it is\n</think>\n```json\n{\"action\":\"a\",\"action_input\":{}}\n```", "so {x} it is", "a", "{}"),
    (
        "maybe {\"action\":\"b\",\"action_input\":{}}, no</think>{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}",
        "t",
        "a",
        "{}",
    ),
    ("<think></think>{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}<think>later</think>", "t", "a", "{}"),
];

const LOOSE: &[(&str, &str, &str, &str)] = &[
    (
        r#"{"thought":"t","action":"a","action_input":{"x":[.25,-.5,1.,2.e3]}}"#,
        "t",
        "a",
        r#"{"x":[0.25,-0.5,1.0,2.0e3]}"#,
    ),
    (r#"{"thought":"t","action":"a","action_input":{"x":[1,2,],},}"#, "t", "a", r#"{"x":[1,2]}"#),
    (r"{'thought':'t','action':'a','action_input':{'x':'y'}}", "t", "a", r#"{"x":"y"}"#),
    (r#"{'thought':"it's",'action':'a','action_input':{'x':'"q"'}}"#, "it's", "a", r#"{"x":"\"q\""}"#),
    (r"{'thought':'it\'s','action':'a','action_input':{}}", "it's", "a", "{}"),
    (r#"{"thought":"it\'s","action":"a","action_input":{}}"#, "it's", "a", "{}"),
    ("{\"thought\":\"t\", // why\n\"action\":\"a\", /* what */ \"action_input\":{} # end\n}", "t", "a", "{}"),
    ("# reply\n{ # begin\n\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    ("{\"thought\":\"http://x # y /* z */\",\"action\":\"a\",\"action_input\":{}}", "http://x # y /* z */", "a", "{}"),
    (
        "{\"thought\":\"one\ntwo\r\n\tthree\",\"action\":\"a\",\"action_input\":{\"x\":\"1\n2\"}}",
        "one\ntwo\r\n\tthree",
        "a",
        "{\"x\":\"1\\n2\"}",
    ),
    (r#"{thought:"t",action:"a",action_input:{x_1:1,$y:2,a-b:3}}"#, "t", "a", r#"{"x_1":1,"$y":2,"a-b":3}"#),
    (
        r"{'thought':'t','action':'a','action_input':{'x':True,'y':False,'z':None}}",
        "t",
        "a",
        r#"{"x":true,"y":false,"z":null}"#,
    ),
    ("{“thought”: “say \"hi\"”, “action”: “a”, “action_input”: {“x”: 1}}", "say \"hi\"", "a", r#"{"x":1}"#),
    ("{\u{a0}\"thought\":\u{a0}\"t\",\u{2003}\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    (r#"{"thought":"t","action":"a","action_input":{"x":1}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","action":"a","action_input":{"x":"y""#, "t", "a", r#"{"x":"y"}"#),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":1}\n", "t", "a", r#"{"x":1}"#),
    ("```json\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{\"x\":1\n```", "t", "a", r#"{"x":1}"#),
    ("```json\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}\n```\nDone.", "t", "a", "{}"),
    ("{\"action\":\"a\",\"action_input\":{\"x\":true}, \"thought\":\"t\"", "t", "a", r#"{"x":true}"#),
    (r#"{"thought":"t","action":"a","action_input":{"x":1,"x":1}}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","thought":"t","action":"a","action_input":{}}"#, "t", "a", "{}"),
];

const KEYS: &[(&str, &str, &str, &str)] = &[
    (r#"{"thought":"t","action":"a"}"#, "t", "a", "{}"),
    (r#"{"thought":"t","action":"a","action_input":null}"#, "t", "a", "{}"),
    (r#"{"action":"a","action_input":{}}"#, "", "a", "{}"),
    (r#"{"thought":null,"action":"a","action_input":{}}"#, "", "a", "{}"),
    (r#"{"thought":["x"],"action":"a","action_input":{}}"#, r#"["x"]"#, "a", "{}"),
    (r#"{"thought":"t","action":"a","action_input":"{\"x\":1}"}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","action":"a","action_input":" {'x': True,} "}"#, "t", "a", r#"{"x":true}"#),
    (
        r#"{"thought":"t","action":"a","action_input":"{\"x\":12345678901234567890123}"}"#,
        "t",
        "a",
        r#"{"x":12345678901234567890123}"#,
    ),
    (r#"{"Thought":"t","Action":"a","Action Input":{"x":1}}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","action":"a","actionInput":{"x":1}}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","tool":"a","arguments":{"x":1}}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","tool":"a","input":{"x":1}}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","tool_name":"a","parameters":{"x":1}}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"reasoning":"t","action":"a","params":{"x":1}}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","reasoning":"r","action":"a","action_input":{}}"#, "t", "a", "{}"),
    (r#"{"reasoning":"r","thought":"t","action":"a","action_input":{}}"#, "t", "a", "{}"),
    (r#"{"thought":"t","action":"a","tool":"a","action_input":{}}"#, "t", "a", "{}"),
    (r#"{"thought":"t","action":"a","action_input":{"x":1},"confidence":0.9}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","action":"a","action_input":{"x":1},"observation":"ok"}"#, "t", "a", r#"{"x":1}"#),
    (r#"{"thought":"t","action":"a","observation":"ok"}"#, "t", "a", "{}"),
];

const INVENTED: &[(&str, &str, &str, &str)] = &[
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\nObservation: {\"ok\":true}", "t", "a", "{}"),
    (
        "{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n\nObservation: x\n{\"thought\":\"u\",\"action\":\"b\",\"action_input\":{}}",
        "t",
        "a",
        "{}",
    ),
    (
        "{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n**Observation 1:** x {\"action\":\"b\"}",
        "t",
        "a",
        "{}",
    ),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\nOBSERVATION : {\"broken", "t", "a", "{}"),
    (
        "{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}} {\"observation\":\"x\"} {\"action\":\"b\",\"action_input\":{}}",
        "t",
        "a",
        "{}",
    ),
    (
        "{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}<tool_response>{\"action\":\"b\"}</tool_response>",
        "t",
        "a",
        "{}",
    ),
    ("{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n{\"status\":\"open\"}", "t", "a", "{}"),
    ("Observation: it is open.\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}", "t", "a", "{}"),
    (
        "```json\n{\"thought\":\"t\",\"action\":\"a\",\"action_input\":{}}\n```\nObservation: {\"action\":\"b\"",
        "t",
        "a",
        "{}",
    ),
];

#[cfg(feature = "exact-numbers")]
#[test]
fn replies_with_one_meaning_are_read() {
    for table in [STRICT, AROUND, THINKING, LOOSE, KEYS, INVENTED] {
        for (reply, thought, name, input) in table {
            let (read_thought, wanted) = call(reply);
            assert_eq!(read_thought, *thought, "thought of {reply}");
            assert_eq!(wanted.name, *name, "action of {reply}");
            assert_eq!(wanted.input.to_string(), *input, "input of {reply}");
        }
    }
}

#[cfg(feature = "exact-numbers")]
#[test]
fn numbers_keep_the_digits_that_the_model_wrote() {
    for digits in NUMBERS {
        let (_, wanted) = call(&format!(r#"{{"thought":"","action":"a","action_input":{{"x":[{digits}]}}}}"#));
        assert_eq!(wanted.input.to_string(), format!(r#"{{"x":[{digits}]}}"#));
    }
}

#[test]
fn the_order_of_the_inputs_keys_stays() {
    let (_, wanted) = call(r#"{"action":"a","action_input":{"z":1,"a":2,"m":3}}"#);
    assert_eq!(wanted.input.to_string(), r#"{"z":1,"a":2,"m":3}"#);
}
