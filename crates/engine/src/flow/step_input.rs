//! What a step is given when it begins: computed from the context, before anything is called.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::advance::{Advance, TakenItems};
use super::partial_value::unresolved_sentence;
use super::progress::{ItemsState, StepFault};
use super::step_start::{BeginFault, Opened};
use crate::decision::awaited_approval::AwaitedApproval;
use crate::operation::{AskedFor, AwaitedKind, AwaitedThing, Progress};
use crate::prompt;
use crate::timestamp::rfc3339;
use loopctl_lang::program::awaited_event::{EventStep, MAX_MATCH_BYTES};
use loopctl_lang::program::flow::{ApprovalStep, CallStep, Foreach, FormStep, ReactStep};
use loopctl_lang::program::form::{FieldFault, FormAsks, FormFault};
use loopctl_lang::program::json_length::json_bytes;
use loopctl_lang::program::null_member::without_nulls;
use loopctl_lang::program::reference::{Field, Scope, Unresolved};
use loopctl_lang::program::text_input::read_texts;
use loopctl_lang::program::wait::WaitStep;
use loopctl_lang::program::{Tool, schema};

/// What a call is of.
fn word(tool: &Tool) -> &'static str {
    let other = if tool.served().is_some() { "tool" } else { "action" };
    tool.called_loop().or(tool.launched()).map_or(other, |called| called.word())
}

impl Advance<'_> {
    /// The input of a call, and whether a human must approve it.
    pub fn call(&self, call: &CallStep, scope: &Scope<'_>) -> Result<Opened, BeginFault> {
        let mut input = self.object(&call.input, scope)?;
        if self.header.reads_exact_texts() {
            self.read_texts(&call.tool, &mut input)?;
        }
        let mut faults = call.tool.parameters.faults(&input);
        if !faults.is_empty()
            && self.header.reads_exact_texts()
            && let Some(read) = without_nulls(&call.tool.parameters, &input)
        {
            (input, faults) = (read, Vec::new());
        }
        if !faults.is_empty() {
            let list = schema::list(&faults);
            return Err(BeginFault::new(
                "bad_input",
                format!("its input does not fit the {} `{}`:{list}", word(&call.tool), call.tool.name),
            ));
        }
        let by = self.header.call_rules(&self.program.head, self.program.zone.as_ref(), scope.now);
        let progress = match AwaitedApproval::of(&call.tool.approval, &input, &by) {
            Some(mut awaited) => {
                awaited.begin(&call.tool.approval, self.now.wall_ms);
                Progress::Asks(AskedFor::Approval(Box::new(awaited)))
            }
            None => Progress::Held,
        };
        Ok(Opened::Step { input, progress })
    }

    /// Reads the texts in the input of a call whose schema wants a number or a boolean.
    fn read_texts(&self, tool: &Tool, input: &mut Value) -> Result<(), BeginFault> {
        read_texts(tool.parameters.source(), input).map_err(|unread| {
            let fault = unread.sentence(&self.program.project.redact);
            BeginFault::new("bad_input", format!("its input does not fit the {} `{}`: {fault}", word(tool), tool.name))
        })
    }

    /// The input of a run that is a step: what its texts name. They are made from it, as at the start of the run.
    pub fn react(&self, react: &ReactStep, scope: &Scope<'_>) -> Result<Opened, BeginFault> {
        let input = react.program.step().map_or(Value::Null, |context| context.input(scope));
        if let Some(program) = react.program.as_loop() {
            prompt::of_step(program, &input, scope).map_err(|unresolved| self.missing(&unresolved))?;
        }
        Ok(Opened::Step { input, progress: Progress::Held })
    }

    pub fn approval(&self, approval: &ApprovalStep, scope: &Scope<'_>) -> Result<Opened, BeginFault> {
        let comment = approval.comment.render(scope).map_err(|unresolved| self.missing(&unresolved))?;
        let input = self.object(&approval.request_payload, scope)?;
        let on_rejected = approval.on_rejected(self.header.denial_rule());
        Ok(Opened::Step { input, progress: Progress::Asks(AskedFor::Consent { comment, on_rejected }) })
    }

    /// What a form asks for: its keys, or its question with what is shown and the fields.
    pub fn form(&self, form: &FormStep, scope: &Scope<'_>) -> Result<Value, BeginFault> {
        let fields = match &form.asks {
            FormAsks::Keys(keys) => return Ok(Value::from(keys.clone())),
            FormAsks::Fields(fields) => fields,
        };
        let zone = self.program.zone.as_ref().filter(|_| self.header.reads_exact_texts());
        let asked = fields.asked(scope, zone).map_err(|fault| match fault {
            FormFault::Missing(unresolved) => self.missing(&unresolved),
            FormFault::Misfit(FieldFault { field, message }) => {
                BeginFault::new("bad_form", format!("the field `{field}` can't be asked for: {message}"))
            }
        })?;
        serde_json::to_value(asked).map_err(|error| BeginFault::new("bad_form", error.to_string()))
    }

    /// The list of a loop, and how far the loop is: at its beginning.
    pub fn take_items(&mut self, foreach: &Foreach, at: String, scope: &Scope<'_>) -> Result<Opened, BeginFault> {
        let path = format!("@{}", foreach.items.join("."));
        let (found, count) = match scope.long_list_at(&foreach.items) {
            // Its items are parsed when they begin.
            Some(list) => (Cow::Borrowed(&Value::Null), list.len()),
            None => {
                let found = scope.lookup(&foreach.items).map_err(|unresolved| self.missing(&unresolved))?;
                // A path and a matcher read a text that is JSON, too.
                let of_text = match found.as_ref() {
                    Value::String(text) if self.header.reads_json_lists() => scope.json_of(text),
                    _ => None,
                };
                let found = of_text.map_or(found, Cow::Owned);
                let Value::Array(list) = found.as_ref() else {
                    let why = scope.broken_list(&foreach.items.join("."), &found);
                    let broken = why.map(|why| self.missing(&why));
                    return Err(broken.unwrap_or_else(|| BeginFault::new("not_a_list", format!("`{path}` is no list"))));
                };
                let count = list.len();
                (found, count)
            }
        };
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if count > u64::from(foreach.max_items) {
            let message = format!("`{path}` has {count} items, and `max_items` is {}", foreach.max_items);
            return Err(BeginFault::new("too_many_items", message));
        }
        let is_over = |taken: &&mut TakenItems| taken.count.saturating_add(count) > u64::from(taken.most);
        if let Some(around) = self.around.iter_mut().find(is_over) {
            let TakenItems { count: before, most, .. } = *around;
            let message = format!(
                "`{path}` has {count} items, after {before} others: that is more than the `max_items` of a loop around it, \
                 which is {most}"
            );
            let fault = BeginFault::new("too_many_items", message);
            around.over = Some(StepFault::new(fault.code, fault.message.as_str(), at));
            return Err(fault);
        }
        let list = match found {
            Cow::Borrowed(_) => None,
            Cow::Owned(list) => Some(Arc::new(list)),
        };
        let (taken, count) = (count, u32::try_from(count).unwrap_or(u32::MAX));
        Ok(Opened::Items(Box::new(ItemsState {
            at,
            count,
            taken,
            list,
            since_ms: self.now.wall_ms,
            ..ItemsState::default()
        })))
    }

    /// Until when a step waits.
    pub fn wait(&self, wait: &WaitStep, scope: &Scope<'_>) -> Result<Opened, BeginFault> {
        let written = wait.value().resolve(scope).map_err(|unresolved| self.missing(&unresolved))?;
        let zone = self.program.zone.clone().filter(|_| self.header.waits_in_zone()).unwrap_or(TimeZone::UTC);
        let until_ms = wait.until_ms(&written, self.now.wall_ms, &zone);
        let until_ms = until_ms.map_err(|why| BeginFault::new("bad_wait", why))?;
        let input = json!({ "until": rfc3339(until_ms) });
        Ok(Opened::Step { input, progress: Progress::Waits(AwaitedThing { until_ms, what: AwaitedKind::Time }) })
    }

    /// Which event a step waits for, and until when.
    pub fn wait_for_event(&self, step: &EventStep, scope: &Scope<'_>) -> Result<Opened, BeginFault> {
        let awaited = step.awaited(scope).map_err(|unresolved| self.missing(&unresolved))?;
        let until_ms = self.now.wall_ms.saturating_add_unsigned(step.ttl_ms);
        let input = json!({ "event": awaited.event, "match": awaited.matches, "until": rfc3339(until_ms) });
        let bytes = json_bytes(&input);
        if bytes > MAX_MATCH_BYTES {
            let message =
                format!("its `match` has {bytes} bytes with its values, and at most {MAX_MATCH_BYTES} are compared");
            return Err(BeginFault::new("too_large", message));
        }
        Ok(Opened::Step {
            input,
            progress: Progress::Waits(AwaitedThing { until_ms, what: AwaitedKind::Event(Box::new(awaited)) }),
        })
    }

    fn object(&self, fields: &[(String, Field)], scope: &Scope<'_>) -> Result<Value, BeginFault> {
        let resolve = |(name, field): &(String, Field)| {
            let value = field.resolve_entry(scope).transpose()?;
            Some(value.map(|value| (name.clone(), value)).map_err(|unresolved| self.missing(&unresolved)))
        };
        fields.iter().filter_map(resolve).collect::<Result<Map<_, _>, _>>().map(Value::Object)
    }

    /// Why a value is missing; it says which step would have written it.
    fn missing(&self, unresolved: &Unresolved) -> BeginFault {
        if self.header.refuses_unread_values() && !unresolved.is_missing() {
            return BeginFault::new("bad_value", unresolved_sentence(unresolved));
        }
        let mut message = format!("a value is missing: {unresolved}");
        let key = unresolved.why.split_once("` was not given").and_then(|(key, _)| key.strip_prefix('`'));
        let mut writer = None;
        self.program.each(&mut |step| {
            if key.is_some_and(|key| step.writes(key)) {
                writer = Some(step.name.clone());
            }
        });
        if let Some(step) = writer {
            message.push_str(&format!("; the step `{step}` writes it, and has not run"));
        }
        BeginFault::new("missing_value", message)
    }
}
