//! The kinds of actions, compiled. A kind whose texts are templates needs nothing here; `http` and `matcher` have files of
//! their own.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::sql::{self, OtherPlaceholder, Placeholders};
use super::{ActionDraft, NamedVariable, NamingForm, http, matcher, parameters};
use crate::compile::review::{ReviewedValues, review};
use crate::diagnostic::{Severity, codes};
use crate::language::Action;
use crate::language::action::{CommandAction, DbAction, TextKind};
use crate::policy::variables;
use crate::program::answer_form::AnswerForm;
use crate::program::fault::LocalFault;
use crate::program::reference::escape_pointer;
use crate::program::template::{Template, ValueEscape, Variable, is_template};
use crate::program::{CommandTool, DbTool, Schema, TemplatedAction, ToolKind};

/// What an action does, compiled. None when it has faults.
pub(super) fn compile(action: &Action, work: &mut ActionDraft<'_>) -> Option<ToolKind> {
    match action {
        Action::Http(action) => http::compile(action, work).map(ToolKind::Http),
        Action::Db(action) => db(action, work).map(ToolKind::Db),
        Action::Command(action) => command(action, work).map(ToolKind::Command),
        Action::Matcher(action) => matcher::compile(action, work).map(ToolKind::Matcher),
        _ => templated(action, work).map(ToolKind::Action),
    }
}

/// The templates of an action, compiled. What a model is asked takes no secret.
fn templated(action: &Action, work: &mut ActionDraft<'_>) -> Option<TemplatedAction> {
    let kind = action.kind();
    let (mut texts, mut is_whole) = (Vec::new(), true);
    for written in kind.templates() {
        let pointer = written.pointer;
        let Some(template) = work.template(written.text, ValueEscape::Plain, &pointer) else {
            is_whole = false;
            continue;
        };
        let field = pointer.split('/').nth(1).unwrap_or_default();
        let is_question = kind.texts().iter().any(|text| text.field == field && text.kind == TextKind::Question);
        if let Some(key) = template.secrets().first().filter(|_| is_question) {
            let secret = format!("orgconfig:{key}");
            let inside = written.text.find(&secret).map(|at| at..at + secret.len());
            let message = format!("the secret `{secret}` would be sent to the model");
            let fault = LocalFault::error(codes::SECRET_IN_PROMPT, &pointer, message);
            let help = "a secret never goes to a model: use it in an action's header, address or environment";
            work.push(LocalFault { inside, ..fault.help(help) });
        }
        texts.push((pointer, template));
    }
    let answer = kind.answer_schema().map(|written| answer_form(written, work));
    // A schema with a fault is no answer that any text could be.
    let answer = match answer {
        Some(None) => return None,
        Some(form) => form,
        None => None,
    };
    is_whole.then(|| TemplatedAction::new(action.clone(), texts, answer))
}

/// What the answer of a model must be; none when its schema has an error.
fn answer_form(written: &Value, work: &mut ActionDraft<'_>) -> Option<AnswerForm> {
    let examined = Schema::examine(&Arc::new(written.clone()));
    let refused: Vec<&str> = examined.faults.iter().map(|fault| fault.path.as_str()).collect();
    let review = review(written, ReviewedValues::Anything, &refused);
    let refused: Vec<LocalFault> =
        examined.faults.into_iter().map(|fault| parameters::bad_schema(written, fault)).collect();
    let faults: Vec<LocalFault> = refused.into_iter().chain(review.faults).collect();
    let is_sound = !faults.iter().any(LocalFault::is_error);
    faults.into_iter().for_each(|fault| work.push(fault.under("/answer_schema")));
    examined.rest.filter(|_| is_sound).map(AnswerForm::of)
}

fn db(action: &DbAction, work: &mut ActionDraft<'_>) -> Option<DbTool> {
    let Placeholders { named, positional, anonymous, values: wanted } = sql::placeholders(&action.query);
    let is_other = other_placeholders(action, positional, work);
    if action.params.is_empty() {
        if positional + anonymous > 0 && !work.unknown.holds("/params") {
            let message = "the query has placeholders without a name, and `params` does not say what they take";
            work.push(LocalFault::error(codes::BAD_QUERY, "/query", message).help("write :name, or add `params`"));
        }
        let mut known = HashSet::new();
        for (name, range) in named {
            // The same name twice is one parameter.
            if known.insert(name.clone()) {
                let variable = Variable { path: vec![name], range, optional: false };
                work.named.push(NamedVariable { pointer: "/query".to_owned(), variable, form: NamingForm::default() });
            }
        }
        return Some(DbTool { action: action.clone(), params: Vec::new() });
    }
    if wanted != action.params.len() && !is_other && !work.unknown.holds("/query") {
        let message = format!("the query takes {wanted} values, and `params` has {}", action.params.len());
        let help = "each placeholder takes one entry of `params`, in their order";
        work.push(LocalFault::error(codes::BAD_QUERY, "/params", message).help(help));
    }
    let mut params = Vec::with_capacity(action.params.len());
    for (at, value) in action.params.iter().enumerate() {
        params.extend(work.field(value, &format!("/params/{at}")));
    }
    Some(DbTool { action: action.clone(), params })
}

/// Reports the placeholders of other languages in a query, of which `positional` have numbers; whether there are any.
fn other_placeholders(action: &DbAction, positional: usize, work: &mut ActionDraft<'_>) -> bool {
    let listed = action.parameters.as_ref().and_then(|parameters| parameters.get("properties")?.as_object());
    let mut others = sql::others(&action.query);
    // Braces that are the ends of two texts of the query hold no name.
    others.retain(|other| !action.query.get(other.range.clone()).is_some_and(|written| written.contains('\'')));
    // A text of the query may hold anything, unless it is a parameter's name.
    let is_known = |name: &str| listed.is_some_and(|listed| listed.contains_key(name));
    let is_sure = |other: &OtherPlaceholder<'_>| !other.is_quoted || other.is_marked || is_known(other.name);
    // Alone between quotes, behind a comparison, it can't be meant as a text.
    let is_compared = |other: &OtherPlaceholder<'_>| {
        let before = action.query.get(..other.range.start).unwrap_or_default();
        before.trim_end_matches(['\'', '"']).trim_end().ends_with(['=', '<', '>'])
    };
    others.retain(|other| is_sure(other) || (!other.name.is_empty() && is_compared(other)));
    // Which values the query takes is not known before they are written as ours.
    work.is_partial |= !others.is_empty();
    for (at, other) in others.iter().enumerate() {
        let written = action.query.get(other.range.clone()).unwrap_or_default();
        let by_name = !other.name.is_empty() && action.params.is_empty();
        let instead = if by_name { format!(":{}", other.name) } else { format!("${}", positional + at + 1) };
        let how = if by_name { "" } else { ", with its value in `params`" };
        let message = format!("`{written}` is no placeholder of a query: values are never written into it");
        let fault = LocalFault::error(codes::BAD_QUERY, "/query", message).inside(other.range.clone());
        let fault = if is_sure(other) { fault } else { LocalFault { severity: Severity::Warning, ..fault } };
        let fault = fault.help(format!("write `{instead}`, without quotes around it{how}"));
        work.push(if by_name && !other.is_quoted { fault.rename(written, &instead) } else { fault });
    }
    !others.is_empty()
}

fn command(action: &CommandAction, work: &mut ActionDraft<'_>) -> Option<CommandTool> {
    for (pointer, text) in [("/program", Some(&action.program)), ("/cwd", action.cwd.as_ref())] {
        if text.is_some_and(|text| is_template(text)) {
            let message =
                format!("`{}` is no template: what runs, and where, is written out", pointer.trim_start_matches('/'));
            work.push(
                LocalFault::error(codes::BAD_COMMAND, pointer, message)
                    .help("let values go to `args`, `stdin` or `env`"),
            );
        }
    }
    let mut args = Vec::with_capacity(action.args.len());
    for (at, text) in action.args.iter().enumerate() {
        args.extend(command_text(action, text, &format!("/args/{at}"), work));
    }
    let stdin = action.stdin.as_ref().and_then(|text| command_text(action, text, "/stdin", work));
    let mut env = BTreeMap::new();
    for (name, text) in &action.env {
        let pointer = format!("/env/{}", escape_pointer(name));
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!("`{}` is no name of a variable of the environment", name.escape_debug());
            let fault = LocalFault::error(codes::BAD_COMMAND, &pointer, message).at_key();
            work.push(fault.help("letters, digits and `_`"));
        }
        let before = work.named.len();
        let Some(template) = command_text(action, text, &pointer, work) else { continue };
        loader(name, &pointer, before, work);
        env.insert(name.clone(), template);
    }
    Some(CommandTool { action: action.clone(), args, stdin, env })
}

/// A text that a program gets. In one that is written as JSON, a text outside of quotes adds members.
fn command_text(action: &CommandAction, text: &str, pointer: &str, work: &mut ActionDraft<'_>) -> Option<Template> {
    let escape = ValueEscape::of_text(text);
    let template = work.template(text, escape, pointer)?;
    if escape == ValueEscape::JsonStrings {
        let help = "write it between quotes, where it is escaped; or say in `parameters` that it is no text: {\"type\": \"number\"}";
        let is_printed =
            |variable: &Variable| template.uses().iter().any(|used| used.is_printed && used.range == variable.range);
        let is_safe = |variable: &Variable| !is_printed(variable) || is_no_text(action, variable);
        http::unquoted(&template, pointer, help, work, is_safe);
    }
    Some(template)
}

/// Whether the schema of an argument allows no text: other values are printed as JSON.
fn is_no_text(action: &CommandAction, variable: &Variable) -> bool {
    let mut schema = action.parameters.as_deref();
    for name in &variable.path {
        schema = schema.and_then(|schema| schema.get("properties")?.get(name));
    }
    let Some(schema) = schema else { return false };
    let words = match schema.get("type") {
        Some(Value::Array(words)) => words.as_slice(),
        Some(word) => std::slice::from_ref(word),
        None => &[],
    };
    let values = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (_, Some(value)) => std::slice::from_ref(value),
        _ => &[],
    };
    !words.is_empty() && words.iter().all(|word| word != "string")
        || !values.is_empty() && !values.iter().any(Value::is_string)
}

/// Refuses a value that would choose the code that runs. No project can allow that: the list of allowed names
/// is empty here.
fn loader(name: &str, pointer: &str, before: usize, work: &mut ActionDraft<'_>) {
    // The names since then are those of this variable.
    let Some(named) = work.named.iter().skip(before).find(|named| named.is_value()) else { return };
    if variables::refusal(name, true, &[]) != Some(variables::Refusal::Steers) {
        return;
    }
    let path = named.variable.path.join(".");
    let family = variables::family(name);
    let message = match family {
        Some(family) => {
            let writer = named.writer();
            format!("a variable whose name begins with `{family}` can decide which programs run, and `{path}` {writer}")
        }
        None => format!("`{name}` decides which programs run, and `{path}` {}", named.writer()),
    };
    let inside = named.variable.range.clone();
    let help = match family {
        Some(family) => {
            format!("no name that begins with `{family}` takes a value: write its value out, or use another name")
        }
        None => "write its value out".to_owned(),
    };
    work.push(LocalFault::error(codes::LOADER, pointer, message).inside(inside).help(help));
}
