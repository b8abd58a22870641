//! Two programs fold the events of one run, side by side, up to the first decision that differs. Calls count; what is said
//! to the model does not.

use crate::conversation::{Conversation, Message};
use crate::event::{Decision, Event, EventKind};
use crate::outcome::{Limit, Status, Termination};
use crate::state::{Phase, State, StateHead};
use crate::step::step;
use loopctl_lang::program::{Program, Tool};

use super::pending_calls::{AskedCall, CallFate, Position, RunEnd, calls, position};
use super::restart::restarted;
use super::verdict::{ReplayKind, ReplayVerdict};

/// Two folds of one run.
struct Together<'p> {
    programs: (&'p Program, &'p Program),
    old: State,
    new: State,
    /// The entries of the trace that were compared.
    known: usize,
    /// The first iteration whose prompt differs.
    prompt: Option<u32>,
    /// The messages that were compared, of these generations.
    compared: (usize, u32, u32),
}

/// What comes of a run under another program. `old` is the program that the run had.
///
/// # Errors
/// When the events do not fit the run's own program.
pub fn replay(old: &Program, new: &Program, events: &[Event]) -> Result<ReplayVerdict, String> {
    let mut both = Together {
        programs: (old, new),
        old: State::new(old),
        new: State::new(new),
        known: 0,
        prompt: None,
        compared: (0, 0, 0),
    };
    for (at, event) in events.iter().enumerate() {
        let tokens = used(&both.old);
        let differs = both.take(event).map_err(|why| format!("event {at} does not fit: {why}"))?;
        if let Some(verdict) = differs {
            return Ok(ReplayVerdict { events: at + 1, tokens, ..verdict });
        }
    }
    let kind = if both.prompt.is_some() { ReplayKind::OtherPrompt } else { ReplayKind::Same };
    let iteration = both.prompt;
    let why = iteration.map(|_| "the model is sent other texts".to_owned());
    Ok(ReplayVerdict { iteration, why, events: events.len(), tokens: used(&both.old), ..ReplayVerdict::new(kind) })
}

/// The tokens that a run used.
pub fn used(state: &StateHead) -> u64 {
    state.counters.tokens.input.saturating_add(state.counters.tokens.output)
}

impl Together<'_> {
    /// Both take an event. Returns the first decision that differs, if this event led to it.
    fn take(&mut self, event: &Event) -> Result<Option<ReplayVerdict>, String> {
        if let Some(late) = self.deadline(event) {
            return Ok(Some(late));
        }
        let (was, is) = (position(&self.old), position(&self.new));
        step(self.programs.0, &mut self.old, event.clone()).map_err(|refused| refused.to_string())?;
        if passes_by(event, &was, &is) {
            return Ok(self.differs());
        }
        if let (EventKind::Human(decided), Position::Waits(Termination::Approval), Position::Calls) =
            (&event.kind, &was, &is)
        {
            let action = self.new.turn().and_then(|turn| turn.calls.first()).map(|call| call.name.clone());
            let why = format!("makes a call without approval that a human {}", decision_word(&decided.decision));
            return Ok(Some(ReplayVerdict { action, ..self.verdict(ReplayKind::GoesOn, why) }));
        }
        let event = match &event.kind {
            EventKind::Started(_) => match restarted(self.programs.1, event) {
                Ok(event) => event,
                Err(why) => return Ok(Some(self.verdict(ReplayKind::RefusedNow, why))),
            },
            // The hash of a call is bound to the document.
            EventKind::Human(decided) => {
                let mut decided = decided.clone();
                decided.hash = decided
                    .hash
                    .filter(|_| decided.call.is_none() && decided.at.is_none() && matches!(self.new, State::Flow(_)));
                Event { at: event.at, kind: EventKind::Human(decided) }
            }
            _ => event.clone(),
        };
        if let Err(refused) = step(self.programs.1, &mut self.new, event) {
            return Ok(Some(self.verdict(ReplayKind::GoesOn, format!("what happened next does not fit: {refused}"))));
        }
        Ok(self.differs())
    }

    /// Whether the time of the run is over earlier now.
    fn deadline(&self, event: &Event) -> Option<ReplayVerdict> {
        let is_over = |state: &State| event.at.active_ms >= state.timeout_ms();
        let ended = matches!(position(&self.new), Position::Ended(_) | Position::Waits(_));
        let forced = matches!(position(&self.new), Position::AsksModel(Some(_)));
        let started = !matches!(event.kind, EventKind::Started(_));
        let passed = matches!(event.kind, EventKind::DeadlinePassed);
        if passed && started && !is_over(&self.new) {
            return Some(self.verdict(ReplayKind::GoesOn, "has more time".to_owned()));
        }
        let raised = matches!(event.kind, EventKind::LimitsRaised(_) | EventKind::Retried(_));
        (started && !ended && !forced && !raised && is_over(&self.new) && !is_over(&self.old)).then(|| ReplayVerdict {
            limit: Some(Limit::Timeout),
            termination: Some(Termination::Timeout),
            ..self.verdict(ReplayKind::EndsEarlier, format!("its time is over after {} ms", self.new.timeout_ms()))
        })
    }

    /// The first decision that differs, after an event that both took.
    fn differs(&mut self) -> Option<ReplayVerdict> {
        let (was, is) = (calls(&self.old, self.known), calls(&self.new, self.known));
        let (before, now) = (position(&self.old), position(&self.new));
        if let Some(verdict) = self.calls_differ(&was, &is, &now) {
            return Some(verdict);
        }
        self.known = self.old.entries().len().min(self.new.entries().len());
        if before != now
            && let Some(verdict) = self.position_differs(&before, now)
        {
            return Some(verdict);
        }
        self.compare_prompts();
        None
    }

    fn calls_differ(&self, was: &[AskedCall], is: &[AskedCall], now: &Position) -> Option<ReplayVerdict> {
        let of_call = |call: &AskedCall, kind, why: String| ReplayVerdict {
            action: call.action.clone(),
            at: call.at.clone(),
            ..self.verdict(kind, why)
        };
        let ends = matches!(now, Position::Ended(end) if end.status != Status::Completed);
        for (at, old) in was.iter().enumerate() {
            let Some(new) = is.get(at) else {
                // What ends a run is judged by its ending.
                return (old.fate == CallFate::Made && !ends)
                    .then(|| of_call(old, ReplayKind::RefusedNow, "is not called".to_owned()));
            };
            if old.at != new.at || old.action != new.action || old.input != new.input {
                return Some(if let CallFate::Refused(why) = &new.fate {
                    of_call(old, ReplayKind::RefusedNow, why.clone())
                } else {
                    let why = match (old.at == new.at && old.action == new.action, &new.action) {
                        (true, _) => "is called with another input, for which no result was recorded",
                        (false, Some(_)) => "is called, for which no result was recorded",
                        (false, None) => "is not called",
                    };
                    of_call(new, ReplayKind::GoesOn, why.to_owned())
                });
            }
            match (&old.fate, &new.fate) {
                (CallFate::Made | CallFate::AwaitsApproval, CallFate::Refused(why)) => {
                    return Some(of_call(old, ReplayKind::RefusedNow, why.clone()));
                }
                (CallFate::Made, CallFate::AwaitsApproval) => {
                    let verdict = of_call(old, ReplayKind::RefusedNow, "waits for an approval".to_owned());
                    return Some(ReplayVerdict { termination: Some(Termination::Approval), ..verdict });
                }
                (CallFate::Refused(_), CallFate::Made | CallFate::AwaitsApproval) => {
                    let why = "is called, which was refused then, and nobody recorded its result";
                    return Some(of_call(new, ReplayKind::GoesOn, why.to_owned()));
                }
                _ => {}
            }
        }
        let more = is.get(was.len())?;
        Some(match &more.fate {
            CallFate::Refused(why) => of_call(more, ReplayKind::RefusedNow, why.clone()),
            _ => of_call(more, ReplayKind::GoesOn, "is called, for which no result was recorded".to_owned()),
        })
    }

    fn position_differs(&self, before: &Position, now: Position) -> Option<ReplayVerdict> {
        let goes_on = |why: &str| Some(self.verdict(ReplayKind::GoesOn, why.to_owned()));
        match (before, now) {
            (Position::Ended(_), Position::Ended(end)) => {
                let verdict = self.verdict(ReplayKind::OtherEnding, "ends otherwise".to_owned());
                Some(ended(verdict, &end))
            }
            (Position::Ended(_), Position::Waits(kind)) => {
                let verdict = self.verdict(ReplayKind::OtherEnding, "waits for a human".to_owned());
                Some(ReplayVerdict { termination: Some(kind), ..verdict })
            }
            (Position::Ended(_), Position::AsksModel(Some(_))) => {
                goes_on("asks for a last answer, which nobody recorded")
            }
            (Position::Ended(_), Position::AsksModel(None)) => goes_on("asks for a reply that nobody recorded"),
            (Position::Ended(_), Position::Calls) => goes_on("makes calls whose results nobody recorded"),
            (_, Position::AsksSummary) => goes_on("asks for a summary that nobody recorded"),
            (_, Position::Ended(end)) => {
                let verdict = self.verdict(ReplayKind::EndsEarlier, "ends here".to_owned());
                Some(ended(verdict, &end))
            }
            (_, Position::AsksModel(Some(limit))) => {
                let verdict = self.verdict(ReplayKind::EndsEarlier, "asks for its last answer here".to_owned());
                Some(ReplayVerdict { limit: Some(limit), ..verdict })
            }
            (_, Position::Waits(kind)) => {
                let of = if kind == Termination::Approval { ReplayKind::RefusedNow } else { ReplayKind::EndsEarlier };
                let verdict = self.verdict(of, "waits for a human here".to_owned());
                let stuck = match &self.new.phase {
                    Phase::Paused { pause, .. } => pause.question.stuck.as_ref().map(|stuck| stuck.pattern),
                    _ => None,
                };
                Some(ReplayVerdict { termination: Some(kind), stuck, ..verdict })
            }
            (Position::AsksModel(Some(_)), Position::AsksModel(None)) => goes_on("asks for more than a last answer"),
            // The approval, or the summary, is passed by; a decision that says no shows with its event.
            (Position::Waits(Termination::Approval), Position::Calls) => None,
            (Position::AsksSummary, Position::AsksModel(None)) => None,
            (Position::Waits(_), _) => goes_on("does not wait for a human"),
            (_, Position::AsksModel(None) | Position::Calls) => goes_on("goes another way"),
        }
    }

    /// Compares what the model would be sent now.
    fn compare_prompts(&mut self) {
        let both_ask =
            matches!((position(&self.old), position(&self.new)), (Position::AsksModel(_), Position::AsksModel(_)));
        let (State::Loop(old), State::Loop(new)) = (&self.old, &self.new) else { return };
        if self.prompt.is_some() || !both_ask {
            return;
        }
        let (old, new) = (&old.conversation, &new.conversation);
        let (from, of_old, of_new) = self.compared;
        let from = if (of_old, of_new) == (old.generation, new.generation) { from } else { 0 };
        let same = same_messages(old, new, from) && same_tools(self.programs.0, self.programs.1);
        self.compared = (new.messages.len(), old.generation, new.generation);
        if !same {
            self.prompt = Some(self.old.counters.iterations.saturating_add(1));
        }
    }

    /// A verdict about the present iteration.
    fn verdict(&self, kind: ReplayKind, why: String) -> ReplayVerdict {
        let iteration = (!self.programs.0.is_flow()).then_some(self.old.counters.iterations);
        ReplayVerdict { iteration, why: Some(why), ..ReplayVerdict::new(kind) }
    }
}

/// Whether an event is nothing to the new program: an approval that it does not ask for, or a summary that it does not need.
fn passes_by(event: &Event, was: &Position, is: &Position) -> bool {
    match (&event.kind, was, is) {
        (EventKind::Human(decided), Position::Waits(Termination::Approval), Position::Calls) => {
            decided.decision == Decision::Approve
        }
        (EventKind::Summarized(_) | EventKind::AttemptsFailed(_), Position::AsksSummary, Position::AsksModel(_)) => {
            true
        }
        _ => false,
    }
}

fn decision_word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Edit(_) => "changed",
        _ => "did not approve",
    }
}

/// The verdict with how the run ends.
fn ended(verdict: ReplayVerdict, end: &RunEnd) -> ReplayVerdict {
    ReplayVerdict {
        limit: end.limit.or(limit_of(end.termination)),
        stuck: end.stuck.as_ref().map(|stuck| stuck.pattern),
        termination: Some(end.termination),
        ..verdict
    }
}

fn limit_of(termination: Termination) -> Option<Limit> {
    Limit::ALL.into_iter().find(|limit| Termination::from(*limit) == termination)
}

fn same_messages(old: &Conversation, new: &Conversation, from: usize) -> bool {
    let text = |message: &Message| (message.role, message.text.clone(), message.calls().to_vec());
    old.messages.len() == new.messages.len()
        && old.messages.iter().skip(from).zip(new.messages.iter().skip(from)).all(|(a, b)| a == b || text(a) == text(b))
}

/// Whether a request declares the same tools, with the same settings.
fn same_tools(old: &Program, new: &Program) -> bool {
    let settings = |program: &Program| {
        let properties = &program.as_loop()?.properties;
        Some((
            properties.temperature.map(f64::to_bits),
            properties.max_tokens,
            properties.dialect,
            properties.model.clone(),
        ))
    };
    let same = |one: &Tool, other: &Tool| {
        one.name == other.name
            && one.description == other.description
            && one.parameters.text() == other.parameters.text()
    };
    settings(old) == settings(new)
        && old.tools().len() == new.tools().len()
        && old.tools().iter().zip(new.tools()).all(|(one, other)| same(one, other))
}
