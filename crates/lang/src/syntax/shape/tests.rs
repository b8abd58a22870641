//! Each fault of shape: reported once, at its exact place, with a fix.
use crate::diagnostic::Source;
use crate::syntax::document::read;

/// Every fault as `line:column code message`.
fn faults(text: &str) -> Vec<String> {
    let document = read(&Source::new("case.json", text));
    let show = |fault: &crate::diagnostic::Diagnostic| {
        format!("{}:{} {} {}", fault.place.line, fault.place.column, fault.code, fault.message)
    };
    document.faults.iter().map(show).collect()
}

/// A loop with these further properties, which begin at line 4.
fn with(properties: &str) -> String {
    format!(
        "{{\"type\": \"loop\", \"properties\": {{\"mode\": \"react\",\n\"objective\": \"x\",\n\"tools\": []\n{properties}}}}}"
    )
}

fn one(properties: &str, fault: &str, suggestion: Option<&str>) {
    let text = with(properties);
    let document = read(&Source::new("case.json", text.as_str()));
    assert_eq!(faults(&text), [fault], "in {properties}");
    let given = document.faults[0].suggestion.as_ref().map(|suggestion| suggestion.replacement.as_str());
    assert_eq!(given, suggestion, "{:?}", document.faults[0]);
    if let Some(suggestion) = &document.faults[0].suggestion {
        let mut repaired = text;
        repaired.replace_range(suggestion.start..suggestion.end, &suggestion.replacement);
        assert!(faults(&repaired).is_empty(), "{repaired}: {:?}", faults(&repaired));
    }
}

#[test]
fn a_sound_loop_has_no_fault() {
    assert!(faults(&with(", \"max_iterations\": 1e1, \"temperature\": 0.70")).is_empty());
}

#[test]
fn a_field_that_is_not_known_is_reported_at_its_key_with_the_nearest_name() {
    one(
        ", \"max_iteration\": 3",
        "4:3 L010 the field `max_iteration` is not known in `properties`",
        Some("\"max_iterations\""),
    );
    one(
        ", \"include_trace\": true",
        "4:3 L010 the field `include_trace` is not known in `properties`",
        Some("\"include_reasoning_trace\""),
    );
    one(", \"colour\": 3", "4:3 L010 the field `colour` is not known in `properties`", None);
}

#[test]
fn a_field_in_the_wrong_place_is_reported_where_it_belongs() {
    let text = "{\"type\": \"loop\",\n \"on_stuck\": {},\n \"properties\": {\"mode\": \"react\", \"objective\": \"x\", \"tools\": []}}";
    let document = read(&Source::new("case.json", text));
    assert_eq!(faults(text), ["2:2 L010 the field `on_stuck` is not known in the document"]);
    assert_eq!(document.faults[0].help.as_deref(), Some("`on_stuck` belongs in `properties`"));
    let text = with(", \"hint\": \"x\"");
    let document = read(&Source::new("case.json", text.as_str()));
    assert_eq!(document.faults[0].help.as_deref(), Some("`hint` belongs in `properties.on_stuck`"));
    // What asks in other languages, and is the name of something else elsewhere.
    for name in ["title", "comment"] {
        let form = format!("{{\"type\": \"PbotForm\", \"properties\": {{\"{name}\": \"x\", \"fields\": []}}}}");
        let text = format!("{{\"name\": \"w\", \"definition\": {{\"actions\": [{form}]}}}}");
        let document = read(&Source::new("case.json", text));
        let help = document.faults.iter().find_map(|fault| fault.help.as_deref());
        assert_eq!(
            help,
            Some(
                "a form with `fields` says what it asks for in its `question`; one with `expected_keys` shows these names alone"
            ),
            "{:?}",
            document.faults
        );
    }
}

#[test]
fn a_loop_without_its_properties_object_is_reported_field_by_field_and_not_twice() {
    let text = "{\"type\": \"loop\", \"mode\": \"react\", \"properties\": {\"objective\": \"x\", \"tools\": []}}";
    assert_eq!(faults(text), ["1:18 L010 the field `mode` is not known in the document"]);
}

#[test]
fn a_missing_field_is_reported_at_the_key_of_its_object() {
    let text = "{\"type\": \"loop\",\n \"properties\": {\"mode\": \"react\", \"tools\": []}}";
    assert_eq!(faults(text), ["2:2 L011 `objective` is missing in `properties`"]);
    assert_eq!(faults("{\"type\": \"loop\"}"), ["1:1 L011 `properties` is missing in the document"]);
    let text = "{\"type\": \"loop\",\n \"properties\": {\"objective\": \"x\", \"tools\": []}}";
    assert_eq!(faults(text), ["2:2 L011 `mode` is missing in `properties`: it is `react` or `foreach`"]);
}

#[test]
fn a_misspelled_field_is_not_reported_to_be_missing_too() {
    let text = "{\"type\": \"loop\",\n \"properties\": {\"mode\": \"react\", \"objctive\": \"x\", \"tools\": []}}";
    assert_eq!(faults(text), ["2:34 L010 the field `objctive` is not known in `properties`"]);
}

#[test]
fn wrong_types_are_reported_at_the_value_with_what_was_meant() {
    one(
        ", \"max_iterations\": \"10\"",
        "4:21 L013 `max_iterations` must be a whole number; the text \"10\" was given",
        Some("10"),
    );
    one(", \"max_iterations\": 1.5", "4:21 L013 `max_iterations` must be a whole number; 1.5 was given", None);
    one(", \"model\": 4", "4:12 L013 `model` must be a text; 4 was given", Some("\"4\""));
    one(
        ", \"include_reasoning_trace\": \"true\"",
        "4:30 L013 `include_reasoning_trace` must be true or false; the text \"true\" was given",
        Some("true"),
    );
    one(", \"on_stuck\": 3", "4:15 L013 `on_stuck` must be an object; 3 was given", None);
    one(
        ", \"fallback_models\": \"m\"",
        "4:22 L013 `fallback_models` must be an array; the text \"m\" was given",
        Some("[\"m\"]"),
    );
    one(", \"timeout_ms\": null", "4:17 L013 `timeout_ms` must be a whole number; null was given", None);
}

#[test]
fn wrong_words_are_reported_with_those_that_are_known() {
    one(
        ", \"on_stuck\": {\"action\": \"escalat\"}",
        "4:26 L012 `action` must be `fail`, `escalate` or `retry_with_hint`; the text \"escalat\" was given",
        Some("\"escalate\""),
    );
    one(
        ", \"dialect\": \"xml\"",
        "4:14 L012 `dialect` must be `json`, `tool_calls`, `tags` or `final_answer`; the text \"xml\" was given",
        Some("\"tags\""),
    );
    one(
        ", \"dialect\": \"esperanto\"",
        "4:14 L012 `dialect` must be `json`, `tool_calls`, `tags` or `final_answer`; the text \"esperanto\" was given",
        None,
    );
}

#[cfg(feature = "exact-numbers")]
#[test]
fn numbers_out_of_bounds_are_reported_with_the_bounds() {
    one(", \"max_iterations\": 0", "4:21 L014 `max_iterations` must be from 1 to 1000; 0 was given", None);
    one(", \"max_iterations\": 1001", "4:21 L014 `max_iterations` must be from 1 to 1000; 1001 was given", None);
    one(", \"temperature\": 2.01", "4:18 L014 `temperature` must be from 0 to 2; 2.01 was given", None);
    one(
        ", \"max_tokens\": 4294967296",
        "4:17 L014 `max_tokens` must be at most 4294967295; 4294967296 was given",
        None,
    );
    one(", \"temperature\": 1e999", "4:18 L014 `temperature` must be from 0 to 2; 1e999 was given", None);
}

#[test]
fn an_empty_objective_is_reported() {
    let text = "{\"type\": \"loop\", \"properties\": {\"mode\": \"react\",\n\"objective\": \"\", \"tools\": []}}";
    assert_eq!(faults(text), ["2:14 L015 `objective` must not be empty"]);
}

#[test]
fn a_tool_is_judged_by_its_type_and_its_fault_reported_once() {
    let tool = |tool: &str| {
        let text = format!(
            "{{\"type\": \"loop\", \"properties\": {{\"mode\": \"react\", \"objective\": \"x\", \"tools\": [\n{tool}]}}}}"
        );
        faults(&text)
    };
    assert_eq!(tool("{\"type\": \"action\"}"), ["2:1 L011 `name` is missing in `tools[0]`"]);
    assert_eq!(
        tool("{\"type\": \"action\", \"nmae\": \"x\"}"),
        ["2:20 L010 the field `nmae` is not known in `tools[0]`"]
    );
    assert_eq!(
        tool("{\"type\": \"action\", \"action_name\": \"x\"}"),
        ["2:20 L010 the field `action_name` is not known in `tools[0]`"]
    );
    assert_eq!(
        tool("{\"type\": \"actoin\", \"name\": \"x\"}"),
        ["2:10 L012 `type` must be `action`, `workflow`, `loop` or `mcp`; the text \"actoin\" was given"]
    );
    assert_eq!(
        tool("{\"name\": \"x\"}"),
        ["2:1 L011 `type` is missing in `tools[0]`: it is `action`, `workflow`, `loop` or `mcp`"]
    );
    assert_eq!(tool("7"), ["2:1 L013 `tools[0]` must be an object or a text; 7 was given"]);
    assert!(tool("\"old_form\"").is_empty());
}

#[test]
fn an_action_is_judged_by_its_kind() {
    let text = "[{\"action_name\": \"a\", \"kind\": \"http\", \"url\": \"http://x\", \"http_method\": \"get\"},\n {\"action_name\": \"b\", \"kind\": \"llm\"}]";
    assert_eq!(
        faults(text),
        [
            "1:73 L012 `http_method` must be `GET`, `HEAD`, `POST`, `PUT`, `PATCH` or `DELETE`; the text \"get\" was given",
            "2:2 L011 `template` is missing in entry 1 of the document",
        ]
    );
    let table = "{\"action_name\": \"m\", \"kind\": \"custom-table\", \"tabels\": [\"x\"]}";
    assert!(faults(table)[0].contains("L010 the field `tabels`"), "{:?}", faults(table));
}

#[test]
fn config_of_an_agent_request_is_judged_as_loop_properties_in_their_place() {
    let text = "{\"objective\": \"x\", \"tools\": [],\n \"config\": {\"max_iterations\": 0,\n \"on_stuck\": {\"iteration\": 2}, \"mode\": \"foreach\"}}";
    assert_eq!(
        faults(text),
        [
            "2:31 L014 `max_iterations` must be from 1 to 1000; 0 was given",
            "3:15 L010 the field `iteration` is not known in `on_stuck`",
            "3:40 L012 `mode` must be `react`; the text \"foreach\" was given",
        ]
    );
}

#[test]
fn all_faults_of_a_document_come_in_one_go_in_the_order_of_the_text() {
    let text = "{\"type\": \"loop\",\n \"properties\": {\"mode\": \"react\", \"objective\": 1,\n \"max_iterations\": \"ten\",},\n \"x\": 1}";
    let codes: Vec<_> =
        faults(text).iter().map(|fault| fault.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(codes, ["2:47 L013", "3:20 L013", "3:25 L006", "4:2 L010"]);
}

#[test]
fn a_document_of_no_known_kind_is_reported_what_was_looked_for() {
    let shown = faults("{\"foo\": 1}");
    assert!(shown.len() == 1 && shown[0].starts_with("1:1 L016 nothing at the top"), "{shown:?}");
    assert_eq!(faults("7").len(), 1);
    assert_eq!(faults("{\"type\": \"PbotForm\", \"properties\": {}}").len(), 1);
    assert_eq!(
        faults("{\"type\": \"lop\", \"properties\": {\"mode\": \"react\", \"objective\": \"x\", \"tools\": []}}").len(),
        1
    );
}

#[test]
fn many_faults_are_bounded_in_number_and_time() {
    let text = format!("{{\"type\": \"loop\", {} \"properties\": {{}}}}", "\"x\": 1,".repeat(100_000));
    assert!(faults(&text).len() <= 200);
}
