//! The circuit of a gate: after some failures in a time, nothing is let in for a while; then one call is, whose outcome closes the
//! circuit or opens it again. Each process has its own, because it sees its own failures: to ask the store before each call would cost
//! more than the calls of the other processes that fail.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::NotLetIn;
use crate::drive::clock;
use loopctl_lang::language::call_limits::Circuit;

/// The failures so far, and since when the circuit is open.
#[derive(Debug, Default)]
pub(super) struct CircuitRecord {
    rule: Option<Circuit>,
    /// When calls failed, while it is closed.
    failures: VecDeque<Instant>,
    open: Option<OpenCircuit>,
}

#[derive(Debug, Clone, Copy)]
struct OpenCircuit {
    /// In milliseconds since 1970.
    since_ms: i64,
    until: Instant,
    /// Whether the call that is to close it is under way.
    is_tried: bool,
}

/// What a call waits for at a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CircuitWait {
    /// Until it may be tried.
    Open(Duration),
    /// For the call that tries it.
    Tried,
}

/// A call that is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetIn {
    /// As others are.
    Free,
    /// Alone: its outcome decides.
    AsTrial,
}

/// The state of a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitState {
    /// Calls are made.
    Closed,
    /// One call may be made, or is under way.
    HalfOpen,
    /// None is made.
    Open,
}

impl CircuitState {
    /// As texts name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// A change of a circuit, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CircuitChange {
    Opened,
    OpenedAgain,
    Closed,
}

impl CircuitRecord {
    /// The rule is this one from now on.
    pub fn read(&mut self, rule: Option<Circuit>) -> bool {
        let is_other = self.rule != rule;
        self.rule = rule;
        if rule.is_none() {
            self.failures.clear();
            self.open = None;
        }
        is_other
    }

    pub fn rule(&self) -> Option<Circuit> {
        self.rule
    }

    pub fn is_closed(&self) -> bool {
        self.open.is_none()
    }

    /// What a call waits for; none where one may be made.
    pub fn wait(&self) -> Option<CircuitWait> {
        let open = self.open?;
        let left = open.until.saturating_duration_since(clock::instant());
        match (left.is_zero(), open.is_tried) {
            (false, _) => Some(CircuitWait::Open(left)),
            (true, true) => Some(CircuitWait::Tried),
            (true, false) => None,
        }
    }

    /// Lets a call in, if one may be made.
    pub fn let_in(&mut self) -> Option<LetIn> {
        if self.wait().is_some() {
            return None;
        }
        Some(match &mut self.open {
            Some(open) => {
                open.is_tried = true;
                LetIn::AsTrial
            }
            None => LetIn::Free,
        })
    }

    /// A call that was let in came to an end.
    pub fn ended(&mut self, let_in: LetIn, failed: bool) -> Option<CircuitChange> {
        let rule = self.rule?;
        let now = clock::instant();
        match (&mut self.open, let_in, failed) {
            (Some(open), LetIn::AsTrial, true) => {
                open.is_tried = false;
                open.until = now.checked_add(Duration::from_millis(rule.open_ms)).unwrap_or(now);
                Some(CircuitChange::OpenedAgain)
            }
            (Some(_), LetIn::AsTrial, false) => {
                self.open = None;
                Some(CircuitChange::Closed)
            }
            (None, _, true) => self.failed(rule, now),
            // It began before the circuit opened, or did not fail.
            (Some(_), LetIn::Free, _) | (None, _, false) => None,
        }
    }

    fn failed(&mut self, rule: Circuit, now: Instant) -> Option<CircuitChange> {
        let within = Duration::from_millis(rule.within_ms);
        while self.failures.front().is_some_and(|at| now.saturating_duration_since(*at) >= within) {
            self.failures.pop_front();
        }
        self.failures.push_back(now);
        if self.failures.len() < usize::try_from(rule.failures).unwrap_or(usize::MAX) {
            return None;
        }
        self.failures.clear();
        let until = now.checked_add(Duration::from_millis(rule.open_ms)).unwrap_or(now);
        self.open = Some(OpenCircuit { since_ms: clock::wall_ms(), until, is_tried: false });
        Some(CircuitChange::Opened)
    }

    /// The call that tried it was given up, and nobody knows whether it would have failed.
    pub fn trial_left(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_tried = false;
        }
    }

    /// Its state, and since when it is not closed.
    pub fn state(&self) -> (CircuitState, Option<i64>) {
        let Some(open) = self.open else { return (CircuitState::Closed, None) };
        let is_open = matches!(self.wait(), Some(CircuitWait::Open(_)));
        (if is_open { CircuitState::Open } else { CircuitState::HalfOpen }, Some(open.since_ms))
    }

    /// Why a call was not let in.
    pub fn refusal(&self) -> NotLetIn {
        let left = match self.wait() {
            Some(CircuitWait::Open(left)) => left,
            Some(CircuitWait::Tried) | None => Duration::ZERO,
        };
        NotLetIn::Open { left, rule: self.rule }
    }
}

/// That calls failed, behind the name of what failed: `: 5 calls failed within 60 s`.
pub(in crate::drive) fn why_open(rule: Option<Circuit>) -> String {
    let Some(Circuit { failures, within_ms, .. }) = rule else { return String::new() };
    let calls = if failures == 1 { "1 call".to_owned() } else { format!("{failures} calls") };
    format!(": {calls} failed within {within_ms} ms")
}
