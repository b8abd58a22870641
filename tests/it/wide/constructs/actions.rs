//! Constructs of one action.

use super::{Construct, action, command, db, each, http, members};

/// Them.
pub const ACTIONS: &[Construct] = &[
    ("headers", |n| http(&format!("\"headers\":{{{}}}", members(n, "H", |at| format!("{{{{v{at}}}}}"))))),
    ("literal_headers", |n| http(&format!("\"headers\":{{{}}}", members(n, "H", |_| "x".to_owned())))),
    ("bad_headers", |n| http(&format!("\"headers\":{{{}}}", members(n, "H ", |_| "x".to_owned())))),
    ("twin_headers", |n| http(&format!("\"headers\":{{{}}}", members(n, "h", |at| format!("a\\tb{at}"))))),
    ("mixed_headers", |n| {
        http(&format!("\"headers\":{{{}}}", members(n, "H", |at| format!("orgconfig:k{at} {{{{v{at}}}}}"))))
    }),
    ("query_fields", |n| http(&format!("\"query\":{{{}}}", members(n, "q", |at| format!("@p{at}"))))),
    ("query_templates", |n| http(&format!("\"query\":{{{}}}", members(n, "q", |at| format!("{{{{p{at}}}}}"))))),
    ("body_paths", |n| http(&format!("\"body\":{{{}}}", members(n, "b", |at| format!("@p{at}"))))),
    ("body_list", |n| http(&format!("\"body\":[{}]", each(n, ",", |at| format!("\"@p{at}\""))))),
    ("body_same_path", |n| http(&format!("\"body\":[{}]", each(n, ",", |_| "\"@p\"".to_owned())))),
    ("body_bad_templates", |n| http(&format!("\"body\":[{}]", each(n, ",", |_| "\"{{\"".to_owned())))),
    ("body_secrets", |n| http(&format!("\"body\":[{}]", each(n, ",", |at| format!("\"orgconfig:k{at}\""))))),
    ("body_text", |n| {
        let text = each(n, ",", |at| format!("{{{{p{at}}}}}"));
        http(&format!("\"body\":\"{text}\""))
    }),
    ("body_words", |n| http(&format!("\"body\":\"</x> {}\"", each(n, ", ", |_| "env:abc".to_owned())))),
    ("body_elements", |n| http(&format!("\"body\":\"{}\"", each(n, "", |at| format!("<env:a{at}></env:a{at}>"))))),
    ("unknown_paths", |n| {
        let properties = each(n, ",", |at| format!("\"parameter{at}\":{{}}"));
        let body = each(n, ",", |at| format!("\"@paramter{at}\""));
        http(&format!("\"body\":[{body}],\"parameters\":{{\"type\":\"object\",\"properties\":{{{properties}}}}}"))
    }),
    ("unused_parameters", |n| {
        let properties = each(n, ",", |at| format!("\"p{at}\":{{}}"));
        let required = each(n, ",", |at| format!("\"p{at}\""));
        http(&format!(
            "\"body\":{{}},\"parameters\":{{\"type\":\"object\",\"properties\":{{{properties}}},\"required\":[{required}]}}"
        ))
    }),
    ("odd_statuses", |n| http(&format!("\"ok_status\":[{}]", each(n, ",", |_| "1".to_owned())))),
    ("url_tags", |n| {
        action(&format!(
            "\"kind\":\"http\",\"http_method\":\"GET\",\"url\":\"https://h/{}\"",
            each(n, "/", |at| format!("{{{{a{at}}}}}"))
        ))
    }),
    ("url_marks", |n| {
        action(&format!("\"kind\":\"http\",\"http_method\":\"GET\",\"url\":\"https://h/{}\"", " @".repeat(n)))
    }),
    ("names_of_query", |n| db(&each(n, ",", |at| format!(":name{at}")))),
    ("same_name_of_query", |n| db(&each(n, ",", |_| ":name".to_owned()))),
    ("misspelt_names_of_query", |n| {
        let properties = each(n, ",", |at| format!("\"parameter{at}\":{{}}"));
        let query = each(n, ",", |at| format!(":paramter{at}"));
        action(&format!(
            "\"kind\":\"db\",\"datasource\":\"d\",\"query\":\"SELECT {query}\",\"parameters\":{{\"type\":\"object\",\"properties\":{{{properties}}}}}"
        ))
    }),
    ("quotes_of_query", |n| db(&each(n, "", |_| "'a' -- $x$ ".to_owned()))),
    ("open_quotes_of_query", |n| db(&each(n, "", |at| format!("$a{at}$ /")))),
    ("comments_of_query", |n| db(&each(n, "", |_| "/*/* a */ ".to_owned()))),
    ("params_of_query", |n| {
        action(&format!(
            "\"kind\":\"db\",\"datasource\":\"d\",\"query\":\"SELECT ?\",\"params\":[{}]",
            each(n, ",", |at| format!("\"@p{at}\""))
        ))
    }),
    ("args", |n| command(&format!("\"args\":[{}]", each(n, ",", |at| format!("\"{{{{a{at}}}}}\""))))),
    ("shell_args", |n| {
        action(&format!(
            "\"kind\":\"command\",\"program\":\"powershell\",\"args\":[\"-c\",{}]",
            each(n, ",", |at| format!("\"{{{{a{at}}}}}\""))
        ))
    }),
    ("secret_args", |n| command(&format!("\"args\":[{}]", each(n, ",", |at| format!("\"orgconfig:a{at}\""))))),
    ("env", |n| command(&format!("\"env\":{{{}}}", members(n, "V", |at| format!("{{{{a{at}}}}}"))))),
    ("plain_names_of_arguments", |n| {
        let names = each(n, ",", |at| format!("\"y{at}\":{{}}"));
        command(&format!(
            "\"args\":[{}],\"parameters\":{{\"type\":\"object\",\"properties\":{{{names}}}}}",
            each(n, ",", |at| format!("\"{{x{at}}}\""))
        ))
    }),
    ("plain_names_beside_values", |n| {
        command(&format!("\"args\":[{}]", each(n, ",", |at| format!("\"{{x{at}}} {{{{y{at}}}}}\""))))
    }),
    ("secrets_in_an_argument", |n| command(&format!("\"args\":[\"{}\"]", each(n, " ", |at| format!("$API_KEY{at}"))))),
    ("steering_env", |n| command(&format!("\"env\":{{{}}}", members(n, "LD_", |at| format!("{{{{a{at}}}}}"))))),
    ("questions", |n| {
        action(&format!("\"kind\":\"llm\",\"template\":\"{}\"", each(n, " ", |at| format!("{{{{a{at}}}}}"))))
    }),
    ("long_path", |n| http(&format!("\"body\":{{\"{}\":[{}]}}", "k".repeat(n), each(n, ",", |_| "\"@p\"".to_owned())))),
];
