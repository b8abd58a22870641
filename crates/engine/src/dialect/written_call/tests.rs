//! Texts that write a call, and texts that name a tool or a format.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CallableTool, CallableTools, find};

fn found(text: &str) -> Option<String> {
    let parameters: Value = json!({ "type": "object", "properties": { "order_id": {}, "x": {} } });
    let tool = |name| CallableTool { name, called: name, parameters: &parameters };
    find(text, &CallableTools(vec![tool("lookup"), tool("search"), tool("__complete__")]))
}

/// A call of `lookup` in many formats.
const FORMS: &[&str] = &[
    "<tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"order_id\": \"A-1\"}}\n</tool_call>",
    "<tool_call>\n```json\n{\"name\": \"lookup\", \"arguments\": {}}\n```\n</tool_call>",
    "<tool_call>\n<function=lookup>\n<parameter=order_id>\nA-1\n</parameter>\n</function>\n</tool_call>",
    "<function=lookup>{\"order_id\": \"A-1\"}</function>",
    "<tool_call>lookup\n<arg_key>order_id</arg_key>\n<arg_value>A-1</arg_value>\n</tool_call>",
    "<tool_call>",
    "{\"name\": \"lookup_order\", \"arguments\": {\"order_id\": \"A-1\"}}\n</tool_call>",
    "<tool_calls>\n{\"name\": \"lookup\", \"arguments\": {}}\n</tool_calls>",
    "<TOOLCALL>[{\"name\": \"lookup\", \"arguments\": {}}]</TOOLCALL>",
    "<minimax:tool_call>\n<invoke name=\"lookup\">\n<parameter name=\"order_id\">A-1</parameter>\n</invoke>\n</minimax:tool_call>",
    "<seed:tool_call><function=lookup><parameter=order_id>A-1</parameter></function></seed:tool_call>",
    "<function_calls>\n<invoke name=\"lookup\">\n</invoke>\n</function_calls>",
    "<function_calls>\nlookup(order_id=\"A-1\")\n</function_calls>",
    "<function_call>{\"name\": \"lookup\", \"arguments\": \"{}\"}</function_call>",
    "<functioncall> {\"name\": \"lookup\", \"arguments\": {}}",
    "<start_function_call>call:lookup{order_id:<escape>A-1<escape>}<end_function_call>",
    "<|tool_call>call:lookup{order_id:<|\"|>A-1<|\"|>}<tool_call|>",
    "<xai:function_call name=\"lookup\">\n<parameter name=\"order_id\">A-1</parameter>\n</xai:function_call>",
    "<tool name=\"lookup\"><order_id>A-1</order_id></tool>",
    "<use_mcp_tool>\n<server_name>orders</server_name>\n<tool_name>lookup</tool_name>\n</use_mcp_tool>",
    "<tool_use>\n<name>lookup</name>\n<arguments>{}</arguments>\n</tool_use>",
    "<lookup>\n<order_id>A-1</order_id>\n</lookup>",
    "<lookup order_id=\"A-1\"/>",
    "<|tool_call|>[{\"name\": \"lookup\", \"arguments\": {}}]<|/tool_call|>",
    "<|tool_call_start|>[lookup(order_id=\"A-1\")]<|tool_call_end|>",
    "<|python_tag|>lookup.call(order_id=\"A-1\")",
    "<|action_start|><|plugin|>\n{\"name\": \"lookup\", \"parameters\": {}}<|action_end|>",
    "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"lookup\", \"parameters\": {}}]<|END_ACTION|>",
    "<|tools_prefix|>[{\"lookup\": {\"order_id\": \"A-1\"}}]<|tools_suffix|>",
    "[TOOL_CALLS] [{\"name\": \"lookup\", \"arguments\": {\"order_id\": \"A-1\"}}]",
    "[TOOL_CALLS]lookup[ARGS]{\"order_id\": \"A-1\"}",
    "[TOOL_REQUEST]\n{\"name\": \"lookup\", \"arguments\": {}}\n[END_TOOL_REQUEST]",
    "[TOOL_CALL]\n{tool => \"lookup\", args => {\n  --order_id \"A-1\"\n}}\n[/TOOL_CALL]",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>lookup\n```json\n{\"order_id\": \"A-1\"}\n```<｜tool▁call▁end｜>",
    "<｜tool▁call▁begin｜>lookup<｜tool▁sep｜>{\"order_id\": \"A-1\"}",
    "<｜tool calls begin｜>lookup",
    "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"lookup\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "<|DSML|invoke name=\"lookup\">",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.lookup:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "functions.lookup:0 {\"order_id\": \"A-1\"}",
    "<|channel|>commentary to=functions.lookup <|constrain|>json<|message|>{\"order_id\": \"A-1\"}<|call|>",
    "<|start|>assistant<|channel|>commentary to=lookup<|message|>{}",
    "assistantcommentary to=functions.lookup json{\"order_id\": \"A-1\"}",
    "{\"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"lookup\", \"arguments\": \"{}\"}}]}",
    "{\"function_call\": {\"name\": \"lookup\", \"arguments\": \"{}\"}}",
    "{\"functionCall\": {\"name\": \"lookup\", \"args\": {}}}",
    "{\"tool_uses\": [{\"recipient_name\": \"functions.lookup\", \"parameters\": {}}]}",
    "{\"type\": \"function\", \"name\": \"lookup\", \"parameters\": {}}",
    "{\"tool\": \"lookup\", \"tool_input\": {\"order_id\": \"A-1\"}}",
    "{\"thought\": \"Now.\", \"action\": \"lookup\", \"action_input\": {}}",
    "{\"lookup\": {\"order_id\": \"A-1\"}}",
    "[{\"name\": \"lookup\", \"arguments\": {}}, {\"name\": \"lookup\", \"arguments\": {}}]",
    "{\"name\": \"lookup\"}",
    "{\"name\": \"lookup\", \"arguments\": {\"order_id\": \"A-1\"}",
    "functools[{\"name\": \"lookup\", \"arguments\": {}}]",
    ">>>lookup\n{\"order_id\": \"A-1\"}",
    "lookup\n{\"order_id\": \"A-1\"}",
    "```json\n{\"name\": \"lookup\", \"arguments\": {\"order_id\": \"A-1\"}}\n```",
    "```tool_code\nprint(lookup(order_id=\"A-1\"))\n```",
    "Action: lookup\nAction Input: {\"order_id\": \"A-1\"}",
    "**Action:** lookup\n**Action Input:** A-1",
    "Thought: now.\nAction: lookup",
    "Action: `lookup`\nAction Input: {}",
    "Action: lookup[A-1]",
    "Action: lookup(order_id=\"A-1\")",
    "Action:\n```json\n[{\"tool_name\": \"lookup\", \"parameters\": {}}]\n```",
    "Tool: lookup\nArguments: {\"order_id\": \"A-1\"}",
    "[Tool call: lookup({\"order_id\": \"A-1\"})]",
    "lookup(order_id=\"A-1\")",
    "[lookup(order_id=\"A-1\"), lookup(order_id=\"A-2\")]",
    "result = await lookup(order_id=\"A-1\")",
    "default_api.lookup(order_id='A-1')",
    "lookup(\n  order_id=\"A-1\"\n)",
    "lookup()",
];

#[test]
fn a_call_in_the_words_of_any_format_is_found() {
    let prose = "I will look it up now.\n";
    for form in FORMS {
        assert!(found(form).is_some(), "{form}");
        assert!(found(&format!("{prose}{form}")).is_some(), "behind prose: {form}");
        assert!(found(&format!("  \n{form}\n")).is_some(), "{form}");
    }
    assert!(found("```python\nlookup(order_id=\"A-1\")\n```").is_some());
    assert!(found("`lookup(order_id=\"A-1\")`").is_some());
}

#[test]
fn a_text_that_names_a_tool_or_a_format_is_none() {
    for text in [
        "The order is on its way.",
        "I used lookup and search; lookup() gave nothing, so the order A-1 is lost.",
        "The tool lookup takes an order_id: lookup(order_id) returns its state.",
        "The tools are:\n- lookup(order_id)\n- search(x: string)\nlookup(order_id)",
        "Hermes models write a `<tool_call>` tag, and Mistral's write `[TOOL_CALLS]`.",
        "Hermes models write <tool_call> before a call and </tool_call> behind it.",
        "A call looks like this:\n```\n<tool_call>{\"name\": \"lookup\", \"arguments\": {}}</tool_call>\n```\nThat is all.",
        "Write this:\n```json\n{\"name\": \"lookup\", \"arguments\": {}}\n```\nand send it.",
        "Use it so:\n```python\nlookup(order_id=\"A-1\")\n```",
        "See [Tool calls](https://example.com) and [tool_calls](https://example.com/x).",
        "{\"name\": \"nightly-report\", \"parameters\": {\"region\": \"EU\"}}",
        "{\"name\": \"Ann\", \"arguments\": \"none\"}",
        "{\"tool_calls\": [{\"function\": {\"name\": \"other\", \"arguments\": \"{}\"}}]}",
        "{\"text\": \"<tool_call>{}</tool_call>\", \"tool_calls\": 3}",
        "{\"name\": \"lookup\", \"description\": \"Looks.\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}",
        "{\"name\": \"lookup\", \"count\": 3}",
        "{\"lookup\": {\"state\": \"sent\"}}",
        "{\"lookup\": 3, \"search\": 4}",
        "[\"lookup\", \"search\"]",
        "Action: call the customer.\nOwner: Ann",
        "Cause: disk full\nAction: lookup\nOwner: Ann",
        "Name: Ann\nInput: 3 files",
        "search (7 results) was enough (see 3)",
        "lookup: 3 calls\nsearch: 2 calls",
        "if a < b and c > d then [x] and {y}",
        "<table><tr><td>A-1</td></tr></table>",
        "<search>\n<title>Found</title>\n</search>",
        "It costs 5 `coins and <b>more</b>",
        "",
        "`",
        "```",
    ] {
        assert_eq!(found(text), None, "{text}");
    }
}

#[test]
fn a_hostile_text_takes_time_in_proportion_to_its_length() {
    for piece in [
        "<tool_call> is ",
        "<|",
        "[",
        "{",
        "{\"a\":",
        "`",
        "``a`",
        "```",
        "<tool_call",
        "lookup(",
        "Action: ",
        "\n{",
        "```a`",
    ] {
        assert_eq!(found(&format!("- {} -", piece.repeat(1 << 17))), None, "{piece}");
    }
    for (piece, count) in [("` ", 1 << 20), ("<tool_call is ", 1 << 18)] {
        assert_eq!(found(&format!("- {} -", piece.repeat(count))), None, "{piece}");
    }
    // Quadratic work on a megabyte would take minutes.
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        any in "(<|>|\\||｜|\\[|\\]|\\{|\\}|`|\n|:|\"|=|\\(|\\)|/|tool|_call|▁|lookup|order_id|Action|Input|name|é| ){0,24}",
    ) {
        drop(found(&any));
    }
}
