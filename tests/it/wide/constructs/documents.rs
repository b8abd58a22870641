//! Constructs of documents, their texts and their projects.

use loopctl::compile::Texts;
use loopctl::diagnostic::Source;

use super::{Construct, each, get, http, letters, loop_with, main, objective, project, whole};

/// Them.
pub const DOCUMENTS: &[Construct] = &[
    ("plain_variables", |n| main(objective(&each(n, " ", |_| "{input.x}".to_owned())))),
    ("plain_names", |n| {
        let text = each(n, " ", |at| format!("{{x{at}}}"));
        let names = each(n, ",", |at| format!("\"y{at}\":{{}}"));
        main(whole(&text, "", &format!("\"input\":{{\"type\":\"object\",\"properties\":{{{names}}}}},")))
    }),
    ("long_paths_beside_a_name", |n| {
        main(objective(&format!(
            "{{{{input.{}}}}} {{input.{}}}",
            each(n, ".", |_| "a".to_owned()),
            each(n, ".", |_| "b".to_owned())
        )))
    }),
    ("at_variables", |n| main(objective(&each(n, " ", |_| "see @input.x".to_owned())))),
    ("dollar_variables", |n| main(objective(&each(n, "", |_| "${input.abc}".to_owned())))),
    ("braces", |n| main(objective(&"{{ ".repeat(n)))),
    ("tags", |n| main(objective(&each(n, " ", |at| format!("{{{{input.x{at}}}}}"))))),
    ("secrets_in_text", |n| main(objective(&each(n, " ", |at| format!("orgconfig:k{at}"))))),
    ("escapes_in_text", |n| main(objective(&each(n, "", |_| "\\n{input.x}\\u00e9".to_owned())))),
    ("wide_letters", |n| main(objective(&each(n, "", |_| "é{input.x}".to_owned())))),
    ("bad_escapes", |n| main(objective(&"\\q".repeat(n)))),
    ("fallback_models", |n| {
        main(loop_with(&format!(
            "\"fallback_models\":[{}],\"budget\":{{\"cost_usd\":1}},",
            each(n, ",", |at| format!("\"m{at}\""))
        )))
    }),
    ("same_fallback_models", |n| {
        main(loop_with(&format!("\"fallback_models\":[{}],", each(n, ",", |_| "\"m\"".to_owned()))))
    }),
    ("unknown_keys", |n| main(loop_with(&each(n, "", |at| format!("\"objectve{at}\":1,"))))),
    ("misspelt_keys", |n| main(loop_with(&each(n, "", |at| format!("\"max_iteration_{}\":1,", letters(at)))))),
    ("misplaced_keys", |n| main(loop_with(&"\"action_name\":1,".repeat(n)))),
    ("keys_at_top", |n| main(format!("{{{}\"type\":\"loop\"}}", each(n, "", |at| format!("\"k{at}\":1,"))))),
    ("keys_of_nothing", |n| main(format!("{{{}}}", each(n, ",", |at| format!("\"objectivx{at}\":1"))))),
    ("same_key", |n| main(loop_with(&"\"model\":\"m\",".repeat(n)))),
    ("kept_keys", |n| main(loop_with(&"\"$serde_json::private::Number\":\"1\",".repeat(n)))),
    ("wrong_types", |n| main(format!("[{}]", each(n, ",", |_| "1".to_owned())))),
    ("wrong_words", |n| {
        main(format!("[{}]", each(n, ",", |at| format!("{{\"action_name\":\"a{at}\",\"kind\":\"htp\"}}"))))
    }),
    ("written_secrets", |n| main(objective(&each(n, " ", |at| format!("sk-abcdefghijklmnopqrst{at:06}"))))),
    ("brackets", |n| main("[".repeat(n))),
    ("closing_brackets", |n| main(format!("{{\"type\":\"loop\"{}", "]".repeat(n)))),
    ("braces_alone", |n| main(format!("[{}]", each(n, ",", |_| "{{".to_owned())))),
    ("nested", |n| main(loop_with(&format!("\"x\":{}{},", "[".repeat(n), "]".repeat(n))))),
    ("missing_commas", |n| main(format!("[{}]", each(n, " ", |_| "1".to_owned())))),
    ("commas", |n| main(format!("[{}]", ",".repeat(n)))),
    ("comments", |n| main(format!("[{}]", "// a\n".repeat(n)))),
    ("open_comments", |n| main(format!("[{}]", "1,/* ".repeat(n)))),
    ("lines_in_strings", |n| main(format!("[\"{}\"]", "a\n".repeat(n)))),
    ("backslashes_and_lines", |n| main(format!("[\"{}\"]", "\\\n".repeat(n)))),
    ("open_strings", |n| main(format!("[{}]", "\"a,\n".repeat(n)))),
    ("three_quotes", |n| main(format!("[{}]", each(n, ",", |_| "\"\"\"".to_owned())))),
    ("bare_words", |n| main(format!("[{}]", each(n, ",", |_| "word".to_owned())))),
    ("odd_numbers", |n| main(format!("[{}]", each(n, ",", |_| "01".to_owned())))),
    ("long_number", |n| main(loop_with(&format!("\"max_iterations\":{},", "9".repeat(n))))),
    ("unknown_strings", |n| {
        main(format!("{{\"type\":\"loop\",\"properties\":{{\"a\":[{}]}}}}", each(n, ",", |at| format!("\"s{at}\""))))
    }),
    ("replies", |n| {
        main(format!("{{\"replies\":[{}]}}", each(n, ",", |_| "{\"thoght\":\"a\",\"action\":\"b\"}".to_owned())))
    }),
    ("sound_replies", |n| {
        main(format!(
            "{{\"replies\":[{}]}}",
            each(n, ",", |_| "{\"thought\":\"a\",\"action\":\"b\",\"action_input\":{}}".to_owned())
        ))
    }),
    ("models", |n| {
        project(&format!(
            "\"models\":{{{}}}",
            each(n, ",", |at| format!("\"m{at}\":{{\"provider\":\"openai\",\"base_url\":\"x\",\"api_key\":\"k\"}}"))
        ))
    }),
    ("orgconfig", |n| project(&format!("\"orgconfig\":{{{}}}", each(n, ",", |at| format!("\"k{at}\":\"value\""))))),
    ("datasources", |n| {
        project(&format!(
            "\"datasources\":{{{}}}",
            each(n, ",", |at| format!("\"d{at}\":{{\"url\":\"sqlite:orgconfig:k{at}\"}}"))
        ))
    }),
    ("datasources_and_actions", |n| {
        let actions = each(n, ",", |at| {
            format!("{{\"action_name\":\"t{at}\",\"kind\":\"db\",\"datasource\":\"a{at}\",\"query\":\"SELECT 1\"}}")
        });
        let mut texts = main(format!("[{actions}]"));
        let datasources = each(n, ",", |at| format!("\"d{at}\":{{\"url\":\"oracle://h/d\"}}"));
        texts.project = Some(Source::new("loopctl.json", format!("{{\"datasources\":{{{datasources}}}}}")));
        texts
    }),
    ("hosts", |n| {
        let mut texts = project(&format!("\"allow\":{{\"hosts\":[{}]}}", each(n, ",", |at| format!("\"*h{at}/\""))));
        let (tools, actions) = (each(900, ",", |at| format!("\"t{at}\"")), each(900, ",", |at| get(&format!("t{at}"))));
        texts = Texts { project: Some(texts.main), ..main(whole("Go.", &tools, &format!("\"actions\":[{actions}],"))) };
        texts
    }),
    ("hosts_and_actions", |n| {
        let mut texts = main(format!("[{}]", each(n, ",", |at| get(&format!("t{at}")))));
        let hosts = each(n, ",", |at| format!("\"h{at}.example.com\""));
        texts.project = Some(Source::new("loopctl.json", format!("{{\"allow\":{{\"hosts\":[{hosts}]}}}}")));
        texts
    }),
    ("commands_and_actions", |n| {
        let actions =
            each(n, ",", |at| format!("{{\"action_name\":\"t{at}\",\"kind\":\"command\",\"program\":\"comand{at}\"}}"));
        let mut texts = main(format!("[{actions}]"));
        let names = each(n, ",", |at| format!("\"command{at}\""));
        texts.project = Some(Source::new("loopctl.json", format!("{{\"allow\":{{\"commands\":[{names}]}}}}")));
        texts
    }),
    ("near_models", |n| {
        let models = each(n, ",", |at| format!("\"model{at}\":{{\"provider\":\"openai\"}}"));
        let names = each(n, ",", |at| format!("\"mdel{at}\""));
        let mut texts = main(loop_with(&format!("\"fallback_models\":[{names}],")));
        texts.project = Some(Source::new("loopctl.json", format!("{{\"models\":{{{models}}}}}")));
        texts
    }),
    ("commands_allowed", |n| {
        let names = each(n, ",", |at| format!("\"command{at}\""));
        let actions = each(900, ",", |at| {
            format!("{{\"action_name\":\"t{at}\",\"kind\":\"command\",\"program\":\"comand{at}\"}}")
        });
        let mut texts =
            main(whole("Go.", &each(900, ",", |at| format!("\"t{at}\"")), &format!("\"actions\":[{actions}],")));
        texts.project = Some(Source::new("loopctl.json", format!("{{\"allow\":{{\"commands\":[{names}]}}}}")));
        texts
    }),
    ("secrets_unknown", |n| {
        let keys = each(n, ",", |at| format!("\"key{at}\":\"env:K\""));
        let mut texts = http(&format!("\"body\":[{}]", each(n, ",", |at| format!("\"orgconfig:ky{at}\""))));
        texts.project = Some(Source::new("loopctl.json", format!("{{\"orgconfig\":{{{keys}}}}}")));
        texts
    }),
    ("secrets_in_one_header", |n| {
        http(&format!("\"headers\":{{\"A\":\"{}\"}}", each(n, " ", |at| format!("orgconfig:k{at}"))))
    }),
    ("agent_request", |n| {
        let input = each(n, ",", |at| format!("\"p{at}\":\"@x\""));
        main(format!("{{\"objective\":\"Go {{{{input.q}}}}.\",\"tools\":[],\"input\":{{{input}}}}}"))
    }),
];
