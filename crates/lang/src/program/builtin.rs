//! The built-in tools: their names, their descriptions for the model, and their schemas.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::schema::Schema;
use crate::language::action::OnUncertain;
use crate::language::react::BuiltinTool;
use crate::program::{Builtin, Tool, ToolKind};

/// The name of the tool that ends a run.
pub const COMPLETE: &str = "__complete__";
/// The name of the tool that asks a human.
pub const PAUSE_FOR_HUMAN: &str = "__pause_for_human__";
/// The name of the tool that writes to the memory of a session.
pub const STORE_MEMORY: &str = "__store_memory__";
/// The name of the tool that reads the memory of a session.
pub const RETRIEVE_MEMORY: &str = "__retrieve_memory__";
/// The name of the tool that reports progress.
pub const LOG_PROGRESS: &str = "__log_progress__";
/// The name of the old tool that calls a workflow.
pub const RUN_WORKFLOW: &str = "__run_workflow__";
/// The name of the tool that finds tools which are not offered yet.
pub const FIND_TOOL: &str = "__find_tool__";

/// The names of the built-in tools, in the order in which the model reads them.
pub const NAMES: [&str; 7] =
    [COMPLETE, PAUSE_FOR_HUMAN, STORE_MEMORY, RETRIEVE_MEMORY, LOG_PROGRESS, RUN_WORKFLOW, FIND_TOOL];

const ALL: [Builtin; 7] = [
    Builtin::Complete,
    Builtin::PauseForHuman,
    Builtin::StoreMemory,
    Builtin::RetrieveMemory,
    Builtin::LogProgress,
    Builtin::RunWorkflow,
    Builtin::FindTool,
];

/// The name of a built-in tool.
pub fn name(builtin: Builtin) -> &'static str {
    match builtin {
        Builtin::Complete => COMPLETE,
        Builtin::PauseForHuman => PAUSE_FOR_HUMAN,
        Builtin::StoreMemory => STORE_MEMORY,
        Builtin::RetrieveMemory => RETRIEVE_MEMORY,
        Builtin::LogProgress => LOG_PROGRESS,
        Builtin::RunWorkflow => RUN_WORKFLOW,
        Builtin::FindTool => FIND_TOOL,
    }
}

/// The built-in tool of this exact name.
pub fn named(text: &str) -> Option<Builtin> {
    ALL.into_iter().find(|builtin| name(*builtin) == text)
}

/// Whether it is offered to the model. The old way to call a workflow is understood, but not offered.
pub fn is_offered(builtin: Builtin) -> bool {
    builtin != Builtin::RunWorkflow
}

/// The built-in tools of a loop that wants these, beside the one that ends it; of one that says nothing, all.
pub fn of(wanted: Option<&[BuiltinTool]>) -> Vec<Tool> {
    let is_wanted = |builtin: &Builtin| {
        // Only a loop that offers some of its tools has it.
        if *builtin == Builtin::FindTool {
            return false;
        }
        let Some(wanted) = wanted else { return true };
        *builtin == Builtin::Complete || wanted.iter().any(|wanted| meant(*wanted) == *builtin)
    };
    ALL.into_iter().filter(is_wanted).map(tool).collect()
}

/// The tool that finds others, of a loop that declares this number of them.
pub fn find_tool(declared: usize) -> Tool {
    let description = format!(
        "Finds tools that are not listed here: there are {declared} in all. Say in words what the tool is to do. The tools \
         that it finds can be called from then on."
    );
    Tool { description, ..tool(Builtin::FindTool) }
}

fn meant(written: BuiltinTool) -> Builtin {
    match written {
        BuiltinTool::Complete => Builtin::Complete,
        BuiltinTool::PauseForHuman => Builtin::PauseForHuman,
        BuiltinTool::StoreMemory => Builtin::StoreMemory,
        BuiltinTool::RetrieveMemory => Builtin::RetrieveMemory,
        BuiltinTool::LogProgress => Builtin::LogProgress,
    }
}

/// What a built-in tool takes, in short: a prompt with the schemas of all of them is twice as long.
pub fn input_in_short(builtin: Builtin) -> &'static str {
    match builtin {
        Builtin::Complete => r#"{"answer": any JSON, "confidence"?: 0 to 1, "summary"?: string}"#,
        Builtin::PauseForHuman => r#"{"question": string, "context"?: string, "options"?: [string]}"#,
        Builtin::StoreMemory => r#"{"key": string, "value": any JSON}"#,
        Builtin::RetrieveMemory => r#"{"key"?: string}"#,
        Builtin::LogProgress => r#"{"message": string, "milestone"?: string, "percent"?: 0 to 100}"#,
        Builtin::RunWorkflow => r#"{"workflow_id"?: string, "workflow_name"?: string, "input"?: object}"#,
        Builtin::FindTool => r#"{"query": string}"#,
    }
}

impl Tool {
    /// Whether it is offered to the model.
    pub fn is_offered(&self) -> bool {
        !matches!(self.kind, ToolKind::Builtin(builtin) if !is_offered(builtin))
    }
}

/// The schemas of their inputs, built once.
static SCHEMAS: LazyLock<Vec<(Builtin, Schema)>> = LazyLock::new(|| {
    let schema = |builtin| Schema::compile(parameters(builtin)).unwrap_or_else(|_| Schema::any());
    ALL.into_iter().map(|builtin| (builtin, schema(builtin))).collect()
});

fn tool(builtin: Builtin) -> Tool {
    Tool {
        name: name(builtin).to_owned(),
        description: description(builtin).to_owned(),
        parameters: SCHEMAS
            .iter()
            .find(|(of, _)| *of == builtin)
            .map_or_else(Schema::any, |(_, schema)| schema.clone()),
        kind: ToolKind::Builtin(builtin),
        approval: Default::default(),
        max_calls: None,
        // They run inside of the engine and take no time.
        timeout_ms: 30_000,
        polling: false,
        remember: BTreeMap::new(),
        idempotent: true,
        read_only: true,
        on_uncertain: Some(OnUncertain::Retry),
        retry: None,
    }
}

fn description(builtin: Builtin) -> &'static str {
    match builtin {
        Builtin::Complete => {
            "Ends the task with its answer. Call it when the objective is reached, or when you know that it can't be."
        }
        Builtin::PauseForHuman => {
            "Asks a human and waits for the answer. Use it for a decision or a fact that no tool can give."
        }
        Builtin::StoreMemory => "Keeps a value under a key, to be read again later.",
        Builtin::RetrieveMemory => "Gives the value that was kept under a key; without a key, lists all keys.",
        Builtin::LogProgress => "Tells the people who watch how far the work is. It changes nothing.",
        Builtin::RunWorkflow => "Runs a workflow by its id or name.",
        Builtin::FindTool => "Finds tools that are not listed here, by words of what they do.",
    }
}

fn parameters(builtin: Builtin) -> Value {
    let (properties, required) = match builtin {
        Builtin::Complete => (
            json!({
                "answer": {"description": "The answer: any JSON."},
                "confidence": {
                    "type": "number", "minimum": 0, "maximum": 1, "default": 1.0,
                    "description": "How sure you are, 0 to 1."
                },
                "summary": {"type": "string", "description": "How the answer was found, in short."},
            }),
            json!(["answer"]),
        ),
        Builtin::PauseForHuman => (
            json!({
                "question": {"type": "string", "minLength": 1, "description": "What the human is asked."},
                "context": {"type": "string", "description": "What the human must know to answer."},
                "options": {
                    "type": "array", "items": {"type": "string"},
                    "description": "The answers that the human can choose from."
                },
            }),
            json!(["question"]),
        ),
        Builtin::StoreMemory => (
            json!({
                "key": {"type": "string", "minLength": 1, "description": "The name to find it by."},
                "value": {"description": "What is kept: any JSON."},
            }),
            json!(["key", "value"]),
        ),
        Builtin::RetrieveMemory => {
            (json!({"key": {"type": "string", "description": "The name that it was kept under."}}), json!([]))
        }
        Builtin::LogProgress => (
            json!({
                "message": {"type": "string", "description": "What was done, or is being done."},
                "milestone": {"type": "string", "description": "The name of the stage that was reached."},
                "percent": {"type": "number", "minimum": 0, "maximum": 100, "description": "How much of the work is done."},
            }),
            json!(["message"]),
        ),
        Builtin::RunWorkflow => (
            json!({
                "workflow_id": {"type": "string", "description": "The workflow's id."},
                "workflow_name": {"type": "string", "description": "The workflow's name."},
                "input": {"type": "object", "description": "What the workflow takes."},
            }),
            json!([]),
        ),
        Builtin::FindTool => (
            json!({
                "query": {"type": "string", "minLength": 1, "description": "What the tool is to do, or its name."},
            }),
            json!(["query"]),
        ),
    };
    let mut schema =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    if let (Builtin::RunWorkflow, Some(members)) = (builtin, schema.as_object_mut()) {
        members.insert("anyOf".to_owned(), json!([{"required": ["workflow_id"]}, {"required": ["workflow_name"]}]));
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_names_are_those_of_the_tools_in_their_order() {
        let tools: Vec<Tool> = of(None).into_iter().chain([find_tool(50)]).collect();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, NAMES);
        assert!(NAMES.iter().zip(ALL).all(|(text, builtin)| named(text) == Some(builtin) && name(builtin) == *text));
        assert_eq!(named("__Complete__"), None);
    }

    #[test]
    fn all_but_the_old_way_to_call_a_workflow_are_offered() {
        let offered: Vec<String> = of(None).into_iter().filter(Tool::is_offered).map(|tool| tool.name).collect();
        assert_eq!(offered, NAMES[..5]);
    }

    #[test]
    fn each_takes_what_it_should_and_nothing_else() {
        let tools: Vec<Tool> = of(None).into_iter().chain([find_tool(50)]).collect();
        let fits = |name: &str, input: serde_json::Value| {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            tool.parameters.faults(&input).is_empty()
        };
        for (name, good, bad) in [
            ("__complete__", json!({"answer": null}), json!({})),
            (
                "__complete__",
                json!({"answer": [1], "confidence": 1.0, "summary": "s"}),
                json!({"answer": 1, "confidence": 1.1}),
            ),
            ("__complete__", json!({"answer": "a", "confidence": 0}), json!({"answer": 1, "sumary": "s"})),
            (
                "__pause_for_human__",
                json!({"question": "?", "context": "c", "options": ["a"]}),
                json!({"question": "?", "options": [1]}),
            ),
            ("__pause_for_human__", json!({"question": "?"}), json!({"question": ""})),
            ("__store_memory__", json!({"key": "k", "value": null}), json!({"key": "k"})),
            ("__retrieve_memory__", json!({}), json!({"key": 1})),
            (
                "__log_progress__",
                json!({"message": "m", "milestone": "x", "percent": 100}),
                json!({"message": "m", "percent": 101}),
            ),
            ("__run_workflow__", json!({"workflow_id": "w", "input": {}}), json!({"input": {}})),
            ("__find_tool__", json!({"query": "q"}), json!({"query": ""})),
            ("__run_workflow__", json!({"workflow_name": "w"}), json!({"workflow_name": "w", "wait": true})),
        ] {
            assert!(fits(name, good.clone()), "{name} {good}");
            assert!(!fits(name, bad.clone()), "{name} {bad}");
        }
        assert!(tools.iter().all(|tool| tool.parameters.is_closed() && !tool.description.is_empty()));
    }
}
