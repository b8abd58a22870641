//! Native tool calls, for the dialects that have them: how a call is read, kept, and said.

use serde_json::{Map, Value};

use super::relaxed::{self, UnclosedBrackets};
use super::written_call::{self, CallableTools};
use super::{Reading, Saying, Wanted};
use crate::event::{Finish, Reply, SaidCall};
use loopctl_lang::language::react::Dialect;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::tool_names::ToolNames;
use loopctl_lang::program::{LoopProgram, Schema};

/// The longest id of a call that is kept, in bytes: OpenAI's server takes no longer one.
const LONGEST_ID: usize = 40;

/// Reads the calls of a reply. Each is read on its own: one whose input can't be read does not keep
/// the others from being made, unless none can be read, or the reply was cut off.
pub fn read(reply: &Reply, thought: String) -> Reading {
    let cut_off = reply.finish == Finish::Length;
    let calls: Vec<Wanted> = reply.calls.iter().map(|call| wanted(call, cut_off)).collect();
    let unread = |wanted: &Wanted| wanted.unread.is_some();
    if cut_off && calls.iter().any(unread) {
        let why = "Your reply was cut off in the middle of a tool call, and nothing was called. Answer more briefly.";
        return Reading::Unreadable { thought, why: why.to_owned() };
    }
    if calls.iter().all(unread) {
        let why = calls.into_iter().find_map(|wanted| wanted.unread).unwrap_or_default();
        return Reading::Unreadable { thought, why };
    }
    Reading::Calls { thought, calls }
}

fn wanted(call: &SaidCall, cut_off: bool) -> Wanted {
    match input(&call.arguments, cut_off) {
        Ok(map) => Wanted { name: call.name.clone(), input: Value::Object(map), unread: None },
        Err(why) => Wanted {
            name: call.name.clone(),
            input: Value::String(call.arguments.clone()),
            unread: Some(format!(
                "the arguments of this call can't be read, and nothing was called: {why}. Give one JSON object that \
                 fits the tool's parameters."
            )),
        },
    }
}

/// The input that a call's arguments are: an object, or a text that holds one. No arguments at all are
/// an empty object.
fn input(arguments: &str, cut_off: bool) -> Result<Map<String, Value>, String> {
    let text = arguments.trim();
    if text.is_empty() && cut_off {
        return Err("they were cut off".to_owned());
    }
    if matches!(text, "" | "null") {
        return Ok(Map::new());
    }
    if text.starts_with('"')
        && let Some(inner) = relaxed::whole_string(text)
    {
        let inner = inner.trim();
        return if inner.is_empty() { Ok(Map::new()) } else { object(inner, cut_off) };
    }
    object(text, cut_off)
}

fn object(text: &str, cut_off: bool) -> Result<Map<String, Value>, String> {
    if !text.starts_with('{') {
        return Err("they are no object".to_owned());
    }
    let unclosed = if cut_off { UnclosedBrackets::Refuse } else { UnclosedBrackets::Close };
    let found = relaxed::object(text, 0, unclosed).map_err(|fault| fault.words(text))?;
    let rest = text.get(found.end..).unwrap_or_default().trim();
    if rest.is_empty() { Ok(found.map) } else { Err("something stands behind their end".to_owned()) }
}

/// The calls as they stay in the conversation, so that every provider takes them back: names that
/// providers take, arguments that are the JSON of an object, and ids that differ from each other and
/// from those that are `known`. A call without such an id gets one of its iteration and place.
pub fn kept(calls: Vec<SaidCall>, called: &ToolNames, iteration: u32, known: impl Fn(&str) -> bool) -> Vec<SaidCall> {
    let mut kept: Vec<SaidCall> = Vec::with_capacity(calls.len());
    for (place, call) in calls.into_iter().enumerate() {
        let taken = |id: &str| known(id) || kept.iter().any(|call| call.id == id);
        let mut id = call.id;
        if !is_id(&id) || taken(&id) {
            let first =
                u64::from(iteration).saturating_mul(1_000).saturating_add(u64::try_from(place).unwrap_or_default());
            id = (first..u64::MAX).map(made_up_id).find(|id| !taken(id)).unwrap_or_default();
        }
        let arguments = if is_object(&call.arguments) {
            call.arguments
        } else {
            input(&call.arguments, false).map_or_else(|_| "{}".to_owned(), |map| Value::Object(map).to_string())
        };
        kept.push(SaidCall { id, name: called.sendable(&call.name).into_owned(), arguments });
    }
    kept
}

/// An id of nine letters and digits of ASCII: Mistral's servers take no other ones, and all others take these.
fn made_up_id(number: u64) -> String {
    format!("c{:08}", number % 100_000_000)
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a text is the strict JSON of an object.
fn is_object(text: &str) -> bool {
    text.starts_with('{') && json_text::read::<serde::de::IgnoredAny>(text).is_ok()
}

/// The calls that a script's model makes. They have no ids, as with some servers.
pub fn say(saying: &Saying) -> Vec<SaidCall> {
    let said = |(name, input): &(String, Value)| SaidCall {
        id: String::new(),
        name: name.clone(),
        arguments: input.to_string(),
    };
    saying.calls.iter().map(said).collect()
}

/// Why a reply without calls can't be taken as an answer, whatever it says.
pub fn no_answer(reply: &Reply, text: &str, open: bool) -> Option<String> {
    let why = match reply.finish {
        Finish::Length => "Your reply was cut off before its end, and was not taken. Answer more briefly.",
        Finish::Filtered => "Your reply was kept back by the provider. Try another way.",
        Finish::Stop if open => "Your reply begins a thinking block and does not close it.",
        Finish::Stop if text.is_empty() => "Your reply was empty.",
        Finish::Stop => return None,
    };
    Some(why.to_owned())
}

/// Why a text that writes a call is no answer. `answer`: the part that would be the answer; one that is JSON and matches the
/// schema of answers is one. `program`: as for [`super::read_counted`].
pub fn written_call(text: &str, answer: Option<&str>, program: Option<&LoopProgram>) -> Option<String> {
    let Some(program) = program else {
        let words = "Your reply writes a tool call as text, and nothing was called. Make it as a real tool call.";
        return is_written_call(text).then(|| words.to_owned());
    };
    if let (Some(schema), Some(answer)) = (&program.answer, answer)
        && is_wanted(schema, answer)
    {
        return None;
    }
    let found = written_call::find(text, &CallableTools::of(program))?;
    Some(format!(
        "Your reply writes a tool call as text ({}), and nothing was called. Make it as a real tool call. A call that is \
         only shown belongs in a code block.",
        relaxed::shown(&found)
    ))
}

/// Whether the schema asks for this answer: as JSON, or as a text of which it says more than its type.
fn is_wanted(schema: &Schema, answer: &str) -> bool {
    let says_which = |source: &Value| ["const", "enum", "pattern"].iter().any(|keyword| source.get(keyword).is_some());
    match super::as_json(answer) {
        Some(value) if !value.is_string() && schema.faults(&value).is_empty() => true,
        _ => says_which(schema.source()) && schema.faults(&Value::from(answer)).is_empty(),
    }
}

/// What a reply with native calls means in a dialect whose calls are text: some servers make native calls of such texts, and
/// some models know nothing else. The calls are those of the text, or the text has none.
pub fn beside_text(dialect: Dialect, reply: &Reply, of_text: Reading, program: &LoopProgram) -> Reading {
    let (is_call, thought) = match &of_text {
        Reading::Unreadable { thought, .. } => (false, thought.clone()),
        Reading::Calls { thought, .. } | Reading::Answer { thought, .. } => (true, thought.clone()),
    };
    let unreadable =
        |thought: &str, why: &str| Reading::Unreadable { thought: thought.to_owned(), why: why.to_owned() };
    let mut native = read(reply, thought);
    let Reading::Calls { thought, calls } = &mut native else { return native };
    for call in calls.iter_mut().filter(|call| program.tool(&call.name).is_none()) {
        call.name = program.called.back(&call.name).to_owned();
    }
    if dialect == Dialect::Json && calls.len() > 1 {
        return unreadable(thought, SEVERAL);
    }
    match &of_text {
        Reading::Calls { calls: written, .. } if written == calls => of_text,
        _ if is_call => unreadable(thought, BOTH),
        _ => native,
    }
}

const SEVERAL: &str = "Your reply makes several native tool calls, and nothing was called. There is one action a turn: write it \
                       as text, as one JSON object with \"thought\", \"action\" and \"action_input\".";
const BOTH: &str = "Your reply makes a native tool call and has another call or an answer in its text, and nothing was \
                    called. Only one of them can be meant: write it as text, as you were instructed.";

/// Whether a text is a call in the words of another form: not an answer, and not to be guessed at.
fn is_written_call(text: &str) -> bool {
    let bare = text.trim_start_matches("```json").trim_start_matches("```").trim_start();
    if bare.get(..11).is_some_and(|head| head.eq_ignore_ascii_case("<tool_call>")) {
        return true;
    }
    let Ok(found) = relaxed::object(bare, 0, UnclosedBrackets::Refuse) else { return false };
    let has = |names: &[&str]| names.iter().any(|name| found.map.contains_key(*name));
    let name = has(&["name", "action", "tool"]);
    name && has(&["arguments", "action_input", "parameters"])
}
