//! Objects: unknown, misplaced and missing fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::document_schemas::{description, resolve, words};
use super::form::{LazyForm, Others, SchemaForm};
use super::step_fields::{is_step, setting_of_action};
use super::{MAX_UNKNOWN, Renamed, Walker, insert, listed};
use crate::diagnostic::{Diagnostic, Related, codes, is_slip, shown};
use crate::syntax::{Member, Node, Span, foreign_syntax, other_word, quoted};

/// The number of members up to which an object is small.
const MAX_SMALL_MEMBERS: usize = 16;
/// The most places that one fault lists.
const MAX_RELATED: usize = 50;

/// The field that is probably meant by an unknown key.
struct Near {
    field: &'static str,
    /// Whether no other field can be meant.
    lone: bool,
    help: String,
}

/// The object that an unknown field is in.
struct UnknownIn<'o, 'a> {
    form: &'o SchemaForm,
    /// The branches of which it is one.
    union: Option<&'a SchemaForm>,
    /// The known fields that are not there.
    absent: &'o [&'static str],
    /// Whether another field than `name` says what a step does.
    has_type: bool,
}

/// A field of another branch, in words: `items_path` is one of mode `foreach`.
fn of_sibling(union: &SchemaForm, name: &str) -> Option<String> {
    let tag = union.tag?;
    let has = |(word, branch): &(Option<&'static str>, LazyForm)| word.filter(|_| branch.fields.has(name));
    let mut words: Vec<String> = Vec::new();
    for word in union.one_of.iter().filter_map(has).map(|word| format!("`{word}`")) {
        // Two branches may have the same word: a loop that is written as a step, and one with a document of its own.
        if !words.contains(&word) {
            words.push(word);
        }
    }
    (!words.is_empty()).then(|| format!("`{name}` is a field of {tag} {}", listed(&words)))
}

impl<'a> Walker<'a> {
    pub(super) fn object(&mut self, form: &'a SchemaForm, node: &Node, members: &[Member], key: Option<Span>) -> Value {
        let mut explained: Vec<String> = self.reported.take().into_iter().collect();
        let union = self.union.take();
        // The fields that unknown keys are read as.
        let mut meant: BTreeMap<&str, &'static str> = BTreeMap::new();
        let is_bare = matches!(form.others, Others::None) && !self.full() && self.bare_filter(form, node, members);
        if is_bare {
            explained.push("condition".to_owned());
        } else if matches!(form.others, Others::None) {
            let (mut homes, mut absent) = (BTreeMap::new(), None);
            let moved = self.fields_of_step(form, node, members);
            if !moved.is_empty() {
                explained.push("properties".to_owned());
            }
            let is_left = |member: &&Member| !form.fields.has(&member.key) && !moved.contains(&&*member.key);
            for member in members.iter().filter(is_left) {
                self.unknown_names += 1;
                if !self.full() && self.unknown_names <= MAX_UNKNOWN {
                    if self.condition_of_step(form, node, member) {
                        continue;
                    }
                    let fields = || field_names(form.schema).into_iter().filter(|field| node.get(field).is_none());
                    let absent = absent.get_or_insert_with(|| fields().collect::<Vec<_>>());
                    let has_type = ["uses", "template", "action", "action_name", "run"]
                        .iter()
                        .any(|name| node.get(name).is_some());
                    let object = UnknownIn { form, union, absent, has_type };
                    let Some(near) = self.unknown(&object, member, &mut homes) else { continue };
                    if near.lone && !meant.values().any(|field| *field == near.field) {
                        meant.insert(&member.key, near.field);
                        self.renamed.push(Renamed {
                            object: self.pointer.clone(),
                            key: member.key.to_string(),
                            field: near.field.to_owned(),
                        });
                    }
                    explained.push(near.field.to_owned());
                }
            }
        }
        let others = match &form.others {
            Others::Of(of) => Some(of),
            Others::Any | Others::None => None,
        };
        let mut map = Map::with_capacity(members.len());
        for member in members {
            let name = meant.get(&*member.key).copied().unwrap_or(&*member.key);
            let span = Some(member.key_span);
            let value = match form.fields.get(name).or(others) {
                Some(of) if form.required.contains(&name) => {
                    Some(self.inside(name, |walker| walker.needed(of, &member.value, span)))
                }
                Some(of) => self.inside(name, |walker| walker.optional(of, &member.value, span)),
                // Where other fields are not allowed, an unknown one is reported once and then ignored.
                None if matches!(form.others, Others::None) && !self.full() => None,
                None => Some(member.value.value()),
            };
            if let Some(value) = value {
                insert(&mut map, name, value);
            }
        }
        self.missing(form, node, key, &explained);
        self.fill_missing(form, &mut map);
        Value::Object(map)
    }

    /// Fills in missing fields, so that serde can read the object.
    fn fill_missing(&mut self, form: &'a SchemaForm, map: &mut Map<String, Value>) {
        // In a text that could not be read completely, the field may be in the unread part.
        if !self.whole {
            return;
        }
        for name in form.required.iter().copied() {
            // An object has few members: a look at them costs less than a search.
            let is_there =
                if map.len() <= MAX_SMALL_MEMBERS { map.keys().any(|key| key == name) } else { map.contains_key(name) };
            if !is_there
                && let Some(field) = form.fields.get(name)
                && self.inside(name, Self::mark_unknown)
            {
                insert(map, name, field.stand_in());
            }
        }
    }

    /// Reports an unknown field. Returns the field that it is close to. Several that belong to one other place
    /// are one fault: `homes` holds the fault that was reported for it.
    fn unknown(
        &mut self,
        object: &UnknownIn<'_, 'a>,
        member: &Member,
        homes: &mut BTreeMap<String, usize>,
    ) -> Option<Near> {
        let UnknownIn { form, union, absent, has_type } = *object;
        let place = self.place(member.key_span);
        let name = &*member.key;
        let (fields, required) = (field_names(form.schema), &form.required);
        let near = self.near(form, member, absent);
        let home = self.known.home(name, &self.pointer);
        let pointer = format!("{}/{}", self.pointer, crate::syntax::token(name));
        let message = format!("the field `{name}` is not known in {}", self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, place);
        let needed = near.as_ref().is_some_and(|near| required.contains(&near.field));
        // One letter more or less is a slip, when the value is what the field takes: `action` for `actions`.
        let slip = near.as_ref().is_some_and(|near| {
            (is_slip(name, near.field) || other_word::is_sure(name, near.field, absent))
                && form.fields.get(near.field).is_some_and(|field| field.takes(&member.value))
        });
        if let Some(help) = union.filter(|_| !needed && !slip).and_then(|union| of_sibling(union, name)) {
            self.misplaced.push(name.to_owned());
            self.report(fault.help(help));
            return None;
        }
        let is_named = ["name", "action_name"].contains(&name);
        let is_own = near.as_ref().is_none_or(|near| near.field != "type") || (has_type && name == "name");
        if is_named && is_step(form) && is_own {
            self.report(fault.help("a step names its action as its `type`, and itself by its `id`"));
            return None;
        }
        if let Some(help) = self.elsewhere(form, name) {
            self.misplaced.push(name.to_owned());
            let fault = fault.help(help);
            let removal = if is_type_of_workflow(form, &self.pointer, name) { self.removal(member) } else { None };
            self.report(match removal {
                Some(Span { start, end }) => fault.suggest_at("", start, end),
                None => fault,
            });
            return None;
        }
        let foreign = foreign_syntax::help_for(name);
        let (fault, explains) = match (near, home) {
            // A name that is known elsewhere is no typing mistake, unless the field that it is close to is
            // missing, or differs by a letter.
            (near, Some(home)) if !(needed || slip) || near.is_none() => {
                self.misplaced.push(name.to_owned());
                if let Some(first) = homes.get(&home).and_then(|first| self.faults.get_mut(*first)) {
                    let message = shown(&format!("`{name}` belongs {home}, too"));
                    let (file, line) = (fault.place.file.to_string(), fault.place.line);
                    if first.related.len() < MAX_RELATED {
                        first.related.push(Related { file, line, message });
                    }
                    return None;
                }
                let help = match foreign_syntax::declared_action(&member.value) {
                    Some(action) if home == "in `definition`" => {
                        format!("a workflow finds its actions in files beside it: `actions/{action}.json`")
                    }
                    _ => format!("`{name}` belongs {home}"),
                };
                homes.insert(home, self.faults.len());
                (fault.help(help), None)
            }
            (Some(near), _) => {
                let fault = fault.help(near.help.as_str());
                (if near.lone { fault.suggest(quoted(near.field)) } else { fault }, Some(near))
            }
            (None, _) if foreign.is_some() => (fault.help(foreign.unwrap_or_default()), None),
            (None, _) => {
                let names: Vec<String> = absent.iter().map(|field| format!("`{field}`")).collect();
                let help = match names.as_slice() {
                    [] => "all fields that are known here are there".to_owned(),
                    names if names.len() < fields.len() => format!("also known here: {}", names.join(", ")),
                    names => format!("known here: {}", names.join(", ")),
                };
                (fault.help(help), None)
            }
        };
        self.report(fault);
        explains
    }

    /// The bytes that go with a member of the present object: it, and the comma that ends or begins it.
    fn removal(&self, member: &Member) -> Option<Span> {
        let members = self.tree.at(&self.pointer)?.members().filter(|_| self.whole)?;
        let place = members.iter().position(|other| other.key_span == member.key_span)?;
        let next = members.get(place + 1).map(|next| Span::new(member.key_span.start, next.key_span.start));
        let before = || place.checked_sub(1).and_then(|before| members.get(before));
        next.or_else(|| before().map(|before| Span::new(before.value.span.end, member.value.span.end)))
    }

    /// What belongs to no place that the shape of the document shows.
    fn elsewhere(&self, form: &SchemaForm, name: &str) -> Option<String> {
        let is_workflow = is_workflow(form, &self.pointer);
        match name {
            "requires_approval" | "approval" if is_step(form) => Some(foreign_syntax::APPROVAL_OF_STEP.to_owned()),
            "requires_approval" | "approval" if is_workflow || self.is_definition(form) => {
                Some(foreign_syntax::APPROVAL_OF_WORKFLOW.to_owned())
            }
            "type" | "kind" | "mode" if self.is_definition(form) => {
                Some(format!("a `definition` has no `{name}`, it makes the document a workflow: leave it out"))
            }
            _ if is_step(form) && let Some(help) = setting_of_action(form, name) => Some(help),
            "input" if is_step(form) => {
                Some("what a step gives its action, or its workflow, are its `properties`".to_owned())
            }
            "on_failure" if is_step(form) => foreign_syntax::help_for("catch")
                .map(|help| help.replace("`catch` is a field of other products; here ", "")),
            _ if form.fields.has("question") && form.fields.has("fields") && form.fields.has("show") => of_form(name),
            _ if form.fields.has("choices") && form.fields.has("help") => of_form_field(name),
            "outputKey" | "output_key" if form.fields.has("objective") && form.fields.has("result_key") => {
                Some("the key of what the loop answers is its `result_key`".to_owned())
            }
            "prompt" if form.fields.has("objective") && self.tree.at(&format!("{}/objective", self.pointer)).is_some() => Some(
                "what the model is asked is the `objective`; `system_prompt` takes the place of the text that loopctl writes, as a \
                 whole"
                    .to_owned(),
            ),
            "temperature" if form.fields.has("provider") && form.fields.has("api_key") => Some(
                "a loop of mode `react` has its `temperature` among its `properties`, and an action of kind `llm` beside its \
                 `template`"
                    .to_owned(),
            ),
            "max" | "max_runs" | "max_concurrent" if form.fields.has("when_full") => {
                Some("how many runs are under way at a time is `limit`".to_owned())
            }
            _ if form.fields.has("request_payload") || is_step(form) => of_approval(form, name),
            _ if is_type_of_workflow(form, &self.pointer, name) => {
                Some(format!("a workflow has no `{name}`, its `definition` makes it one: leave it out"))
            }
            "input" | "name" | "description" if self.is_definition(form) => {
                Some(format!("`{name}` belongs at the top of the document, beside `definition`"))
            }
            "on" | "day" | "days" | "weekday" | "weekdays" | "cron" if self.pointer == "/definition/schedule" => Some(
                "a schedule has an interval, and `at`: `\"every\": \"1d\"` is each day, `\"7d\"` each Monday. For other days, let the \
                 first step ask in its `filter`, or start the runs with `loopctl run` from a scheduler"
                    .to_owned(),
            ),
            "steps" | "nodes" | "tasks" | "jobs" if is_workflow => {
                Some("the steps of a workflow are the list `actions` in its `definition`".to_owned())
            }
            _ => None,
        }
    }

    /// Whether the present object is the `definition` of a workflow.
    fn is_definition(&self, form: &SchemaForm) -> bool {
        self.pointer == "/definition" && form.fields.has("on_failure")
    }

    /// The field that is probably meant by an unknown key: by a common word for it, or by a similar name.
    fn near(&mut self, form: &SchemaForm, member: &Member, absent: &[&'static str]) -> Option<Near> {
        let name = &*member.key;
        if let Some(field) = other_word::field_of(name, absent).or_else(|| of_step(form, name, absent)) {
            let lone = form.fields.get(field).is_some_and(|form| form.takes(&member.value));
            return Some(Near { field, lone, help: format!("`{name}` is called `{field}` here") });
        }
        let (near, lone) = self.nearest.field(name, absent.iter().copied())?;
        let field = absent.iter().copied().find(|field| *field == near)?;
        Some(Near { field, lone, help: format!("the nearest name is `{field}`") })
    }

    fn missing(&mut self, form: &SchemaForm, node: &Node, key: Option<Span>, explained: &[String]) {
        if !self.whole {
            return;
        }
        let schema = form.schema;
        for name in form.required.iter().copied() {
            if node.get(name).is_some() {
                continue;
            }
            let reported = explained.iter().chain(&self.misplaced).any(|known| known == name);
            if reported || self.holds_misplaced(schema, name) {
                continue;
            }
            let place = self.place(key.unwrap_or(Span::new(node.span.start, node.span.start + 1)));
            let message = format!("`{name}` is missing in {}", self.label());
            let field = schema.get("properties").and_then(|fields| fields.get(name));
            let about = field.and_then(description);
            let fault = Diagnostic::error(codes::MISSING_FIELD, message, self.pointer.as_str(), place);
            let words = field.and_then(|field| words(resolve(self.known.schema, field))).unwrap_or_default();
            self.report(match (words.as_slice(), about) {
                _ if name == "when" && schema.pointer("/properties/steps").is_some() => fault.help(
                    "each case has its condition as `when`; the steps that run where none holds are `otherwise`, beside `cases`",
                ),
                ([word], _) => fault.help(format!("add `\"{name}\": \"{word}\"`")),
                (_, Some(about)) => fault.help(format!("`{name}`: {about}")),
                _ => fault,
            });
        }
    }

    /// Whether an object is missing because its fields are written in the object around it.
    fn holds_misplaced(&self, schema: &Value, name: &str) -> bool {
        let Some(field) = schema.get("properties").and_then(|fields| fields.get(name)) else { return false };
        let field = resolve(self.known.schema, field);
        let branches = field.get("oneOf").and_then(Value::as_array).into_iter().flatten();
        branches
            .chain(std::iter::once(field))
            .flat_map(|branch| field_names(branch))
            .any(|inner| self.misplaced.iter().any(|misplaced| misplaced == inner))
    }
}

/// What is written for a field that a form has under another name.
fn of_form(name: &str) -> Option<String> {
    let help = match name {
        "title" | "comment" | "text" | "message" => {
            "a form with `fields` says what it asks for in its `question`; one with `expected_keys` shows these names alone"
        }
        "request_payload" | "payload" | "context" | "data" => "what a human sees beside the question is `show`",
        "expires_after_ms" | "expires_in" | "timeout" | "timeout_ms" | "timeout_seconds" | "ttl" | "ttl_ms" => {
            "how long a form is open is `ttl_seconds`, in seconds"
        }
        _ => return None,
    };
    Some(help.to_owned())
}

/// The same for a field of a form.
fn of_form_field(name: &str) -> Option<String> {
    let help = match name {
        "title" | "caption" => "what a human reads beside the field is its `label`",
        "description" | "placeholder" => "a sentence about the field is its `help`",
        "pattern" | "regex" | "format" | "minLength" | "maxLength" | "min_length" | "max_length" => {
            "a text of a form has no pattern and no other bound than that of its type: ask for it again in a form with a \
             `filter`"
        }
        _ => return None,
    };
    Some(help.to_owned())
}

/// What is written for a field that an approval has elsewhere. `form` is that of the step, or of its properties.
fn of_approval(form: &SchemaForm, name: &str) -> Option<String> {
    let inner = form.fields.get("properties");
    if !form.fields.has("request_payload") && !inner.is_some_and(|inner| inner.fields.has("request_payload")) {
        return None;
    }
    Some(match name {
        "approvers" | "approver" | "assignee" | "assignees" | "reviewers" | "users" | "min_approvals" => {
            "one person decides it, whoever may decide runs; several are asked by an action with \"requires_approval\": true and \
             \"approval\": {\"approvers\": 2}"
                .to_owned()
        }
        "timeout" | "timeout_ms" | "timeout_seconds" | "expires_after_ms" | "expires_in" | "ttl_seconds" | "ttl"
        | "deadline" | "on_expiry" | "on_timeout" => {
            "it waits without end; an answer in time is asked for by a \"type\": \"PbotForm\" with `ttl_seconds`, or by an action \
             with \"requires_approval\": true and \"approval\": {\"expires_after_ms\": 3600000}"
                .to_owned()
        }
        "options" | "choices" | "buttons" | "answers" => {
            "it is answered with yes or no; other answers are asked for by a \"type\": \"PbotForm\" with `expected_keys`".to_owned()
        }
        _ => return None,
    })
}

/// The field of a step that its action is named by.
fn of_step(form: &SchemaForm, name: &str, absent: &[&'static str]) -> Option<&'static str> {
    let is_name = is_step(form) && ["name", "action_name", "action"].contains(&name);
    absent.iter().copied().find(|field| is_name && *field == "type")
}

/// Whether the present object is a workflow.
fn is_workflow(form: &SchemaForm, pointer: &str) -> bool {
    pointer.is_empty() && form.fields.has("definition")
}

/// Whether a field of a workflow says what the document is, which its `definition` does.
fn is_type_of_workflow(form: &SchemaForm, pointer: &str, name: &str) -> bool {
    is_workflow(form, pointer) && matches!(name, "type" | "kind" | "mode")
}

fn field_names(schema: &Value) -> Vec<&str> {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.map(|fields| fields.keys().map(String::as_str).collect()).unwrap_or_default()
}
