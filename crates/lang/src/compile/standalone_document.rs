//! Documents that are no loops, checked on their own: actions that no loop may use yet, project files, scripts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::catalog::{Registered, registered};
use super::layout::unreadable;
use super::{declare, layout, names, script_names, steps, tool};
use crate::diagnostic::{Diagnostic, codes, few, few_of_many};
use crate::language::approval::RequiresApproval;
use crate::language::tool::ActionTool;
use crate::language::{Project, ReactProperties, Script};
use crate::policy::name_pattern::is_pattern;
use crate::syntax::document::{Document, DocumentKind};

/// The declarations of the loops around a document: their faults are not reported a second time.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// The names of their tools.
    pub names: BTreeSet<String>,
    /// The names that have a description in their declaration.
    pub described: BTreeSet<String>,
    /// Whether they may have others, whose names are not known: those of MCP servers.
    pub is_open: bool,
    /// The workflows that are declared by their `id`.
    by_id: BTreeSet<String>,
    /// The names of the workflows around the document, by `id`.
    workflows: BTreeMap<String, String>,
}

impl Declared {
    /// Adds what a loop declares.
    pub fn add(&mut self, document: &Document) {
        let (names, mut tools) = steps::named(document);
        self.names.extend(names.into_iter().map(str::to_owned));
        self.names.extend(steps::names_of_loops(document));
        let layout = layout::LoopLayout::of(document);
        let own = layout.iter().filter_map(|layout| layout.get(document, "tools")?.as_array());
        tools.extend(own.flatten());
        for tool in tools {
            self.is_open |= tool.get("type").and_then(Value::as_str) == Some("mcp");
            self.by_id.extend(text_of(tool, "id"));
            self.is_open |= tool.get("name").and_then(Value::as_str).is_some_and(is_pattern);
            let Some(name) = tool.as_str().or_else(|| tool.get("name").and_then(Value::as_str)) else { continue };
            self.names.insert(name.to_owned());
            let described = tool.get("description").and_then(Value::as_str);
            if described.is_some_and(|text| !text.trim().is_empty()) {
                self.described.insert(name.to_owned());
            }
        }
        if document.kind == Some(DocumentKind::Workflow) {
            self.workflows.extend(text_of(&document.value, "id").zip(text_of(&document.value, "name")));
        }
        // Models are offered a workflow under its name.
        let offered = self.by_id.iter().filter_map(|id| self.workflows.get(id));
        self.names.extend(offered.cloned());
    }
}

fn text_of(object: &Value, field: &str) -> Option<String> {
    object.get(field).and_then(Value::as_str).map(str::to_owned)
}

/// The faults of a document of actions, a project file or a script, besides those of its text and its shape.
/// Empty for other kinds of documents: the compiler checks those.
pub fn alone(document: &Document, declared: &Declared) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    match document.kind {
        Some(DocumentKind::Actions) => actions(document, declared, &mut faults),
        Some(DocumentKind::Project) if !document.is_broken() => {
            faults.extend(Project::deserialize(&document.value).err().map(|error| unreadable(document, &error)));
        }
        Some(DocumentKind::Script) if !document.is_broken() => {
            faults.extend(Script::deserialize(&document.value).err().map(|error| unreadable(document, &error)));
            script_names::names(document, declared, &mut faults);
        }
        _ => {}
    }
    faults.retain(|fault| !document.is_guessed(fault));
    few(&mut faults);
    faults
}

fn actions(document: &Document, declared: &Declared, faults: &mut Vec<Diagnostic>) {
    let all: Vec<Registered<'_>> = match &document.value {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.filter_map(|(index, value)| registered(document, Some(index), false, value)).collect()
        }
        value => registered(document, None, false, value).into_iter().collect(),
    };
    let defaults = layout::defaults();
    let mut first: BTreeMap<&str, Registered<'_>> = BTreeMap::new();
    for action in all {
        named(action, &mut first, declared, faults);
        if let Some(defaults) = &defaults {
            compiled(action, defaults, declared, faults);
        }
        few_of_many(faults);
    }
}

/// Names that no loop could declare, and duplicate names of actions.
fn named<'a>(
    action: Registered<'a>,
    first: &mut BTreeMap<&'a str, Registered<'a>>,
    declared: &Declared,
    faults: &mut Vec<Diagnostic>,
) {
    let at = format!("{}/action_name", action.pointer());
    if let Some(other) = first.get(action.name) {
        // If a loop declares the name, this is reported at its declaration.
        if !declared.names.contains(action.name) {
            let message = format!("there are two actions of the name `{}`", action.name);
            let fault = Diagnostic::error(codes::TWO_OF_A_NAME, message, at, action.place());
            let fault = fault.help("give one of the two another name");
            faults.push(fault.related(&other.place(), "the other is here"));
        }
        return;
    }
    first.insert(action.name, action);
    // The shape reports an empty name, and one that is too long.
    let reported = !(1..=64).contains(&action.name.chars().count());
    if reported || declared.names.contains(action.name) {
        return;
    }
    if action.name.starts_with("__") {
        let message =
            format!("names that begin with `__` are those of built-in tools: no loop can use `{}`", action.name);
        let fault = Diagnostic::error(codes::SHADOWED_BUILTIN, message, at, action.place());
        faults.push(fault.help("give the action another name"));
    } else if let Some(fault) = names::fault_of(action.name) {
        faults.push(Diagnostic::error(codes::BAD_NAME, fault, at, action.place()));
    }
}

/// The faults that a loop which declares the action would have.
fn compiled(action: Registered<'_>, defaults: &ReactProperties, declared: &Declared, faults: &mut Vec<Diagnostic>) {
    // The shape reports an action that can't be read.
    let Some(meaning) = action.read() else { return };
    let described = declared.described.contains(action.name);
    let declaration = ActionTool {
        name: action.name.to_owned(),
        description: described.then(|| "described where it is declared".to_owned()),
        requires_approval: RequiresApproval::default(),
        approval: None,
        max_calls: None,
        timeout_ms: None,
        polling: false,
        remember: BTreeMap::new(),
    };
    let pointer = action.pointer();
    let unknown = action.document.unknown.below(&pointer);
    let found = match tool::declared(&declaration, &meaning, defaults, &unknown) {
        Ok((_, warnings)) => warnings,
        Err(found) => found,
    };
    faults.extend(found.into_iter().map(|fault| declare::place(action, &pointer, fault)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;
    use crate::syntax::document::read;

    const LOOP: &str = r#"{"type": "loop", "properties": {"mode": "react", "objective": "x", "tools": TOOLS}}"#;

    fn reported(text: &str, tools: &str) -> Vec<(&'static str, String)> {
        let mut declared = Declared::default();
        declared.add(&read(&Source::new("loop.json", LOOP.replace("TOOLS", tools))));
        let faults = alone(&read(&Source::new("actions.json", text)), &declared);
        faults.into_iter().map(|fault| (fault.code, fault.path)).collect()
    }

    fn action(name: &str, more: &str) -> String {
        format!(r#"{{"action_name": "{name}", "kind": "http", "url": "https://e.com/x", "http_method": "GET"{more}}}"#)
    }

    fn at(code: &'static str, path: &str) -> (&'static str, String) {
        (code, path.to_owned())
    }

    #[test]
    fn an_action_that_no_loop_uses_is_judged_like_one_that_is_used() {
        let text = format!("[{}, {}]", action("a", ""), action("b", r#", "description": "d", "body": "{{x.}}""#));
        assert_eq!(reported(&text, "[]"), [at("L072", "/0/action_name"), at("L050", "/1/body")]);
        assert_eq!(reported(&action("a", ""), "[]"), [at("L072", "/action_name")]);
    }

    #[test]
    fn a_description_where_it_is_declared_is_one() {
        let text = action("a", "");
        assert!(reported(&text, r#"[{"type": "action", "name": "a", "description": "d"}]"#).is_empty());
        assert_eq!(
            reported(&text, r#"[{"type": "action", "name": "a", "description": " "}]"#),
            [at("L072", "/action_name")]
        );
        assert_eq!(reported(&text, r#"["a"]"#), [at("L072", "/action_name")]);
    }

    #[test]
    fn names_are_judged_where_no_loop_declares_them() {
        let described = r#", "description": "d""#;
        let text = format!(
            "[{}, {}, {}, {}]",
            action("a", described),
            action("a", described),
            action("__mine__", described),
            action("b c", described)
        );
        assert_eq!(
            reported(&text, "[]"),
            [at("L031", "/1/action_name"), at("L034", "/2/action_name"), at("L032", "/3/action_name")]
        );
        assert!(reported(&text, r#"["a", "__mine__", "b c"]"#).is_empty());
    }

    #[test]
    fn what_runs_elsewhere_and_documents_of_other_kinds_are_left_in_peace() {
        assert!(reported(r#"{"action_name": "a", "kind": "custom-table", "description": "A."}"#, "[]").is_empty());
        assert!(reported(&LOOP.replace("TOOLS", "[]"), "[]").is_empty());
        assert!(reported(r#"{"models": {"a": {"provider": "openai"}}}"#, "[]").is_empty());
        assert!(reported(r#"{"replies": ["x"]}"#, "[]").is_empty());
        assert!(reported(r#"{"scenarios": []}"#, "[]").is_empty());
        assert!(reported("[7, null, {}]", "[]").is_empty());
    }

    #[test]
    fn a_script_calls_the_loops_of_a_workflow_by_the_names_of_their_steps() {
        let react = |more: &str| {
            format!(r#"{{"type": "loop"{more}, "properties": {{"mode": "react", "objective": "x", "tools": []"#)
        };
        let (named, keyed) = (react(r#", "id": "judge""#), react(""));
        let list = format!(
            r#"{named}}}}}, {keyed}, "result_key": "found"}}, "onFalse": {keyed}, "result_key": "other"}}}}}}"#
        );
        let each = format!(
            r#"{{"type": "loop", "id": "each", "properties": {{"mode": "foreach", "items_path": "@input.x", "item_variable_name": "i",
        "actions_to_execute": [{list}, {keyed}}}}}]}}}}"#
        );
        let mut declared = Declared::default();
        let workflow = format!(r#"{{"name": "w", "definition": {{"actions": [{each}]}}}}"#);
        declared.add(&read(&Source::new("workflow.json", workflow)));
        let script = r#"{"replies": [], "loops": {"judge": [], "found": [], "other": [], "2": [], "each": []}}"#;
        let faults = alone(&read(&Source::new("script.json", script)), &declared);
        let faults: Vec<_> = faults.into_iter().map(|fault| (fault.code, fault.path)).collect();
        assert_eq!(faults, [at("L022", "/loops/each")]);
    }

    #[test]
    fn a_script_calls_a_workflow_that_is_a_tool_by_its_id_under_its_name() {
        let tool = |tools: &str| Source::new("loop.json", LOOP.replace("TOOLS", tools));
        let workflow = r#"{"id": "wf-7", "name": "notify", "definition": {"actions": []}}"#;
        let script =
            r#"{"replies": [{"action": "notify", "action_input": {}}, {"action": "ask", "action_input": {}}]}"#;
        let ask = r#"{"type": "action", "name": "ask"}"#;
        let by_id = format!(r#"[{ask}, {{"type": "workflow", "id": "wf-7"}}]"#);
        for (tools, known) in [(by_id.as_str(), true), (&format!("[{ask}]"), false)] {
            let both = [tool(tools), Source::new("workflow.json", workflow)];
            for order in [[0, 1], [1, 0]] {
                let mut declared = Declared::default();
                order.into_iter().for_each(|at| declared.add(&read(&both[at])));
                let faults = alone(&read(&Source::new("script.json", script)), &declared);
                assert_eq!(faults.is_empty(), known, "{tools}: {faults:#?}");
            }
        }
    }
}
