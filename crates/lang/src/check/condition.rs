//! Conditions of steps and of approvals, one operator after the other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use super::{Cursor, Subject, Used};
use crate::compile::locked_tools::LockedTools;
use crate::compile::steps::{JsonTypes, KnownValue, Steps};
use crate::language::ToolDeclaration;
use crate::language::approval::RequiresApproval;
use crate::language::mcp::LockedServer;
use crate::language::tool::{McpTool, TypedTool};
use crate::program::condition::is_moment;
use crate::program::reference::{as_any_path, as_path, spelled_path};
use crate::program::template::is_template;
use crate::syntax::document::DocumentKind;
use crate::syntax::shape::Unknown;
use crate::syntax::token;

/// An operator with its operands.
pub(super) struct WrittenOperator<'a> {
    pub operator: &'a str,
    /// The JSON pointer of the value of the operator.
    pub at: String,
    pub written: &'a Value,
    /// The operands of an operator that compares two; empty for `and`, `or`, `not` and `hasKey`.
    pub operands: Vec<Operand<'a>>,
}

pub(super) struct Operand<'a> {
    /// Its JSON pointer.
    pub at: String,
    pub written: &'a Value,
    /// What kind of operand it is.
    pub form: OperandForm,
    pub known: Arc<KnownValue>,
}

/// The kinds of operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandForm {
    /// The value itself.
    Literal,
    /// An `@path`.
    Path,
    /// `{"length": ...}`.
    Length,
    /// A moment that is computed: `{"now": ...}`, `{"time": ...}`.
    Moment,
    /// A template, which gives a text.
    Template,
}

/// Whether the input of a call has a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartOfCall {
    /// Each call has it, and it is not null.
    Always,
    /// No call has it: it would be refused before anybody is asked.
    Never,
    /// Some may have it.
    Open,
}

impl PartOfCall {
    /// What a schema says of the part at a path. Only what it says in plain words counts.
    fn of_schema(schema: &Value, path: &[String]) -> Self {
        let (mut part, mut is_required) = (schema, true);
        for name in path {
            let says_more = SAYS_MORE.iter().any(|keyword| part.get(keyword).is_some());
            if says_more || part.get("type").and_then(Value::as_str) != Some("object") {
                return Self::Open;
            }
            let required = part.get("required").and_then(Value::as_array);
            is_required &= required.is_some_and(|names| names.iter().any(|required| required == name));
            match part.get("properties").and_then(|members| members.get(name)) {
                Some(member) => part = member,
                None if part.get("additionalProperties") == Some(&Value::Bool(false)) => return Self::Never,
                None => return Self::Open,
            }
        }
        let is_value = KnownValue::of_schema(part, &[]).is_some_and(|known| !known.types.meets(JsonTypes::NULL));
        if is_required && is_value { Self::Always } else { Self::Open }
    }
}

/// Keywords with which a schema says of an object what its `properties` do not.
const SAYS_MORE: [&str; 9] =
    ["$ref", "allOf", "anyOf", "oneOf", "if", "not", "patternProperties", "dependentSchemas", "unevaluatedProperties"];

/// The facts that the operands of a condition are judged by.
#[derive(Clone, Copy)]
pub(super) enum ConditionFacts<'a> {
    /// What the steps before it give.
    Steps(&'a Steps),
    /// The schema of the input of the call that it is about, when that is known.
    Call(Option<&'a Value>),
}

pub(super) struct WrittenCondition<'a> {
    /// The document, or the action, in which it is written: pointers begin there.
    pub root: Cursor<'a>,
    /// Its JSON pointer.
    pub at: String,
    pub written: &'a Value,
    /// What its operands are judged by.
    pub facts: ConditionFacts<'a>,
    /// What could not be read, with pointers from the root.
    unknown: Rc<Unknown>,
    /// What is known of the values of a call, by their paths: many operands may name one.
    of_call: RefCell<HashMap<String, Option<Arc<KnownValue>>>>,
}

impl<'a> WrittenCondition<'a> {
    /// A place in the document, at a JSON pointer from the root.
    pub fn cursor(&self, at: &str) -> Cursor<'a> {
        self.root.below(at)
    }

    /// Whether it is about a call, and not about a step.
    pub fn is_of_call(&self) -> bool {
        matches!(self.facts, ConditionFacts::Call(_))
    }

    /// What is known of the value of an `@path` at a JSON pointer.
    pub fn known(&self, at: &str, path: &str) -> Option<Arc<KnownValue>> {
        let schema = match self.facts {
            ConditionFacts::Steps(steps) => return steps.known.get(at).cloned(),
            ConditionFacts::Call(schema) => schema?,
        };
        let of_schema = || {
            let path = as_any_path(path)?;
            let (_, rest) = path.split_first().filter(|(first, _)| *first == "input")?;
            KnownValue::of_schema(schema, rest).map(Arc::new)
        };
        self.of_call.borrow_mut().entry(path.to_owned()).or_insert_with(of_schema).clone()
    }

    /// Whether the input of the call that it is about has the part that an `@path` names; open for a condition of a step.
    pub fn part_of_call(&self, path: &str) -> PartOfCall {
        let ConditionFacts::Call(Some(schema)) = self.facts else { return PartOfCall::Open };
        let path = as_any_path(path).filter(|path| path.first().is_some_and(|first| first == "input"));
        match path.as_deref() {
            Some([_, rest @ ..]) if !rest.is_empty() => PartOfCall::of_schema(schema, rest),
            _ => PartOfCall::Open,
        }
    }

    /// The names that the schema of the call's input has.
    pub fn names_of_call(&self) -> Vec<&'a str> {
        let ConditionFacts::Call(Some(schema)) = self.facts else { return Vec::new() };
        let members = schema.get("properties").and_then(Value::as_object);
        members.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    /// The path that a text at a JSON pointer names without its `@`, when it seems to.
    pub fn bare_path(&self, at: &str, text: &str) -> Option<String> {
        match self.facts {
            ConditionFacts::Steps(steps) => steps.bare_paths.get(at).cloned(),
            ConditionFacts::Call(_) => {
                let bracketed = text.strip_prefix('@').filter(|path| path.contains('[')).and_then(spelled_path);
                let path = match bracketed {
                    Some(path) => format!("@{path}"),
                    None if text.starts_with('@') => return None,
                    None => format!("@{}", text.trim_start_matches(['$', '{', '.', ' ']).trim_end_matches(['}', ' '])),
                };
                let parts = as_path(&path)?;
                (parts.len() > 1 && parts.first().is_some_and(|first| first == "input")).then_some(path)
            }
        }
    }
}

/// The conditions of the document's steps and of the approvals that its loop requires.
pub(super) fn conditions<'a>(subject: &Subject<'a>) -> Vec<WrittenCondition<'a>> {
    let mut found = Vec::new();
    let document = subject.document();
    let unknown = Rc::new(document.unknown.clone());
    let in_document = |at: &str, facts| {
        let written = document.value.pointer(at)?;
        let (at, unknown) = (at.to_owned(), Rc::clone(&unknown));
        Some(WrittenCondition { root: subject.at(""), at, written, facts, unknown, of_call: RefCell::default() })
    };
    if !subject.is_step() {
        let steps = &subject.compiled.steps;
        found.extend(steps.conditions.iter().filter_map(|at| in_document(at, ConditionFacts::Steps(steps))));
    }
    for (pointer, declaration) in subject.declarations().filter(|(_, declaration)| is_conditional(declaration)) {
        let facts = ConditionFacts::Call(schema_of(subject, declaration));
        found.extend(in_document(&format!("{pointer}/requires_approval"), facts));
    }
    let asks_sometimes = |used: &&Used<'_>| matches!(used.action.head().requires_approval, RequiresApproval::When(_));
    for used in subject.actions().iter().filter(asks_sometimes) {
        let Some(written) = used.written().get("requires_approval").filter(|written| written.is_object()) else {
            continue;
        };
        let facts = ConditionFacts::Call(schema_of_action(subject, used));
        let (root, at) = (used.at(""), "/requires_approval".to_owned());
        let unknown = Rc::new(used.unknown().clone());
        found.push(WrittenCondition { root, at, written, facts, unknown, of_call: RefCell::default() });
    }
    of_servers(subject, &mut found);
    found
}

/// The approvals that the project requires for tools of MCP servers, of those tools that the document may call.
fn of_servers<'a>(subject: &Subject<'a>, found: &mut Vec<WrittenCondition<'a>>) {
    let (Some(project), Some(document), Some(root)) =
        (subject.project(), subject.project_document(), subject.in_project(""))
    else {
        return;
    };
    let unknown = Rc::new(document.unknown.clone());
    for (server, settings) in &project.mcp {
        let Some(locked) = locked_server(subject, server) else { continue };
        for (tool, settings) in &settings.tools {
            let Some(RequiresApproval::When(_)) = settings.requires_approval else { continue };
            let at = format!("/mcp/{}/tools/{}/requires_approval", token(server), token(tool));
            let (Some(written), Some(locked)) = (document.value.pointer(&at), locked.tools.get(tool)) else { continue };
            let seen = settings.name.as_deref().unwrap_or(tool);
            if may_call(subject, server, tool, seen) {
                let facts = ConditionFacts::Call(Some(&locked.input_schema));
                let (root, unknown) = (root.clone(), Rc::clone(&unknown));
                found.push(WrittenCondition { root, at, written, facts, unknown, of_call: RefCell::default() });
            }
        }
    }
}

/// A server, as it is pinned.
fn locked_server<'a>(subject: &Subject<'a>, name: &str) -> Option<&'a LockedServer> {
    let LockedTools::File(file) = &subject.texts.locked else { return None };
    file.lock().ok()?.servers.get(name)
}

/// Whether a document has a tool of a server: as a tool of its loop, or as a step. `seen` is the name that models see.
fn may_call(subject: &Subject<'_>, server: &str, tool: &str, seen: &str) -> bool {
    let names = |listed: &McpTool| listed.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool));
    let is_declared = subject.declarations().any(|(_, declaration)| {
        matches!(declaration, ToolDeclaration::Typed(TypedTool::Mcp(listed)) if listed.server == server && names(listed))
    });
    let document = subject.document();
    let is_step = |at: &String| {
        let kind = document.value.pointer(&format!("{at}/type")).and_then(Value::as_str);
        kind.and_then(|kind| kind.strip_prefix(server)?.strip_prefix('.')) == Some(seen)
    };
    is_declared
        || document.kind == Some(DocumentKind::Project)
        || (!subject.is_step() && subject.compiled.steps.places.iter().any(is_step))
}

/// Whether a declaration requires approval of some calls.
fn is_conditional(declaration: &ToolDeclaration) -> bool {
    match declaration {
        ToolDeclaration::Typed(tool) => matches!(tool.approval().0, RequiresApproval::When(_)),
        ToolDeclaration::Legacy(_) => false,
    }
}

/// The schema of the input of a declared tool.
fn schema_of<'a>(subject: &Subject<'a>, declaration: &ToolDeclaration) -> Option<&'a Value> {
    let ToolDeclaration::Typed(tool) = declaration else { return None };
    if let TypedTool::Mcp(listed) = tool {
        return schema_of_served(subject, listed);
    }
    let name = tool.name()?;
    let compiled = subject.program().and_then(|program| program.tool(name)).map(|tool| tool.parameters.source());
    compiled.or_else(|| {
        let used = subject.action(name)?;
        schema_of_action(subject, used)
    })
}

/// The schema of the input of the tools of a server that a declaration names, where it is one.
fn schema_of_served<'a>(subject: &Subject<'a>, listed: &McpTool) -> Option<&'a Value> {
    let locked = locked_server(subject, &listed.server)?;
    let mut schemas: Vec<&'a Value> = match &listed.tools {
        Some(names) => names.iter().map(|name| Some(&locked.tools.get(name)?.input_schema)).collect::<Option<_>>()?,
        None => locked.tools.values().map(|tool| &tool.input_schema).collect(),
    };
    let first = schemas.pop()?;
    schemas.iter().all(|other| *other == first).then_some(first)
}

fn schema_of_action<'a>(subject: &Subject<'a>, used: &Used<'a>) -> Option<&'a Value> {
    let written = used.written().get("parameters");
    let schema = written.filter(|schema| schema.is_object() && used.knows(&["/parameters"]));
    let compiled = || Some(subject.program()?.tool(used.name())?.parameters.source());
    schema.filter(|_| !subject.has_error_in(&used.at("/parameters").place())).or_else(compiled)
}

/// Visits each operator of the conditions of a document. What could not be read is passed over.
pub(super) fn each_operator<'a>(
    subject: &Subject<'a>,
    visit: &mut dyn FnMut(&WrittenCondition<'a>, &WrittenOperator<'a>),
) {
    for condition in conditions(subject) {
        of_condition(&condition, &condition.at, condition.written, visit);
    }
}

fn of_condition<'a>(
    condition: &WrittenCondition<'a>,
    at: &str,
    written: &'a Value,
    visit: &mut dyn FnMut(&WrittenCondition<'a>, &WrittenOperator<'a>),
) {
    // A document is never deeper than its reader allows: the recursion ends.
    let Some((operator, written)) = written.as_object().and_then(|members| members.iter().next()) else { return };
    let at = format!("{at}/{operator}");
    if condition.unknown.holds(&at) {
        return;
    }
    let is_whole = condition.unknown.below(&at).is_empty();
    let mut operands = Vec::new();
    match (operator.as_str(), written) {
        ("and" | "or", Value::Array(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                of_condition(condition, &format!("{at}/{index}"), part, visit);
            }
        }
        ("not", part) => of_condition(condition, &at, part, visit),
        ("hasKey", _) => {}
        (_, Value::Array(two)) if is_whole => {
            let operand = |(index, written)| Operand::of(condition, format!("{at}/{index}"), written);
            operands = two.iter().enumerate().map(operand).collect();
        }
        _ => return,
    }
    // What is wrong in one part says nothing of the whole, and hides no fault of another part.
    if is_whole {
        visit(condition, &WrittenOperator { operator, at, written, operands });
    }
}

impl<'a> Operand<'a> {
    fn of(condition: &WrittenCondition<'a>, at: String, written: &'a Value) -> Self {
        let length = written.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("length"));
        let (form, known) = match written {
            _ if length.is_some() => {
                let path = length.and_then(Value::as_str).unwrap_or_default();
                let counted = condition.known(&format!("{at}/length"), path);
                (OperandForm::Length, Arc::new(KnownValue::of_length(counted.as_deref())))
            }
            written if is_moment(written) => (OperandForm::Moment, Arc::new(KnownValue::of_moment())),
            Value::String(text) if as_any_path(text).is_some() => {
                let known = condition.known(&at, text);
                (OperandForm::Path, known.unwrap_or_else(|| Arc::new(KnownValue::of_types(JsonTypes::ANY))))
            }
            Value::String(text) if is_template(text) => {
                (OperandForm::Template, Arc::new(KnownValue::of_types(JsonTypes::TEXT)))
            }
            literal => (OperandForm::Literal, Arc::new(KnownValue::of_literal(literal))),
        };
        Self { at, written, form, known }
    }

    /// The operand in a sentence.
    pub fn called(&self) -> String {
        match self.form {
            OperandForm::Literal => format!("`{}`", self.written),
            OperandForm::Path => format!("`{}`", self.written.as_str().unwrap_or_default()),
            OperandForm::Length => "a length".to_owned(),
            OperandForm::Moment => "a moment".to_owned(),
            OperandForm::Template => format!("the template {}", self.written),
        }
    }
}
