//! The compiled form that the engine and the driver read: a loop with its tools, templates and schemas.

pub mod action;
pub mod answer_form;
pub mod approval;
pub mod awaited_event;
pub mod bind;
pub mod builtin;
pub mod canonical;
pub mod choose;
pub mod concurrency;
pub mod condition;
pub mod denial;
pub mod exact_text;
pub mod fault;
pub mod file_value;
pub mod flow;
pub mod form;
pub mod input_file;
pub mod json_length;
pub mod json_texts;
pub mod long_work;
pub mod matcher;
pub mod mcp;
pub mod null_member;
pub mod offer;
pub mod reference;
pub mod schema;
mod scope;
pub mod scripted_case;
pub mod selected_tools;
pub mod spending;
pub mod step_context;
pub mod table;
pub mod template;
pub mod template_work;
pub mod text_input;
pub mod time_span;
pub mod timetable;
pub mod tool_names;
pub mod tool_search;
pub mod turn_schema;
mod value_kind;
pub mod wait;
pub mod webhook;
mod written_path;

pub use action::TemplatedAction;
pub use bind::{Bound, bind};
pub use schema::{Schema, SchemaFault};
pub use step_context::StepContext;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::diagnostic::Source;
use crate::language::action::{ActionKind as _, CommandAction, DbAction, HttpAction, OnUncertain};
use crate::language::agent_request::REQUEST;
use crate::language::fallback::FallbackModel;
use crate::language::mcp_offer::McpOffer;
use crate::language::notify::NotifyKind;
use crate::language::react::{Budget, CallOrder};
use crate::language::retry::CallRetry;
use crate::language::{Project, ReactProperties};
use crate::program::approval::ApprovalPolicy;
use crate::program::concurrency::ConcurrencyRule;
use crate::program::flow::FlowProgram;
use crate::program::input_file::FilePlace;
use crate::program::matcher::MatcherTool;
use crate::program::mcp::ToolOrigin;
use crate::program::offer::OfferedTools;
use crate::program::reference::Field;
use crate::program::template::{Template, Variable};
use crate::program::tool_names::ToolNames;
use crate::program::tool_search::ToolIndex;
use crate::program::turn_schema::TurnSchema;

/// A compiled loop or workflow: immutable, shared by all its runs.
#[derive(Debug)]
pub enum Program {
    /// A loop of mode `react`: a model is asked turn by turn.
    Loop(LoopProgram),
    /// A workflow, or a loop of mode `foreach`: steps are performed.
    Flow(FlowProgram),
}

/// What loops and workflows have in common.
#[derive(Debug)]
pub struct ProgramHead {
    /// Its name, else its file's stem.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The schema of its input.
    pub input: Option<Schema>,
    /// What it is as a tool of `loopctl` as an MCP server.
    pub mcp: McpOffer,
    /// The settings of the folder.
    pub project: Arc<Project>,
    /// The texts that the program was compiled from: the document first, then the files of the actions that it
    /// uses. The journal of a run stores them.
    pub sources: Vec<Source>,
    /// How many levels of loops call each other here: 1 for a loop that calls none, at most
    /// [`crate::compile::MAX_LEVELS`].
    pub levels: usize,
    /// The active time of a run in milliseconds.
    pub timeout_ms: u64,
    /// What a whole run may use.
    pub budget: Option<Budget>,
    /// How many runs of it are under way at a time.
    pub concurrency: Option<ConcurrencyRule>,
}

/// A compiled loop of mode `react`.
#[derive(Debug)]
pub struct LoopProgram {
    /// What it has in common with workflows.
    pub head: ProgramHead,
    /// The author's properties, as written. Time and budget are those of the head.
    pub properties: ReactProperties,
    /// The objective, compiled.
    pub objective: Template,
    /// The author's system prompt, compiled.
    pub system_prompt: Option<Template>,
    /// The document's own input (of an agent request).
    pub default_input: Option<serde_json::Map<String, Value>>,
    /// The previous run that the document itself names (an agent request): the new run gets its outcome.
    pub previous_run_id: Option<String>,
    /// The schema of the answer.
    pub answer: Option<Schema>,
    /// Every tool that the model may call: the declared ones in their order, then the built-ins.
    pub tools: Vec<Tool>,
    /// The names of the tools in native tool calls, where a provider allows fewer names.
    pub called: ToolNames,
    /// The schema of a turn, made when a provider is first sent it.
    pub turn_schema: OnceLock<TurnSchema>,
    /// The tools as requests declare them, made when they are first needed.
    pub offered_tools: OnceLock<OfferedTools>,
    /// The words of the tools, read when one is first searched for.
    pub tool_index: OnceLock<ToolIndex>,
    /// What it takes of the context of its workflow, when it is a step of one.
    pub step: Option<StepContext>,
}

// The head is read everywhere, and most readers don't care which machine runs the program.
impl Deref for Program {
    type Target = ProgramHead;

    fn deref(&self) -> &ProgramHead {
        match self {
            Self::Loop(program) => &program.head,
            Self::Flow(program) => &program.head,
        }
    }
}

impl Deref for LoopProgram {
    type Target = ProgramHead;

    fn deref(&self) -> &ProgramHead {
        &self.head
    }
}

impl Deref for FlowProgram {
    type Target = ProgramHead;

    fn deref(&self) -> &ProgramHead {
        &self.head
    }
}

impl Program {
    /// The loop of mode `react`, when it is one.
    pub fn as_loop(&self) -> Option<&LoopProgram> {
        match self {
            Self::Loop(program) => Some(program),
            Self::Flow(_) => None,
        }
    }

    /// The workflow or loop of mode `foreach`, when it is one.
    pub fn as_flow(&self) -> Option<&FlowProgram> {
        match self {
            Self::Loop(_) => None,
            Self::Flow(program) => Some(program),
        }
    }

    /// Whether a file of the project names this model: in its `models`, as its `model`, or in a document that did not come with a
    /// request.
    pub fn names_model(&self, name: &str) -> bool {
        let written = serde_json::Value::from(name).to_string();
        let of_project = || self.sources.iter().filter(|source| &*source.name != REQUEST);
        self.project.models.contains_key(name)
            || self.project.model.as_deref() == Some(name)
            || of_project().any(|source| source.text.contains(&written))
    }

    /// Whether its runs perform steps, and ask no model themselves.
    pub fn is_flow(&self) -> bool {
        matches!(self, Self::Flow(_))
    }

    /// The tools that a model may call: those of a loop.
    pub fn tools(&self) -> &[Tool] {
        self.as_loop().map(|program| program.tools.as_slice()).unwrap_or_default()
    }

    /// The tool of this exact name that a model may call.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.as_loop()?.tool(name)
    }

    /// The loops that are steps of it.
    pub fn step_loops(&self) -> Vec<&Arc<Self>> {
        self.as_flow().map(FlowProgram::loops).unwrap_or_default()
    }

    /// The approximate size in memory, in bytes: of its texts, and of its compiled patterns. Called loops count
    /// once, however often they are called.
    pub fn weight(&self) -> usize {
        let (mut weight, mut known, mut todo) = (0_usize, HashSet::new(), vec![self]);
        while let Some(program) = todo.pop() {
            if !known.insert(std::ptr::from_ref(program)) {
                continue;
            }
            weight = weight.saturating_add(program.own_weight());
            todo.extend(program.called_loops().into_iter().map(|called| &**called));
        }
        weight
    }

    /// The tools that its runs call: those that a model may call, and those that its steps call.
    pub fn all_tools(&self) -> Vec<&Tool> {
        match self {
            Self::Loop(program) => program.tools.iter().collect(),
            Self::Flow(program) => program.tools(),
        }
    }

    /// The targets that its questions are posted to.
    pub fn asked_targets(&self) -> BTreeSet<&str> {
        let of_tools = self.all_tools().into_iter().filter_map(|tool| tool.approval.ask.as_ref());
        let mut asked: Vec<&Arc<[String]>> = of_tools.collect();
        if let Self::Flow(program) = self {
            program.each(&mut |step| asked.extend(step.ask()));
        }
        asked.into_iter().flat_map(|names| names.iter()).map(String::as_str).collect()
    }

    /// The loops and workflows that its runs start: those that are tools, and those that are steps.
    pub fn called_loops(&self) -> Vec<&Arc<Self>> {
        match self {
            Self::Loop(program) => program.called_loops().collect(),
            Self::Flow(program) => program.called(),
        }
    }

    /// What it is in a word: `loop` or `workflow`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Flow(program) if program.is_workflow() => "workflow",
            Self::Flow(_) | Self::Loop(_) => "loop",
        }
    }

    /// Whether its runs only read: no step asks a human, and each tool only reads.
    pub fn only_reads(&self) -> bool {
        let of_flow =
            |flow: &FlowProgram| !flow.asks_humans() && flow.called().into_iter().all(|called| called.only_reads());
        self.all_tools().into_iter().all(|tool| tool.read_only) && self.as_flow().is_none_or(of_flow)
    }

    /// Whether its runs ask models. A loop does; a workflow may have no step that does.
    pub fn spends(&self) -> bool {
        match self {
            Self::Loop(_) => true,
            Self::Flow(program) => program.spends(),
        }
    }

    /// Whether its runs need a model: a loop asks one, and so does a step that is a loop.
    pub fn needs_a_model(&self) -> bool {
        match self {
            Self::Loop(_) => true,
            Self::Flow(program) => program.called().into_iter().any(|called| called.needs_a_model()),
        }
    }

    /// What it takes of the context of its workflow, when it is a step of one.
    pub fn step(&self) -> Option<&StepContext> {
        self.as_loop()?.step.as_ref()
    }

    /// The objective of a loop.
    pub fn objective(&self) -> Option<&Template> {
        self.as_loop().map(|program| &program.objective)
    }

    /// The document's own input (of an agent request).
    pub fn default_input(&self) -> Option<&serde_json::Map<String, Value>> {
        self.as_loop()?.default_input.as_ref()
    }

    /// The model that a loop names.
    pub fn model(&self) -> Option<&str> {
        self.as_loop()?.properties.model.as_deref()
    }

    /// The models that a loop asks in place of its own.
    pub fn fallback_models(&self) -> &[FallbackModel] {
        self.as_loop().map(|program| program.properties.fallback_models.as_slice()).unwrap_or_default()
    }

    /// In which order the calls of a turn are made.
    pub fn order(&self) -> CallOrder {
        self.as_loop().map(|program| program.properties.order).unwrap_or_default()
    }

    /// The previous run that the document itself names (an agent request).
    pub fn previous_run_id(&self) -> Option<&str> {
        self.as_loop()?.previous_run_id.as_deref()
    }

    /// The tools that the model may call, in their order.
    pub fn offered(&self) -> impl Iterator<Item = &Tool> {
        self.tools().iter().filter(|tool| tool.is_offered())
    }

    /// The head, to be changed before the program is shared.
    pub fn head_mut(&mut self) -> &mut ProgramHead {
        match self {
            Self::Loop(program) => &mut program.head,
            Self::Flow(program) => &mut program.head,
        }
    }

    /// The properties of a loop, to be changed before the program is shared.
    pub fn properties_mut(&mut self) -> Option<&mut ReactProperties> {
        match self {
            Self::Loop(program) => Some(&mut program.properties),
            Self::Flow(_) => None,
        }
    }

    /// The key that the answer of a loop is kept under.
    pub fn result_key(&self) -> Option<&str> {
        self.as_loop()?.properties.result_key.as_deref()
    }

    /// The places of its input that hold files. The steps of a workflow are sent none.
    pub fn file_places(&self) -> Vec<FilePlace> {
        let schema = self.as_loop().filter(|program| program.step.is_none()).and_then(|program| program.input.as_ref());
        schema.map(|schema| input_file::places(schema.source())).unwrap_or_default()
    }

    /// The run's input as its tools and texts name it: that of the workflow, when the loop is a step of one.
    pub fn input_of<'v>(&self, input: &'v Value) -> &'v Value {
        match self {
            Self::Loop(program) => program.input_of(input),
            Self::Flow(_) => input,
        }
    }

    fn own_weight(&self) -> usize {
        const TIMES_TEXT: usize = 16;
        let of_loop = self.as_loop().and_then(|program| program.answer.as_ref());
        let schemas = self.tools().iter().map(|tool| &tool.parameters).chain(&self.input).chain(of_loop);
        let patterns: usize = schemas.map(Schema::pattern_bytes).sum();
        let texts: usize = self.sources.iter().map(|source| source.text.len()).sum();
        texts.saturating_mul(TIMES_TEXT).saturating_add(patterns)
    }
}

impl LoopProgram {
    /// The tool of this exact name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The loops and workflows that its tools start.
    pub fn called_loops(&self) -> impl Iterator<Item = &Arc<Program>> {
        self.tools.iter().filter_map(|tool| tool.called_loop().or(tool.launched()))
    }

    /// The run's input as its tools and texts name it: that of the workflow, when the loop is a step of one.
    pub fn input_of<'v>(&self, input: &'v Value) -> &'v Value {
        match &self.step {
            Some(_) => input.get("input").unwrap_or(&Value::Null),
            None => input,
        }
    }

    /// The schema of a turn in the dialect `json`, made at the first call.
    pub fn turn_schema(&self) -> &TurnSchema {
        self.turn_schema.get_or_init(|| TurnSchema::of(self, None))
    }

    /// The tools as requests declare them, made at the first call.
    pub fn offered_tools(&self) -> &OfferedTools {
        self.offered_tools.get_or_init(|| OfferedTools::of(self))
    }

    /// The tools that the model may call, in their order.
    pub fn offered(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(|tool| tool.is_offered())
    }
}

/// The most runs of loops that an outermost run calls, at every depth: 32 calls a turn, five loops deep, would be 33 million.
pub const MAX_SUBRUNS: u64 = 1_000;

/// A tool that the model may call.
#[derive(Debug)]
pub struct Tool {
    /// The name that the model calls it by.
    pub name: String,
    /// The description that the model gets.
    pub description: String,
    /// The schema of its input; also shown in the prompt.
    pub parameters: Schema,
    /// What a call does.
    pub kind: ToolKind,
    /// When a human must approve a call.
    pub approval: ApprovalPolicy,
    /// How many times a run may call it.
    pub max_calls: Option<u32>,
    /// The deadline of a call in milliseconds.
    pub timeout_ms: u64,
    /// Whether repeated calls with the same input are expected.
    pub polling: bool,
    /// The parts of its observations that are kept in memory: JSON pointers by key.
    pub remember: BTreeMap<String, String>,
    /// Whether a call may be made again without harm.
    pub idempotent: bool,
    /// Whether a call only reads, and may be repeated: it makes no difference to other calls when it is made.
    pub read_only: bool,
    /// What to do with a call of unknown outcome, if the document says so.
    pub on_uncertain: Option<OnUncertain>,
    /// How a failed call is made again. Only an idempotent tool has it.
    pub retry: Option<CallRetry>,
}

impl Tool {
    /// What to do after a crash with a call that may or may not have happened.
    pub fn after_crash(&self) -> OnUncertain {
        if self.idempotent { OnUncertain::Retry } else { self.on_uncertain.unwrap_or_default() }
    }

    /// What the document wants to be done with a call whose answer was lost while the run continues. Where it wants nothing,
    /// the call has failed, and who made it reads that it may have happened.
    pub fn after_lost_answer(&self) -> OnUncertain {
        self.on_uncertain.unwrap_or(OnUncertain::Fail)
    }

    /// Whether a call that is given up may have happened, and may not be repeated: one that reaches out of the process, and is
    /// no question to a model.
    pub fn may_be_lost(&self) -> bool {
        let reaches_out = match &self.kind {
            ToolKind::Http(_) | ToolKind::Mail(_) | ToolKind::Db(_) | ToolKind::Command(_) | ToolKind::Embedded(_) => {
                true
            }
            ToolKind::Action(tool) => !tool.action.kind().spends(),
            ToolKind::Loop(_) | ToolKind::Launch(_) | ToolKind::Builtin(_) | ToolKind::Matcher(_) => false,
        };
        reaches_out && !self.idempotent
    }

    /// Whether a call asks models: its cost counts for the run's budget.
    pub fn spends(&self) -> bool {
        match &self.kind {
            ToolKind::Action(tool) => tool.action.kind().spends(),
            ToolKind::Loop(called) => called.spends(),
            // A run of its own has a budget of its own.
            ToolKind::Launch(_)
            | ToolKind::Builtin(_)
            | ToolKind::Http(_)
            | ToolKind::Mail(_)
            | ToolKind::Db(_)
            | ToolKind::Command(_)
            | ToolKind::Matcher(_)
            | ToolKind::Embedded(_) => false,
        }
    }

    /// Whether a call is a question to a model: its own, or else that of the run.
    pub fn asks_model(&self) -> bool {
        matches!(&self.kind, ToolKind::Action(tool) if tool.action.kind().spends())
    }

    /// The loop that a call runs; none for the other kinds.
    pub fn called_loop(&self) -> Option<&Arc<Program>> {
        match &self.kind {
            ToolKind::Loop(called) => Some(called),
            _ => None,
        }
    }

    /// The workflow of which a call starts a run of its own; none for the other kinds.
    pub fn launched(&self) -> Option<&Arc<Program>> {
        match &self.kind {
            ToolKind::Launch(launched) => Some(launched),
            _ => None,
        }
    }

    /// The datasource that a call uses.
    pub fn datasource(&self) -> Option<&str> {
        match &self.kind {
            ToolKind::Db(db) => db.action.datasource(),
            ToolKind::Action(tool) => tool.action.kind().datasource(),
            _ => None,
        }
    }

    /// Whether a call asks a model and does nothing else.
    pub fn asks_a_model(&self) -> bool {
        matches!(&self.kind, ToolKind::Action(tool) if tool.action.kind().spends())
    }

    /// The model that a call asks, when its action names one.
    pub fn model(&self) -> Option<&str> {
        match &self.kind {
            ToolKind::Action(tool) => tool.action.kind().model(),
            _ => None,
        }
    }

    /// Whether it sends a text to a target of `notify`.
    pub fn sends_notice(&self) -> bool {
        matches!(&self.kind, ToolKind::Mail(_) | ToolKind::Http(HttpTool { body: Some(Body::Notice(_)), .. }))
    }

    /// The keys of the secrets that a call sends.
    pub fn secrets(&self) -> Vec<String> {
        let own = self.datasource().and_then(|name| name.strip_prefix("orgconfig:")).map(str::to_owned);
        own.into_iter().chain(self.templates().into_iter().flat_map(|template| template.secrets().to_vec())).collect()
    }

    /// Every variable that a call needs: in the address, the headers, the parameters, the arguments.
    pub fn variables(&self) -> Vec<Variable> {
        let of = |template: &Template| template.variables().to_vec();
        let in_field = |field: &Field| field.variables().into_iter().map(|found| found.variable).collect::<Vec<_>>();
        match &self.kind {
            ToolKind::Builtin(_) | ToolKind::Embedded(_) | ToolKind::Launch(_) | ToolKind::Loop(_) => Vec::new(),
            ToolKind::Action(tool) => tool.templates().flat_map(of).collect(),
            ToolKind::Mail(mail) => mail.templates().flat_map(of).collect(),
            ToolKind::Http(http) => {
                let mut all = of(&http.url);
                all.extend(http.headers.iter().chain(&http.query).flat_map(|(_, field)| in_field(field)));
                match &http.body {
                    Some(Body::Json(field)) => all.extend(in_field(field)),
                    Some(Body::Text(template)) => all.extend(of(template)),
                    Some(Body::Notice(_)) | None => {}
                }
                all
            }
            ToolKind::Db(db) => db.params.iter().flat_map(in_field).collect(),
            // A call may give each list itself.
            ToolKind::Matcher(matcher) => {
                let sides = [&matcher.left, &matcher.right].into_iter().filter_map(|side| side.field.as_ref());
                sides.flat_map(in_field).map(|variable| Variable { optional: true, ..variable }).collect()
            }
            ToolKind::Command(command) => {
                command.args.iter().chain(&command.stdin).chain(command.env.values()).flat_map(of).collect()
            }
        }
    }
}

/// What a call does.
#[derive(Debug)]
pub enum ToolKind {
    /// One of the engine's own.
    Builtin(Builtin),
    /// An action whose compiled form is its templates.
    Action(TemplatedAction),
    /// A request to an HTTP server.
    Http(HttpTool),
    /// A mail.
    Mail(Box<MailTool>),
    /// A query to a database.
    Db(DbTool),
    /// A program on this machine.
    Command(CommandTool),
    /// Which entries of two lists belong together.
    Matcher(MatcherTool),
    /// A function from elsewhere, registered by name.
    Embedded(ToolOrigin),
    /// Another loop, or a workflow: a call is a sub-run.
    Loop(Arc<Program>),
    /// A workflow of which a call starts a run of its own, without waiting for it.
    Launch(Arc<Program>),
}

/// An `http` action, compiled.
#[derive(Debug)]
pub struct HttpTool {
    /// As written.
    pub action: HttpAction,
    /// The address; its values are URL-encoded.
    pub url: Template,
    /// The headers by name.
    pub headers: Vec<(String, Field)>,
    /// The query parameters by name.
    pub query: Vec<(String, Field)>,
    /// The body, when one is written.
    pub body: Option<Body>,
    /// The names of the input that the address, the headers and the query use.
    pub used: Vec<String>,
    /// The values that go into the body as they are.
    pub bare: Option<BareValues>,
}

/// A text that is sent by mail.
#[derive(Debug)]
pub struct MailTool {
    /// The server, as written.
    pub smtp: String,
    /// Who sends it.
    pub from: String,
    /// Who reads it.
    pub to: Vec<String>,
    /// The name at the server.
    pub username: Option<Template>,
    /// The password at the server.
    pub password: Option<Template>,
}

impl MailTool {
    /// Its templates, in their order.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.username.iter().chain(&self.password)
    }
}

/// Values that go into a body as they are, because their formats let no sign through that the body gives a meaning.
#[derive(Debug)]
pub struct BareValues {
    /// The names of the input, each with its format.
    pub formats: Vec<(String, String)>,
    /// The signs that the body gives a meaning.
    pub signs: &'static str,
}

/// A written request body.
#[derive(Debug)]
pub enum Body {
    /// JSON whose strings are templates or `@paths`.
    Json(Field),
    /// One template for the whole text; in a JSON text its values are escaped as JSON strings.
    Text(Template),
    /// The text of a notice, in the form that its target takes.
    Notice(NotifyKind),
}

/// A `db` action, compiled.
#[derive(Debug)]
pub struct DbTool {
    /// As written.
    pub action: DbAction,
    /// The parameters in order.
    pub params: Vec<Field>,
}

/// A `command` action, compiled.
#[derive(Debug)]
pub struct CommandTool {
    /// As written.
    pub action: CommandAction,
    /// The arguments.
    pub args: Vec<Template>,
    /// Its standard input.
    pub stdin: Option<Template>,
    /// Its complete environment.
    pub env: BTreeMap<String, Template>,
}

/// The engine's own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Ends the run.
    Complete,
    /// Pauses for a human.
    PauseForHuman,
    /// Keeps a value.
    StoreMemory,
    /// Gives a kept value.
    RetrieveMemory,
    /// Reports the progress.
    LogProgress,
    /// Hyphen's old way to call a workflow.
    RunWorkflow,
    /// Finds tools that are not offered yet.
    FindTool,
}
