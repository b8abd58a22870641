//! A step of type `notify` whose text reaches nobody: what it is given, and the target that it names.

use serde_json::{Value, json};
use url::Url;

use crate::check::steps::{WrittenStep, steps};
use crate::check::{Cursor, Rule, Subject};
use crate::compile::steps::JsonTypes;
use crate::diagnostic::{Diagnostic, Nearest, codes, nearest};
use crate::language::Project;
use crate::language::notify::{NOTIFY, NotifyKind, NotifyTarget};
use crate::policy::host::{AllowedHost, WrittenHost, is_private, names_host};
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::NOTIFY_TARGET, check };

/// How a target may be on a private address.
pub(super) const PRIVATE: &str =
    "when texts shall reach such hosts, say so: {\"allow\": {\"private_addresses\": true}}";

/// What a step gives.
const MEMBERS: [&str; 2] = ["to", "text"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let mut named = Nearest::default();
    // A registered action of this name comes first.
    let is_action = subject.action(NOTIFY).is_some();
    for step in steps(subject).iter().filter(|step| step.kind == NOTIFY && !is_action) {
        members(subject, step, found);
        found.extend(target(subject, step, &mut named));
    }
    if let Some(project) = subject.project() {
        for (name, target) in &project.notify {
            found.extend(address(subject, project, name, target));
        }
    }
}

/// What is missing of a step, and what it does not take.
fn members(subject: &Subject<'_>, step: &WrittenStep<'_>, found: &mut Vec<Diagnostic>) {
    const HELP: &str = "{\"to\": \"ops\", \"text\": \"{{claim.id}} was paid.\"}";
    let missing = MEMBERS.iter().filter(|name| step.properties.get(**name).is_none_or(Value::is_null));
    let missing: Vec<String> = missing.map(|name| format!("`{name}`")).collect();
    if !missing.is_empty() && !step.is_misread(subject) {
        let at = subject.at(&format!("{}/properties", step.at)).key();
        let message = format!("a step of type `notify` needs {}", missing.join(" and "));
        found.push(at.report(&RULE, message).help(HELP));
    }
    for name in step.properties.keys().filter(|name| !MEMBERS.contains(&name.as_str())) {
        let cursor = subject.at(&step.property(name)).key();
        let fault = cursor.report(&RULE, format!("a step of type `notify` takes no `{name}`"));
        found.push(match nearest(name, MEMBERS) {
            Some(near) => fault.help(format!("did you mean `{near}`?")),
            None => fault.help("it sends one text: write what else is said into `text`"),
        });
    }
    let why = match step.properties.get("text") {
        Some(Value::String(text)) if text.is_empty() => "an empty `text` is not sent: the step fails",
        Some(Value::String(text)) => {
            return found.extend(value_for_text(&RULE, subject, &step.property("text"), "text", text));
        }
        Some(Value::Null) | None => return,
        Some(_) => "`text` is a text: a template with the values in it",
    };
    found.push(subject.at(&step.property("text")).report(&RULE, why).help(HELP));
}

/// The path of a value that is no text, where a text is needed. `name`: that of the property.
pub(super) fn value_for_text(
    rule: &Rule,
    subject: &Subject<'_>,
    at: &str,
    name: &str,
    text: &str,
) -> Option<Diagnostic> {
    let known = subject.compiled.steps.known.get(at).filter(|known| !known.types.meets(JsonTypes::TEXT))?;
    let path = text.trim_start_matches('@');
    let message = format!("`{name}` is a text, and `{text}` is {}", known.types.called());
    let fault = subject.at(at).report(rule, message);
    let is_list = known.types.meets(JsonTypes::LIST);
    Some(match is_list || path.ends_with('?') {
        true => fault.help("a text takes the entries of a list one by one: {{#each rows}}{{name}} {{/each}}"),
        false => {
            let meant = format!("{{{{{path}}}}}");
            fault.help(format!("a value in a text is written `{meant}`")).suggest(quoted(&meant))
        }
    })
}

/// The target that a step names.
fn target(subject: &Subject<'_>, step: &WrittenStep<'_>, named: &mut Nearest) -> Option<Diagnostic> {
    let written = step.properties.get("to").filter(|to| !to.is_null())?;
    let cursor = subject.at(&step.property("to"));
    let is_written_out = |to: &&str| !to.starts_with('@') && !to.contains("{{");
    let Some(to) = written.as_str().filter(is_written_out) else {
        let message = "`to` is the name of a target, written out".to_owned();
        return Some(cursor.report(&RULE, message).help("a `choose` or filters decide between several targets"));
    };
    unknown_target(&RULE, subject, &cursor, to, named)
}

/// A target that the project does not have, at the place that names it.
pub(super) fn unknown_target(
    rule: &Rule,
    subject: &Subject<'_>,
    cursor: &Cursor<'_>,
    to: &str,
    named: &mut Nearest,
) -> Option<Diagnostic> {
    let project = subject.project().filter(|_| subject.knows_project("/notify"))?;
    if project.notify.contains_key(to) {
        return None;
    }
    let fault = cursor.report(rule, format!("the project has no `notify` target `{to}`"));
    let names = || project.notify.keys().map(String::as_str);
    Some(match (named.of(to, names()), subject.in_project("")) {
        (Some(near), _) => fault.help(format!("the nearest one is `{near}`")).suggest(quoted(near)),
        (None, Some(cursor)) if !project.notify.is_empty() => {
            let shown: Vec<&str> = names().take(8).collect();
            fault.help(format!("`notify` of {} has: {}", cursor.place().file, shown.join(", ")))
        }
        (None, at) => {
            let entry = json!({ "notify": { to: { "kind": "slack", "url": "orgconfig:hook" } } });
            fault.help(match at {
                Some(cursor) => format!("say in {} where it is: {entry}", cursor.place().file),
                None => format!("no `loopctl.json` stands beside the document or above it; make one: {entry}"),
            })
        }
    })
}

/// An address that no text reaches.
fn address(subject: &Subject<'_>, project: &Project, name: &str, target: &NotifyTarget) -> Option<Diagnostic> {
    const WHOLE: &str =
        "the whole address as a secret, `orgconfig:KEY`, or written out: https://hooks.example.com/loopctl";
    let cursor = subject.in_project(&format!("/notify/{}/url", token(name)))?;
    let url = target.url.as_deref().filter(|_| target.kind != NotifyKind::Email)?;
    if let Some(key) = url.strip_prefix("orgconfig:") {
        let is_key = !key.is_empty() && key.chars().all(|sign| sign.is_ascii_alphanumeric() || "_-".contains(sign));
        let message = "the address of a target is a secret alone, or is written out".to_owned();
        return (!is_key).then(|| cursor.report(&RULE, message).help(WHOLE));
    }
    let scheme = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
    if !scheme
        || !names_host(url)
        || url.contains("{{")
        || url.contains("orgconfig:")
        || url.contains(char::is_whitespace)
    {
        return Some(cursor.report(&RULE, format!("{} is no address of a server", quoted(url))).help(WHOLE));
    }
    let Ok(read) = Url::parse(url) else {
        return Some(cursor.report(&RULE, "this is no address of a server".to_owned()).help(WHOLE));
    };
    if !read.username().is_empty() || read.password().is_some() {
        let message = "an address with a user name or a password is refused: each text fails".to_owned();
        let help = "a hook is called by a secret path: make the whole address a secret, `orgconfig:KEY`";
        return Some(cursor.report(&RULE, message).help(help));
    }
    let host = WrittenHost::of(url)?;
    let is_private = host.name().is_some_and(|name| is_private(&name));
    if is_private && !project.allow.private_addresses && subject.knows_project("/allow/private_addresses") {
        let message = format!("the host `{}` is private, local or reserved: each text is refused", host.text);
        return Some(cursor.inside(host.range).report(&RULE, message).help(PRIVATE));
    }
    let hosts = project.allow.hosts.as_ref().filter(|_| subject.knows_project("/allow/hosts"))?;
    let entries = hosts.iter().map(|text| AllowedHost::parse(text)).collect::<Option<Vec<_>>>()?;
    let known = host.name()?;
    if entries.iter().any(|entry| entry.allows(&known, host.port)) {
        return None;
    }
    let message = format!("the host `{}` is not in the project's `allow.hosts`: each text is refused", host.text);
    let help = format!("add it: {}", json!({ "allow": { "hosts": [host.text] } }));
    Some(cursor.inside(host.range).report(&RULE, message).help(help))
}
