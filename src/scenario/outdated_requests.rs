//! Recordings that are out of date: a request that is not the recorded one.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::drive::model::recording::RecordedPlayer;
use crate::language::recording::{AskDigest, Recording};
use crate::trace::units::plural;

/// The most characters of a line that are shown.
const MAX_SHOWN_CHARACTERS: usize = 100;

/// What is otherwise than recorded, in four lines: the first request that differs, or else the first call.
pub fn stale(recording: &Recording, player: &RecordedPlayer) -> Option<String> {
    let asked = player.asked();
    let texts = player.texts();
    let mut before: BTreeMap<&str, RequestPair> = BTreeMap::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for recorded in recording.asks().map(|entry| &entry.ask) {
        let place = places.entry(&recorded.run).or_default();
        let now = asked.get(&(recorded.run.clone(), *place));
        *place += 1;
        let Some(now) = now.filter(|_| !recorded.messages.is_empty() || recorded.keeps > 0) else { continue };
        let pair = before.entry(&recorded.run).or_default();
        pair.extend(recorded, now);
        if let Some(at) = pair.first_difference() {
            let line = |digest: Option<&String>| -> Vec<String> {
                let Some(digest) = digest else { return vec!["there is no such message".to_owned()] };
                if let Some(lines) = recording.texts.get(digest) {
                    return lines.clone();
                }
                let text = texts.get(digest).map(|text| text.split('\n').map(str::to_owned).collect());
                text.unwrap_or_else(|| vec!["a reply of the model".to_owned()])
            };
            let (was, is) = (line(pair.recorded.get(at)), line(pair.now.get(at)));
            let differs = (0..was.len().max(is.len())).find(|line| was.get(*line) != is.get(*line)).unwrap_or(0);
            let what = format!("message {} differs in line {}", at + 1, differs + 1);
            return Some(four_lines(recorded, &what, [was.get(differs), is.get(differs)]));
        }
        if recorded.tools != now.tools {
            let what = "the tools that the model may call differ";
            return Some(four_lines(recorded, what, [Some(&recorded.tools), Some(&now.tools)]));
        }
        if recorded.sampling != now.sampling {
            let what = "temperature, max_tokens or stop texts differ";
            return Some(four_lines(recorded, what, [Some(&recorded.sampling), Some(&now.sampling)]));
        }
    }
    let other = player.other_inputs().into_iter().next()?;
    let call = AskDigest { run: other.run, loop_name: other.action, ..AskDigest::default() };
    let what = format!("the call {} has another input", other.at);
    Some(four_lines(&call, &what, [Some(&shown(&other.recorded)), Some(&shown(&other.now))]))
}

/// The requests of a run so far: as recorded, and now.
#[derive(Default)]
struct RequestPair {
    recorded: Vec<String>,
    now: Vec<String>,
}

impl RequestPair {
    fn extend(&mut self, recorded: &AskDigest, now: &AskDigest) {
        for (list, digest) in [(&mut self.recorded, recorded), (&mut self.now, now)] {
            list.truncate(usize::try_from(digest.keeps).unwrap_or(usize::MAX));
            list.extend(digest.messages.iter().cloned());
        }
    }

    fn first_difference(&self) -> Option<usize> {
        (0..self.recorded.len().max(self.now.len())).find(|at| self.recorded.get(*at) != self.now.get(*at))
    }
}

fn four_lines(ask: &AskDigest, what: &str, [was, is]: [Option<&String>; 2]) -> String {
    let line = |text: Option<&String>| match text {
        None => "(nothing)".to_owned(),
        Some(text) if text.chars().count() > MAX_SHOWN_CHARACTERS => {
            text.chars().take(MAX_SHOWN_CHARACTERS).chain(['…']).collect()
        }
        Some(text) => text.clone(),
    };
    let of = match (ask.request, ask.run.as_str()) {
        (0, "") => format!("`{}`", ask.loop_name),
        (0, run) => format!("`{}` in {run}", ask.loop_name),
        (request, "") => format!("request {request} of `{}`", ask.loop_name),
        (request, run) => format!("request {request} of `{}` in {run}", ask.loop_name),
    };
    format!(
        "the recording is stale: {of} is not the recorded one: {what}\n  recorded: {}\n  now:      {}\n  `--by-position` \
         plays it all the same, `--update` writes what is asked now",
        line(was),
        line(is)
    )
}

fn shown(value: &Value) -> String {
    value.to_string()
}

/// The replies that are left over, by run: for a sentence.
pub fn left_over(player: &RecordedPlayer) -> Option<String> {
    let asked = player.asked();
    let of_run = |run: &String| asked.keys().filter(|(known, _)| known == run).count();
    let (run, left) = player.recorded().find_map(|(run, recorded)| {
        let left = recorded.saturating_sub(of_run(run));
        (left > 0).then_some((run, left))
    })?;
    let of = if run.is_empty() { String::new() } else { format!(" of {run}") };
    Some(format!("{}{of} of the recording is left over", plural(left, "request")))
}
