//! Settings of an approval that nothing asks for, or that have no effect beside each other.

use serde_json::Value;

use crate::check::{Cursor, Rule, Subject, Used};
use crate::compile::locked_tools::LockedTools;
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::approval::ApprovalSettings;
use crate::language::tool::{McpTool, TypedTool};

pub const RULE: Rule = Rule { code: codes::IDLE_APPROVAL, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (pointer, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(tool) = declaration else { continue };
        let (required, Some(settings)) = tool.approval() else { continue };
        let (name, of_server) = match tool {
            TypedTool::Mcp(listed) => (listed.server.as_str(), served_ask(subject, listed)),
            _ => (tool.name().unwrap_or("the tool"), false),
        };
        let cursor = subject.at(&format!("{pointer}/approval"));
        let action = subject.action(name).filter(|_| !matches!(tool, TypedTool::Mcp(_)));
        let floor = action.map(|used| !used.action.head().requires_approval.is_never());
        // Who writes `"requires_approval": false` beside it means it.
        let is_silent = !subject.at(&format!("{pointer}/requires_approval")).is_written();
        if is_silent && required.is_never() && floor != Some(true) && !of_server {
            let called = if matches!(tool, TypedTool::Mcp(_)) { "these tools of " } else { "" };
            let fault = cursor.clone().report(&RULE, format!("no call of {called}`{name}` needs an approval"));
            found.push(fault.help("write \"requires_approval\": true, or a condition, beside `approval`"));
        }
        let has_time = action.and_then(|used| used.action.head().approval?.expires_after_ms).is_some();
        no_time(&cursor, settings, has_time, found);
    }
    for used in subject.actions().iter().filter(|used| used.knows(&["/approval", "/requires_approval"])) {
        if let Some(settings) = used.action.head().approval {
            if used.written().get("requires_approval").is_none() {
                unasked(subject, used, found);
            }
            no_time(&used.at("/approval"), settings, false, found);
        }
    }
}

/// Whether calls of the tools of a server may ask without a word in their declaration: the project requires it, or their hint
/// says that they destroy things. Of servers that are not pinned that is not known.
fn served_ask(subject: &Subject<'_>, listed: &McpTool) -> bool {
    let LockedTools::File(file) = &subject.texts.locked else { return true };
    let Some(locked) = file.lock().ok().and_then(|lock| lock.servers.get(&listed.server)) else { return true };
    let settings = subject.project().and_then(|project| project.mcp.get(&listed.server));
    let asks = |name: &String| match settings.and_then(|server| server.tools.get(name)?.requires_approval.as_ref()) {
        Some(required) => !required.is_never(),
        None => locked.tools.get(name).is_none_or(|tool| tool.hint("destructiveHint") == Some(true)),
    };
    match &listed.tools {
        Some(names) => names.iter().any(asks),
        None => locked.tools.keys().any(asks),
    }
}

/// An action that says how an approval is given, where neither it nor who calls it says that one is needed. Who writes
/// `"requires_approval": false` means it.
fn unasked(subject: &Subject<'_>, used: &Used<'_>, found: &mut Vec<Diagnostic>) {
    let document = &subject.document().value;
    let is_own = *used.at("").file() == subject.texts.main.name;
    // The calls of the document's own action are judged together: only here can one ask.
    if is_own && subject.is_step() {
        return;
    }
    let calls = calls(subject, used.name(), is_own);
    let is_silent = |at: &String| {
        let says = |name: &str| document.pointer(&format!("{at}/{name}")).is_some();
        !says("requires_approval") && !says("approval")
    };
    if is_own && !calls.is_empty() && calls.iter().all(is_silent) {
        let fault = used.at("/approval").key().report(&RULE, format!("no call of `{}` needs an approval", used.name()));
        found.push(fault.help("write \"requires_approval\": true, or a condition, beside `approval`"));
        return;
    }
    for at in calls.into_iter().filter(is_silent) {
        let is_declared = document.pointer(&format!("{at}/name")).is_some();
        let (named, message) = match is_declared {
            true => (format!("{at}/name"), format!("`{}` has `approval`, and this loop asks for none", used.name())),
            false => (format!("{at}/type"), format!("`{}` has `approval`, and this step asks for none", used.name())),
        };
        let help = match is_declared {
            true => {
                "write \"requires_approval\": true, or a condition, beside this name or in the action; false when that is meant"
            }
            false => "write \"requires_approval\": true, or a condition, in the action; false when that is meant",
        };
        let fault = subject.at(&named).report(&RULE, message).help(help);
        found.push(fault.related(&used.at("/approval").key().place(), "`approval` does not ask for one"));
    }
}

/// The JSON pointers of the declarations and steps that call an action: in the loop, or in all of the document.
fn calls(subject: &Subject<'_>, name: &str, in_document: bool) -> Vec<String> {
    let document = &subject.document().value;
    let text = |at: &str| document.pointer(at).and_then(Value::as_str);
    let mut calls: Vec<String> = subject
        .declarations()
        .filter_map(|(at, declaration)| match declaration {
            ToolDeclaration::Typed(TypedTool::Action(tool)) if tool.name == name => Some(at.to_owned()),
            _ => None,
        })
        .collect();
    if in_document {
        for inner in &subject.compiled.steps.loops {
            let tools = inner.layout.pointer("tools");
            let count = document.pointer(&tools).and_then(Value::as_array).map_or(0, Vec::len);
            let declared = (0..count).map(|number| format!("{tools}/{number}"));
            calls.extend(declared.filter(|at| text(&format!("{at}/name")) == Some(name)));
        }
    }
    if !subject.is_step() {
        let steps = subject.compiled.steps.places.iter();
        calls.extend(steps.filter(|at| text(&format!("{at}/type")) == Some(name)).cloned());
    }
    calls
}

/// `on_expiry` where nothing expires.
fn no_time(cursor: &Cursor<'_>, settings: &ApprovalSettings, has_time: bool, found: &mut Vec<Diagnostic>) {
    if settings.on_expiry.is_some() && settings.expires_after_ms.is_none() && !has_time {
        let fault = cursor.below("/on_expiry").report(&RULE, "the approval never expires".to_owned());
        found.push(fault.help("say when: \"expires_after_ms\": 3600000"));
    }
}
