//! The wire: a conversation in the provider's bytes, which only ever grows at its end.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde_json::Value;

use super::Ask;
use super::constraint::ReplyConstraint;
use super::protocol::{NewMessages, Protocol};
use super::reasoning::without_foreign_calls;
use super::refused_fields::{RefusedFields, RequestField};
use super::settings::ModelSettings;
use super::window::LearnedWindow;
use loopctl_engine::conversation::Role;
use loopctl_engine::dialect;
use loopctl_engine::digest::{Digest, Sha256};
use loopctl_engine::event::{InputFile, InputFileContent};
use loopctl_lang::policy::provider::RequestLimits;
use loopctl_lang::program::offer::OfferedTool;
use loopctl_lang::program::selected_tools::SelectedTools;

/// The grown bytes of a run's conversation in the provider's form, so that a request costs what it
/// adds. Kept by the driver of one run; keyed by the conversation's generation and the model. It also
/// knows how far a script is in this run.
#[derive(Debug, Default)]
pub struct Wire {
    key: Option<WireKey>,
    /// The last request, whole.
    bytes: Bytes,
    /// How many of its bytes come before the tail that closes it.
    open: usize,
    /// How many messages are in them.
    taken: usize,
    /// Who said the last one of them.
    last: Option<Role>,
    /// How many entries of a script were used when the run was resumed.
    used: usize,
    /// The loop whose part of a script is played, in a run that another one called.
    part: Option<Arc<str>>,
    /// Whether the part is that of a step of a workflow.
    is_step: bool,
    /// The run, for a recording that is played.
    run_id: Arc<str>,
    /// The next entry of each script, from 0.
    positions: BTreeMap<Arc<str>, usize>,
    /// Those whose own reasoning is not sent back to them: their servers could not verify it.
    without_reasoning: BTreeSet<Arc<str>>,
}

/// What a request's head is made of: another one makes other bytes.
#[derive(Debug)]
struct WireKey {
    generation: u32,
    identity: Arc<str>,
    max_tokens: u32,
    temperature: Option<u64>,
    stop: Vec<String>,
    stream: bool,
    is_constrained: bool,
    refused: u32,
    must_call: bool,
    /// The places of the tools that are offered, where not all are.
    selected: Vec<usize>,
}

impl WireKey {
    fn new(form: &RequestForm, ask: &Ask<'_>) -> Self {
        Self {
            generation: ask.conversation.generation,
            identity: Arc::clone(&form.identity),
            max_tokens: ask.max_tokens,
            temperature: ask.temperature.map(f64::to_bits),
            stop: ask.stop.iter().map(|text| (*text).to_owned()).collect(),
            stream: form.streams(ask),
            is_constrained: form.constraint.turn(ask).is_some(),
            refused: form.refused.snapshot(),
            must_call: ask.must_call,
            selected: places(ask).collect(),
        }
    }

    fn fits(&self, form: &RequestForm, ask: &Ask<'_>) -> bool {
        self.generation == ask.conversation.generation
            && self.identity == form.identity
            && self.max_tokens == ask.max_tokens
            && self.temperature == ask.temperature.map(f64::to_bits)
            && self.stream == form.streams(ask)
            && self.stop == ask.stop
            && self.must_call == ask.must_call
            && self.selected.iter().copied().eq(places(ask))
            && self.is_constrained == form.constraint.turn(ask).is_some()
            && self.refused == form.refused.snapshot()
    }
}

/// The places of the tools that are offered, where not all are.
fn places(ask: &Ask<'_>) -> impl Iterator<Item = usize> {
    ask.selected.into_iter().flat_map(SelectedTools::places)
}

/// How a model's requests are written.
pub(super) struct RequestForm {
    /// The protocol.
    pub(super) protocol: &'static dyn Protocol,
    /// The most of what its requests can have.
    pub(super) limits: RequestLimits,
    /// The provider's own id of the model.
    pub(super) id: String,
    /// The fields that the model refuses.
    pub(super) refused: Arc<RefusedFields>,
    /// What is known of its window.
    pub(super) window: Arc<LearnedWindow>,
    /// The settings of the model in the project file.
    pub(super) settings: ModelSettings,
    /// Who writes the reasoning of a reply: the provider, the host and the model. It is sent back to the same.
    pub(super) origin: Arc<str>,
    /// What distinguishes this form from every other.
    pub(super) identity: Arc<str>,
    /// Whether its replies are constrained.
    pub(super) constraint: ReplyConstraint,
}

impl RequestForm {
    /// Whether the model is asked to stream its reply: only when somebody watches it arrive.
    pub(super) fn streams(&self, ask: &Ask<'_>) -> bool {
        self.settings.stream && ask.partial.is_some()
    }

    /// Whether a request has this setting of how tokens are chosen, as far as `refused` is known.
    pub(super) fn sends(&self, field: RequestField, ask: &Ask<'_>, refused: u32) -> bool {
        let is_set = match field {
            RequestField::Temperature => ask.temperature.is_some(),
            field => self.settings.has(field),
        };
        is_set && refused & field.bit() == 0
    }

    /// The temperature that a request has.
    pub(super) fn temperature(&self, ask: &Ask<'_>) -> Option<f64> {
        ask.temperature.filter(|_| !self.refused.contains(RequestField::Temperature))
    }

    /// Whether a request with tools says that one must be called. The engine refuses an answer that comes too early
    /// either way.
    pub(super) fn must_call(&self, ask: &Ask<'_>) -> bool {
        ask.must_call && !self.refused.contains(RequestField::ToolChoice)
    }
}

impl Wire {
    /// A run that is resumed continues at the script's entry after the first `used` ones. Each reply
    /// and each failed attempt used one entry.
    pub fn skip_replies(&mut self, used: usize) {
        self.used = used;
        self.positions.clear();
    }

    /// How many replies of a script are used, after [`Self::skip_replies`]: of the script that is the furthest.
    pub fn used_replies(&self) -> usize {
        self.positions.values().copied().max().unwrap_or(self.used)
    }

    /// Plays the part of a loop that another one called. The part of a step of a workflow may be in `replies` too.
    pub fn play(&mut self, part: Option<&str>, is_step: bool) {
        (self.part, self.is_step) = (part.map(Arc::from), is_step);
    }

    /// The run that asks.
    pub fn of_run(&mut self, run_id: &str) {
        self.run_id = Arc::from(run_id);
    }

    /// The run that asks, as a recording knows it.
    pub(super) fn run_id(&self) -> Arc<str> {
        Arc::clone(&self.run_id)
    }

    /// Whether the part is that of a step.
    pub(super) fn is_step(&self) -> bool {
        self.is_step
    }

    /// The part that is played.
    pub(super) fn part(&self) -> Option<Arc<str>> {
        self.part.clone()
    }

    /// No longer sends the reasoning of earlier replies back to a model.
    pub(super) fn leave_reasoning_out(&mut self, form: &RequestForm) {
        self.without_reasoning.insert(Arc::clone(&form.origin));
        self.key = None;
    }

    /// Whether the reasoning of earlier replies is not sent back to a model.
    pub(super) fn leaves_reasoning_out(&self, form: &RequestForm) -> bool {
        !self.without_reasoning.is_empty() && self.without_reasoning.contains(&form.origin)
    }

    /// The next entry of the script of this name.
    pub(super) fn script_position(&mut self, track: &Arc<str>) -> &mut usize {
        self.positions.entry(Arc::clone(track)).or_insert(self.used)
    }

    /// The request's bytes. Only messages that were not there before are written; the memory is
    /// used again when the last request has been sent.
    pub(super) fn request(&mut self, form: &RequestForm, ask: &Ask<'_>) -> Bytes {
        let messages = &ask.conversation.messages;
        let fits = self.taken <= messages.len() && self.key.as_ref().is_some_and(|key| key.fits(form, ask));
        if fits && self.taken == messages.len() {
            return self.bytes.clone();
        }
        // Copies only when someone still holds the last request: a server that answered before it had read all.
        let mut buffer = BytesMut::from(std::mem::take(&mut self.bytes));
        if fits {
            buffer.truncate(self.open);
        } else {
            buffer.clear();
            self.key = Some(WireKey::new(form, ask));
            self.last = None;
            self.taken = form.protocol.head(&mut buffer, form, ask);
        }
        let without_calls = form
            .refused
            .contains(RequestField::MissingReasoningOfCalls)
            .then(|| without_foreign_calls(&form.origin, messages));
        let all = without_calls.as_deref().unwrap_or(messages);
        let new = NewMessages { all, taken: self.taken };
        make_room(&mut buffer, new.iter().map(|message| message.size() + message.size() / 8 + 48).sum());
        self.last = form.protocol.messages(&mut buffer, form, self.last, new);
        self.taken = messages.len();
        self.open = buffer.len();
        form.protocol.tail(&mut buffer, form, self.last, ask);
        self.bytes = buffer.freeze();
        self.bytes.clone()
    }
}

/// Texts at which the model stops: those of the dialect, and those of the model. Where a provider takes fewer, those of
/// the dialect give way: what a model writes behind its action is not read either way.
pub(super) fn stops<'a>(form: &'a RequestForm, ask: &Ask<'a>) -> Vec<&'a str> {
    let own = form.settings.stop.iter().map(String::as_str);
    let room = form.limits.stops.map_or(usize::MAX, |most| most.saturating_sub(form.settings.stop.len()));
    ask.stop.iter().copied().take(room).chain(own).collect()
}

/// The id of a call as the model's server takes it.
pub(super) fn call_id<'a>(form: &RequestForm, id: &'a str) -> Cow<'a, str> {
    let is_short = || id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !form.refused.contains(RequestField::CallIds) || is_short() {
        return Cow::Borrowed(id);
    }
    // Nine letters and digits, the same for the call and its result, and others for other ids.
    Cow::Owned(Sha256::of(id).to_string().chars().take(9).collect())
}

/// Writes a text as JSON without its last quote: another one may follow in the same message.
pub(super) fn open_text(buffer: &mut BytesMut, text: &str) {
    json(buffer, text);
    buffer.truncate(buffer.len().saturating_sub(1));
}

/// Writes a text behind another one whose string is open, as a paragraph of its own.
pub(super) fn more_text(buffer: &mut BytesMut, text: &str) {
    buffer.extend_from_slice(b"\\n\\n");
    let written = serde_json::to_string(text).unwrap_or_default();
    let inner = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    buffer.extend_from_slice(inner.unwrap_or_default().as_bytes());
}

/// Whether a message of this role is left open, so that one of the same role is added to it: the templates of many
/// models refuse two of them in a row.
pub(super) fn stays_open(role: Role) -> bool {
    matches!(role, Role::System | Role::User)
}

/// The tools that a request describes: in the dialects of native calls those that the model may call,
/// in the others none.
fn offers<'a>(form: &RequestForm, ask: &'a Ask<'a>) -> impl Iterator<Item = &'a OfferedTool> {
    let program = ask.program.filter(|program| dialect::is_native(program.properties.dialect));
    let most = form.limits.tools;
    program.into_iter().flat_map(move |program| program.offered_tools().at_most(most, ask.selected))
}

/// The digest of the tools that a model may call, as the documents have them.
pub(super) fn digest_of_tools(ask: &Ask<'_>) -> String {
    let mut digest = Digest::new();
    let program = ask.program.filter(|program| dialect::is_native(program.properties.dialect));
    let offered = program.map(|program| program.offered_of(ask.selected).map(move |tool| (program, tool)));
    for (program, tool) in offered.into_iter().flatten() {
        let name = program.called.out(&tool.name);
        digest.add(name);
        if name == tool.name {
            digest.add(&tool.description);
        } else {
            digest.add(&format!("{}: {}", tool.name, tool.description));
        }
        digest.add(&of_object(tool.parameters.source()).to_string());
    }
    super::recording::short(digest)
}

/// Writes the tools that a request describes, each as `begin` NAME, DESCRIPTION, `schema` PARAMETERS `end`.
/// Gives whether there are any; without one nothing is written.
pub(super) fn tools(buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>, parts: [&[u8]; 3]) -> bool {
    tool_list(buffer, form, ask, [b",\"tools\":[", b"]"], parts)
}

/// The same in a list that begins and ends otherwise.
pub(super) fn tool_list(
    buffer: &mut BytesMut,
    form: &RequestForm,
    ask: &Ask<'_>,
    [list, close]: [&[u8]; 2],
    [begin, schema, end]: [&[u8]; 3],
) -> bool {
    let mut open = list;
    for offer in offers(form, ask) {
        buffer.extend_from_slice(open);
        buffer.extend_from_slice(begin);
        json(buffer, &offer.name);
        buffer.extend_from_slice(b",\"description\":");
        json(buffer, offer.short_description(form.limits.description).as_ref());
        buffer.extend_from_slice(schema);
        buffer.extend_from_slice(offer.parameters.as_bytes());
        buffer.extend_from_slice(end);
        open = b",";
    }
    let any = open == b",";
    if any {
        buffer.extend_from_slice(close);
    }
    any
}

/// The schema with the type `object`: a call's input is always one.
fn of_object(schema: &Value) -> Cow<'_, Value> {
    match schema {
        Value::Object(members) if members.get("type").and_then(Value::as_str) == Some("object") => {
            Cow::Borrowed(schema)
        }
        Value::Object(members) => {
            let mut members = members.clone();
            members.insert("type".to_owned(), Value::from("object"));
            Cow::Owned(Value::Object(members))
        }
        _ => Cow::Owned(serde_json::json!({ "type": "object" })),
    }
}

/// Makes room for `more` bytes, and an eighth of what is there: a thousand runs that wait keep
/// little that they do not use, and growing still costs what it adds.
fn make_room(buffer: &mut BytesMut, more: usize) {
    if buffer.capacity() - buffer.len() < more {
        let mut larger = BytesMut::with_capacity(buffer.len() + more + buffer.len() / 8);
        larger.extend_from_slice(buffer);
        *buffer = larger;
    }
}

/// Writes the address of a file as JSON: its own, or a `data:` address with its bytes.
pub(super) fn file_address(buffer: &mut BytesMut, file: &InputFile) {
    match &file.content {
        InputFileContent::Url(url) => json(buffer, url),
        InputFileContent::Data { base64, .. } => {
            buffer.extend_from_slice(b"\"data:");
            buffer.extend_from_slice(file.media_type.name().as_bytes());
            buffer.extend_from_slice(b";base64,");
            // Base64 has no character that JSON escapes.
            buffer.extend_from_slice(base64.as_bytes());
            buffer.extend_from_slice(b"\"");
        }
    }
}

/// Writes a text or a number as JSON.
pub(super) fn json(buffer: &mut BytesMut, value: &(impl Serialize + ?Sized)) {
    // Memory takes every byte, and texts and numbers are always JSON: nothing here can fail.
    let _ = serde_json::to_writer(Growing(buffer), value);
}

/// A buffer that takes whole pieces: `bytes`' own writer asks for its room twice a piece.
struct Growing<'a>(&'a mut BytesMut);

impl std::io::Write for Growing<'_> {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        self.write_all(piece).map(|()| piece.len())
    }

    fn write_all(&mut self, piece: &[u8]) -> std::io::Result<()> {
        self.0.extend_from_slice(piece);
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
