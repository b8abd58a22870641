//! Settings of an approval that nothing asks for, or that have no effect beside each other.

use serde_json::Value;

use crate::check::{Cursor, Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::approval::ApprovalSettings;
use crate::language::tool::TypedTool;

/// The rule.
pub const RULE: Rule = Rule { code: codes::IDLE_APPROVAL, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (pointer, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(tool) = declaration else { continue };
        let ((required, Some(settings)), name) = (tool.approval(), tool.name().unwrap_or("the tool")) else { continue };
        let cursor = subject.at(&format!("{pointer}/approval"));
        let action = subject.actions().iter().find(|used| used.name() == name);
        let floor = action.map(|used| !used.action.head().requires_approval.is_never());
        if required.is_never() && floor != Some(true) && !subject.is_faulty(&format!("{pointer}/requires_approval")) {
            let fault = cursor.clone().report(&RULE, format!("no call of `{name}` needs an approval"));
            found.push(fault.help("write \"requires_approval\": true, or a condition, beside `approval`"));
        }
        let has_time = action.and_then(|used| used.action.head().approval?.expires_after_ms).is_some();
        no_time(&cursor, &settings, has_time, found);
    }
    let is_loop = subject.property("tools").is_some();
    for used in subject.actions().iter().filter(|used| used.knows(&["/approval", "/requires_approval"])) {
        if let Some(settings) = used.action.head().approval {
            let declared = subject.declarations().filter_map(|(_, declaration)| match declaration {
                ToolDeclaration::Typed(tool) if tool.name() == Some(used.name()) => Some(tool.approval().0),
                _ => None,
            });
            let asks = declared.into_iter().any(|required| !required.is_never());
            // Another loop may ask for it, where the action is in a file of its own.
            let is_own = used.at("").place().file == subject.texts.main.name;
            if is_loop && is_own && !asks && used.action.head().requires_approval.is_never() {
                let fault =
                    used.at("/approval").key().report(&RULE, format!("no call of `{}` needs an approval", used.name()));
                found.push(fault.help("write \"requires_approval\": true, or a condition, beside `approval`"));
            }
            if !is_own && used.written().get("requires_approval").is_none() {
                unasked(subject, used, found);
            }
            no_time(&used.at("/approval"), &settings, false, found);
        }
    }
}

/// An action in a file of its own that says how an approval is given, where neither it nor who calls it says that one
/// is needed. Who writes `"requires_approval": false` means it.
fn unasked(subject: &Subject<'_>, used: &Used<'_>, found: &mut Vec<Diagnostic>) {
    let document = &subject.document().value;
    let text = |at: &str| document.pointer(at).and_then(Value::as_str);
    let is_silent = |at: &str| {
        let asks = |name: &str| document.pointer(&format!("{at}/{name}")).is_some();
        !asks("requires_approval") && !asks("approval")
    };
    let declared = subject.declarations().filter_map(|(at, declaration)| match declaration {
        ToolDeclaration::Typed(TypedTool::Action(tool)) if tool.name == used.name() && is_silent(at) => {
            Some(format!("{at}/name"))
        }
        _ => None,
    });
    let steps = &subject.compiled.steps.places;
    let steps = steps.iter().filter(|_| !subject.is_step()).map(|at| format!("{at}/type"));
    for at in declared.chain(steps.filter(|at| text(at) == Some(used.name()))) {
        let message = format!("`{}` has `approval`, and no call of it here needs one", used.name());
        let help = match at.ends_with("/name") {
            true => {
                "write \"requires_approval\": true, or a condition, beside this name or in the action; false when that is meant"
            }
            false => "write \"requires_approval\": true, or a condition, in the action; false when that is meant",
        };
        let fault = subject.at(&at).report(&RULE, message).help(help);
        found.push(fault.related(&used.at("/approval").key().place(), "`approval` does not ask for one"));
    }
}

/// `on_expiry` where nothing expires.
fn no_time(cursor: &Cursor<'_>, settings: &ApprovalSettings, has_time: bool, found: &mut Vec<Diagnostic>) {
    if settings.on_expiry.is_some() && settings.expires_after_ms.is_none() && !has_time {
        let fault = cursor.below("/on_expiry").report(&RULE, "the approval never expires".to_owned());
        found.push(fault.help("say when: \"expires_after_ms\": 3600000"));
    }
}
