//! An entry of a script that becomes a text, and was meant as a call, an answer or a refusal.

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes, few_of_many, nearest};
use crate::language::script::{CALL, CALLS, ONE_OF_CALLS, REFUSAL, REPLY_FORMS, ReplyForm, TEXT};
use crate::syntax::document::DocumentKind;
use crate::syntax::{Member, Node, NodeKind, quoted, token};

pub const RULE: Rule = Rule { code: codes::SCRIPT_REPLY, check };

/// The fields by which other products write a call, or a message with one.
const FOREIGN: [&str; 12] = [
    "name",
    "arguments",
    "tool",
    "tool_input",
    "tool_calls",
    "function",
    "function_call",
    "input",
    "args",
    "parameters",
    "role",
    "content",
];
const A_CALL: &str = "a call is written {\"thought\": \"...\", \"action\": \"lookup\", \"action_input\": {...}}";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for list in lists(subject) {
        let count = subject.at(&list).node().and_then(Node::items).map_or(0, <[Node]>::len);
        for at in 0..count {
            entry(&subject.at(&format!("{list}/{at}")), found);
            few_of_many(found);
        }
    }
}

/// The JSON pointers of all lists of replies.
fn lists(subject: &Subject<'_>) -> Vec<String> {
    let members = |at: &str| {
        let members = subject.at(at).node().and_then(Node::members).unwrap_or_default();
        members.iter().map(|member| format!("{at}/{}", token(&member.key))).collect::<Vec<_>>()
    };
    let of = |around: &str| {
        let own = [format!("{around}/replies")].into_iter();
        own.chain(members(&format!("{around}/loops"))).chain(members(&format!("{around}/models")))
    };
    match subject.document().kind {
        Some(DocumentKind::Script) => {
            let count = subject.at("/cases").node().and_then(Node::items).map_or(0, <[Node]>::len);
            of("").chain((0..count).map(|at| format!("/cases/{at}/replies"))).collect()
        }
        Some(DocumentKind::Scenario) => {
            let count = subject.at("/scenarios").node().and_then(Node::items).map_or(0, <[Node]>::len);
            of("").chain((0..count).flat_map(|at| of(&format!("/scenarios/{at}")))).collect()
        }
        _ => Vec::new(),
    }
}

fn entry(cursor: &Cursor<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = cursor.node() else { return };
    let members = match &node.kind {
        NodeKind::Object(members) => members,
        // A text is what the model says; what can't be read was reported.
        NodeKind::String(_) | NodeKind::Fault => return,
        _ => {
            let fault = cursor.report(&RULE, "this entry is no object and no text: the model would say it as a text");
            return found.push(fault.help(A_CALL));
        }
    };
    let keys = || members.iter().map(|member| &*member.key);
    let form = REPLY_FORMS.into_iter().find(|form| form.has(keys()));
    match form {
        None => found.push(no_form(cursor, node, members)),
        Some(form) if form == REFUSAL || form == TEXT => found.extend(directive(cursor, node)),
        Some(form) if form == CALLS => calls(cursor, node, found),
        Some(form) => found.extend(call(cursor, node, form)),
    }
}

/// An object of no form, and what it was most likely meant to be.
fn no_form(cursor: &Cursor<'_>, node: &Node, members: &[Member]) -> Diagnostic {
    const TEXT: &str = "this entry is neither a call, an answer nor a refusal: the model would say it as a text";
    let has = |name: &str| node.get(name).is_some();
    let known = |name: &str| REPLY_FORMS.iter().any(|form| form.allows(name));
    let said = REPLY_FORMS.into_iter().find(|form| has(form.field));
    // A field that is near to one of the form that the others belong to.
    let fields = |form: Option<ReplyForm>| -> Vec<&'static str> {
        let forms = form.map_or_else(|| REPLY_FORMS.to_vec(), |form| vec![form]);
        forms.into_iter().flat_map(|form| form.others.iter().copied().chain([form.field])).collect()
    };
    let absent: Vec<&str> = fields(said).into_iter().filter(|name| !has(name)).collect();
    let misspelt = members.iter().filter(|member| !known(&member.key));
    let near = misspelt.clone().find_map(|member| Some((member, nearest(&member.key, absent.iter().copied())?)));
    if let Some((member, near)) = near {
        let key = cursor.below(&format!("/{}", token(&member.key))).key();
        let message = format!("`{}` is no field of a reply: the model would say the entry as a text", member.key);
        return key.report(&RULE, message).help(format!("the nearest name is `{near}`")).suggest(quoted(near));
    }
    if let Some(status) = said.is_none().then(|| status(members)).flatten() {
        let key = cursor.below(&format!("/{}", token(&status.key))).key();
        let message = format!("`{}` is no field of a reply: the model would say the entry as a text", status.key);
        let fault = key.report(&RULE, message).help("a server's refusal is written {\"http\": 503}");
        let is_all = members.iter().all(|member| member.key == status.key || REFUSAL.allows(&member.key));
        return if is_all { fault.suggest(quoted(REFUSAL.field)) } else { fault };
    }
    if let Some(foreign) = members.iter().find(|member| FOREIGN.contains(&&*member.key)).filter(|_| said.is_none()) {
        let message = format!("{TEXT}: `{}` is how another product writes a call", foreign.key);
        return cursor.report(&RULE, message).help(A_CALL);
    }
    match said {
        Some(form) => {
            let strange: Vec<String> = members
                .iter()
                .filter(|member| !form.allows(&member.key))
                .map(|member| format!("`{}`", member.key))
                .collect();
            let message = format!("{TEXT}: {} does not go with `{}`", strange.join(", "), form.field);
            let others: Vec<String> = form.others.iter().map(|name| format!("`{name}`")).collect();
            cursor.report(&RULE, message).help(format!("beside `{}` it may have {}", form.field, others.join(", ")))
        }
        None if has("final_answer") || has("final") || has("output") || has("response") => {
            cursor.report(&RULE, TEXT).help("an answer is written {\"thought\": \"...\", \"answer\": ...}")
        }
        None => cursor.report(&RULE, TEXT).help(format!("{A_CALL}; a text that is meant, as a string")),
    }
}

/// The status of a server's refusal, under the name that other products give it.
fn status(members: &[Member]) -> Option<&Member> {
    let names = ["status", "status_code", "statusCode", "http_status", "http_code", "code"];
    members.iter().find(|member| names.contains(&&*member.key) && is_status(&member.value))
}

/// Several calls in one reply.
fn calls(cursor: &Cursor<'_>, node: &Node, found: &mut Vec<Diagnostic>) {
    let below = cursor.below("/calls");
    let items = match node.get("calls").and_then(Node::items) {
        Some([]) | None => {
            let message = "`calls` must be a list with one call at least: the model would say the entry as a text";
            return found.push(below.report(&RULE, message).help("{\"calls\": [{\"action\": \"lookup\"}]}"));
        }
        Some(items) => items,
    };
    for (at, item) in items.iter().enumerate() {
        let one = cursor.below(&format!("/calls/{at}"));
        let Some(members) = item.members() else {
            found.push(
                one.report(&RULE, "a call is an object").help("{\"action\": \"lookup\", \"action_input\": {...}}"),
            );
            continue;
        };
        if ONE_OF_CALLS.has(members.iter().map(|member| &*member.key)) {
            found.extend(call(&one, item, ONE_OF_CALLS));
            continue;
        }
        let strange = members.iter().find(|member| !ONE_OF_CALLS.allows(&member.key));
        let what = strange.map_or_else(
            || "`action` is missing".to_owned(),
            |member| format!("`{}` is no field of a call", member.key),
        );
        let message = format!("{what}: the model would say the whole entry as a text");
        found.push(
            one.report(&RULE, message).help("a call is written {\"action\": \"lookup\", \"action_input\": {...}}"),
        );
    }
}

/// The values of a call.
fn call(cursor: &Cursor<'_>, node: &Node, form: ReplyForm) -> Option<Diagnostic> {
    let is_text = |name: &str| node.get(name).is_none_or(|value| value.as_str().is_some());
    let wrong = if !is_text("thought") {
        ("thought", "a text")
    } else if (form == CALL || form == ONE_OF_CALLS)
        && node.get("action").is_some_and(|name| name.as_str().is_none_or(str::is_empty))
    {
        ("action", "the name of a tool")
    } else if node.get("action_input").is_some_and(|input| input.members().is_none()) {
        ("action_input", "an object")
    } else {
        return None;
    };
    let (field, what) = wrong;
    let message = format!("`{field}` must be {what}: the model would say the entry as a text");
    Some(cursor.below(&format!("/{field}")).report(&RULE, message).help(A_CALL))
}

/// A field of a directive, and what its value must be.
struct DirectiveField {
    name: &'static str,
    fits: fn(&Node) -> bool,
    what: &'static str,
}

const DIRECTIVE_FIELDS: [DirectiveField; 5] = [
    DirectiveField { name: "delay_ms", fits: is_count, what: "a whole number of milliseconds" },
    DirectiveField { name: "http", fits: is_status, what: "a status from 100 to 599" },
    DirectiveField { name: "headers", fits: |value| value.members().is_some(), what: "an object" },
    DirectiveField { name: "finish", fits: is_finish, what: "`stop`, `length` or `filtered`" },
    DirectiveField { name: "usage", fits: is_usage, what: "{\"input\": N, \"output\": N}" },
];

fn number(node: &Node) -> Option<u64> {
    match &node.kind {
        NodeKind::Number(digits) => digits.parse().ok(),
        _ => None,
    }
}

fn is_count(node: &Node) -> bool {
    number(node).is_some()
}

fn is_status(node: &Node) -> bool {
    number(node).is_some_and(|status| (100..=599).contains(&status))
}

fn is_finish(node: &Node) -> bool {
    matches!(node.as_str(), Some("stop" | "length" | "filtered" | "content_filter"))
}

fn is_usage(node: &Node) -> bool {
    ["input", "output"].iter().all(|name| node.get(name).is_some_and(is_count))
}

/// A directive that a run would refuse.
fn directive(cursor: &Cursor<'_>, node: &Node) -> Option<Diagnostic> {
    let fails = |field: &&DirectiveField| node.get(field.name).is_some_and(|value| !(field.fits)(value));
    let DirectiveField { name, what, .. } = DIRECTIVE_FIELDS.iter().find(fails)?;
    let fault =
        cursor.below(&format!("/{name}")).report(&RULE, format!("`{name}` must be {what}: the run would end here"));
    Some(Diagnostic { severity: Severity::Error, ..fault.help(format!("write `{name}` as {what}")) })
}
