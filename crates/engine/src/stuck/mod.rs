//! Stuck detection: patterns over the iterations since the start, the last human input, or the
//! last hint. A pattern a file.
//!
//! Each pattern looks at the last steps that it needs, `N` (`on_stuck.iterations`) or more; only "seen before"
//! looks at all given steps. A step is small however large its observation was: it contains digests.

mod cycle;
mod same_action;
mod same_failure;
mod same_thought;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::canonical;
use super::digest::Digest;
pub use loopctl_lang::language::ending::StuckPattern;

/// A pattern that fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stuck {
    /// Which pattern.
    pub pattern: StuckPattern,
    /// The iterations that show it, first and last.
    pub iterations: (u32, u32),
    /// What was repeated, in a sentence for people and for the model.
    pub detail: String,
}

/// What detection needs to know of one iteration. Made by [`StepDigest::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDigest {
    /// The iteration, from 1.
    pub iteration: u32,
    /// The thought without case, punctuation and spacing; none when nothing is left of it.
    pub thought: Option<Digest>,
    /// The actions of the turn with their inputs, as canonical JSON; none when nothing was called.
    pub action: Option<Digest>,
    /// The names of the actions alone.
    pub name: Digest,
    /// The observations, as canonical JSON.
    pub observation: Digest,
    /// Whether something was called and every call failed.
    pub failed: bool,
    /// Whether something was called and every tool of the turn is declared as polling.
    pub polling: bool,
    /// The names of the actions for messages, shortened and escaped.
    pub label: Arc<str>,
}

/// The longest label, in characters.
const MAX_LABEL: usize = 80;

impl StepDigest {
    /// A step from the calls of a turn, in the model's order: the action's name, its input, its observation,
    /// whether it failed, whether its tool is declared as polling. Without calls, nothing was called in this
    /// iteration.
    pub fn new<'a>(
        iteration: u32,
        thought: &str,
        calls: impl Iterator<Item = (&'a str, &'a Value, &'a Value, bool, bool)>,
    ) -> Self {
        let words = canonical::words(thought);
        let (mut action, mut name, mut seen) = (Digest::new(), Digest::new(), Digest::new());
        let (mut any, mut failed, mut polling) = (false, true, true);
        let mut label = String::new();
        for (tool, input, observation, call_failed, call_polling) in calls {
            action.add(tool);
            // A canonical value is self-delimiting.
            canonical::spell(input, &mut |piece| action.extend(piece));
            name.add(tool);
            canonical::spell(observation, &mut |piece| seen.extend(piece));
            failed &= call_failed;
            polling &= call_polling;
            if any {
                label.push_str(", ");
            }
            if tool.len() <= MAX_LABEL && tool.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                label.push_str(tool);
            } else {
                label.extend(tool.chars().take(MAX_LABEL).flat_map(char::escape_debug));
            }
            any = true;
        }
        if let Some((end, _)) = label.char_indices().nth(MAX_LABEL) {
            label.truncate(end);
            label.push('…');
        }
        Self {
            iteration,
            thought: (!words.is_empty()).then(|| Digest::of(&words)),
            action: any.then_some(action),
            name,
            observation: seen,
            failed: failed && any,
            polling: polling && any,
            label: label.into(),
        }
    }
}

/// Searches for one pattern at the end of the steps, with `N`.
type Detect = fn(&[StepDigest], usize) -> Option<Stuck>;

/// The patterns, in the order of the search.
const PATTERNS: [Detect; 4] = [same_action::detect, same_failure::detect, cycle::detect, same_thought::detect];
/// Those of runs of older editions.
const OLDER_PATTERNS: [Detect; 4] =
    [same_action::detect, same_failure::detect, cycle::detect, same_thought::detect_older];

/// The first pattern at the end of the steps, with `n` as `on_stuck.iterations`. An `n` below 2, which no
/// document can have, counts as 2.
pub fn detect(steps: &[StepDigest], n: u32) -> Option<Stuck> {
    first_of(&PATTERNS, steps, n)
}

/// The same for a run of an older edition.
pub fn detect_older(steps: &[StepDigest], n: u32) -> Option<Stuck> {
    first_of(&OLDER_PATTERNS, steps, n)
}

fn first_of(patterns: &[Detect], steps: &[StepDigest], n: u32) -> Option<Stuck> {
    let n = usize::try_from(n.max(2)).ok()?;
    patterns.iter().find_map(|pattern| pattern(steps, n))
}

/// The last `count` steps; none if there are fewer.
fn last(steps: &[StepDigest], count: usize) -> Option<&[StepDigest]> {
    steps.get(steps.len().checked_sub(count)?..)
}

/// A pattern that these steps show. `what` is a sentence without its full stop.
fn stuck(pattern: StuckPattern, shown: &[StepDigest], what: &str) -> Option<Stuck> {
    let (first, last) = (shown.first()?.iteration, shown.last()?.iteration);
    Some(Stuck { pattern, iterations: (first, last), detail: format!("{what} (iterations {first} to {last}).") })
}
