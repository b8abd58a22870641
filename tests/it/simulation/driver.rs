//! A driver by the rules of the real one: it takes an event, makes it durable, and only then performs
//! what follows; a stop, an end, a deadline come in between; a crash comes whenever it likes.

use loopctl::engine::budget;
use loopctl::engine::effect::{Effect, Effects};
use loopctl::engine::event::{CallId, EventKind};
use loopctl::engine::operation::{AskedFor, Progress};
use loopctl::engine::state::{Phase, State};
use loopctl::language::action::OnUncertain;
use loopctl::language::react::Dialect;
use loopctl::program::ToolKind;

use crate::simulation::called::{self, Run};
use crate::simulation::chance::Chance;
use crate::simulation::words;
use crate::simulation::world::{NotTaken, World, cancelled};

/// How long the last word may take.
const LAST_WORD_MS: u64 = 60_000;

/// Something that is under way, and when it comes back.
struct Coming {
    at: u64,
    what: EventKind,
}

/// A living driver.
pub struct Driver {
    pub state: State,
    /// The active time before this driver, and when it began.
    active: (u64, u64),
    owed: Effects,
    coming: Vec<Coming>,
}

impl Driver {
    pub fn new(state: State, time: u64) -> Self {
        let active = (state.now.active_ms, time);
        Self { state, active, owed: Vec::new(), coming: Vec::new() }
    }

    pub fn active_ms(&self, time: u64) -> u64 {
        self.active.0 + (time - self.active.1)
    }

    pub fn owe(&mut self, effects: Effects) {
        self.owed.extend(effects);
    }

    /// Drives until the run ends or waits, until it is stopped, or until it dies.
    pub fn drive(&mut self, world: &mut World<'_>) {
        loop {
            if self.owed.is_empty() && self.coming.is_empty() {
                assert!(
                    matches!(self.state.phase, Phase::Paused { .. } | Phase::Ended(_)),
                    "a driver has nothing to do in {:?}",
                    self.state.phase
                );
                return;
            }
            if world.trouble(25) {
                return; // killed
            }
            if matches!(self.state.phase, Phase::Thinking { .. }) && self.coming.is_empty() && world.trouble(25) {
                let _ = world.take(self, EventKind::Interrupted);
                return;
            }
            self.perform(world);
            if world.trouble(25) {
                return;
            }
            let Some(what) = self.next(world) else { return };
            let again = world.trouble(4).then(|| what.clone());
            let effects = match world.take(self, what) {
                Ok(effects) => effects,
                Err(NotTaken::Died) => return,
                Err(NotTaken::Refused) => panic!("what was waited for was refused in {:?}", self.state.phase),
            };
            self.owe(effects);
            if let Some(again) = again {
                self.comes_twice(world, again);
            }
        }
    }

    /// Performs what is owed: calls first; the model when no call is under way.
    fn perform(&mut self, world: &mut World<'_>) {
        let owed = std::mem::take(&mut self.owed);
        let calls: Vec<CallId> = owed
            .iter()
            .filter_map(|effect| match effect {
                Effect::CallTool(id) => Some(*id),
                Effect::CallModel | Effect::Summarize | Effect::RunStep(_) | Effect::Remember(_) => None,
            })
            .collect();
        for id in &calls {
            world.ledger.calls(world.program, &self.state, *id);
            let lost = world.trouble(10);
            let takes = if lost { 30_000 } else { 1 + world.chance.below(2000) };
            let what = self.makes(world, *id, lost);
            self.coming.push(Coming { at: world.time + takes, what });
        }
        let sums_up = owed.contains(&Effect::Summarize);
        if calls.is_empty() && (sums_up || owed.contains(&Effect::CallModel)) {
            world.ledger.asks(world.program, &self.state);
            let lost = world.trouble(15);
            let tags = world.program.as_loop().unwrap().properties.dialect == Dialect::Tags;
            let what = if lost {
                words::model_fault(&mut world.chance)
            } else if sums_up {
                EventKind::Summarized(words::summary(&mut world.chance))
            } else {
                EventKind::ModelReplied(words::reply(&mut world.chance, world.calm, tags))
            };
            let takes = if lost { 40_000 } else { 1 + world.chance.below(1500) };
            self.coming.push(Coming { at: world.time + takes, what });
        }
    }

    /// Makes a call.
    fn makes(&self, world: &mut World<'_>, id: CallId, lost: bool) -> EventKind {
        let call = self.state.call(id).expect("an effect names a call of the turn");
        let tool = world.program.tool(&call.name).expect("only declared tools are called");
        match &tool.kind {
            ToolKind::Loop(_) => {
                let decided = match &call.progress {
                    Progress::Asks(AskedFor::Subrun(waits)) => waits.decided.as_ref(),
                    _ => None,
                };
                let bound = budget::left(world.program, &self.state);
                let run = world.called.entry(id).or_insert_with(|| Run::new(bound));
                run.goes_on(id, decided, &mut world.chance)
            }
            _ if tool.retry.as_ref().is_some_and(|retry| call.attempts.len() + 1 < retry.attempts as usize)
                && world.trouble(4) =>
            {
                words::retried(id, call.attempts.len() as u32 + 1, &mut world.chance)
            }
            _ if lost && !tool.idempotent && tool.after_lost_answer() == OnUncertain::Pause => {
                words::lost(id, call.attempts.len() as u32 + 1, &mut world.chance)
            }
            _ if lost => words::returned(id, words::failed("timed out after 30 s"), &mut world.chance),
            ToolKind::Action(_) if tool.spends() => called::asked(id, &mut world.chance),
            _ => {
                let result = words::result(&mut world.chance);
                words::returned(id, result, &mut world.chance)
            }
        }
    }

    /// What comes next: the first of what is under way, unless the run's time is over before, it is
    /// stopped at once, or its end was asked for. `None`: the driver goes.
    fn next(&mut self, world: &mut World<'_>) -> Option<EventKind> {
        let first = self.coming.iter().enumerate().min_by_key(|(_, coming)| coming.at).map(|(at, _)| at)?;
        let bound = match self.state.phase {
            Phase::Thinking { forced: Some(_) } => self.state.now.active_ms + LAST_WORD_MS,
            _ => self.state.timeout_ms(),
        };
        let deadline = world.time + bound.saturating_sub(self.active_ms(world.time));
        if deadline < self.coming[first].at {
            world.passes(deadline - world.time);
            self.coming.clear();
            return Some(EventKind::DeadlinePassed);
        }
        if self.stops_between_attempts(world) {
            return None;
        }
        if world.trouble(40) {
            // Stopped now: what is under way is dropped.
            let _ = world.take(self, EventKind::Interrupted);
            return None;
        }
        if world.trouble(120) {
            self.coming.clear();
            return Some(cancelled());
        }
        let coming = self.coming.remove(first);
        world.passes(coming.at.saturating_sub(world.time));
        Some(coming.what)
    }

    /// Whether the driver is asked to stop while models that calls ask have failed and are to be asked again: it leaves those
    /// calls. What was used is paid for, and the next driver makes them.
    fn stops_between_attempts(&mut self, world: &mut World<'_>) -> bool {
        // Drawn apart, so that the other chances of a seed stay as they are.
        let mut chance = Chance::new(world.time);
        if world.calm || !chance.one_in(8) {
            return false;
        }
        let asks = |coming: &Coming| match &coming.what {
            EventKind::ToolReturned(returned) => self
                .state
                .call(returned.call)
                .and_then(|call| world.program.tool(&call.name))
                .is_some_and(|tool| matches!(tool.kind, ToolKind::Action(_)) && tool.spends())
                .then_some(returned.call),
            _ => None,
        };
        let left: Vec<CallId> = self.coming.iter().filter_map(asks).collect();
        for call in &left {
            if world.take(self, called::left(*call, &mut chance)).is_err() {
                return true;
            }
        }
        !left.is_empty()
    }

    /// What was taken comes once more: refused, unless the model was asked again since, which the real
    /// driver can't mix up: it waits for one reply.
    fn comes_twice(&self, world: &World<'_>, what: EventKind) {
        let thinks = matches!(self.state.phase, Phase::Thinking { .. });
        let sums_up = matches!(self.state.phase, Phase::Summarizing { .. });
        let fits_again = match &what {
            EventKind::ModelReplied(_) => thinks,
            EventKind::Summarized(_) => sums_up,
            EventKind::ModelFailed(_) | EventKind::DeadlinePassed => thinks || sums_up,
            EventKind::ToolReturned(_) | EventKind::ToolRetried(_) | EventKind::ToolPaused(_) => false,
            EventKind::Cancelled(_) => !matches!(self.state.phase, Phase::Ended(_)),
            _ => true,
        };
        if !fits_again {
            world.refuses(&self.state, what);
        }
    }
}
