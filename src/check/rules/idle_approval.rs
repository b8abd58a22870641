//! Settings of an approval that nothing asks for, or that have no effect beside each other.

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::approval::ApprovalSettings;

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
            let declared = subject.declarations().iter().filter_map(|(_, declaration)| match declaration {
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
            no_time(&used.at("/approval"), &settings, false, found);
        }
    }
}

/// `on_expiry` where nothing expires.
fn no_time(cursor: &Cursor<'_>, settings: &ApprovalSettings, has_time: bool, found: &mut Vec<Diagnostic>) {
    if settings.on_expiry.is_some() && settings.expires_after_ms.is_none() && !has_time {
        let fault = cursor.below("/on_expiry").report(&RULE, "the approval never expires".to_owned());
        found.push(fault.help("say when: \"expires_after_ms\": 3600000"));
    }
}
