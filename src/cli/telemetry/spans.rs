//! Notices as spans: `invoke_agent` or `invoke_workflow` for one driver's part of a run, and in it a `chat` for each request to
//! the model, an `execute_tool` for each call of a tool, and the runs that it calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Event, Span as _, SpanContext, SpanKind, Status as SpanStatus, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value as AttributeValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use serde_json::{Value, json};

use super::provider::TracedRuns;
use crate::drive::clock;
use crate::drive::run_meter::{OwnSpend, RunMeter};
use crate::engine::event::{CallId, Finish};
use crate::engine::flow::record::StepRecord;
use crate::engine::notice::Notice;
use crate::engine::outcome::{Ending, Status, Termination};
use crate::engine::record::{TokenUsage, TraceEntry};
use crate::engine::state::RunHeader;
use crate::policy::provider::Provider;
use crate::policy::word::written;
use crate::program::Program;
use crate::trace::Redaction;

/// A step of a workflow that is the run of an agent: that run has the span.
const AGENT_STEP: &str = "loop";

/// A model, as spans and metrics name it.
#[derive(Debug, Clone)]
pub struct TracedModel {
    /// The provider's id of it.
    pub id: String,
    /// The conventions' name of its provider.
    pub provider: &'static str,
}

/// The spans of one driver's part of a run.
pub struct RunSpans {
    traced: Arc<TracedRuns>,
    run: Mutex<OpenRun>,
}

/// The facts of a run, and its open spans.
struct OpenRun {
    run_id: String,
    loop_name: String,
    is_workflow: bool,
    /// The name of its model in the project.
    model: String,
    /// The project's models.
    models: HashMap<String, TracedModel>,
    /// Whether a script takes the place of its models.
    is_scripted: bool,
    redact: Redaction,
    /// What it is a step of: the call of another run, the trace of its request or of the process.
    parent: Option<SpanContext>,
    /// The run that started it without waiting for it.
    starter: Option<SpanContext>,
    /// The address of the step of a workflow that it is.
    step_at: Option<String>,
    span: Option<Span>,
    /// When this part of it began: no span of it begins before.
    began: SystemTime,
    chat: Option<OpenChat>,
    /// The model that gave the reply that is reported next.
    replied_by: Option<String>,
    tools: HashMap<CallId, (Span, SystemTime)>,
    /// The open steps of a workflow, by their addresses.
    steps: HashMap<String, Span>,
}

/// A request to the model. Its span is made when it is over: then it is known who replied.
struct OpenChat {
    asked_at: SystemTime,
    /// The failed attempts.
    retries: Vec<Event>,
}

impl RunSpans {
    /// Those of a run that is driven from now on.
    pub fn new(traced: Arc<TracedRuns>, run: &RunHeader, program: &Program) -> Self {
        let models = program.project.models.iter().map(|(name, model)| {
            let id = model.model.clone().unwrap_or_else(|| name.clone());
            (name.clone(), TracedModel { id, provider: model.provider.facts().span_name })
        });
        let asked = traced.contexts.asked(&run.run_id);
        let parent = match &run.caller {
            Some(caller) => {
                let at = caller.at.clone().unwrap_or_else(|| caller.call.to_string());
                traced.contexts.of_call(&caller.run_id, &at)
            }
            None => asked.parent,
        };
        let run = OpenRun {
            run_id: run.run_id.clone(),
            loop_name: run.loop_name.clone(),
            is_workflow: program.is_flow(),
            model: run.model.name.clone(),
            models: models.collect(),
            is_scripted: run.scripted,
            redact: Redaction::new(&program.project.redact),
            parent: parent.or_else(|| traced.parent.clone()),
            starter: asked.starter,
            step_at: run.caller.as_ref().and_then(|caller| caller.at.clone()),
            span: None,
            began: UNIX_EPOCH,
            chat: None,
            replied_by: None,
            tools: HashMap::new(),
            steps: HashMap::new(),
        };
        Self { traced, run: Mutex::new(run) }
    }

    fn run(&self) -> MutexGuard<'_, OpenRun> {
        // If another thread panicked, at worst a span is missing.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunMeter for RunSpans {
    fn on(&self, notice: &Notice) {
        let now = now();
        self.run().on(&self.traced, notice, now);
    }

    fn spent(&self, spend: OwnSpend<'_>) {
        let mut run = self.run();
        if let Some(instruments) = &self.traced.instruments {
            instruments.spent(&run.asked(spend.model), spend.tokens);
        }
        if run.chat.is_some() {
            run.replied_by = Some(spend.model.to_owned());
        }
    }

    fn ended(&self, _ending: &Ending) {
        self.traced.contexts.forget(&self.run().run_id);
    }

    fn stored(&self, _time: Duration) {}
}

impl Drop for RunSpans {
    fn drop(&mut self) {
        // The driver left the run without a word: it was cut off, or another process has it.
        let mut run = self.run();
        if run.span.is_some() {
            run.close(&self.traced, None, now());
        }
    }
}

fn now() -> SystemTime {
    let wall_ms = u64::try_from(clock::wall_ms()).unwrap_or(0);
    UNIX_EPOCH.checked_add(Duration::from_millis(wall_ms)).unwrap_or(UNIX_EPOCH)
}

impl OpenRun {
    /// Adds a notice that came `now`.
    fn on(&mut self, traced: &TracedRuns, notice: &Notice, now: SystemTime) {
        let content = traced.content;
        match notice {
            Notice::RunStarted { objective, .. } => {
                self.begin(traced, now);
                if content {
                    let message = self.message("user", objective);
                    self.set("gen_ai.input.messages", message);
                }
            }
            Notice::RunResumed { .. } => self.begin(traced, now),
            Notice::ModelAsked { .. } => self.ask(now),
            Notice::ModelRetried { attempt, reason, delay_ms, .. } => {
                // A server's message may repeat the request.
                let reason = content.then(|| self.redact.text(reason).into_owned());
                if let Some(chat) = &mut self.chat {
                    chat.retries.push(Event::new("retry", now, retry_facts(*attempt, *delay_ms, reason), 0));
                }
            }
            Notice::ToolRetried { call, at, attempt, error, delay_ms, .. } => {
                let reason = self.redact.text(&fault_kind(&error.class)).into_owned();
                let of_call = call.as_ref().and_then(|call| self.tools.get_mut(call)).map(|(span, _)| span);
                let span = of_call.or_else(|| self.steps.get_mut(at.as_ref()?));
                if let Some(span) = span {
                    span.add_event_with_timestamp("retry", now, retry_facts(*attempt, *delay_ms, Some(reason)));
                }
            }
            Notice::ModelReplied { .. } => self.replied(traced, notice, now),
            Notice::ToolCalled { call, action, action_input } => self.called(traced, *call, action, action_input, now),
            Notice::Observed { call: Some(call), entry } => self.returned(traced, *call, entry, now),
            Notice::StepStarted { at, kind, action_input, .. } => {
                self.step_started(traced, at, kind, action_input, now)
            }
            Notice::StepEnded { record } => self.step_ended(traced, record, now),
            Notice::Paused { question, .. } => self.close(traced, Some((Status::Paused, question.kind)), now),
            Notice::RunEnded { status, termination } => self.close(traced, Some((*status, *termination)), now),
            _ => {}
        }
    }

    /// The driver begins: the run is a span below what it is a step of.
    fn begin(&mut self, traced: &TracedRuns, now: SystemTime) {
        let Some(tracer) = &traced.tracer else { return };
        let model = self.asked(&self.model);
        let name = self.loop_name.clone();
        let (operation, mut attributes) = if self.is_workflow {
            ("invoke_workflow", vec![KeyValue::new("gen_ai.workflow.name", name.clone())])
        } else {
            let agent = vec![
                KeyValue::new("gen_ai.agent.name", name.clone()),
                KeyValue::new("gen_ai.provider.name", model.provider),
                KeyValue::new("gen_ai.request.model", model.id),
            ];
            ("invoke_agent", agent)
        };
        attributes.push(KeyValue::new("gen_ai.operation.name", operation));
        attributes.push(KeyValue::new("gen_ai.conversation.id", self.run_id.clone()));
        if let Some(at) = &self.step_at {
            attributes.push(KeyValue::new("loopctl.step.at", at.clone()));
            attributes.push(KeyValue::new("loopctl.step.type", AGENT_STEP));
        }
        let parent =
            self.parent.clone().map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent));
        let mut builder = tracer.span_builder(format!("{operation} {name}")).with_kind(SpanKind::Internal);
        builder = builder.with_attributes(attributes).with_start_time(now);
        if let Some(starter) = &self.starter {
            builder = builder.with_links(vec![opentelemetry::trace::Link::with_context(starter.clone())]);
        }
        let span = builder.start_with_context(tracer, &parent);
        traced.contexts.begin(&self.run_id, span.span_context().clone());
        self.began = now;
        self.span = Some(span);
    }

    /// A span below that of the run.
    fn child(&self, tracer: &SdkTracer, name: String, attributes: Vec<KeyValue>, began: SystemTime) -> Span {
        let builder = tracer.span_builder(name).with_kind(SpanKind::Internal);
        builder.with_attributes(attributes).with_start_time(began).start_with_context(tracer, &self.below())
    }

    fn ask(&mut self, now: SystemTime) {
        self.replied_by = None;
        self.chat = Some(OpenChat { asked_at: now, retries: Vec::new() });
    }

    /// The span of a request to this model.
    fn chat_span(&self, traced: &TracedRuns, chat: OpenChat, model: &TracedModel) -> Option<Span> {
        let tracer = traced.tracer.as_ref()?;
        let attributes = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", model.provider),
            KeyValue::new("gen_ai.request.model", model.id.clone()),
            KeyValue::new("gen_ai.conversation.id", self.run_id.clone()),
        ];
        let builder = tracer.span_builder(format!("chat {}", model.id)).with_kind(SpanKind::Client);
        let builder = builder.with_attributes(attributes).with_start_time(chat.asked_at).with_events(chat.retries);
        Some(builder.start_with_context(tracer, &self.below()))
    }

    /// What is below the run.
    fn below(&self) -> Context {
        let of_run = |run: &Span| Context::new().with_remote_span_context(run.span_context().clone());
        self.span.as_ref().map_or_else(Context::new, of_run)
    }

    fn replied(&mut self, traced: &TracedRuns, notice: &Notice, now: SystemTime) {
        let Notice::ModelReplied {
            thought, usage, finish, response_model, duration_ms, time_to_first_token_ms, ..
        } = notice
        else {
            return;
        };
        let replied_by = self.replied_by.take();
        let model = self.asked(replied_by.as_deref().unwrap_or(&self.model));
        // A fork reports the replies that it was given: nobody was asked.
        let Some(chat) = self.chat.take() else { return };
        if let Some(instruments) = &traced.instruments {
            instruments.asked(&model, Duration::from_millis(*duration_ms).as_secs_f64(), None);
        }
        let Some(mut chat) = self.chat_span(traced, chat, &model) else { return };
        chat.set_attributes(usage.iter().flat_map(used));
        let reasons = Array::String(vec![StringValue::from(finish_reason(*finish))]);
        chat.set_attribute(KeyValue::new("gen_ai.response.finish_reasons", AttributeValue::Array(reasons)));
        // What a provider calls its model is its own text.
        let named = response_model.as_ref().filter(|name| !name.chars().any(char::is_control));
        let named = named.map(|name| self.redact.text(name).into_owned());
        chat.set_attribute(KeyValue::new("gen_ai.response.model", named.unwrap_or(model.id)));
        if let Some(first) = time_to_first_token_ms {
            let first = Duration::from_millis(*first).as_secs_f64();
            chat.set_attribute(KeyValue::new("gen_ai.request.stream", true));
            chat.set_attribute(KeyValue::new("gen_ai.response.time_to_first_chunk", first));
        }
        if traced.content {
            chat.set_attribute(KeyValue::new("gen_ai.output.messages", self.message("assistant", thought)));
        }
        traced.end(chat, now);
    }

    fn called(&mut self, traced: &TracedRuns, call: CallId, action: &str, input: &Value, now: SystemTime) {
        let Some(tracer) = &traced.tracer else { return };
        let attributes = self.call_attributes(traced, action, &call.to_string(), input);
        let span = self.child(tracer, format!("execute_tool {action}"), attributes, now);
        traced.contexts.call_begins(&self.run_id, call.to_string(), span.span_context().clone());
        self.tools.insert(call, (span, now));
    }

    fn call_attributes(&self, traced: &TracedRuns, action: &str, id: &str, input: &Value) -> Vec<KeyValue> {
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", action.to_owned()),
            KeyValue::new("gen_ai.tool.type", "function"),
            KeyValue::new("gen_ai.tool.call.id", id.to_owned()),
        ];
        if traced.content {
            attributes.push(KeyValue::new("gen_ai.tool.call.arguments", self.redact.value(input).to_string()));
        }
        attributes
    }

    /// A step is a call of a tool, the run of an agent, or waits for a human.
    fn step_started(&mut self, traced: &TracedRuns, at: &str, kind: &str, input: &Value, now: SystemTime) {
        let Some(tracer) = traced.tracer.as_ref().filter(|_| kind != AGENT_STEP) else { return };
        let mut attributes =
            vec![KeyValue::new("loopctl.step.at", at.to_owned()), KeyValue::new("loopctl.step.type", kind.to_owned())];
        let name = match kind {
            "PbotApproval" | "PbotForm" => format!("{kind} {at}"),
            action => {
                attributes.extend(self.call_attributes(traced, action, at, input));
                format!("execute_tool {action}")
            }
        };
        let span = self.child(tracer, name, attributes, now);
        traced.contexts.call_begins(&self.run_id, at.to_owned(), span.span_context().clone());
        self.steps.insert(at.to_owned(), span);
    }

    fn step_ended(&mut self, traced: &TracedRuns, record: &StepRecord, now: SystemTime) {
        traced.contexts.call_ends(&self.run_id, &record.at);
        let open = self.steps.remove(&record.at).or_else(|| self.late_span(traced, record, now));
        // A step that a human decided about began in another part of the run.
        let Some(mut span) = open else { return };
        let is_call = record.items.is_none() && record.run_id.is_none();
        if let Some(output) = record.output.as_ref().filter(|_| traced.content && is_call) {
            let result = self.redact.value(output).to_string();
            span.set_attribute(KeyValue::new("gen_ai.tool.call.result", result));
        }
        if let Some(error) = &record.error {
            failed(&mut span, error.code.clone());
        }
        traced.end(span, now);
    }

    /// The span of a step that is reported when it has ended: a loop over items, a call that waited for an approval in an earlier part
    /// of the run, and the run of an agent that could not start.
    fn late_span(&self, traced: &TracedRuns, record: &StepRecord, now: SystemTime) -> Option<Span> {
        let tracer = traced.tracer.as_ref()?;
        let began = record
            .started_at_ms
            .and_then(|since_ms| u64::try_from(since_ms).ok())
            .and_then(|since_ms| UNIX_EPOCH.checked_add(Duration::from_millis(since_ms)));
        let mut attributes = vec![
            KeyValue::new("loopctl.step.at", record.at.clone()),
            KeyValue::new("loopctl.step.type", record.kind.clone()),
        ];
        let name = match &record.items {
            Some(items) => {
                attributes.extend([
                    KeyValue::new("loopctl.items.total", i64::from(items.total)),
                    KeyValue::new("loopctl.items.completed", i64::from(items.completed)),
                    KeyValue::new("loopctl.items.failed", i64::from(items.failed)),
                    KeyValue::new("loopctl.items.skipped", i64::from(items.skipped)),
                    KeyValue::new("loopctl.items.cancelled", i64::from(items.cancelled)),
                ]);
                format!("foreach {}", record.at)
            }
            None if record.kind == AGENT_STEP && record.run_id.is_none() => {
                attributes.push(KeyValue::new("gen_ai.operation.name", "invoke_agent"));
                format!("invoke_agent {}", record.at)
            }
            // A choice takes no time: what runs of it has spans.
            None if record.case.is_some() => return None,
            None if matches!(record.kind.as_str(), AGENT_STEP | "PbotApproval" | "PbotForm") => return None,
            None => {
                let input = record.input.as_deref().unwrap_or(&Value::Null);
                attributes.extend(self.call_attributes(traced, &record.kind, &record.at, input));
                format!("execute_tool {}", record.kind)
            }
        };
        // Its begin in an earlier part of the run is that of another span.
        Some(self.child(tracer, name, attributes, began.unwrap_or(now).max(self.began)))
    }

    /// The observations of a turn are reported together: a call ended when its own duration was over.
    fn returned(&mut self, traced: &TracedRuns, call: CallId, entry: &TraceEntry, now: SystemTime) {
        // An observation of the engine itself is no call.
        let Some((mut span, began)) = self.tools.remove(&call) else { return };
        traced.contexts.call_ends(&self.run_id, &call.to_string());
        if traced.content {
            let result = self.redact.value(&entry.observation).to_string();
            span.set_attribute(KeyValue::new("gen_ai.tool.call.result", result));
        }
        if let Some(fault) = &entry.error {
            failed(&mut span, self.redact.text(&fault_kind(&fault.class)).into_owned());
        }
        // The time is in whole milliseconds, cut: a run below may end within the last one.
        let duration = Duration::from_millis(entry.duration_ms.saturating_add(1));
        traced.end(span, began.checked_add(duration).map_or(now, |end| end.min(now)));
    }

    /// The driver leaves the run: open spans end with its status, or without one if it was cut off.
    fn close(&mut self, traced: &TracedRuns, end: Option<(Status, Termination)>, now: SystemTime) {
        let status = end.map(|(status, _)| status);
        let why = end.and_then(|(_, termination)| written(&termination));
        let is_error = !matches!(status, Some(Status::Paused) | None);
        if let Some(chat) = self.chat.take() {
            // A run may pause because its model did not reply.
            let is_error = is_error || matches!(end, Some((_, Termination::ModelError)));
            let error = why.clone().filter(|_| is_error);
            let model = self.asked(&self.model);
            if let (Some(instruments), Some(_)) = (&traced.instruments, &error) {
                let seconds = now.duration_since(chat.asked_at).unwrap_or_default().as_secs_f64();
                instruments.asked(&model, seconds, error.clone());
            }
            if let Some(mut chat) = self.chat_span(traced, chat, &model) {
                error.into_iter().for_each(|error| failed(&mut chat, error));
                traced.end(chat, now);
            }
        }
        let tools: Vec<Span> = self.tools.drain().map(|(_, (span, _))| span).collect();
        let steps: Vec<(String, Span)> = self.steps.drain().collect();
        let steps = steps.into_iter().map(|(at, mut span)| {
            if status == Some(Status::Paused) {
                // It waits for a human: nothing was called.
                span.update_name(format!("question {at}"));
                span.set_attribute(KeyValue::new("loopctl.status", Status::Paused.word()));
            }
            span
        });
        for mut span in tools.into_iter().chain(steps) {
            why.clone().filter(|_| is_error).into_iter().for_each(|error| failed(&mut span, error));
            traced.end(span, now);
        }
        let Some(mut run) = self.span.take() else { return };
        traced.contexts.end(&self.run_id, run.span_context());
        run.set_attributes(status.map(|status| KeyValue::new("loopctl.status", status.word())));
        run.set_attributes(why.clone().map(|why| KeyValue::new("loopctl.termination", why)));
        if status == Some(Status::Failed) {
            failed(&mut run, why.unwrap_or_default());
        }
        traced.end(run, now);
    }

    fn set(&mut self, name: &'static str, value: String) {
        if let Some(run) = &mut self.span {
            run.set_attribute(KeyValue::new(name, value));
        }
    }

    /// A message in the form of the conventions, with its secrets hidden.
    fn message(&self, role: &str, text: &str) -> String {
        json!([{ "role": role, "parts": [{ "type": "text", "content": self.redact.text(text) }] }]).to_string()
    }

    /// A model of the project, or one that is named by its provider's id.
    fn asked(&self, name: &str) -> TracedModel {
        let of_id = || {
            let provider = Provider::of_model(name).unwrap_or(Provider::DEFAULT);
            TracedModel { id: name.to_owned(), provider: provider.facts().span_name }
        };
        let model = self.models.get(name).cloned().unwrap_or_else(of_id);
        if self.is_scripted { TracedModel { provider: Provider::Script.facts().span_name, ..model } } else { model }
    }
}

/// The kind of a fault alone: the text after a colon may repeat what somebody wrote.
fn fault_kind(class: &str) -> String {
    class.split(':').next().unwrap_or_default().chars().take(80).collect()
}

/// What the event of a failed attempt has.
fn retry_facts(attempt: u32, delay_ms: u64, reason: Option<String>) -> Vec<KeyValue> {
    let mut facts =
        vec![KeyValue::new("loopctl.attempt", i64::from(attempt)), KeyValue::new("loopctl.delay_ms", count(delay_ms))];
    facts.extend(reason.map(|reason| KeyValue::new("loopctl.reason", reason)));
    facts
}

/// The tokens of a reply.
fn used(usage: &TokenUsage) -> Vec<KeyValue> {
    let details = usage.details;
    let mut used = vec![
        KeyValue::new("gen_ai.usage.input_tokens", count(usage.input_tokens)),
        KeyValue::new("gen_ai.usage.output_tokens", count(usage.output_tokens)),
    ];
    let parts = [
        ("gen_ai.usage.cache_read.input_tokens", details.cached_input_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", details.cache_write_tokens),
        ("gen_ai.usage.reasoning.output_tokens", details.reasoning_tokens),
    ];
    used.extend(
        parts.into_iter().filter(|(_, tokens)| *tokens > 0).map(|(name, tokens)| KeyValue::new(name, count(tokens))),
    );
    used
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The word of the conventions for why a reply ended.
fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
    }
}

fn failed(span: &mut Span, kind: String) {
    span.set_attribute(KeyValue::new("error.type", kind.clone()));
    span.set_status(SpanStatus::error(kind));
}
