//! Expectations of calls: which are there and in which order, which are never made, and which happen once.

use super::{ExpectationJudge, counted, shown};
use crate::language::scenario::{CallExpectation, Expectations, NeverEntry, Unwanted};
use crate::scenario::judge::Failure;
use crate::scenario::matcher::{holds, mismatch};
use crate::scenario::story::StoryCall;

impl ExpectationJudge<'_> {
    pub(super) fn calls(&mut self, expect: &Expectations) {
        if let Some(calls) = &expect.calls {
            self.in_order(calls, expect.only);
        }
        for (index, never) in expect.never.iter().enumerate() {
            self.never(index, never);
        }
        for (index, action) in expect.never_asked.iter().enumerate() {
            let asked = self.story.calls.iter().position(|call| call.action.as_ref() == Some(action));
            if let Some(near) = asked {
                self.call_fails("never_asked", index, near, format!("`{action}` is asked for"));
            }
        }
        for (index, action) in expect.once.iter().enumerate() {
            let count = self.story.effects.get(action).copied().unwrap_or_default();
            if count != 1 {
                let happens = counted(count, "time", "times");
                self.fails("once", &format!("/{index}"), format!("the effect of `{action}` happens {happens}"));
            }
        }
    }

    fn call_fails(&mut self, key: &'static str, index: usize, near: usize, message: String) {
        let pointer = format!("{}/{key}/{index}", self.at);
        self.failures.push(Failure { pointer, key, message, near: Some(near) });
    }

    /// The calls in their order; others may be between them, unless there may be no others.
    fn in_order(&mut self, expected: &[CallExpectation], only: bool) {
        let story = self.story;
        let (mut next, mut taken) = (0, vec![false; story.calls.len()]);
        for (index, wanted) in expected.iter().enumerate() {
            for nth in 1..=wanted.times.unwrap_or(1) {
                let found = story.calls.iter().enumerate().skip(next).find(|(_, call)| is(wanted, call));
                let Some((at, _)) = found else {
                    let message = missing(wanted, nth, &story.calls, next);
                    let near = nearest(wanted, &story.calls, next).or_else(|| story.calls.len().checked_sub(1));
                    let pointer = format!("{}/calls/{index}", self.at);
                    self.failures.push(Failure { pointer, key: "calls", message, near });
                    // What follows would be looked for at the wrong place.
                    return;
                };
                taken.get_mut(at).into_iter().for_each(|taken| *taken = true);
                next = at + 1;
            }
        }
        if !only {
            return;
        }
        let named = |call: &StoryCall| expected.iter().any(|wanted| wanted.action == call.action);
        for (at, call) in story.calls.iter().enumerate() {
            let is_taken = taken.get(at).copied().unwrap_or_default();
            let counts = call.action.is_some() && (!call.is_builtin() || named(call));
            if counts && !is_taken {
                let message = format!("there is another call: {}", words(call));
                let pointer = format!("{}/only", self.at);
                self.failures.push(Failure { pointer, key: "only", message, near: Some(at) });
            }
        }
    }

    fn never(&mut self, index: usize, never: &NeverEntry) {
        let is_meant = |call: &StoryCall| {
            call.is_made
                && call.action.as_deref() == Some(never.action())
                && match never {
                    NeverEntry::Tool(_) => true,
                    NeverEntry::Call(Unwanted { input, .. }) => holds(input, &call.input),
                }
        };
        if let Some((near, call)) = self.story.calls.iter().enumerate().find(|(_, call)| is_meant(call)) {
            self.call_fails("never", index, near, format!("this call is made: {}", words(call)));
        }
    }
}

fn is(wanted: &CallExpectation, call: &StoryCall) -> bool {
    is_of(wanted, call) && differences(wanted, call).is_empty()
}

/// Whether it is a call of the tool, or of the step, that is meant.
fn is_of(wanted: &CallExpectation, call: &StoryCall) -> bool {
    wanted.action.as_ref().is_none_or(|action| call.action.as_ref() == Some(action))
        && wanted.at.as_ref().is_none_or(|at| call.at.as_ref() == Some(at))
        && call.action.is_some()
}

fn differences(wanted: &CallExpectation, call: &StoryCall) -> Vec<String> {
    let mut all = Vec::new();
    let of = |name: &str, why: Option<String>| why.map(|why| format!("its {name} {why}"));
    all.extend(of("input", wanted.input.as_ref().and_then(|wanted| mismatch(wanted, &call.input))));
    all.extend(of("observation", wanted.observation.as_ref().and_then(|wanted| mismatch(wanted, &call.observation))));
    if wanted.success.is_some_and(|success| success != call.success) {
        all.push(if call.success { "it succeeds".to_owned() } else { "it does not succeed".to_owned() });
    }
    all
}

/// The next call of the same tool, which may be the one that is meant.
fn nearest(wanted: &CallExpectation, calls: &[StoryCall], from: usize) -> Option<usize> {
    let near = calls.iter().enumerate().skip(from).find(|(_, call)| is_of(wanted, call));
    near.map(|(at, _)| at)
}

fn missing(wanted: &CallExpectation, nth: u32, calls: &[StoryCall], from: usize) -> String {
    let name = wanted.at.as_ref().or(wanted.action.as_ref());
    let name = name.map_or_else(|| "any tool".to_owned(), |name| format!("`{name}`"));
    if let Some(times) = wanted.times.filter(|_| nth > 1) {
        let there = counted(usize::try_from(nth.saturating_sub(1)).unwrap_or_default(), "time", "times");
        return format!("the call of {name} is there {there}; {times} were expected");
    }
    let near = nearest(wanted, calls, from).and_then(|at| calls.get(at));
    if let Some(call) = near {
        let differences = differences(wanted, call).join("; ");
        return format!("the call of {name} is not there; the next one differs: {differences}");
    }
    let before = calls.iter().take(from).any(|call| is(wanted, call));
    match before {
        true => format!("the call of {name} comes before the calls that were expected first"),
        false => format!("the call of {name} is not there"),
    }
}

/// A call in a sentence.
fn words(call: &StoryCall) -> String {
    let name = call.at.as_ref().or(call.action.as_ref()).map_or("", String::as_str);
    format!("`{name}` with {}", shown(&call.input))
}
