//! The walk through the steps of a document, in the order in which they would run.

mod answer;
mod choose;
mod collected;
mod event;
mod matcher;
mod named;
mod on_failure;
mod provided;
mod texts;
mod wait;
mod webhook;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use self::matcher::MATCHER;
use self::on_failure::OF_WORKFLOW;
use super::super::declare::Declare;
use super::super::layout::LoopLayout;
use super::super::prompt::Inputs;
use super::super::react::{Around, LoweredLoop, ReadLoop, react};
use super::choose::is_choice;
use super::named::named_document;
use super::{Inner, KnownValue, ListSource, MAX_STEPS, Steps, key_of_line, name_of_loop, output, result, roots};
use crate::compile::DatabaseProbe;
use crate::compile::context::Context;
use crate::compile::documents;
use crate::compile::link::Linker;
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Project;
use crate::language::notify::NOTIFY;
use crate::language::wait::{WAIT, WAIT_FOR_EVENT};
use crate::program::file_value::PREFIX;
use crate::program::flow::{APPROVAL_KEYS, MAX_LOOPS, ON_FAILURE};
use crate::program::reference::as_path;
use crate::program::{Program, StepContext};
use crate::syntax::document::{Document, DocumentKind};
use crate::syntax::quoted;

/// The names that the engine gives to every step.
const GIVEN: [&str; 3] = ["input", "now", "__run_id"];

/// Judges the steps of a document. `declare` looks actions up, and reports those that it does not find.
pub(in crate::compile) fn walk<'a>(
    calls: &mut Linker<'_>,
    around: &Around<'a>,
    main: &'a Document,
    declare: &mut Declare<'a>,
    faults: &mut Vec<Diagnostic>,
) -> Steps {
    let inputs = Inputs::of(main);
    let mut walk = Walk {
        calls,
        around,
        main,
        declare,
        inputs,
        faults,
        steps: Steps::default(),
        count: 0,
        loops: 0,
        ids: BTreeMap::new(),
        read_values: HashMap::new(),
        entries_of_files: BTreeSet::new(),
    };
    let roots = roots(main);
    let mut context = walk.first();
    let at = |pointer: &str| main.value.pointer(pointer);
    if let Some((at, key)) = key_of_line(main) {
        walk.values(&at, key, &context);
    }
    if roots.is_empty() {
        return walk.steps;
    }
    for (pointer, condition) in [("/definition/condition", "/definition/condition"), ("/filter", "/filter/condition")] {
        if let Some(value) = at(pointer) {
            walk.values(pointer, value, &context);
        }
        if let Some(value) = at(condition) {
            walk.condition(condition, value, &context);
        }
    }
    if let Some(pointer) = roots.foreach
        && let Some(properties) = at(pointer)
    {
        // The document is the step.
        walk.steps.places.push(String::new());
        walk.steps.answer = walk.foreach(pointer, properties, &mut context);
    }
    if let Some(pointer) = roots.list {
        walk.list(pointer, at(pointer), &mut context);
        walk.on_failure(OF_WORKFLOW, at(OF_WORKFLOW), &context);
    }
    if main.kind == Some(DocumentKind::Workflow) {
        if let Some(output) = at("/definition/output") {
            walk.values("/definition/output", output, &context);
        }
        walk.steps.answer = walk.answer(&context);
        walk.webhook();
    }
    if let Some(pointer) = roots.lone
        && let Some(step) = at(pointer).filter(|step| step.is_object())
    {
        let mut context = walk.first();
        walk.step(pointer, step, &mut context);
    }
    walk.steps
}

struct Walk<'w, 'a, 't> {
    calls: &'w mut Linker<'t>,
    around: &'w Around<'a>,
    main: &'a Document,
    declare: &'w mut Declare<'a>,
    inputs: Option<Inputs>,
    faults: &'w mut Vec<Diagnostic>,
    steps: Steps,
    count: usize,
    /// How many loops of mode `foreach` are around the present step.
    loops: usize,
    /// The pointers of the steps with an `id`, by it.
    ids: BTreeMap<String, String>,
    /// What is known of the values at paths.
    read_values: HashMap<Vec<String>, ReadValue>,
    /// The names of the items of loops over the files of the project.
    entries_of_files: BTreeSet<String>,
}

/// What is known of a value, as the schema says that was there when a text named it last.
struct ReadValue {
    /// What the step that wrote it says; none for the run's input.
    schema: Option<Arc<Value>>,
    known: Option<Arc<KnownValue>>,
}

impl<'a> Walk<'_, 'a, '_> {
    /// What is known before the first step.
    fn first(&self) -> Context {
        let mut context = Context::first();
        for name in self.project().documents.keys() {
            let key = format!("{PREFIX}{name}");
            match documents::schema(name, self.project(), &self.around.texts.outside) {
                Some(schema) => context.add_value(&key, schema),
                None => context.add(&key),
            }
        }
        context
    }

    fn project(&self) -> &Project {
        static NONE: LazyLock<Project> = LazyLock::new(Project::default);
        self.calls.settings.as_deref().unwrap_or(&NONE)
    }

    fn databases(&self) -> Option<&'a dyn DatabaseProbe> {
        self.around.texts.outside.databases.as_deref()
    }

    fn list(&mut self, pointer: &str, steps: Option<&'a Value>, context: &mut Context) {
        for (index, step) in steps.and_then(Value::as_array).into_iter().flatten().enumerate() {
            if step.is_object() {
                self.step(&format!("{pointer}/{index}"), step, context);
            }
        }
        self.steps.names.extend(context.names().map(str::to_owned));
    }

    /// A step at a JSON pointer; `context` becomes what is known after it.
    fn step(&mut self, at: &str, step: &'a Value, context: &mut Context) {
        self.count += 1;
        if self.count > MAX_STEPS {
            if self.count == MAX_STEPS + 1 {
                let message = format!("a document may have at most {MAX_STEPS} steps; the rest is not looked at");
                self.faults.push(Diagnostic::error(codes::TOO_MUCH, message, at, self.main.tree.place(at)));
            }
            return;
        }
        if let Some(filter) = step.get("filter") {
            self.values(&format!("{at}/filter"), filter, context);
            if let Some(condition) = filter.get("condition") {
                self.condition(&format!("{at}/filter/condition"), condition, context);
            }
        }
        self.steps.places.push(at.to_owned());
        self.id(at, step);
        let key = step.get("outputKey").and_then(Value::as_str);
        let otherwise = step.get("onFalse").filter(|step| step.is_object());
        let mut other = otherwise.map(|step| (step, context.clone()));
        let properties = step.get("properties");
        let gives = match step.get("type").and_then(Value::as_str) {
            Some(_) if is_choice(step) => {
                self.choose(at, step, context);
                output::ANY
            }
            Some(_) if let Some(document) = named_document(step) => self.named(document, at, step, context),
            Some("loop") => self.a_loop(at, step, context),
            Some(name) => {
                if let Some(properties) = properties {
                    self.values(&format!("{at}/properties"), properties, context);
                }
                let open = context.is_open();
                let gives = self.other(name, &format!("{at}/type"), step, context);
                // What an action writes is known where the step names the key.
                context.set_open(open || ((key.is_none() || context.is_full()) && context.is_open()));
                gives
            }
            None => {
                context.open();
                output::ANY
            }
        };
        if let Some(key) = key {
            context.add_value(key, gives);
        }
        if let Some((step, other)) = &mut other {
            self.step(&format!("{at}/onFalse"), step, other);
            context.join(other, &[]);
        }
    }

    /// The `id` of a step, which is its name in addresses.
    fn id(&mut self, at: &str, step: &Value) {
        let Some(id) = step.get("id").and_then(Value::as_str) else { return };
        let at = format!("{at}/id");
        let here = self.main.tree.place(&at);
        let fault = |message: String| Diagnostic::error(codes::BAD_STEP_ID, message, at.as_str(), here.clone());
        if id.starts_with('@') || id.contains("{{") {
            let message = format!("`{id}` can't stand in an address");
            let help = "an `id` is the name of the step; what its action takes as `id` is written in its `properties`";
            return self.faults.push(fault(message).help(help));
        }
        let is_number = id.starts_with(|first: char| first.is_ascii_digit());
        if id == ON_FAILURE && self.has_failure_steps(&at) {
            let message = format!("the step `{id}` would be mistaken for those that run when a step has failed");
            return self.faults.push(fault(message).help("give it another `id`"));
        }
        let is_word = id.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'));
        if is_number {
            let message = format!("the step `{id}` would be mistaken for the number of a step");
            self.faults.push(fault(message).help("begin an `id` with a letter"));
        } else if !is_word || id.len() > 64 {
            let message = format!("`{id}` can't stand in an address");
            self.faults.push(fault(message).help("an `id` has at most 64 ASCII letters, digits, `_` and `-`"));
        } else if let Some(first) = self.ids.get(id) {
            let first = self.main.tree.place(first);
            let fault = fault(format!("two steps have the id `{id}`")).help("give one of the two another `id`");
            self.faults.push(fault.related(&first, "the other one is here"));
        }
        self.ids.entry(id.to_owned()).or_insert(at);
    }

    /// A loop. Returns the schema of its output.
    fn a_loop(&mut self, at: &str, step: &'a Value, context: &mut Context) -> Value {
        let Some(properties) = step.get("properties").filter(|properties| properties.is_object()) else {
            return output::ANY;
        };
        let of_step = format!("{at}/properties");
        if properties.get("mode").and_then(Value::as_str) == Some("foreach") {
            return self.foreach(&of_step, properties, context);
        }
        let layout = LoopLayout::of_step(of_step);
        let mut faults = Vec::new();
        let read = ReadLoop::of_step(self.main, &layout, context, self.declare);
        let program = react(self.calls, self.around, self.main, read, &mut faults);
        let sound = !faults.iter().any(Diagnostic::is_error);
        self.faults.append(&mut faults);
        let tools = properties.get("tools").and_then(Value::as_array).into_iter().flatten();
        let name = |tool: &'a Value| tool.as_str().or_else(|| tool.get("name").and_then(Value::as_str));
        self.steps.tools.extend(tools.filter_map(name).map(str::to_owned));
        let key = properties.get("result_key").and_then(Value::as_str);
        let name = name_of_loop(step, at.rsplit('/').next().unwrap_or_default());
        let program = program.filter(|lowered| sound && lowered.is_whole).map(|LoweredLoop { mut program, .. }| {
            program.head.name = name.to_owned();
            program.step = Some(StepContext::of(&program));
            Arc::new(Program::Loop(program))
        });
        self.typed_prompts(&layout, program.as_deref(), context);
        self.steps.loops.push(Inner { layout, program });
        let gives = output::result(properties.get("answer_schema"));
        if let Some(key) = key {
            context.add_value(key, gives.clone());
        }
        gives
    }

    /// The same steps for each item of a list. Returns the schema of the output.
    fn foreach(&mut self, at: &str, properties: &'a Value, context: &mut Context) -> Value {
        let text = |name: &str| properties.get(name).and_then(Value::as_str);
        if let Some(path) = text("items_path") {
            self.path("items_path", &format!("{at}/items_path"), path, context);
        }
        self.loops += 1;
        if self.loops == MAX_LOOPS + 1 {
            let message = format!("loops of mode `foreach` are at most {MAX_LOOPS} deep; this one is deeper");
            let fault = Diagnostic::error(codes::LOOPS_TOO_DEEP, message, at, self.main.tree.key_place(at));
            self.faults.push(fault.help("let a step before gather what the inner loop needs, and go through one list"));
        }
        let mut inside = context.clone();
        let items = text("items_path").and_then(as_path);
        let source = items.as_ref().and_then(|path| ListSource::of_schema(self.schema(path, context)?));
        self.steps.cut_lists.extend(source.map(|source| (format!("{at}/items_path"), source)));
        let items = output::items(items.and_then(|path| self.schema(&path, context)));
        inside.add_value("item", items.clone());
        ["__index", "__count"].into_iter().for_each(|name| inside.add_value(name, output::number()));
        let written = text("item_variable_name").unwrap_or_default();
        let is_name = |name: &str| as_path(&format!("@{name}")).is_some_and(|path| path.len() == 1);
        // A path names it with a mark before it, and its name has none.
        let unmarked = written.strip_prefix('@').filter(|name| is_name(name));
        let name = unmarked.unwrap_or(written);
        if text("items_path").is_some_and(|path| path.starts_with(PREFIX)) {
            self.entries_of_files.extend(["item", name].map(str::to_owned));
        }
        if !name.is_empty() {
            inside.add_value(name, items);
            inside.set_item(name);
        }
        if !written.is_empty() && !is_name(written) {
            let at = format!("{at}/item_variable_name");
            let place = self.main.tree.place(&at);
            let fault = Diagnostic::error(codes::BAD_NAME, format!("no path can name `{written}`"), at, place);
            let fault = fault.help("a name begins with a letter, and has letters, digits, `_` and `-`");
            self.faults.push(match unmarked {
                Some(name) => fault.suggest(quoted(name)),
                None => fault,
            });
        }
        if let Some(label) = properties.get("item_label") {
            self.values(&format!("{at}/item_label"), label, &inside);
        }
        self.list(&format!("{at}/actions_to_execute"), properties.get("actions_to_execute"), &mut inside);
        self.on_failure(&format!("{at}/{ON_FAILURE}"), properties.get(ON_FAILURE), &inside);
        self.loops -= 1;
        let collected = match properties.get("collect") {
            Some(written) => self.collected(&format!("{at}/collect"), written, &inside),
            None => output::ANY,
        };
        let mut but = vec!["item", "__index", "__count", name];
        but.retain(|name| !context.has(name));
        context.join(&inside, &but);
        let gathered = match properties.get("collect_results") {
            // Nothing is gathered, and nothing kept under the key.
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(Value::Bool(true)) => {
                let stops = text("failure_strategy").is_none_or(|strategy| strategy == "stop_on_error");
                // A path with a `?` leaves the output out with its value.
                let is_left_out = text("collect").is_some_and(|collect| collect.ends_with('?'));
                let runs = output::always_runs(properties.get("actions_to_execute"));
                Some(output::gathered(collected, stops && runs && !is_left_out))
            }
            Some(_) => Some(output::ANY),
        };
        if let (Some(key), Some(gathered)) = (text("result_key"), &gathered) {
            context.add_value(key, gathered.clone());
        }
        if let Some(key) = text("summary_key") {
            context.add_value(key, output::counts());
        }
        gathered.unwrap_or_else(output::counts)
    }

    /// A step of another type than `loop`, and what it writes. Returns the schema of its output.
    fn other(&mut self, name: &str, at: &str, step: &Value, context: &mut Context) -> Value {
        let properties = step.get("properties");
        let has_key = step.get("outputKey").is_some_and(Value::is_string);
        let text = |field: &str, default: &'static str| -> String {
            let written = properties.and_then(|properties| properties.get(field)?.as_str());
            written.unwrap_or(default).to_owned()
        };
        match name {
            MATCHER => {
                let step = at.strip_suffix("/type").unwrap_or(at).to_owned();
                let names = [
                    text("outputMatched", "matched"),
                    text("outputUnmatchedLeft", "unmatchedLeft"),
                    text("outputUnmatchedRight", "unmatchedRight"),
                ];
                let [left, right] = self.matched_lists(&step, properties, None, context);
                written(context, names.into_iter().zip(output::matched(left, right)))
            }
            "PbotApproval" => {
                let [approved, comment, data] = APPROVAL_KEYS.map(str::to_owned);
                written(context, [(approved, output::approved()), (comment, output::comment()), (data, output::ANY)]);
                output::approval()
            }
            "PbotForm" => {
                let form = properties.map(output::of_form).unwrap_or_default();
                written(context, form)
            }
            "custom-table" => result::of_table(None, properties, self.databases()),
            // An action of this name keeps its meaning.
            WAIT if self.declare.catalog.find(WAIT).is_empty() => {
                self.wait(at.strip_suffix("/type").unwrap_or(at), properties);
                output::waited()
            }
            NOTIFY if self.declare.catalog.find(NOTIFY).is_empty() => output::ANY,
            WAIT_FOR_EVENT if self.declare.catalog.find(WAIT_FOR_EVENT).is_empty() => {
                self.wait_for_event(at.strip_suffix("/type").unwrap_or(at), properties);
                output::ANY
            }
            _ if let Some(tool) = self.declare.provided(name) => self.provided(tool, at, step, context),
            _ => {
                let found = self.declare.step(name, at);
                self.faults.append(&mut self.declare.faults);
                match found {
                    Some(action) => {
                        if !self.steps.inputs.contains_key(name) {
                            let input = self.declare.step_input(action).map(Arc::new);
                            self.faults.append(&mut self.declare.faults);
                            self.steps.inputs.insert(name.to_owned(), input);
                        }
                        if action.value.get("kind").is_some_and(|kind| kind == MATCHER) {
                            let step = at.strip_suffix("/type").unwrap_or(at);
                            self.matched_lists(step, properties, Some(action.value), context);
                        }
                        let gives = result::of_action(action.value, properties, self.databases());
                        if !has_key {
                            let key = action.value.get("outputKey").and_then(Value::as_str).unwrap_or(name);
                            context.add_value(key, gives.clone());
                        }
                        self.steps.actions.push(name.to_owned());
                        gives
                    }
                    None => {
                        context.open();
                        output::ANY
                    }
                }
            }
        }
    }
}

/// Adds keys with the schemas of their values. Returns the schema of all of them together.
fn written(context: &mut Context, keys: impl IntoIterator<Item = (String, Value)>) -> Value {
    output::of_keys(keys.into_iter().inspect(|(key, schema)| context.add_value(key, schema.clone())))
}
