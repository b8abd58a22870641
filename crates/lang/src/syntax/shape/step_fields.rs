//! Fields that are written at a step and belong in it: the inputs of its action, the properties of a built-in step, and the
//! list whose items are gone through.

use super::Walker;
use super::form::{Others, SchemaForm};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::foreign_step::{self, BuiltInStep};
use crate::syntax::foreign_words::FOREACH;
use crate::syntax::{Member, Node, NodeKind, Span, Tree, foreign_syntax, other_word, quoted, token};

/// The longest text that a suggestion writes anew, in bytes.
const MAX_SHOWN_BYTES: usize = 2_000;
/// The most fields of a step that are looked at together.
const MAX_MOVED: usize = 64;
/// The most names that a message lists.
const MAX_LISTED: usize = 8;

/// What other products call the list, the name of its item, and the steps.
const LISTS: [&str; 10] =
    ["items_path", "items", "over", "in", "list", "each", "for_each", "foreach", "collection", "withItems"];
const ITEMS: [&str; 7] = ["item_variable_name", "as", "item", "var", "variable", "item_name", "iterator"];
const STEPS: [&str; 7] = ["actions_to_execute", "steps", "actions", "do", "body", "tasks", "run"];

/// What other products write at a step that is run for each item of a list.
const FOR_EACH: [&str; 12] = [
    "foreach",
    "for_each",
    "forEach",
    "for-each",
    "withItems",
    "with_items",
    "withParam",
    "loop_over",
    "iterate",
    "strategy",
    "matrix",
    "loop",
];

/// Settings of an action that are none of its steps.
const OF_ACTION: [&str; 5] = ["max_calls", "approvers", "on_uncertain", "idempotent", "model"];

/// What is said of a setting of an action that is written at a step which calls it.
pub(super) fn setting_of_action(form: &SchemaForm, name: &str) -> Option<String> {
    let takes_any = form.fields.get("properties").is_some_and(|inner| matches!(inner.others, Others::Any));
    let written = match name {
        "approvers" => "\"approval\": {\"approvers\": 2}",
        _ => name,
    };
    (takes_any && OF_ACTION.contains(&name)).then(|| {
        format!(
            "an action says it for each of its calls, in its own file: `{written}`; an input that is called so belongs in the \
             `properties` of the step"
        )
    })
}

/// Whether a form is that of a step.
pub(super) fn is_step(form: &SchemaForm) -> bool {
    form.fields.has("onFalse")
}

/// Whether the word of a type means that the items of a list are gone through.
fn is_foreach(word: &str) -> bool {
    let plain: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
    FOREACH.contains(&&*plain.to_ascii_lowercase())
}

/// The loop that a step of another product means which goes through the items of a list: `{"type": "foreach", "items": ...}`.
/// Nothing when it does not say what the list and the steps are.
pub(crate) fn foreach_step(tree: &Tree, step: &Node) -> Option<String> {
    let word = step.get("type").and_then(Node::as_str).filter(|word| is_foreach(word))?;
    let inner = step.get("properties").and_then(Node::members).unwrap_or_default();
    let outer = step.members()?;
    let member = |names: &[&str]| {
        let all = || outer.iter().chain(inner);
        names.iter().find_map(|name| all().find(|member| &*member.key == *name))
    };
    let list = member(&LISTS)?;
    let steps = member(&STEPS).filter(|steps| steps.value.items().is_some())?;
    let item = member(&ITEMS);
    // What else the step says, a filter above all, must not be lost.
    let is_taken = |member: &Member| {
        matches!(&*member.key, "type" | "properties")
            || [Some(list), Some(steps), item].iter().flatten().any(|taken| taken.key_span == member.key_span)
    };
    if !outer.iter().chain(inner).all(is_taken) {
        return None;
    }
    let name = item.and_then(|name| name.value.as_str()).unwrap_or("item");
    let path = list.value.as_str().map(|path| path.trim_matches(['{', '}', ' ', '$', '@', '=']).to_owned());
    let list = path.filter(|path| !path.is_empty()).map(|path| quoted(&format!("@{path}")))?;
    let loop_step = format!(
        "{{\"type\": \"loop\", \"properties\": {{\"mode\": \"foreach\", \"items_path\": {list}, \"item_variable_name\": {}, \
         \"actions_to_execute\": {}}}}}",
        quoted(name),
        tree.raw(steps.value.span)
    );
    (loop_step.len() <= MAX_SHOWN_BYTES && !word.is_empty()).then_some(loop_step)
}

impl<'a> Walker<'a> {
    /// Reports the fields of a step that belong in it, or in a loop around it, and gives their names.
    pub(super) fn fields_of_step<'m>(
        &mut self,
        form: &'a SchemaForm,
        node: &Node,
        members: &'m [Member],
    ) -> Vec<&'m str> {
        let is_unknown = |member: &&Member| !form.fields.has(&member.key);
        let unknown: Vec<&Member> = members.iter().filter(is_unknown).take(MAX_MOVED).collect();
        if unknown.is_empty() || !is_step(form) || self.full() {
            return Vec::new();
        }
        if let Some(names) = self.foreach_as_type(node, &unknown) {
            return names;
        }
        let Some(inner) = properties_form(form, node) else { return Vec::new() };
        let is_action = matches!(inner.others, Others::Any);
        let word = node.get("type").and_then(Node::as_str).unwrap_or_default();
        if is_action && let Some(help) = help_for_type(word) {
            let absent: Vec<&str> = form.fields.names().filter(|field| node.get(field).is_none()).collect();
            return self.of_foreign_type(&absent, &unknown, help);
        }
        let mut names = Vec::new();
        let absent: Vec<&str> = form.fields.names().filter(|field| node.get(field).is_none()).collect();
        for member in &unknown {
            if is_action && FOR_EACH.contains(&&*member.key) {
                self.foreach_of_step(node, member);
                names.push(&*member.key);
            }
        }
        let moved: Vec<&Member> = unknown
            .into_iter()
            .filter(|member| !names.contains(&&*member.key))
            .filter(|member| if is_action { self.is_input(&absent, member) } else { is_property(inner, node, member) })
            .collect();
        if let Some(first) = moved.first() {
            self.move_to_properties(&ToProperties { node, members, moved: &moved, first, inner, is_action });
            names.extend(moved.iter().map(|member| &*member.key));
        }
        names
    }

    /// A step whose type is a word for the items of a list.
    fn foreach_as_type<'m>(&mut self, node: &Node, unknown: &[&'m Member]) -> Option<Vec<&'m str>> {
        node.get("type").and_then(Node::as_str).filter(|word| is_foreach(word))?;
        // An action may have such a name.
        let says_list = |member: &&&Member| LISTS.contains(&&*member.key) || STEPS.contains(&&*member.key);
        unknown.iter().find(says_list)?;
        let first = unknown.first()?;
        let pointer = format!("{}/{}", self.pointer, token(&first.key));
        let fault =
            Diagnostic::error(codes::UNKNOWN_FIELD, self.not_known(unknown), pointer, self.place(first.key_span));
        let Span { start, end } = node.span;
        self.report(match foreach_step(self.tree, node) {
            Some(meant) => fault
                .help("the items of a list are gone through by a loop of mode `foreach`")
                .suggest_at(meant, start, end),
            None => fault.help(format!("the items of a list are gone through by a loop of mode `foreach`: {A_LOOP}")),
        });
        Some(unknown.iter().map(|member| &*member.key).collect())
    }

    /// The fields of a step whose type is a word of another product.
    fn of_foreign_type<'m>(&mut self, absent: &[&str], unknown: &[&'m Member], help: String) -> Vec<&'m str> {
        let fields: Vec<&Member> = unknown.iter().copied().filter(|member| self.is_input(absent, member)).collect();
        if let Some(first) = fields.first() {
            let pointer = format!("{}/{}", self.pointer, token(&first.key));
            let place = self.place(first.key_span);
            let fault = Diagnostic::error(codes::UNKNOWN_FIELD, self.not_known(&fields), pointer, place);
            self.report(fault.help(help));
        }
        fields.into_iter().map(|member| &*member.key).collect()
    }

    /// A step that says of itself that it runs for each item of a list.
    fn foreach_of_step(&mut self, node: &Node, member: &Member) {
        let pointer = format!("{}/{}", self.pointer, token(&member.key));
        let fault =
            Diagnostic::error(codes::UNKNOWN_FIELD, self.not_known(&[member]), pointer, self.place(member.key_span));
        let path = member.value.as_str().map(|path| path.trim_matches(['{', '}', ' ', '$', '@', '=']));
        let others = node.members().unwrap_or_default().iter().filter(|other| other.key_span != member.key_span);
        let others: Vec<String> =
            others.map(|other| format!("{}: {}", quoted(&other.key), self.tree.raw(other.value.span))).collect();
        let meant = path.filter(|path| !path.is_empty()).map(|path| {
            format!(
                "{{\"type\": \"loop\", \"properties\": {{\"mode\": \"foreach\", \"items_path\": {}, \"item_variable_name\": \
                 \"item\", \"actions_to_execute\": [{{{}}}]}}}}",
                quoted(&format!("@{path}")),
                others.join(", ")
            )
        });
        let Span { start, end } = node.span;
        self.report(match meant.filter(|meant| meant.len() <= MAX_SHOWN_BYTES) {
            Some(meant) => fault
                .help("a step runs for each item of a list in a loop of mode `foreach`")
                .suggest_at(meant, start, end),
            None => fault.help(format!("a step runs for each item of a list in a loop of mode `foreach`: {A_LOOP}")),
        });
    }

    /// Whether an unknown field of a step with an action is most likely an input of the action. `absent` are the fields that the
    /// step does not have.
    fn is_input(&mut self, absent: &[&str], member: &Member) -> bool {
        let name = &*member.key;
        let is_word = OF_ACTION.contains(&name)
            || matches!(name, "condition" | "if" | "when" | "else" | "requires_approval" | "approval")
            || matches!(name, "name" | "action_name" | "action" | "wait" | "retry")
            || foreign_syntax::help_for(name).is_some();
        let home = self.known.home(name, &self.pointer);
        let is_of_document = home.is_some_and(|home| home == "at the top of the document" || home == "in `definition`");
        !is_word
            && !is_of_document
            && other_word::field_of(name, absent).is_none()
            && self.nearest.field(name, absent.iter().copied()).is_none()
    }

    /// Reports fields that belong in the `properties` of their step.
    fn move_to_properties(&mut self, to: &ToProperties<'_, '_>) {
        let pointer = format!("{}/{}", self.pointer, token(&to.first.key));
        let fault =
            Diagnostic::error(codes::UNKNOWN_FIELD, self.not_known(to.moved), pointer, self.place(to.first.key_span));
        let absent: Vec<&str> = to.inner.fields.names().collect();
        let name = |key: &str| match to.is_action || to.inner.fields.has(key) {
            true => quoted(key),
            false => quoted(other_word::field_of(key, &absent).unwrap_or(key)),
        };
        let written: Vec<String> = to
            .moved
            .iter()
            .map(|member| format!("{}: {}", name(&member.key), self.tree.raw(member.value.span)))
            .collect();
        let written = format!("\"properties\": {{{}}}", written.join(", "));
        let is_short = written.len() <= MAX_SHOWN_BYTES;
        // The members between the first and the last one would be replaced, too.
        let begin = to.members.iter().position(|member| member.key_span == to.first.key_span).unwrap_or_default();
        let run = to.members.iter().skip(begin).take(to.moved.len());
        let is_run = run.zip(to.moved).all(|(member, moved)| member.key_span == moved.key_span);
        let end = to.moved.last().map_or(to.first.value.span.end, |last| last.value.span.end);
        let has_properties = to.node.get("properties").is_some();
        let belongs = match to.is_action {
            true => "what an action takes is written in the `properties` of the step: \"properties\": {...}".to_owned(),
            false => {
                let belong = if to.moved.len() == 1 { "belongs" } else { "belong" };
                format!("{} {belong} in `properties`", named(to.moved))
            }
        };
        self.report(match is_short && is_run && !has_properties {
            true => fault.help(belongs).suggest_at(written, to.first.key_span.start, end),
            false => fault.help(belongs),
        });
        for member in to.moved {
            // It is not missing where it belongs.
            let field =
                if to.inner.fields.has(&member.key) { None } else { other_word::field_of(&member.key, &absent) };
            self.misplaced.push(field.unwrap_or(&*member.key).to_owned());
        }
    }

    fn not_known(&self, members: &[&Member]) -> String {
        let (names, label) = (named(members), self.label());
        match members.len() {
            1 => format!("the field {names} is not known in {label}"),
            _ => format!("the fields {names} are not known in {label}"),
        }
    }
}

/// The names of fields: `` `a`, `b` and `c` ``.
fn named(members: &[&Member]) -> String {
    let names: Vec<String> = members.iter().take(MAX_LISTED).map(|member| format!("`{}`", member.key)).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// What is said of the fields of a step whose type is a word of another product.
fn help_for_type(word: &str) -> Option<String> {
    // An action may have such a name.
    let built_in = BuiltInStep::meant_by(word).map(|step| {
        format!(
            "{}; where `{word}` is the name of an action, what it takes is written in the `properties` of the step",
            step.help
        )
    });
    let is_foreign = || foreign_step::is_foreign(word);
    built_in.or_else(|| {
        is_foreign().then(|| {
            format!("what an action takes is written in the `properties` of the step, where `{word}` is the name of an action")
        })
    })
}

const A_LOOP: &str = "{\"type\": \"loop\", \"properties\": {\"mode\": \"foreach\", \"items_path\": \"@input.rows\", \
                      \"item_variable_name\": \"row\", \"actions_to_execute\": [...]}}";

/// Fields of a step that belong in its `properties`.
struct ToProperties<'m, 'f> {
    node: &'m Node,
    /// All fields of the step.
    members: &'m [Member],
    moved: &'m [&'m Member],
    first: &'m Member,
    /// The form of the properties.
    inner: &'f SchemaForm,
    is_action: bool,
}

/// The form of the `properties` of a step: of a loop, that of the mode that is written at the step.
fn properties_form<'f>(form: &'f SchemaForm, node: &Node) -> Option<&'f SchemaForm> {
    let of = form.fields.get("properties")?;
    let Some(tag) = of.tag else { return Some(of) };
    let word = node.get(tag).or_else(|| node.get("properties")?.get(tag)).and_then(Node::as_str);
    let right = word.and_then(|word| of.one_of.iter().find(|(known, _)| *known == Some(word)));
    right.or_else(|| of.one_of.first()).map(|(_, branch)| &**branch)
}

/// Whether an unknown field of a built-in step is one of its properties.
fn is_property(inner: &SchemaForm, node: &Node, member: &Member) -> bool {
    let name = &*member.key;
    let is_free = |field: &str| node.get("properties").is_none_or(|properties| properties.get(field).is_none());
    if inner.fields.has(name) {
        return is_free(name);
    }
    let absent: Vec<&str> = inner.fields.names().filter(|field| is_free(field)).collect();
    let field = other_word::field_of(name, &absent).and_then(|field| inner.fields.get(field));
    field.is_some_and(|field| field.takes(&member.value)) && !matches!(member.value.kind, NodeKind::Fault)
}
