//! What a human is asked, and about which call: one form for the engine, journals and programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::asked_targets::AskedTargets;
use super::decision::awaited_approval::AwaitedApproval;
use super::event::CallId;
use super::server_question::AskingServer;
use super::stuck::Stuck;
use super::timestamp::as_rfc3339_if_any;
use loopctl_lang::language::ending::Termination;
pub use loopctl_lang::language::step::OnRejected;
pub use loopctl_lang::program::awaited_event::EventMatch;
use loopctl_lang::program::form::{AskedField, answer_schema};

mod journaled;

/// What a human is asked. A pause, the question of a sub-run, that of a step, and all that shows them hold it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Human, stuck, approval or uncertain; a model error, when the model could not be reached.
    pub kind: Termination,
    /// The question: the model's for `human`, else the engine's.
    #[serde(rename = "question")]
    pub text: String,
    /// The sub-run that asks, when it is not this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What the model said around its question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The answers that the model offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The pattern that the agent is stuck in.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "journaled::pattern")]
    pub stuck: Option<Stuck>,
}

impl Question {
    /// A question of the run itself, and nothing around it.
    pub fn new(kind: Termination, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), run_id: None, context: None, options: Vec::new(), stuck: None }
    }
}

/// A call that waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WaitingCall {
    /// Its id, as `resume --call` takes it: the iteration and the place in the turn, like `2.0`.
    pub id: String,
    /// The same as numbers; the iteration of a step is 0.
    #[serde(flatten)]
    pub call: CallId,
    /// The tool.
    pub action: String,
    /// Its input.
    pub action_input: Value,
    /// What a decision is bound to, as `resume --if` takes it: a short hash of the run, the call, the
    /// tool, the input as it is written, and the document.
    pub hash: String,
    /// What its approval needs; left out when one approval of anybody is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<AwaitedApproval>,
    /// The targets that the question is posted to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Box<AskedTargets>>,
}

/// What ends when a step of a workflow fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedPart {
    /// The item of a loop that continues with the others.
    Item,
    /// The run.
    Run,
}

/// A question of a step that waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepQuestion {
    /// The address of the step, as `resume --at` takes it. That of a step of a workflow which the step calls in turn
    /// follows after a `/`.
    pub at: String,
    /// What the item is called that the step is of, by the `item_label` of its loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_label: Option<String>,
    /// What it asks. The run that asks is that of the step, if it has one.
    #[serde(flatten)]
    pub question: Question,
    /// The action, or the type of the step.
    pub action: String,
    /// What the human is shown: the input of a call, or the payload of an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_input: Option<Value>,
    /// What a decision is bound to, as `resume --if` takes it: a short hash of the run, the address, the action, what is
    /// shown, and the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The keys of a form: all of them must be filled in, unless `fields` says otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected_keys: Vec<String>,
    /// The data to look at while the form is filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show: Option<Value>,
    /// The fields of a form with types, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<AskedField>,
    /// The JSON Schema of the answer to a form with `fields`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
    /// Until when a form can be filled in, RFC 3339.
    #[serde(rename = "expires_at", skip_serializing_if = "Option::is_none", serialize_with = "as_rfc3339_if_any")]
    #[schemars(with = "Option<String>")]
    pub expires_at_ms: Option<i64>,
    /// What the approval of a call needs; left out when one approval of anybody is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<AwaitedApproval>,
    /// What a no to an approval of a step does: `stop` fails the run, or the item around the step; after `go_on` the next
    /// step begins. Left out where a model reads the no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_rejected: Option<OnRejected>,
    /// What ends when the step fails, for texts; none where it is not known, as of a run below.
    #[serde(skip)]
    #[schemars(skip)]
    pub ends: Option<EndedPart>,
    /// The pause that the run of the step is in, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_pause: Option<u32>,
    /// The calls of that run that wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<WaitingCall>,
    /// The event that the step waits for: its name as `event`, and what its data must have as `match`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub awaits: Option<Box<EventMatch>>,
    /// The targets that the question is posted to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Box<AskedTargets>>,
    /// The server that asks, in the middle of a call of its tool: its words are a stranger's. A no declines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskingServer>,
}

impl StepQuestion {
    /// The question as the run that called the workflow keeps it; `run_id` is the workflow's run.
    #[must_use]
    pub fn passed_up(mut self, run_id: &str) -> Self {
        self.question.run_id.get_or_insert_with(|| run_id.to_owned());
        // No journal holds it.
        self.ends = None;
        self
    }

    /// The question with the texts and values of its form as `shown` gives them: what is shown, and all of the fields but their names and
    /// types. The name of a field may say that its default is secret. The schema of the answer has no value that is not shown.
    #[must_use]
    pub fn with_form(self, shown: &dyn Fn(&Value) -> Value) -> Self {
        let value = |value: Option<Value>| value.as_ref().map(shown);
        let named = |name: &str, value: Value| shown(&json!({ name: value })).get(name).cloned();
        let text = |text: &String| match shown(&Value::String(text.clone())) {
            Value::String(text) => text,
            _ => text.clone(),
        };
        let field = |field: &AskedField| AskedField {
            label: field.label.as_ref().map(text),
            help: field.help.as_ref().map(text),
            default: field.default.clone().and_then(|default| named(&field.name, default)),
            min: value(field.min.clone()),
            max: value(field.max.clone()),
            choices: field.choices.iter().map(text).collect(),
            ..field.clone()
        };
        let fields: Vec<AskedField> = self.fields.iter().map(field).collect();
        let answer_schema = self.answer_schema.map(|_| {
            let known = |shown: &Option<Value>, own: &Option<Value>| shown.clone().filter(|_| shown == own);
            let of_schema = |(shown, own): (&AskedField, &AskedField)| AskedField {
                default: known(&shown.default, &own.default),
                min: known(&shown.min, &own.min),
                max: known(&shown.max, &own.max),
                ..shown.clone()
            };
            answer_schema(&fields.iter().zip(&self.fields).map(of_schema).collect::<Vec<_>>())
        });
        Self { show: value(self.show), fields, answer_schema, ..self }
    }

    /// The calls that the question is about; none for a form and for the question of a model.
    pub fn waiting_calls(&self) -> Vec<WaitingCall> {
        if !self.calls.is_empty() {
            return self.calls.clone();
        }
        let (Some(input), Some(hash)) = (&self.action_input, &self.hash) else { return Vec::new() };
        vec![WaitingCall {
            id: self.at.clone(),
            call: CallId { iteration: 0, index: 0 },
            action: self.action.clone(),
            action_input: input.clone(),
            hash: hash.clone(),
            approval: self.approval.clone(),
            ask: self.ask.clone(),
        }]
    }
}

/// The question of a sub-run, as the run that called it keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubrunQuestion {
    /// The number of the pause of the call's sub-run.
    pub pause: u32,
    /// What it asks. The run that asks is the sub-run of the call, or one below it.
    #[serde(flatten)]
    pub question: Question,
    /// The calls that wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "journaled::calls")]
    pub calls: Vec<WaitingCall>,
    /// The steps that wait, when a workflow asks: the first [`SubrunQuestion::MOST_STEPS`]. `calls` is empty then.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "journaled::steps")]
    pub steps: Vec<StepQuestion>,
    /// Until when it waits for room in a spending limit, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

impl SubrunQuestion {
    /// The most steps that are passed up: the others are when those before them are decided.
    pub const MOST_STEPS: usize = 100;

    /// The run that asks.
    pub fn run_id(&self) -> &str {
        self.question.run_id.as_deref().unwrap_or_default()
    }

    /// Whether it waits for room in a spending limit; a step of it may, beside others.
    pub fn waits_for_room(&self) -> bool {
        self.until_ms.is_some() || self.has_kind(Termination::SpendingLimit)
    }

    /// Whether it waits for its model, or for room in a spending limit.
    pub fn waits_for_model(&self) -> bool {
        self.waits_for_room() || self.has_kind(Termination::ModelError)
    }

    /// Whether it, or a step of it, asks a human, whatever else it waits for.
    pub fn asks_human(&self) -> bool {
        if self.steps.is_empty() {
            return !self.question.kind.needs_no_human();
        }
        self.steps.iter().any(|step| !step.question.kind.needs_no_human())
    }

    /// What is said of the first model that it waits for because it can't be reached.
    pub fn away_model(&self) -> Option<&str> {
        // The question over several steps says how many they are.
        let mut questions = self.steps.iter().map(|step| &step.question).chain([&self.question]);
        questions.find(|question| question.kind == Termination::ModelError).map(|question| question.text.as_str())
    }

    fn has_kind(&self, kind: Termination) -> bool {
        self.question.kind == kind || self.steps.iter().any(|step| step.question.kind == kind)
    }

    /// Whether a call or a step that waits has this hash.
    pub fn has_hash(&self, hash: &str) -> bool {
        let in_step =
            |step: &StepQuestion| step.hash.as_deref() == Some(hash) || step.calls.iter().any(|call| call.hash == hash);
        self.calls.iter().any(|call| call.hash == hash) || self.steps.iter().any(in_step)
    }

    /// When the earliest approval or form expires that it waits for, in milliseconds since 1970.
    pub fn due_at_ms(&self) -> Option<i64> {
        let calls = self.calls.iter().chain(self.steps.iter().flat_map(|step| &step.calls));
        let approvals = calls.map(|call| &call.approval).chain(self.steps.iter().map(|step| &step.approval));
        let expire = approvals.filter_map(|approval| approval.as_ref()?.expires_at_ms);
        expire.chain(self.steps.iter().filter_map(|step| step.expires_at_ms)).chain(self.until_ms).min()
    }
}
