//! What a tool remembers, by a pointer or a key that can't be one, or by a pointer to what its results never have.

use std::borrow::Cow;

use serde_json::Value;

use super::no_member::query_advice;
use crate::check::{Cursor, Rule, Subject, Used};
use crate::compile::Compiled;
use crate::compile::steps::{head, launched, of_action, of_tables, text};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::action::Method;
use crate::language::tool::TypedTool;
use crate::language::{Action, ToolDeclaration};
use crate::program::Program;
use crate::program::reference::{PathStep, steps};
use crate::program::schema::{StepOwner, described, short};
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::BAD_POINTER, check };

/// The longest key of the memory, in characters.
const KEY_CHARS: usize = 256;
/// The most names that are compared with one that is not there, and the most that a sentence lists.
const MAX_COMPARED_NAMES: usize = 1_000;
const MAX_LISTED_NAMES: usize = 12;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (at, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(typed) = declaration else { continue };
        let remember = match typed {
            TypedTool::Action(tool) => &tool.remember,
            TypedTool::Workflow(tool) => &tool.remember,
            TypedTool::Loop(tool) => &tool.remember,
            TypedTool::Mcp(tool) => &tool.remember,
        };
        let results = if remember.is_empty() { None } else { ToolResults::of(subject, typed) };
        for (key, pointer) in remember {
            let cursor = subject.at(&format!("{at}/remember/{}", token(key)));
            if key.is_empty() || key.chars().count() > KEY_CHARS {
                let fault = cursor.report(&RULE, format!("a key of the memory has 1 to {KEY_CHARS} characters"));
                found.push(fault.help("name the key by what it holds, like `order_id`"));
            } else if let Some((message, help)) = fault_of(pointer) {
                found.push(cursor.report(&RULE, message).help(help));
            } else if let Some(results) = &results {
                found.extend(absent_part(subject, &cursor, typed, results, pointer));
            }
        }
    }
}

/// What is known of the results of a tool.
struct ToolResults<'s> {
    schema: Cow<'s, Value>,
    /// What its calls may change about that, or why that is all.
    note: Option<&'static str>,
    /// Whether a call may give other results.
    is_open: bool,
}

impl<'s> ToolResults<'s> {
    fn of(subject: &'s Subject<'_>, tool: &TypedTool) -> Option<Self> {
        let known = |schema| Self { schema, note: None, is_open: false };
        match tool {
            TypedTool::Action(tool) => {
                let used = subject.action(&tool.name)?;
                Self::of_action(subject, used)
            }
            TypedTool::Workflow(tool) if !tool.wait => Some(Self {
                note: Some("a call with `\"wait\": false` returns `run_id` and `status`, before the workflow ends"),
                ..known(Cow::Owned(launched()))
            }),
            TypedTool::Workflow(tool) => {
                let is_meant = |program: &Program| {
                    let flow = program.as_flow().filter(|flow| flow.is_workflow());
                    let by_id = flow.is_some_and(|flow| tool.id.is_some() && flow.id == tool.id);
                    by_id || (flow.is_some() && tool.name.as_deref() == Some(program.name.as_str()))
                };
                Some(known(Cow::Borrowed(&called(subject, is_meant)?.steps.answer)))
            }
            TypedTool::Loop(tool) => {
                let is_meant = |program: &Program| {
                    program.name == tool.name && program.as_flow().is_none_or(|flow| !flow.is_workflow())
                };
                let called = called(subject, is_meant)?;
                let program = called.program.as_deref()?;
                match program {
                    Program::Flow(_) => Some(known(Cow::Borrowed(&called.steps.answer))),
                    Program::Loop(program) => {
                        program.properties.answer_schema.as_ref().map(|schema| known(Cow::Borrowed(schema)))
                    }
                }
            }
            TypedTool::Mcp(_) => None,
        }
    }

    fn of_action(subject: &Subject<'_>, used: &Used<'_>) -> Option<Self> {
        let known = |schema| Some(Self { schema: Cow::Owned(schema), note: None, is_open: false });
        let of_kind = || of_action(used.written(), None, subject.texts.outside.databases.as_deref());
        match &*used.action {
            Action::Db(_) if used.knows(&["/query", "/datasource"]) => known(of_kind()),
            Action::CustomTable(table) if used.knows(&["/read_only"]) => known(of_tables(table.read_only)),
            Action::Http(http) if http.http_method == Method::Head => known(head()),
            Action::Llm(llm) if llm.answer_schema.is_some() => {
                used.knows(&["/answer_schema"]).then(|| llm.answer_schema.clone()).flatten().and_then(known)
            }
            Action::Llm(_) => known(text()).map(|results| Self {
                note: Some("the result of an `llm` action is one text: `\"\"` keeps it as a whole"),
                ..results
            }),
            Action::Matcher(_) if used.knows(&["/outputMatched", "/outputUnmatchedLeft", "/outputUnmatchedRight"]) => {
                let listed = used.written().get("parameters").map(|schema| schema.get("properties"));
                let is_given =
                    |name: &&str| listed.is_none_or(|listed| listed.is_some_and(|listed| listed.get(name).is_some()));
                let is_open = ["outputMatched", "outputUnmatchedLeft", "outputUnmatchedRight"].iter().any(is_given);
                known(of_kind()).map(|results| Self { is_open, ..results })
            }
            _ => None,
        }
    }
}

/// A document that a loop calls.
fn called<'s>(subject: &'s Subject<'_>, is_meant: impl Fn(&Program) -> bool) -> Option<&'s Compiled> {
    let called = subject.compiled.called.iter().map(|(_, compiled)| compiled);
    called.into_iter().find(|compiled| compiled.program.as_deref().is_some_and(&is_meant))
}

/// A pointer to a part that the results of a tool do not have: nothing would ever be kept.
fn absent_part(
    subject: &Subject<'_>,
    cursor: &Cursor<'_>,
    tool: &TypedTool,
    results: &ToolResults<'_>,
    pointer: &str,
) -> Option<Diagnostic> {
    let names: Vec<String> =
        pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let absent = described(&results.schema, &steps(&names)).absent?;
    let (before, PathStep::Name(name)) = (names.get(..absent.at)?, steps(&names).into_iter().nth(absent.at)?) else {
        return None;
    };
    let owner = match before.is_empty() {
        true => match tool.name() {
            Some(name) => format!("the result of `{name}`"),
            None => "the result".to_owned(),
        },
        false => format!("`/{}`", before.join("/")),
    };
    let mut fault = cursor.report(&RULE, format!("{owner} {}: nothing is ever kept", absent.why));
    if results.is_open {
        fault.severity = Severity::Warning;
        fault.message = format!("{owner} {}, unless a call names its lists so", absent.why);
    }
    if let Some(note) = results.note {
        return Some(fault.help(note));
    }
    let members = absent.members.into_iter().flat_map(|members| members.keys()).map(String::as_str);
    let near = subject.compiled.effort.nearest(&name, members.clone().take(MAX_COMPARED_NAMES)).map(str::to_owned);
    let advice = absent.members.and_then(|members| query_advice(members, &name));
    let meant = advice.and_then(|advice| advice.pointer()).or(near);
    let meant =
        meant.or_else(|| (matches!(absent.owner, StepOwner::List(_)) && name == "first").then(|| "0".to_owned()));
    Some(match meant {
        Some(meant) => {
            let names = names.iter().enumerate();
            let names = names.map(|(at, name)| if at == absent.at { meant.clone() } else { token(name) });
            let meant = format!("/{}", names.collect::<Vec<_>>().join("/"));
            fault.help(format!("the nearest part is `{meant}`")).suggest(quoted(&meant))
        }
        None => match members.take(MAX_LISTED_NAMES).map(short).collect::<Vec<_>>() {
            known if known.is_empty() => fault.help("name a part that it has; `\"\"` is the result as a whole"),
            known => fault.help(format!("it has `{}`", known.join("`, `"))),
        },
    })
}

/// What is wrong with a JSON pointer (RFC 6901), and how to fix it.
fn fault_of(pointer: &str) -> Option<(String, String)> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        let path = pointer.trim_start_matches("$.").trim_start_matches('@').replace('.', "/");
        let message = format!("`{pointer}` is no JSON pointer: it must begin with `/`");
        return Some((message, format!("write `/{path}`; `\"\"` is the observation as a whole")));
    }
    let mut rest = pointer;
    while let Some((_, after)) = rest.split_once('~') {
        if !after.starts_with(['0', '1']) {
            let message = format!("`{pointer}` is no JSON pointer: `~` stands before `0` or `1` only");
            return Some((message, "write `~0` for a `~` in a name, and `~1` for a `/`".to_owned()));
        }
        rest = after;
    }
    None
}
