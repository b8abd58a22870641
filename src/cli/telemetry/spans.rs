//! Notices as spans: `invoke_agent` for one driver's part of a run, and in it a `chat` for each request to the
//! model and an `execute_tool` for each call of a tool.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Span as _, SpanKind, Status as SpanStatus, TraceContextExt as _, Tracer as _};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value as AttributeValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use serde_json::{Value, json};

use crate::engine::event::{CallId, Finish};
use crate::engine::flow::record::StepRecord;
use crate::engine::notice::Notice;
use crate::engine::outcome::{Status, Termination};
use crate::engine::record::TraceEntry;
use crate::policy::provider::Provider;
use crate::policy::word::written;
use crate::program::Program;
use crate::trace::Redaction;

/// The word of the conventions for why a reply ended.
/// The kind of a fault alone: the text after a colon may repeat what somebody wrote.
fn fault_kind(class: &str) -> String {
    class.split(':').next().unwrap_or_default().chars().take(80).collect()
}

/// What the event of a failed attempt has.
fn retry_facts(attempt: u32, delay_ms: u64, reason: Option<String>) -> Vec<KeyValue> {
    let mut facts = vec![
        KeyValue::new("loopctl.attempt", i64::from(attempt)),
        KeyValue::new("loopctl.delay_ms", i64::try_from(delay_ms).unwrap_or(i64::MAX)),
    ];
    facts.extend(reason.map(|reason| KeyValue::new("loopctl.reason", reason)));
    facts
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
    }
}

/// How a call of a tool ended.
struct ToolEnd {
    error: Option<String>,
    duration_ms: u64,
}

/// The open spans of one run, and what is needed to make more.
pub struct Spans {
    tracer: SdkTracer,
    redact: Redaction,
    /// Whether prompts, thoughts, inputs and results are sent.
    content: bool,
    /// The project's models with their providers.
    providers: HashMap<String, &'static str>,
    model: String,
    agent: Option<Span>,
    chat: Option<Span>,
    tools: HashMap<CallId, (Span, SystemTime)>,
    /// The open steps of a workflow, by their addresses.
    steps: HashMap<String, Span>,
}

impl Spans {
    /// The spans of a run of this program; `content`: with texts, secrets hidden.
    pub fn new(tracer: SdkTracer, program: &Program, content: bool) -> Self {
        let models = program.project.models.iter();
        let providers = models.map(|(name, model)| (name.clone(), model.provider.facts().span_name)).collect();
        Self {
            tracer,
            redact: Redaction::new(&program.project.redact),
            content,
            providers,
            model: program.model().unwrap_or_default().to_owned(),
            agent: None,
            chat: None,
            tools: HashMap::new(),
            steps: HashMap::new(),
        }
    }

    /// Adds a notice that came `now`.
    pub fn on(&mut self, notice: &Notice, now: SystemTime) {
        match notice {
            Notice::RunStarted { run_id, loop_name, model, objective, .. } => {
                self.model.clone_from(model);
                self.begin(run_id, loop_name, now);
                self.said_by_agent("gen_ai.input.messages", "user", objective);
            }
            Notice::RunResumed { run_id, loop_name, .. } => self.begin(run_id, loop_name, now),
            Notice::ModelAsked { .. } => {
                let attributes = vec![
                    KeyValue::new("gen_ai.operation.name", "chat"),
                    KeyValue::new("gen_ai.provider.name", self.provider()),
                    KeyValue::new("gen_ai.request.model", self.model.clone()),
                ];
                let name = format!("chat {}", self.model);
                self.chat = Some(self.child(name.trim_end().to_owned(), SpanKind::Client, attributes, now));
            }
            Notice::ModelRetried { attempt, reason, delay_ms, .. } => {
                // A server's message may repeat the request.
                let reason = self.content.then(|| self.redact.text(reason).into_owned());
                if let Some(chat) = &mut self.chat {
                    chat.add_event_with_timestamp("retry", now, retry_facts(*attempt, *delay_ms, reason));
                }
            }
            Notice::ToolRetried { call, attempt, error, delay_ms, .. } => {
                if let Some((tool, _)) = call.as_ref().and_then(|call| self.tools.get_mut(call)) {
                    let reason = self.redact.text(&fault_kind(&error.class)).into_owned();
                    tool.add_event_with_timestamp("retry", now, retry_facts(*attempt, *delay_ms, Some(reason)));
                }
            }
            Notice::ModelReplied { thought, usage, finish, response_model, time_to_first_token_ms, .. } => {
                let output = self.content.then(|| self.message("assistant", thought));
                if let Some(mut chat) = self.chat.take() {
                    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
                    if let Some(usage) = usage {
                        chat.set_attribute(KeyValue::new("gen_ai.usage.input_tokens", count(usage.input_tokens)));
                        chat.set_attribute(KeyValue::new("gen_ai.usage.output_tokens", count(usage.output_tokens)));
                        let details = usage.details;
                        for (name, tokens) in [
                            ("gen_ai.usage.cache_read.input_tokens", details.cached_input_tokens),
                            ("gen_ai.usage.cache_creation.input_tokens", details.cache_write_tokens),
                            ("gen_ai.usage.reasoning.output_tokens", details.reasoning_tokens),
                        ] {
                            chat.set_attributes((tokens > 0).then(|| KeyValue::new(name, count(tokens))));
                        }
                    }
                    let reasons = vec![StringValue::from(finish_reason(*finish))];
                    chat.set_attribute(KeyValue::new(
                        "gen_ai.response.finish_reasons",
                        AttributeValue::Array(Array::String(reasons)),
                    ));
                    let model = response_model.clone().unwrap_or_else(|| self.model.clone());
                    chat.set_attribute(KeyValue::new("gen_ai.response.model", model));
                    if let Some(first) = time_to_first_token_ms {
                        let first = Duration::from_millis(*first).as_secs_f64();
                        chat.set_attribute(KeyValue::new("gen_ai.request.stream", true));
                        chat.set_attribute(KeyValue::new("gen_ai.response.time_to_first_chunk", first));
                    }
                    chat.set_attributes(output.map(|output| KeyValue::new("gen_ai.output.messages", output)));
                    chat.end_with_timestamp(now);
                }
            }
            Notice::ToolCalled { call, action, action_input } => self.called(*call, action, action_input, now),
            Notice::Observed { call: Some(call), entry: TraceEntry { observation, duration_ms, error, .. } } => {
                let error = error.as_ref().map(|fault| self.redact.text(&fault_kind(&fault.class)).into_owned());
                let ended = ToolEnd { error, duration_ms: *duration_ms };
                self.returned(*call, observation, ended, now);
            }
            Notice::StepStarted { at, kind, action_input } => self.step_started(at, kind, action_input, now),
            Notice::StepEnded { record } => self.step_ended(record, now),
            Notice::Paused { question, .. } => self.end(Status::Paused, question.kind, now),
            Notice::RunEnded { status, termination } => self.end(*status, *termination, now),
            _ => {}
        }
    }

    fn begin(&mut self, run_id: &str, loop_name: &str, now: SystemTime) {
        let attributes = vec![
            KeyValue::new("gen_ai.operation.name", "invoke_agent"),
            KeyValue::new("gen_ai.provider.name", self.provider()),
            KeyValue::new("gen_ai.agent.name", loop_name.to_owned()),
            KeyValue::new("gen_ai.conversation.id", run_id.to_owned()),
            KeyValue::new("gen_ai.request.model", self.model.clone()),
        ];
        let builder = self.tracer.span_builder(format!("invoke_agent {loop_name}")).with_kind(SpanKind::Internal);
        let builder = builder.with_attributes(attributes).with_start_time(now);
        self.agent = Some(builder.start_with_context(&self.tracer, &Context::new()));
    }

    fn child(&self, name: String, kind: SpanKind, attributes: Vec<KeyValue>, now: SystemTime) -> Span {
        let parent = self
            .agent
            .as_ref()
            .map_or_else(Context::new, |agent| Context::new().with_remote_span_context(agent.span_context().clone()));
        let builder = self.tracer.span_builder(name).with_kind(kind).with_attributes(attributes).with_start_time(now);
        builder.start_with_context(&self.tracer, &parent)
    }

    fn called(&mut self, call: CallId, action: &str, input: &Value, now: SystemTime) {
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", action.to_owned()),
            KeyValue::new("gen_ai.tool.type", "function"),
            KeyValue::new("gen_ai.tool.call.id", call.to_string()),
        ];
        if self.content {
            attributes.push(KeyValue::new("gen_ai.tool.call.arguments", self.redact.value(input).to_string()));
        }
        let span = self.child(format!("execute_tool {action}"), SpanKind::Internal, attributes, now);
        self.tools.insert(call, (span, now));
    }

    /// A step is a call of a tool, the run of an agent, or waits for a human.
    fn step_started(&mut self, at: &str, kind: &str, input: &Value, now: SystemTime) {
        let mut attributes =
            vec![KeyValue::new("loopctl.step.at", at.to_owned()), KeyValue::new("loopctl.step.type", kind.to_owned())];
        let name = match kind {
            "loop" => {
                attributes.push(KeyValue::new("gen_ai.operation.name", "invoke_agent"));
                format!("invoke_agent {at}")
            }
            "PbotApproval" | "PbotForm" => format!("{kind} {at}"),
            action => {
                attributes.extend([
                    KeyValue::new("gen_ai.operation.name", "execute_tool"),
                    KeyValue::new("gen_ai.tool.name", action.to_owned()),
                    KeyValue::new("gen_ai.tool.type", "function"),
                    KeyValue::new("gen_ai.tool.call.id", at.to_owned()),
                ]);
                if self.content {
                    attributes.push(KeyValue::new("gen_ai.tool.call.arguments", self.redact.value(input).to_string()));
                }
                format!("execute_tool {action}")
            }
        };
        let span = self.child(name, SpanKind::Internal, attributes, now);
        self.steps.insert(at.to_owned(), span);
    }

    fn step_ended(&mut self, record: &StepRecord, now: SystemTime) {
        let open = self.steps.remove(&record.at).or_else(|| self.loop_span(record));
        // A step that a human decided about began in another part of the run.
        let Some(mut span) = open else { return };
        if let Some(run_id) = &record.run_id {
            span.set_attribute(KeyValue::new("gen_ai.conversation.id", run_id.clone()));
        }
        let is_call = record.items.is_none() && record.run_id.is_none();
        if let Some(output) = record.output.as_ref().filter(|_| self.content && is_call) {
            let result = self.redact.value(output).to_string();
            span.set_attribute(KeyValue::new("gen_ai.tool.call.result", result));
        }
        if let Some(error) = &record.error {
            failed(&mut span, error.code.clone());
        }
        span.end_with_timestamp(now);
    }

    /// The span of a loop over items, which is reported when it has ended.
    fn loop_span(&self, record: &StepRecord) -> Option<Span> {
        let (items, since_ms) = (record.items.as_ref()?, record.started_at_ms?);
        let began = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(since_ms).unwrap_or_default());
        let attributes = vec![
            KeyValue::new("loopctl.step.at", record.at.clone()),
            KeyValue::new("loopctl.step.type", record.kind.clone()),
            KeyValue::new("loopctl.items.total", i64::from(items.total)),
            KeyValue::new("loopctl.items.completed", i64::from(items.completed)),
            KeyValue::new("loopctl.items.failed", i64::from(items.failed)),
            KeyValue::new("loopctl.items.skipped", i64::from(items.skipped)),
            KeyValue::new("loopctl.items.cancelled", i64::from(items.cancelled)),
        ];
        Some(self.child(format!("foreach {}", record.at), SpanKind::Internal, attributes, began))
    }

    /// The observations of a turn are reported together: a call ended when its own duration was over.
    fn returned(&mut self, call: CallId, observation: &Value, ended: ToolEnd, now: SystemTime) {
        // An observation of the engine itself is no call.
        let Some((mut span, began)) = self.tools.remove(&call) else { return };
        if self.content {
            let result = self.redact.value(observation).to_string();
            span.set_attribute(KeyValue::new("gen_ai.tool.call.result", result));
        }
        if let Some(error) = ended.error {
            failed(&mut span, error);
        }
        span.end_with_timestamp(
            began.checked_add(Duration::from_millis(ended.duration_ms)).map_or(now, |end| end.min(now)),
        );
    }

    /// The driver leaves the run: open spans end with its status.
    fn end(&mut self, status: Status, termination: Termination, now: SystemTime) {
        let why = written(&termination).unwrap_or_default();
        let tools = self.tools.drain().map(|(_, (span, _))| span).chain(self.steps.drain().map(|(_, span)| span));
        let open = self.chat.take().into_iter().chain(tools);
        for mut span in open {
            if status != Status::Paused {
                failed(&mut span, why.clone());
            }
            span.end_with_timestamp(now);
        }
        if let Some(mut agent) = self.agent.take() {
            agent.set_attribute(KeyValue::new("loopctl.status", status.word()));
            agent.set_attribute(KeyValue::new("loopctl.termination", why.clone()));
            if status == Status::Failed {
                failed(&mut agent, why);
            }
            agent.end_with_timestamp(now);
        }
    }

    fn said_by_agent(&mut self, name: &'static str, role: &str, text: &str) {
        if self.content {
            let message = self.message(role, text);
            if let Some(agent) = &mut self.agent {
                agent.set_attribute(KeyValue::new(name, message));
            }
        }
    }

    /// A message in the form of the conventions, with its secrets hidden.
    fn message(&self, role: &str, text: &str) -> String {
        json!([{ "role": role, "parts": [{ "type": "text", "content": self.redact.text(text) }] }]).to_string()
    }

    fn provider(&self) -> &'static str {
        let of_id = || Provider::of_model(&self.model).unwrap_or(Provider::DEFAULT).facts().span_name;
        self.providers.get(&self.model).copied().unwrap_or_else(of_id)
    }
}

fn failed(span: &mut Span, kind: String) {
    span.set_attribute(KeyValue::new("error.type", kind.clone()));
    span.set_status(SpanStatus::error(kind));
}
