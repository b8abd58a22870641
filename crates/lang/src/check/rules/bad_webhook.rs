//! A webhook whose deliveries can't be verified, or have no address.

use serde_json::{Value, json};

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes, nearest};
use crate::syntax::document::DocumentKind;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::BAD_WEBHOOK, check };

/// Where a workflow has its webhook.
pub(super) const AT: &str = "/definition/trigger/webhook";
/// The most secrets of a webhook: one, those that come and those that go.
const MAX_SECRETS: usize = 4;
/// The most characters of a name in the address.
const MAX_NAME_CHARACTERS: usize = 64;
/// How a secret is named.
const MARK: &str = "orgconfig:";

/// The webhook of a workflow, as it is written.
pub(super) fn written<'a>(subject: &Subject<'a>) -> Option<&'a Value> {
    let document = subject.document();
    let is_workflow = document.kind == Some(DocumentKind::Workflow) && !subject.is_step();
    document.value.pointer(AT).filter(|_| is_workflow)
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(webhook) = written(subject) else { return };
    match webhook.get("secret") {
        Some(Value::Array(secrets)) => {
            let cursor = subject.at(&format!("{AT}/secret"));
            if secrets.is_empty() || secrets.len() > MAX_SECRETS {
                let message = format!("a webhook has 1 to {MAX_SECRETS} secrets");
                let help = "several are for the time in which one takes the place of another";
                found.push(cursor.report(&RULE, message).help(help));
            }
            for (index, secret) in secrets.iter().enumerate() {
                of_secret(subject, &format!("{AT}/secret/{index}"), secret, found);
            }
        }
        Some(secret) => of_secret(subject, &format!("{AT}/secret"), secret, found),
        // The shape reports a secret that is missing.
        None => {}
    }
    let is_hmac = webhook.get("verify").is_some_and(|verify| verify == "hmac");
    let verify = webhook.get("verify").and_then(Value::as_str);
    if let (Some(verify), false, Some(_)) = (verify, is_hmac, webhook.get("hmac")) {
        let cursor = subject.at(&format!("{AT}/hmac")).key();
        let message = format!("`hmac` has no effect: deliveries are verified as `{verify}` signs them");
        let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(&RULE, message) };
        found.push(fault.help("take it out, or write `\"verify\": \"hmac\"`"));
    }
    found.extend(nameless(subject, webhook));
    if let Some(name) = webhook.get("name").and_then(Value::as_str).filter(|name| is_only_dots(name)) {
        let message = format!("{} can't be a part of an address: clients take it out", quoted(name));
        let fault = subject.at(&format!("{AT}/name")).report(&RULE, message);
        found.push(fault.help("write a name with a letter or a digit"));
    }
    for name in ["name", "org"] {
        found.extend(of_sign(subject, webhook, name, is_name_sign, "letters, digits, `_`, `-` and `.`"));
    }
    let settings = webhook.get("hmac").unwrap_or(&Value::Null);
    for name in ["header", "timestamp", "id"] {
        let fault = of_sign(
            subject,
            settings,
            name,
            |sign| sign.is_ascii_alphanumeric() || sign == '-',
            "letters, digits and `-`",
        );
        found.extend(fault);
    }
}

/// A part of an address that names a folder, and that each client resolves.
fn is_only_dots(name: &str) -> bool {
    matches!(name, "." | "..")
}

fn is_name_sign(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.')
}

/// A text of other signs than a name takes; `signs` says which these are.
fn of_sign(
    subject: &Subject<'_>,
    of: &Value,
    name: &str,
    is_sign: impl Fn(char) -> bool,
    signs: &str,
) -> Option<Diagnostic> {
    let text = of.get(name)?.as_str()?;
    if (1..=MAX_NAME_CHARACTERS).contains(&text.len()) && text.chars().all(is_sign) {
        return None;
    }
    let around = if matches!(name, "name" | "org") { AT.to_owned() } else { format!("{AT}/hmac") };
    let message = format!("`{name}` has 1 to {MAX_NAME_CHARACTERS} {signs}");
    Some(subject.at(&format!("{around}/{name}")).report(&RULE, message))
}

/// A secret that is none, is written out, or that the project does not have.
fn of_secret(subject: &Subject<'_>, at: &str, secret: &Value, found: &mut Vec<Diagnostic>) {
    let cursor = subject.at(at);
    let Some(text) = secret.as_str().filter(|_| !subject.is_faulty(at)) else { return };
    let is_key_sign = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.' | ':');
    let key = text.strip_prefix(MARK).filter(|key| !key.is_empty() && key.chars().all(is_key_sign));
    match key {
        Some(key) => found.extend(unknown_key(subject, &cursor, key)),
        // The value may be the secret itself: it is not repeated.
        None if !subject.is_reported(&cursor.place()) => {
            let message = "`secret` names a secret of the project, and is not the secret itself";
            let help = "write `orgconfig:KEY`, and say in `orgconfig` of loopctl.json where it is; when a real secret stood here, \
                        make that one invalid: files are kept and shared";
            found.push(cursor.report(&RULE, message).help(help));
        }
        None => {}
    }
}

fn unknown_key(subject: &Subject<'_>, cursor: &Cursor<'_>, key: &str) -> Option<Diagnostic> {
    let project = subject.project().filter(|_| subject.knows_project("/orgconfig"))?;
    if project.orgconfig.contains_key(key) {
        return None;
    }
    let fault = cursor.report(&RULE, format!("the project has no secret `{key}`"));
    Some(match nearest(key, project.orgconfig.keys().map(String::as_str)) {
        Some(near) => {
            let meant = quoted(&format!("{MARK}{near}"));
            fault.help(format!("the nearest one in its `orgconfig` is `{near}`")).suggest(meant)
        }
        None => {
            let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            let variable: String = key.chars().map(upper).collect();
            fault.help(format!(
                "say in loopctl.json where it is: {}",
                json!({ "orgconfig": { key: format!("env:{variable}") } })
            ))
        }
    })
}

/// A workflow whose name can't be in an address.
fn nameless(subject: &Subject<'_>, webhook: &Value) -> Option<Diagnostic> {
    let name = subject.document().value.get("name")?.as_str().filter(|_| webhook.get("name").is_none())?;
    if (1..=MAX_NAME_CHARACTERS).contains(&name.len()) && name.chars().all(is_name_sign) && !is_only_dots(name) {
        return None;
    }
    let plain: String = name.chars().map(|sign| if is_name_sign(sign) { sign } else { '-' }).collect();
    let message = format!("{} can't be in the address of the webhook", quoted(name));
    let fault = subject.at(AT).key().report(&RULE, message);
    let meant: String = plain.chars().take(MAX_NAME_CHARACTERS).collect();
    Some(
        fault.help(format!(
            "give the webhook a name of letters, digits, `_`, `-` and `.`: \"name\": {}",
            quoted(&meant)
        )),
    )
}
