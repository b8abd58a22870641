//! A name of another product in a template of an action that declares no `parameters`: it would become an input of its own,
//! which the model is asked for.

use super::RULE;
use crate::check::{SentText, TextScope};
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::template::Variable;

/// Names that have another meaning in a template.
const NO_INPUT: [&str; 18] = [
    "input", "now", "__run_id", "length", "each", "if", "unless", "with", "lookup", "log", "raw", "as", "inline",
    "this", "else", "true", "false", "null",
];

pub(super) fn of(sent: &SentText<'_>, scope: &TextScope<'_, '_>) -> Option<Diagnostic> {
    if !scope.takes_any() || !sent.text.contains("{{") {
        return None;
    }
    let field = sent.compiled()?;
    let mut found: Option<Variable> = None;
    let mut is_taken = false;
    field.each_variable(&mut |_, variable| match &found {
        None if is_foreign(sent.text, variable) => found = Some(variable.clone()),
        // Two values would become one.
        Some(first) => is_taken |= first.path.last() == variable.path.last() && first.path != variable.path,
        None => {}
    });
    let variable = found?;
    let written = variable.path.join(".");
    let name = variable.path.last()?;
    let message = format!("`{written}` would be an input of the action, which the model is asked for");
    let fault = sent.cursor.clone().inside(variable.range.clone()).report(&RULE, message);
    let fault = Diagnostic { severity: Severity::Warning, ..fault };
    let is_secret = matches!(variable.path.first().map(String::as_str), Some("$credentials" | "$secrets" | "$env"));
    let is_name = variable.path.len() > 1
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !is_taken
        && !NO_INPUT.contains(&name.as_str());
    Some(match is_secret {
        true => fault.help(
            "a secret is written `orgconfig:key`, and loopctl.json says where it is: {\"orgconfig\": {\"key\": \"env:KEY\"}}",
        ),
        false if !is_name => fault.help("an input of a call is written {{name}}, by the name that the action gives it"),
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
