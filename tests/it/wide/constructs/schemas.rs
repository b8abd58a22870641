//! Constructs of schemas.

use super::{Construct, each, input, loop_with, main, whole};

/// Them.
pub const SCHEMAS: &[Construct] = &[
    ("input_properties", |n| {
        input(&format!("\"type\":\"object\",\"properties\":{{{}}}", each(n, ",", |at| format!("\"p{at}\":{{}}"))))
    }),
    ("input_texts", |n| {
        input(&format!(
            "\"type\":\"object\",\"properties\":{{{}}}",
            each(n, ",", |at| format!("\"p{at}\":{{\"type\":\"string\"}}"))
        ))
    }),
    ("input_required", |n| {
        input(&format!("\"type\":\"object\",\"required\":[{}]", each(n, ",", |at| format!("\"p{at}\""))))
    }),
    ("input_same_required", |n| input(&format!("\"required\":[{}]", each(n, ",", |_| "\"p\"".to_owned())))),
    ("input_any_of", |n| input(&format!("\"anyOf\":[{}]", each(n, ",", |_| "{}".to_owned())))),
    ("input_any_of_objects", |n| {
        input(&format!("\"anyOf\":[{}]", each(n, ",", |at| format!("{{\"properties\":{{\"a{at}\":{{}}}}}}"))))
    }),
    ("input_all_of", |n| input(&format!("\"allOf\":[{}]", each(n, ",", |_| "{\"type\":\"object\"}".to_owned())))),
    ("input_enum", |n| {
        input(&format!("\"properties\":{{\"a\":{{\"enum\":[{}]}}}}", each(n, ",", |at| format!("\"w{at}\""))))
    }),
    ("input_same_enum", |n| {
        input(&format!("\"properties\":{{\"a\":{{\"enum\":[{}]}}}}", each(n, ",", |_| "\"w\"".to_owned())))
    }),
    ("input_enum_objects", |n| input(&format!("\"enum\":[{}]", each(n, ",", |at| format!("{{\"a\":{at}}}"))))),
    ("input_refs", |n| {
        let refs = each(n, ",", |at| format!("\"p{at}\":{{\"$ref\":\"#/$defs/d{at}\"}}"));
        let defs = each(n, ",", |at| format!("\"d{at}\":{{\"type\":\"string\"}}"));
        input(&format!("\"properties\":{{{refs}}},\"$defs\":{{{defs}}}"))
    }),
    ("input_same_ref", |n| {
        let refs = each(n, ",", |at| format!("\"p{at}\":{{\"$ref\":\"#/$defs/d\"}}"));
        input(&format!("\"properties\":{{{refs}}},\"$defs\":{{\"d\":{{\"type\":\"string\"}}}}"))
    }),
    ("input_chain_of_refs", |n| {
        let defs = each(n, ",", |at| format!("\"d{at}\":{{\"$ref\":\"#/$defs/d{}\"}}", at + 1));
        input(&format!("\"$ref\":\"#/$defs/d0\",\"$defs\":{{{defs},\"d{n}\":{{}}}}"))
    }),
    ("input_bad_ref", |n| {
        let parts = each(n, ",", |at| format!("\"p{at}\":{{\"$ref\":\"#/$defs/d{}\"}}", at % 7));
        input(&format!("\"properties\":{{{parts}}},\"$defs\":{{\"d0\":{{}}}}"))
    }),
    ("input_patterns", |n| {
        input(&format!(
            "\"properties\":{{{}}}",
            each(n, ",", |at| format!("\"p{at}\":{{\"pattern\":\"^(a|b){at}$\"}}"))
        ))
    }),
    ("input_plain_patterns", |n| {
        input(&format!("\"properties\":{{{}}}", each(n, ",", |at| format!("\"p{at}\":{{\"pattern\":\"^a{at}$\"}}"))))
    }),
    ("input_pattern_properties", |n| {
        input(&format!("\"patternProperties\":{{{}}}", each(n, ",", |at| format!("\"^(p|q){at}$\":{{}}"))))
    }),
    ("input_formats", |n| {
        input(&format!("\"properties\":{{{}}}", each(n, ",", |at| format!("\"p{at}\":{{\"format\":\"date\"}}"))))
    }),
    ("input_ids", |n| {
        input(&format!("\"$defs\":{{{}}}", each(n, ",", |at| format!("\"d{at}\":{{\"$id\":\"http://h/{at}\"}}"))))
    }),
    ("input_anchors", |n| {
        input(&format!("\"$defs\":{{{}}}", each(n, ",", |at| format!("\"d{at}\":{{\"$anchor\":\"a{at}\"}}"))))
    }),
    ("input_dependent", |n| {
        input(&format!("\"dependentRequired\":{{{}}}", each(n, ",", |at| format!("\"p{at}\":[\"q{at}\"]"))))
    }),
    ("input_prefix_items", |n| {
        input(&format!("\"properties\":{{\"a\":{{\"prefixItems\":[{}]}}}}", each(n, ",", |_| "{}".to_owned())))
    }),
    ("input_bad_types", |n| {
        input(&format!("\"properties\":{{{}}}", each(n, ",", |at| format!("\"p{at}\":{{\"type\":\"strin\"}}"))))
    }),
    ("input_type_names", |n| input(&format!("\"type\":[{}]", each(n, ",", |_| "\"object\"".to_owned())))),
    ("input_default", |n| input(&format!("\"default\":[{}]", each(n, ",", |at| at.to_string())))),
    ("input_unknown_words", |n| input(&each(n, ",", |at| format!("\"x{at}\":{{\"a\":1}}")))),
    ("answer_schema", |n| {
        let properties = each(n, ",", |at| format!("\"p{at}\":{{\"type\":\"number\",\"minimum\":2,\"maximum\":1}}"));
        main(loop_with(&format!("\"answer_schema\":{{\"type\":\"object\",\"properties\":{{{properties}}}}},")))
    }),
    ("unknown_inputs", |n| {
        let properties = each(n, ",", |at| format!("\"parameter{at}\":{{}}"));
        let text = each(n.min(900), " ", |at| format!("{{{{input.paramter{at}}}}}"));
        main(whole(
            &text,
            "",
            &format!(
                "\"input\":{{\"type\":\"object\",\"properties\":{{{properties}}},\"additionalProperties\":false}},"
            ),
        ))
    }),
];
