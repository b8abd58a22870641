//! Whether the story of a run is what a scenario expects. All that fails is reported, not only the first.

mod calls;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::matcher::{mismatch, shown};
use super::story::{RunStory, StoryPause};
use crate::engine::flow::record::StepStatus;
use crate::language::scenario::{Expectations, PauseExpectation, Quantities, ValueMatcher};
use crate::syntax::token;

/// Something that was expected and does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The JSON pointer of the expectation in the file of scenarios.
    pub pointer: String,
    /// What is expected of, in a word: the key.
    pub key: &'static str,
    /// What was found, in a sentence without a final stop.
    pub message: String,
    /// The call that it is about, by its place in the story.
    pub near: Option<usize>,
}

/// Collects failures of the expectations at a place.
struct ExpectationJudge<'a> {
    at: &'a str,
    story: &'a RunStory,
    failures: Vec<Failure>,
}

/// What of these expectations, which are at the JSON pointer `at`, does not hold.
pub fn judge(expect: &Expectations, story: &RunStory, at: &str) -> Vec<Failure> {
    let mut judge = ExpectationJudge { at, story, failures: Vec::new() };
    judge.ending(expect);
    judge.values(expect);
    judge.calls(expect);
    if let Some(pauses) = &expect.pauses {
        judge.pauses(pauses);
    }
    if let Some(asked) = &expect.asked {
        judge.asked(asked);
    }
    judge.steps(expect);
    if let Some(most) = &expect.at_most {
        judge.quantities("at_most", most, |found, bound| found <= bound, "at most");
    }
    if let Some(least) = &expect.at_least {
        judge.quantities("at_least", least, |found, bound| found >= bound, "at least");
    }
    judge.read(expect);
    judge.failures
}

impl ExpectationJudge<'_> {
    fn fails(&mut self, key: &'static str, below: &str, message: String) {
        self.failures.push(Failure { pointer: format!("{}/{key}{below}", self.at), key, message, near: None });
    }

    fn ending(&mut self, expect: &Expectations) {
        let result = &self.story.result;
        let why = result.error.as_ref().map(|error| error.message.clone());
        let why = why.or_else(|| result.pause.as_ref().map(|pause| pause.question.text.clone()));
        let why = why.filter(|why| !why.is_empty()).map_or_else(String::new, |why| format!(" ({why})"));
        let word = |value: Option<Value>| match value {
            Some(Value::String(word)) => format!("`{word}`"),
            _ => "none".to_owned(),
        };
        let status = Some(result.status);
        let termination = result.termination;
        let limit = result.limit;
        let stuck = result.stuck.as_ref().map(|stuck| stuck.pattern);
        if expect.status.is_some() && expect.status != status {
            let (is, want) = (word(to_value(status)), word(to_value(expect.status)));
            self.fails("status", "", format!("the status is {is}{why}; {want} was expected"));
        }
        if expect.termination.is_some() && expect.termination != termination {
            let (is, want) = (word(to_value(termination)), word(to_value(expect.termination)));
            self.fails("termination", "", format!("the run ended or waits by {is}{why}; {want} was expected"));
        }
        if expect.limit.is_some() && expect.limit != limit {
            let (is, want) = (word(to_value(limit)), word(to_value(expect.limit)));
            self.fails("limit", "", format!("the limit that was reached is {is}; {want} was expected"));
        }
        if expect.stuck.is_some() && expect.stuck != stuck {
            let (is, want) = (word(to_value(stuck)), word(to_value(expect.stuck)));
            self.fails("stuck", "", format!("the pattern of the stuck agent is {is}; {want} was expected"));
        }
    }

    fn values(&mut self, expect: &Expectations) {
        let story = self.story;
        let result = &story.result;
        if let Some(expected) = &expect.answer {
            self.value("answer", "", expected, result.result.as_ref().map(|answer| answer.answer.clone()));
        }
        if let Some(expected) = &expect.summary {
            let summary = result.result.as_ref().and_then(|answer| answer.summary.clone());
            self.value("summary", "", expected, summary.map(Value::from));
        }
        if let Some(expected) = &expect.error {
            let error = result.error.as_ref();
            let is_object = expected.0.is_object() && ValueMatcher::word(&expected.0).is_none();
            let found = error.and_then(|error| match is_object {
                true => to_value(error),
                false => Some(Value::from(error.message.as_str())),
            });
            self.value("error", "", expected, found);
        }
        for (key, expected) in &expect.memory {
            self.value("memory", &format!("/{}", token(key)), expected, story.memory.get(key).cloned());
        }
    }

    fn value(&mut self, key: &'static str, below: &str, expected: &ValueMatcher, found: Option<Value>) {
        let name = match below.strip_prefix('/') {
            Some(name) => format!("the {key} `{name}`"),
            None => format!("the {key}"),
        };
        match found {
            Some(found) => {
                if let Some(why) = mismatch(expected, &found) {
                    self.fails(key, below, format!("{name} {why}"));
                }
            }
            None if matches!(ValueMatcher::word(&expected.0), Some(("not", _))) => {}
            None => self.fails(key, below, format!("there is no {}", name.trim_start_matches("the "))),
        }
    }

    fn pauses(&mut self, expected: &[PauseExpectation]) {
        let found = &self.story.pauses;
        for (index, expected) in expected.iter().enumerate() {
            let below = format!("/{index}");
            match found.get(index) {
                Some(pause) => {
                    for why in pause_differs(expected, pause) {
                        self.fails("pauses", &below, format!("pause {} {why}", index + 1));
                    }
                }
                None => {
                    let paused = counted(found.len(), "time", "times");
                    self.fails("pauses", &below, format!("the run pauses {paused}; this pause does not come"));
                }
            }
        }
        for pause in found.iter().skip(expected.len()) {
            let kind = to_value(pause.question.kind).unwrap_or_default();
            let about = pause.about.first().map_or_else(String::new, |about| format!(" for `{about}`"));
            let message = format!(
                "the run also pauses{about} ({}): {}",
                kind.as_str().unwrap_or_default(),
                shown(&Value::from(pause.question.text.as_str()))
            );
            self.fails("pauses", "", message);
        }
    }

    /// Whom the run asked by a post, and who else it was expected to ask.
    fn asked(&mut self, expected: &BTreeMap<String, Vec<String>>) {
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for post in &self.story.result.asked {
            found.entry(&post.at).or_default().insert(&post.to);
        }
        let named = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
        let mut failures = Vec::new();
        for (at, names) in expected {
            let (below, names) = (format!("/{}", token(at)), names.iter().map(String::as_str).collect::<BTreeSet<_>>());
            match found.remove(at.as_str()) {
                Some(asked) if asked == names => {}
                Some(asked) => failures.push((below, format!("`{at}` asks {}", named(&asked)))),
                None if names.is_empty() => {}
                None => failures.push((below, format!("`{at}` asks nobody by a post"))),
            }
        }
        failures.extend(found.iter().map(|(at, asked)| (String::new(), format!("`{at}` also asks {}", named(asked)))));
        for (below, message) in failures {
            self.fails("asked", &below, message);
        }
    }

    fn steps(&mut self, expect: &Expectations) {
        let story = self.story;
        let own = |address: &str| story.result.steps.iter().rev().find(|step| step.at == address);
        let of_items = expect.steps.keys().map(String::as_str).filter(|address| own(address).is_none());
        let of_items = story.steps_of_items(of_items);
        for (address, expected) in &expect.steps {
            let below = format!("/{}", token(address));
            let found = own(address).or_else(|| of_items.get(address.as_str()));
            let has_started = found.is_some_and(|step| step.status != StepStatus::Pending);
            match found.and_then(to_value).map(|found| mismatch(expected, &found)) {
                Some(None) => {}
                Some(Some(why)) if has_started => {
                    self.fails("steps", &below, format!("the step `{address}` {why}"));
                }
                _ => self.fails("steps", &below, format!("the step `{address}` did not begin")),
            }
        }
    }

    fn quantities(&mut self, key: &'static str, bounds: &Quantities, fits: fn(f64, f64) -> bool, words: &str) {
        let result = &self.story.result;
        let tokens = result.usage.input_tokens.saturating_add(result.usage.output_tokens);
        let calls = u64::try_from(self.story.made().count()).unwrap_or(u64::MAX);
        let counts = [
            ("iterations", bounds.iterations, u64::from(result.iterations)),
            ("calls", bounds.calls, calls),
            ("tokens", bounds.tokens, tokens),
        ];
        for (name, bound, found) in counts {
            if let Some(bound) = bound.filter(|bound| !fits(float(found), float(*bound))) {
                let found = counted_number(found, name);
                self.fails(key, &format!("/{name}"), format!("the run needs {found}; {words} {bound} were expected"));
            }
        }
        if let Some(bound) = bounds.seconds.filter(|bound| !fits(self.story.seconds, *bound)) {
            let found = self.story.seconds;
            self.fails(key, "/seconds", format!("the run is active for {found} s; {words} {bound} s were expected"));
        }
        if let Some(bound) = bounds.cost_usd {
            match result.usage.cost_usd {
                Some(found) if fits(found, bound) => {}
                Some(found) => {
                    let message = format!("the run costs {found} US dollars; {words} {bound} were expected");
                    self.fails(key, "/cost_usd", message);
                }
                None => self.fails(key, "/cost_usd", "the model has no price, so the cost is not known".to_owned()),
            }
        }
    }

    fn read(&mut self, expect: &Expectations) {
        let story = self.story;
        let is_read = |text: &str| story.read.iter().any(|read| read.contains(text));
        for (index, text) in expect.model_reads.iter().enumerate() {
            if !is_read(text) {
                let message = format!("the model never read {}", shown(&Value::from(text.as_str())));
                self.fails("model_reads", &format!("/{index}"), message);
            }
        }
        for (index, text) in expect.model_never_reads.iter().enumerate() {
            if is_read(text) {
                // It may be a secret: it is not repeated.
                let message = "the model read this text".to_owned();
                self.fails("model_never_reads", &format!("/{index}"), message);
            }
        }
    }
}

fn pause_differs(expected: &PauseExpectation, found: &StoryPause) -> Vec<String> {
    let mut differences = Vec::new();
    let word = |kind| to_value(kind).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
    if let Some(kind) = expected.kind.filter(|kind| *kind != found.question.kind) {
        differences.push(format!("is of kind `{}`; `{}` was expected", word(found.question.kind), word(kind)));
    }
    if let Some(about) = expected.about.as_ref().filter(|about| !found.about.contains(about)) {
        let waiting: Vec<String> = found.about.iter().map(|about| format!("`{about}`")).collect();
        let waiting = if waiting.is_empty() { "no call".to_owned() } else { waiting.join(", ") };
        differences.push(format!("is for {waiting}; `{about}` was expected"));
    }
    if let Some(why) =
        expected.question.as_ref().and_then(|expected| mismatch(expected, &Value::from(found.question.text.as_str())))
    {
        differences.push(format!("has another question: it {why}"));
    }
    differences
}

fn to_value(value: impl serde::Serialize) -> Option<Value> {
    serde_json::to_value(value).ok().filter(|value| !value.is_null())
}

/// A count as a number that can be compared with any bound.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "no count of a played run reaches 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}

/// `1 call`, `3 calls`: `name` is the plural.
fn counted_number(count: u64, name: &str) -> String {
    let singular = name.strip_suffix('s').unwrap_or(name);
    format!("{count} {}", if count == 1 { singular } else { name })
}

/// `never`, `1 time`, `3 times`.
fn counted(count: usize, singular: &str, plural: &str) -> String {
    match count {
        0 => "never".to_owned(),
        1 => format!("1 {singular}"),
        more => format!("{more} {plural}"),
    }
}
