//! Constructs of tools and steps.

use loopctl::diagnostic::Source;

use super::{Construct, each, get, main, step, whole, workflow};

/// Them.
pub const TOOLS: &[Construct] = &[
    ("tools", |n| {
        let tools = each(n, ",", |at| format!("{{\"type\":\"action\",\"name\":\"tool{at}\"}}"));
        let actions = each(n, ",", |at| get(&format!("tool{at}")));
        main(whole("Go.", &tools, &format!("\"actions\":[{actions}],")))
    }),
    ("unknown_tools", |n| {
        let tools = each(n, ",", |at| format!("{{\"type\":\"action\",\"name\":\"tol{at}\"}}"));
        let actions = each(n, ",", |at| get(&format!("tool{at}")));
        main(whole("Go.", &tools, &format!("\"actions\":[{actions}],")))
    }),
    ("long_unknown_tools", |n| {
        let name = |begin: &str, at: usize| format!("{begin}{}{at:07}", "a".repeat(50));
        let tools = each(n, ",", |at| format!("{{\"type\":\"action\",\"name\":\"{}\"}}", name("x", at)));
        let actions = each(n, ",", |at| get(&name("y", at)));
        main(whole("Go.", &tools, &format!("\"actions\":[{actions}],")))
    }),
    ("same_tool", |n| {
        let tools = each(n, ",", |_| "{\"type\":\"action\",\"name\":\"tool\"}".to_owned());
        main(whole("Go.", &tools, &format!("\"actions\":[{}],", get("tool"))))
    }),
    ("same_action", |n| {
        let actions = each(n, ",", |_| get("tool"));
        main(whole("Go.", "{\"type\":\"action\",\"name\":\"tool\"}", &format!("\"actions\":[{actions}],")))
    }),
    ("same_tools_and_actions", |n| {
        let tools = each(n, ",", |_| "{\"type\":\"action\",\"name\":\"tool\"}".to_owned());
        main(whole("Go.", &tools, &format!("\"actions\":[{}],", each(n, ",", |_| get("tool")))))
    }),
    ("required_tools", |n| {
        let tools = each(n, ",", |at| format!("{{\"type\":\"action\",\"name\":\"tool{at}\"}}"));
        let actions = each(n, ",", |at| get(&format!("tool{at}")));
        let names = each(n, ",", |at| format!("\"tool{at}\""));
        main(requiring(&names, &whole("Go.", &tools, &format!("\"actions\":[{actions}],"))))
    }),
    ("required_unknown_tools", |n| {
        let tools = each(n, ",", |at| format!("\"tool{at}\""));
        let names = each(n, ",", |at| format!("\"tol{at}\""));
        main(requiring(&names, &whole("Go.", &tools, "")))
    }),
    ("conditional_tools_with_faults", |n| {
        let tools = each(n, ",", |at| {
            let condition = "{\"equal\":[\"@input.x\",1]}";
            format!(
                "{{\"type\":\"action\",\"name\":\"tool{at}\",\"requires_approval\":{condition},\"timeout_ms\":\"x\"}}"
            )
        });
        let actions = each(n, ",", |at| get(&format!("tool{at}")));
        main(whole("Go.", &tools, &format!("\"actions\":[{actions}],")))
    }),
    ("variables_of_actions", |n| {
        let one = |at: usize| {
            format!(
                "{{\"action_name\":\"t{at}\",\"kind\":\"http\",\"http_method\":\"GET\",\"url\":\"https://h/{{x}}\"}}"
            )
        };
        main(format!("[{}]", each(n, ",", one)))
    }),
    ("legacy_tools", |n| main(whole("Go.", &each(n, ",", |at| format!("\"tool{at}\"")), ""))),
    ("case_twins", |n| {
        let tools =
            each(n, ",", |at| format!("\"{}\"", if at % 2 == 0 { format!("t{at}") } else { format!("T{}", at - 1) }));
        main(whole("Go.", &tools, ""))
    }),
    ("built_in_tools", |n| main(whole("Go.", &each(n, ",", |_| "\"__complete__\"".to_owned()), ""))),
    ("wide_names_of_tools", |n| {
        let tools = each(n, ",", |at| format!("\"é{at}\""));
        let actions = each(n, ",", |at| get(&format!("é{at}")));
        main(whole("Go.", &tools, &format!("\"actions\":[{actions}],")))
    }),
    ("unused_actions", |n| {
        main(whole("Go.", "", &format!("\"actions\":[{}],", each(n, ",", |at| get(&format!("tool{at}"))))))
    }),
    ("actions_document", |n| main(format!("[{}]", each(n, ",", |at| get(&format!("tool{at}")))))),
    ("same_actions_document", |n| main(format!("[{}]", each(n, ",", |_| get("tool"))))),
    ("unknown_fields_of_actions", |n| {
        main(format!(
            "[{}]",
            each(n, ",", |at| format!("{{\"action_name\":\"t{at}\",\"kind\":\"http\",\"ulr\":\"https://h\"}}"))
        ))
    }),
    ("actions_in_files", |n| {
        let tools = each(n, ",", |at| format!("{{\"type\":\"action\",\"name\":\"tool{at}\"}}"));
        let mut texts = main(whole("Go.", &tools, ""));
        let few = (n / 32).clamp(1, 2_000);
        texts.actions = (0..few)
            .map(|file| {
                let actions = each(32, ",", |at| get(&format!("tool{}", file * 32 + at)));
                Source::new(format!("actions/{file}.json"), format!("[{actions}]"))
            })
            .collect();
        texts
    }),
    ("tools_in_broken_file", |n| {
        let tools = each(n, ",", |at| format!("{{\"type\":\"action\",\"name\":\"tool{at}\"}}"));
        let mut texts = main(whole("Go.", &tools, ""));
        let actions = each(n, ",", |at| get(&format!("tol{at}")));
        texts.actions = vec![Source::new("actions/a.json", format!("[{actions}"))];
        texts
    }),
    ("loops", |n| {
        let few = n.min(2_000);
        let tools = each(n, ",", |at| format!("{{\"type\":\"loop\",\"name\":\"loop{at}\"}}"));
        let mut texts = main(whole("Go.", &tools, ""));
        texts.loops = (0..few)
            .map(|at| {
                let loop_ = whole("Go.", "", &format!("\"name\":\"loop{at}\","));
                Source::new(format!("loops/{at}.json"), loop_)
            })
            .collect();
        texts
    }),
    ("unknown_loops", |n| {
        let tools = each(n, ",", |at| format!("{{\"type\":\"loop\",\"name\":\"lop{at}\"}}"));
        let mut texts = main(whole("Go.", &tools, ""));
        let names = each(n, " ", |at| format!("\\\"lop{at}\\\""));
        texts.loops = vec![Source::new("loops/a.json", whole(&names, "", "\"name\":\"a\","))];
        texts
    }),
    ("workflows_as_tools", |n| {
        main(whole("Go.", &each(n, ",", |at| format!("{{\"type\":\"workflow\",\"name\":\"w{at}\"}}")), ""))
    }),
    ("remember", |n| {
        let remember = each(n, ",", |at| format!("\"k{at}\":\"no/{at}\""));
        let tool = format!("{{\"type\":\"action\",\"name\":\"tool\",\"remember\":{{{remember}}}}}");
        main(whole("Go.", &tool, &format!("\"actions\":[{}],", get("tool"))))
    }),
    ("sound_remember", |n| {
        let remember = each(n, ",", |at| format!("\"k{at}\":\"/a/{at}\""));
        let tool = format!("{{\"type\":\"action\",\"name\":\"tool\",\"remember\":{{{remember}}}}}");
        main(whole("Go.", &tool, &format!("\"actions\":[{}],", get("tool"))))
    }),
    ("steps", |n| main(workflow(&each(n, ",", |_| step("Go.", ""))))),
    ("steps_with_tools", |n| {
        let tools = each(10, ",", |at| format!("{{\"type\":\"action\",\"name\":\"tool{at}\"}}"));
        let mut texts = main(workflow(&each(n, ",", |_| step("Go.", &tools))));
        texts.actions =
            vec![Source::new("actions/a.json", format!("[{}]", each(10, ",", |at| get(&format!("tool{at}")))))];
        texts
    }),
    ("steps_with_large_tool", |n| {
        let mut texts = main(workflow(&each(n, ",", |_| step("Go.", "{\"type\":\"action\",\"name\":\"tool\"}"))));
        let body = each(n, ",", |at| format!("\"@p{at}\""));
        let action = format!(
            "[{{\"action_name\":\"tool\",\"kind\":\"http\",\"url\":\"https://h\",\"http_method\":\"POST\",\"body\":[{body}]}}]"
        );
        texts.actions = vec![Source::new("actions/a.json", action)];
        texts
    }),
    ("steps_with_unknown_names", |n| main(workflow(&each(n, ",", |at| step(&format!("{{{{nothing{at}}}}}"), ""))))),
    ("steps_that_write", |n| {
        let one = |at: usize| {
            format!(
                "{{\"type\":\"PbotForm\",\"outputKey\":\"key{at}\",\"properties\":{{\"expected_keys\":[],\"a\":\"@key{at}\",\"b\":\"{{{{ky{at}}}}}\"}}}}"
            )
        };
        main(workflow(&each(n, ",", one)))
    }),
    ("names_of_a_form", |n| {
        let keys = each(n, ",", |at| format!("\"key{at}\""));
        let texts = each(n, ",", |at| format!("\"@ky{at}\""));
        main(workflow(&format!(
            "{{\"type\":\"PbotForm\",\"properties\":{{\"expected_keys\":[{keys}]}}}},{{\"type\":\"PbotForm\",\"properties\":{{\"expected_keys\":[],\"a\":[{texts}]}}}}"
        )))
    }),
    ("names_of_forms", |n| {
        let keys = each(n, ",", |at| format!("\"key{at}\""));
        let form = format!("{{\"type\":\"PbotForm\",\"properties\":{{\"expected_keys\":[{keys}]}}}}");
        let rest = each(n.min(900), ",", |_| {
            "{\"type\":\"PbotForm\",\"properties\":{\"expected_keys\":[]},\"onFalse\":{\"type\":\"PbotForm\",\"properties\":{\"expected_keys\":[]}}}".to_owned()
        });
        main(workflow(&format!("{form},{rest}")))
    }),
    ("unknown_steps", |n| {
        main(workflow(&each(n, ",", |at| format!("{{\"type\":\"PbotFrm{at}\",\"properties\":{{}}}}"))))
    }),
    ("texts_of_a_step", |n| {
        let texts = each(n, ",", |at| format!("\"@nothing{at}\""));
        main(workflow(&format!("{{\"type\":\"PbotForm\",\"properties\":{{\"expected_keys\":[],\"a\":[{texts}]}}}}")))
    }),
    ("foreach_steps", |n| {
        main(format!(
            "{{\"type\":\"loop\",\"name\":\"a\",\"properties\":{{\"mode\":\"foreach\",\"items_path\":\"@input.a\",\"actions_to_execute\":[{}]}}}}",
            each(n, ",", |_| step("Go.", ""))
        ))
    }),
    ("conditions", |n| {
        let all = each(n, ",", |at| format!("{{\"eq\":[\"@input.a{at}\",1]}}"));
        main(whole("Go.", "", &format!("\"filter\":{{\"condition\":{{\"and\":[{all}]}}}},")))
    }),
    ("keys_of_a_condition", |n| {
        main(whole(
            "Go.",
            "",
            &format!("\"filter\":{{\"condition\":{{{}}}}},", each(n, ",", |at| format!("\"x{at}\":[]"))),
        ))
    }),
    ("conditions_in_conditions", |n| {
        main(whole("Go.", "", &format!("\"filter\":{{\"condition\":{}true{}}},", "{\"not\":".repeat(n), "}".repeat(n))))
    }),
];

/// A loop that must call these tools before its answer.
fn requiring(names: &str, document: &str) -> String {
    document.replacen("\"tools\"", &format!("\"require_tool_before_answer\":[{names}],\"tools\""), 1)
}
