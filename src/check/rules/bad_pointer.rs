//! What a tool remembers, by a pointer or a key that can't be one, or by a pointer to what its results never have.

use std::borrow::Cow;

use serde_json::Value;

use super::no_member::query_advice;
use crate::check::{Cursor, Rule, Subject};
use crate::compile::steps::of_action;
use crate::diagnostic::{Diagnostic, codes};
use crate::language::tool::TypedTool;
use crate::language::{Action, ToolDeclaration};
use crate::program::reference::{PathStep, steps};
use crate::program::schema::{StepOwner, described, short};
use crate::syntax::{quoted, token};

/// The rule.
pub const RULE: Rule = Rule { code: codes::BAD_POINTER, check };

/// The longest key of the memory, in characters.
const KEY_CHARS: usize = 256;
/// The most names that are compared with one that is not there, and the most that a sentence lists.
const MEASURED: usize = 1_000;
const LISTED: usize = 12;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (at, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(typed) = declaration else { continue };
        let remember = match typed {
            TypedTool::Action(tool) => &tool.remember,
            TypedTool::Workflow(tool) => &tool.remember,
            TypedTool::Loop(tool) => &tool.remember,
            TypedTool::Mcp(tool) => &tool.remember,
        };
        let result = if remember.is_empty() { None } else { result_schema(subject, typed) };
        for (key, pointer) in remember {
            let cursor = subject.at(&format!("{at}/remember/{}", token(key)));
            if key.is_empty() || key.chars().count() > KEY_CHARS {
                let fault = cursor.report(&RULE, format!("a key of the memory has 1 to {KEY_CHARS} characters"));
                found.push(fault.help("name the key by what it holds, like `order_id`"));
            } else if let Some((message, help)) = fault_of(pointer) {
                found.push(cursor.report(&RULE, message).help(help));
            } else if let Some(result) = &result {
                found.extend(absent_part(subject, &cursor, typed, result, pointer));
            }
        }
    }
}

/// The schema of the results of a tool, where it is known: those of a query, and the answers of a loop.
fn result_schema<'s>(subject: &'s Subject<'_>, tool: &TypedTool) -> Option<Cow<'s, Value>> {
    let name = tool.name()?;
    match tool {
        TypedTool::Action(_) => {
            let used = subject.actions().iter().find(|used| used.name() == name)?;
            let is_query = matches!(&*used.action, Action::Db(_)) && used.knows(&["/query", "/datasource"]);
            let databases = subject.texts.outside.databases.as_deref();
            is_query.then(|| Cow::Owned(of_action(used.written(), None, databases)))
        }
        TypedTool::Loop(_) => {
            let mut called = subject.compiled.called.iter().filter_map(|(_, compiled)| compiled.program.as_deref());
            let called = called.find(|program| program.flow.is_none() && program.name == name)?;
            called.properties.answer_schema.as_ref().map(Cow::Borrowed)
        }
        TypedTool::Workflow(_) | TypedTool::Mcp(_) => None,
    }
}

/// A pointer to a part that the results of a tool do not have: nothing would ever be kept.
fn absent_part(
    subject: &Subject<'_>,
    cursor: &Cursor<'_>,
    tool: &TypedTool,
    result: &Value,
    pointer: &str,
) -> Option<Diagnostic> {
    let names: Vec<String> =
        pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let absent = described(result, &steps(&names)).absent?;
    let (before, PathStep::Name(name)) = (names.get(..absent.at)?, steps(&names).into_iter().nth(absent.at)?) else {
        return None;
    };
    let owner = match before.is_empty() {
        true => format!("the result of `{}`", tool.name().unwrap_or("the tool")),
        false => format!("`/{}`", before.join("/")),
    };
    let fault = cursor.report(&RULE, format!("{owner} {}: nothing is ever kept", absent.why));
    let members = absent.members.into_iter().flat_map(|members| members.keys()).map(String::as_str);
    let near = subject.compiled.effort.nearest(&name, members.clone().take(MEASURED)).map(str::to_owned);
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
        None => match members.take(LISTED).map(short).collect::<Vec<_>>() {
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
