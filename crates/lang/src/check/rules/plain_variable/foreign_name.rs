//! A name of another product in a template of an action that declares no `parameters`: it would become an input of its own,
//! which the model is asked for.

use super::RULE;
use crate::check::{SentText, TextScope};
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::template::Variable;

pub(super) fn of(sent: &SentText<'_>, scope: &TextScope<'_, '_>) -> Option<Diagnostic> {
    if !scope.takes_any() || !sent.text.contains("{{") {
        return None;
    }
    let field = sent.compiled()?;
    let mut found = None;
    field.each_variable(&mut |_, variable| {
        if found.is_none() && is_foreign(sent.text, variable) {
            found = Some(variable.clone());
        }
    });
    let variable = found?;
    let written = variable.path.join(".");
    let name = variable.path.last()?;
    let message = format!("`{written}` would be an input of the action, which the model is asked for");
    let fault = sent.cursor.clone().inside(variable.range.clone()).report(&RULE, message);
    let fault = Diagnostic { severity: Severity::Warning, ..fault };
    let is_secret = matches!(variable.path.first().map(String::as_str), Some("$credentials" | "$secrets" | "$env"));
    Some(match is_secret {
        true => fault.help(
            "a secret is written `orgconfig:key`, and loopctl.json says where it is: {\"orgconfig\": {\"key\": \"env:KEY\"}}",
        ),
        false if sent.text.get(variable.range.clone()) == Some(&written) => {
            fault.help(format!("an input of a call is written {{{{{name}}}}}")).suggest(name.as_str())
        }
        false => fault.help(format!("an input of a call is written {{{{{name}}}}}")),
    })
}

/// Whether a name begins as those of n8n, GitHub Actions or Argo do.
fn is_foreign(text: &str, variable: &Variable) -> bool {
    let before = text.get(..variable.range.start).unwrap_or_default().trim_end();
    match variable.path.as_slice() {
        [first, ..] if first.starts_with('$') && first.len() > 1 => true,
        [first, second, _, ..] => matches!(first.as_str(), "inputs" | "workflow") && second == "parameters",
        [first, _] => first == "inputs" && before.ends_with("${{"),
        _ => false,
    }
}
