//! What a run waits for, in words: for the line of a terminal, and now and then for a pipe, where nothing moves.

use std::time::{Duration, Instant};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::engine::notice::Notice;
use crate::trace::Redaction;
use crate::trace::escape;
use crate::trace::layout::cut;
use crate::trace::live_reply::LiveReply;
use crate::trace::units::{duration, plural};

/// So long nothing is said in a pipe.
const QUIET_TIME: Duration = Duration::from_secs(15);
/// The columns of a terminal's line that the spinner and the time take.
const MAX_NAMED_STEPS: usize = 16;
/// The fewest columns in which a part of a text is worth showing.
const MIN_TEXT_COLUMNS: usize = 12;
/// The number of characters at the end of a reply that are looked at.
const MAX_TAIL_CHARACTERS: usize = 400;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaited {
    Model,
    /// The next attempt to ask the model.
    Retry,
    Tool(String),
    /// The next attempt to call a tool.
    ToolRetry(String),
}

/// What a run waits for, and since when.
#[derive(Debug)]
pub struct Waiting {
    awaited: Option<Awaited>,
    since: Instant,
    /// When something was shown last.
    said_at: Instant,
    quiet: Duration,
    /// For the labels of items, which come from documents and results.
    redact: Redaction,
}

impl Waiting {
    /// Waiting for nothing. `quiet` is [`QUIET_TIME`], unless a test is in a hurry.
    pub fn new(now: Instant, quiet: Option<Duration>, redact: Redaction) -> Self {
        Self { awaited: None, since: now, said_at: now, quiet: quiet.unwrap_or(QUIET_TIME), redact }
    }

    /// Takes in a notice; returns whether it changes what is waited for.
    pub fn on(&mut self, notice: &Notice, now: Instant) -> bool {
        let awaited = match notice {
            Notice::ModelAsked { .. } => Some(Awaited::Model),
            Notice::ModelRetried { .. } => Some(Awaited::Retry),
            // The next attempt is under way.
            Notice::ModelDelta { output_tokens: 1.., .. } if self.awaited == Some(Awaited::Retry) => {
                Some(Awaited::Model)
            }
            Notice::ToolRetried { action, .. } => Some(Awaited::ToolRetry(action.clone())),
            Notice::StepStarted { at, kind, item_label: None, .. } => Some(Awaited::Tool(format!("{kind} ({at})"))),
            Notice::StepStarted { kind, item_label: Some(label), .. } => {
                Some(Awaited::Tool(format!("{kind} ({})", self.redact.text(label))))
            }
            Notice::StepEnded { record } if record.at.contains('.') => return false,
            Notice::ToolCalled { action, .. } => Some(Awaited::Tool(action.clone())),
            Notice::StepEnded { .. }
            | Notice::ModelReplied { .. }
            | Notice::Paused { .. }
            | Notice::RunEnded { .. } => None,
            Notice::RunStarted { .. }
            | Notice::RunResumed { .. }
            | Notice::ModelDelta { .. }
            | Notice::ItemEnded { .. }
            | Notice::Observed { .. }
            | Notice::Decided { .. }
            | Notice::QuestionPosted { .. }
            | Notice::Retried { .. }
            | Notice::LimitsRaised { .. }
            | Notice::BudgetWarning { .. }
            | Notice::HistoryTrimmed { .. }
            | Notice::McpProgress { .. }
            | Notice::McpDrift { .. }
            | Notice::Progress { .. } => return false,
        };
        (self.awaited, self.since) = (awaited, now);
        true
    }

    /// Whether anything is waited for.
    pub fn is_any(&self) -> bool {
        self.awaited.is_some()
    }

    /// Something was shown.
    pub fn said(&mut self, now: Instant) {
        self.said_at = now;
    }

    /// How long nothing may be said from now on.
    pub fn quiet_for(&self, now: Instant) -> Duration {
        let since = if self.is_any() { self.said_at } else { now };
        self.quiet.saturating_sub(now.saturating_duration_since(since))
    }

    /// What to say when nothing was said for too long: one line.
    pub fn still(&self, reply: &LiveReply, now: Instant) -> Option<String> {
        let ms = u64::try_from(now.saturating_duration_since(self.since).as_millis()).unwrap_or(u64::MAX);
        let what = self.what(reply)?;
        Some(format!("     … {}, {}\n", escape::line(&what), duration(ms)))
    }

    /// What happens, without the time that it takes.
    pub fn what(&self, reply: &LiveReply) -> Option<String> {
        Some(match self.awaited.as_ref()? {
            Awaited::Model if reply.iteration() == 0 || reply.output_tokens().0 == 0 => "thinking".to_owned(),
            Awaited::Model => replying(reply),
            Awaited::Retry => "waiting to retry the request".to_owned(),
            Awaited::ToolRetry(action) => format!("calling {action} again"),
            Awaited::Tool(action) => format!("calling {action}"),
        })
    }

    /// The same for the line of a terminal: what comes before the time, and what comes behind it.
    pub fn line(&self, reply: &LiveReply, width: usize) -> Option<(String, String)> {
        let width = width.saturating_sub(MAX_NAMED_STEPS);
        let what = cut(&escape::line(&self.what(reply)?), width);
        let room = width.saturating_sub(what.width()).saturating_sub(3);
        let is_shown = self.awaited == Some(Awaited::Model) && room >= MIN_TEXT_COLUMNS;
        let tail = if is_shown { tail(reply.text(), room) } else { String::new() };
        Some((what, if tail.is_empty() { tail } else { format!(" · {tail}") }))
    }
}

/// How far a reply has come.
fn replying(reply: &LiveReply) -> String {
    let (tokens, estimated) = reply.output_tokens();
    let about = if estimated { "about " } else { "" };
    let first = reply.time_to_first_token_ms().map(|ms| format!(", the first after {}", duration(ms)));
    let doing = if reply.text().is_empty() { "thinking" } else { "replying" };
    format!("{doing}: {about}{}{}", plural(tokens, "token"), first.unwrap_or_default())
}

/// The end of a text in one line of this width: it is data, and can't move the cursor.
fn tail(text: &str, width: usize) -> String {
    let from = text.char_indices().rev().nth(MAX_TAIL_CHARACTERS).map_or(0, |(at, _)| at);
    let words: Vec<&str> = text.get(from..).unwrap_or_default().split_whitespace().collect();
    let line = words.join(" ");
    let line = escape::line(&line);
    if line.width() <= width {
        return line.into_owned();
    }
    let mut columns = 1;
    let mut start = line.len();
    for (at, letter) in line.char_indices().rev() {
        columns += letter.width().unwrap_or(0);
        if columns > width {
            break;
        }
        start = at;
    }
    format!("…{}", line.get(start..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::{CallId, Finish};
    use serde_json::Value;

    fn part(text: &str, output_tokens: u64) -> Notice {
        Notice::ModelDelta {
            iteration: 1,
            attempt: 1,
            text: text.to_owned(),
            output_tokens,
            estimated: true,
            time_to_first_token_ms: Some(820),
            last: false,
        }
    }

    fn replied() -> Notice {
        Notice::ModelReplied {
            iteration: 1,
            thought: String::new(),
            usage: None,
            finish: Finish::Stop,
            response_model: None,
            duration_ms: 1,
            waited_ms: 0,
            time_to_first_token_ms: None,
        }
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start.checked_add(Duration::from_secs(seconds)).unwrap()
    }

    fn start() -> Instant {
        crate::drive::clock::instant()
    }

    #[test]
    fn minutes_of_waiting_are_never_silent() {
        let start = start();
        let (mut waiting, mut reply) =
            (Waiting::new(start, None, Redaction::default()), LiveReply::new(Redaction::default()));
        assert_eq!(waiting.still(&reply, start), None, "nothing is waited for");
        waiting.on(&Notice::ModelAsked { iteration: 1 }, start);
        // As the command line does it: wait for as long as nothing may be said, and say it.
        let (mut now, mut said) = (start, Vec::new());
        while said.len() < 6 {
            let left = waiting.quiet_for(now);
            if left.is_zero() {
                said.extend(waiting.still(&reply, now));
                waiting.said(now);
            }
            if said.len() == 2 {
                reply.take(&part("It is the cable ", 1_240));
            }
            now = now.checked_add(left).unwrap();
        }
        assert_eq!(now, after(start, 90));
        assert_eq!(
            [&said[0], &said[1], &said[2], &said[5]],
            [
                "     … thinking, 15.0 s\n",
                "     … thinking, 30.0 s\n",
                "     … replying: about 1,240 tokens, the first after 820 ms, 45.0 s\n",
                "     … replying: about 1,240 tokens, the first after 820 ms, 1 min 30 s\n",
            ]
        );
        waiting.on(&replied(), now);
        assert_eq!(waiting.still(&reply, now), None);
    }

    #[test]
    fn tools_and_retries_are_waited_for_aloud_and_a_line_in_between_counts() {
        let start = start();
        let (mut waiting, reply) =
            (Waiting::new(start, None, Redaction::default()), LiveReply::new(Redaction::default()));
        let call = CallId { iteration: 1, index: 0 };
        let called = Notice::ToolCalled { call, action: "look\u{1b}[2J".to_owned(), action_input: Value::Null };
        assert!(waiting.on(&called, start));
        waiting.said(after(start, 10));
        assert_eq!(waiting.quiet_for(after(start, 20)), Duration::from_secs(5));
        assert_eq!(waiting.still(&reply, after(start, 25)).unwrap(), "     … calling look\\u{1B}[2J, 25.0 s\n");
        let step = |label: Option<&str>| Notice::StepStarted {
            at: "each.4.decide".to_owned(),
            kind: "decide".to_owned(),
            action_input: std::sync::Arc::default(),
            item_label: label.map(std::sync::Arc::from),
        };
        assert!(waiting.on(&step(Some("invoice 17")), start));
        assert_eq!(waiting.what(&reply).unwrap(), "calling decide (invoice 17)");
        assert!(waiting.on(&step(None), start));
        assert_eq!(waiting.what(&reply).unwrap(), "calling decide (each.4.decide)");
        let retried = Notice::ModelRetried { iteration: 1, attempt: 1, reason: String::new(), delay_ms: 1 };
        assert!(waiting.on(&retried, start));
        assert_eq!(waiting.what(&reply).unwrap(), "waiting to retry the request");
        // What says that the attempt before is void is not yet the next one.
        assert!(!waiting.on(&part("", 0), start));
        assert!(waiting.on(&part("It", 1), start));
    }

    #[test]
    fn the_line_of_a_terminal_shows_the_end_of_the_reply_as_data_in_its_width() {
        let start = start();
        let (mut waiting, mut reply) =
            (Waiting::new(start, None, Redaction::default()), LiveReply::new(Redaction::default()));
        waiting.on(&Notice::ModelAsked { iteration: 1 }, start);
        assert_eq!(waiting.line(&reply, 100).unwrap(), ("thinking".to_owned(), String::new()));
        reply.take(&part("", 12));
        let line = ("thinking: about 12 tokens, the first after 820 ms".to_owned(), String::new());
        assert_eq!(waiting.line(&reply, 100).unwrap(), line, "reasoning has no text");
        reply.take(&part("One\n\n  line \u{1b}[2J\u{202e} 真的 and \r much more text behind it ", 40));
        let (what, tail) = waiting.line(&reply, 100).unwrap();
        assert_eq!(what, "replying: about 40 tokens, the first after 820 ms");
        assert_eq!(tail, " · …的 and much more text behind it".to_owned());
        for width in 20..140 {
            let (what, tail) = waiting.line(&reply, width).unwrap();
            assert!(what.width() + tail.width() <= width - MAX_NAMED_STEPS, "{width}: {what}{tail}");
            assert!(!tail.contains(['\u{1b}', '\u{202e}', '\n', '\r']), "{tail:?}");
        }
    }
}
