//! When a human must approve a call: what an action says, and what a declaration adds.

use crate::diagnostic::codes;
use crate::language::approval::{ApprovalSettings, RequiresApproval};
use crate::program::approval::ApprovalPolicy;
use crate::program::condition::CompiledCondition;
use crate::program::fault::LocalFault;
use crate::program::reference::{as_path, each_text};
use crate::program::template::is_template;
use crate::syntax::quoted;

/// Adds what an action or a declaration requires: a policy only becomes stricter.
///
/// # Errors
/// What is wrong with a condition; pointers begin at `requires_approval`.
pub(crate) fn require(
    policy: &mut ApprovalPolicy,
    written: &RequiresApproval,
    settings: Option<&ApprovalSettings>,
) -> Result<(), Vec<LocalFault>> {
    settings.into_iter().for_each(|settings| policy.tighten(settings));
    let condition = match written {
        RequiresApproval::Always(always) => {
            policy.always |= always;
            return Ok(());
        }
        RequiresApproval::When(condition) => condition,
    };
    let mut faults = Vec::new();
    let value = serde_json::to_value(condition).unwrap_or_default();
    each_text(&value, &mut String::new(), &mut |at, text| faults.extend(foreign_name(at, text)));
    match CompiledCondition::compile(condition) {
        Ok(compiled) if faults.is_empty() => {
            policy.when.push(compiled);
            Ok(())
        }
        Ok(_) => Err(faults),
        Err(more) => {
            faults.extend(more);
            Err(faults)
        }
    }
}

/// The names of a call's input that a condition reads.
pub(super) fn inputs(written: &RequiresApproval) -> Vec<String> {
    let RequiresApproval::When(condition) = written else { return Vec::new() };
    let mut names = Vec::new();
    let value = serde_json::to_value(condition).unwrap_or_default();
    each_text(&value, &mut String::new(), &mut |_, text| {
        let mut path = as_path(text).into_iter().flatten();
        names.extend(path.next().filter(|first| first == "input").and_then(|_| path.next()));
    });
    names
}

/// A text of a condition that takes another value than the call's input.
fn foreign_name(at: &str, text: &str) -> Option<LocalFault> {
    if is_template(text) {
        let message = format!("{} is no operand: a condition takes values by their `@path`", quoted(text));
        let fault = LocalFault::error(codes::BAD_OPERAND, at, message);
        let inner = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).unwrap_or_default().trim();
        let is_input =
            as_path(&format!("@{inner}")).is_some_and(|path| path.first().is_some_and(|first| first == "input"));
        let meant = if is_input { format!("@{inner}") } else { format!("@input.{inner}") };
        return Some(match as_path(&meant) {
            Some(_) => fault.help(format!("a path begins with `@`: `{meant}`")).replace_with(quoted(&meant)),
            None => fault.help("compare the values themselves: `@input.amount`"),
        });
    }
    let is_key = at.ends_with("/hasKey");
    let path = as_path(text).or_else(|| as_path(&format!("@{text}")).filter(|_| is_key))?;
    if path.first().is_some_and(|first| first == "input") {
        return None;
    }
    let meant = format!("@input.{}", path.join("."));
    let message = format!("{} is not the call's input, and nothing else is known before the call", quoted(text));
    let fault = LocalFault::error(codes::UNKNOWN_VARIABLE, at, message);
    Some(fault.help(format!("the input of the call is `@input`: `{meant}`")).replace_with(quoted(&meant)))
}
