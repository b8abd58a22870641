//! A world in which a workflow is played: outcomes come in an order of chance, several at a time; processes die and are
//! asked to stop; humans decide in any order; time runs out and is given again.

use std::collections::{BTreeMap, BTreeSet};

use loopctl::engine::address::StepAddress;
use loopctl::engine::effect::steps_of;
use loopctl::engine::event::{
    Allowance, Decided, Decision, Event, EventKind, LimitsRaised, Moment, RaisedLimits, Retried,
};
use loopctl::engine::flow::progress::{Current, ItemsState, StepFrame, Stopping};
use loopctl::engine::operation::{AskedFor, OpenStep, Progress};
use loopctl::engine::outcome::Ending;
use loopctl::engine::state::{Phase, State};
use loopctl::engine::step::step;
use loopctl::language::foreach::OnItemPause;
use loopctl::program::flow::{Foreach, StepAction};
use loopctl::{Program, Termination};
use serde_json::Value;

use super::outside::Outside;
use super::times::late_steps;
use crate::simulation::chance::Chance;

/// After so many turns nothing goes wrong any more.
const CALM: u32 = 400;
/// By then every run has ended.
const END: u32 = 5_000;

/// How a run ended.
pub struct Played {
    pub state: State,
    pub ending: Ending,
    /// The calls whose outcome was lost, and which fail then.
    pub lost: BTreeSet<String>,
    /// The steps that did not begin because the time of their item was over.
    pub late: BTreeSet<String>,
    /// How often something happened, by its name.
    pub seen: BTreeMap<&'static str, u64>,
    /// Whether failed steps ran again.
    pub healed: bool,
}

pub struct World<'w> {
    pub(super) program: &'w Program,
    pub(super) outside: Outside,
    pub(super) chance: Chance,
    /// How much goes wrong: nothing with 0.
    pub(super) trouble: u64,
    pub(super) calm: bool,
    /// Whether failed steps run again, and then go well.
    pub(super) heals: bool,
    pub(super) state: State,
    pub(super) journal: Vec<String>,
    /// Live events that are not durable yet, and what they asked for.
    pub(super) pending: Vec<String>,
    pub(super) under_way: Vec<String>,
    pub(super) wall_ms: i64,
    pub(super) active_ms: u64,
    /// Calls with a durable outcome: none of them may be made again.
    pub(super) finished: BTreeSet<String>,
    /// What calls were given first: they are given the same again.
    pub(super) inputs: BTreeMap<String, Value>,
    /// Calls that were made, but whose outcome was not durable before the process died.
    pub(super) made: BTreeSet<String>,
    /// How many questions of the run of a step were answered.
    pub(super) answered: BTreeMap<String, u64>,
    pub(super) lost: BTreeSet<String>,
    pub(super) seen: BTreeMap<&'static str, u64>,
    has_decided_beside: bool,
}

impl<'w> World<'w> {
    pub fn new(program: &'w Program, outside: Outside, seed: u64, trouble: u64) -> Self {
        Self {
            program,
            outside,
            chance: Chance::new(seed),
            trouble,
            calm: false,
            heals: false,
            state: State::new(program),
            journal: Vec::new(),
            pending: Vec::new(),
            under_way: Vec::new(),
            wall_ms: 1_769_941_800_000,
            active_ms: 0,
            finished: BTreeSet::new(),
            inputs: BTreeMap::new(),
            made: BTreeSet::new(),
            answered: BTreeMap::new(),
            lost: BTreeSet::new(),
            seen: BTreeMap::new(),
            has_decided_beside: false,
        }
    }

    pub fn healing(mut self) -> Self {
        self.heals = true;
        self
    }

    pub(super) fn sees(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    pub(super) fn goes_wrong(&mut self, one_in: u64) -> bool {
        self.trouble > 0 && !self.calm && self.chance.below(one_in * 10) < self.trouble
    }

    pub fn play(mut self, input: &Value) -> Played {
        let EventKind::Started(mut started) = crate::simulation::world::started(self.program) else { unreachable!() };
        started.input = input.clone();
        self.take(EventKind::Started(started));
        self.durable();
        for turn in 0..END {
            self.calm = turn >= CALM;
            if let Phase::Ended(ending) = &self.state.phase {
                let ending = (**ending).clone();
                if !self.goes_on(&ending) {
                    return self.ended(ending);
                }
            } else if self.goes_wrong(20) {
                self.die();
            } else if self.goes_wrong(60) {
                self.stops_and_goes_on();
            } else if matches!(self.state.phase, Phase::Paused { .. }) {
                self.decide();
            } else if self.may_decide_beside() && self.goes_wrong(8) {
                self.sees("decisions beside");
                self.has_decided_beside = true;
                self.decide();
            } else if self.goes_wrong(80) {
                self.active_ms = self.state.timeout_ms().max(self.active_ms);
                self.take_durable(EventKind::DeadlinePassed);
            } else {
                self.outcomes();
            }
        }
        panic!("the run makes no way: {:?}\n{}", self.state.phase, self.journal.join("\n"));
    }

    fn ended(self, ending: Ending) -> Played {
        let healed = self.outside.healed;
        let late = late_steps(self.program, &self.journal);
        Played { state: self.state, ending, lost: self.lost, late, seen: self.seen, healed }
    }

    /// Whether a human has a run go on that has ended.
    fn goes_on(&mut self, ending: &Ending) -> bool {
        let again = match ending.termination {
            Termination::Timeout | Termination::Budget => {
                self.sees(if ending.termination == Termination::Budget { "budgets raised" } else { "limits raised" });
                // Both: the other limit may be reached too.
                let tokens = self.program.budget.is_some().then_some(1_000_000 + self.active_ms);
                let budget = Allowance { tokens, cost_usd: None };
                let timeout_ms = Some(self.active_ms + 100_000_000);
                let limits = RaisedLimits { timeout_ms, budget, ..RaisedLimits::default() };
                EventKind::LimitsRaised(LimitsRaised { limits, by: None, bound: None })
            }
            Termination::StepFailed | Termination::Rejected | Termination::FormExpired
                if self.heals && !self.outside.healed =>
            {
                self.sees("failed steps again");
                self.lost.clear();
                self.outside.healed = true;
                // A call that failed may be made again; the runs of steps are others.
                EventKind::Retried(Retried::default())
            }
            _ => return false,
        };
        self.take_durable(again);
        true
    }

    /// An event: into the live state; it is not durable yet.
    pub(super) fn take(&mut self, kind: EventKind) {
        self.wall_ms += 1;
        self.active_ms += 1;
        let event = Event { at: Moment { wall_ms: self.wall_ms, active_ms: self.active_ms }, kind };
        let text = serde_json::to_string(&event).unwrap();
        // What was under way before the stop goes on: another attempt, or after a death.
        let goes_on: Vec<String> = match &event.kind {
            EventKind::StepRetried(retried) => vec![retried.at.clone()],
            // The event that asked for a step may be the one that let the run stop.
            EventKind::Resumed => {
                let open = self.state.open_steps().into_iter();
                open.filter(|open| open.progress.is_under_way()).map(|open| open.address.to_string()).collect()
            }
            _ => Vec::new(),
        };
        let stopping = self.state.as_flow().and_then(|flow| flow.progress.stopping);
        // What an interrupt held back begins now, until the budget is found to be spent.
        let stopping =
            stopping.filter(|stopping| !(matches!(event.kind, EventKind::Resumed) && *stopping == Stopping::Interrupt));
        let effects = step(self.program, &mut self.state, event).unwrap_or_else(|refused| panic!("{refused}: {text}"));
        self.holds();
        let still = self.state.as_flow().and_then(|flow| flow.progress.stopping);
        for at in steps_of(&effects).into_iter().map(|at| at.to_string()) {
            let may = stopping.is_none() || still.is_none() || goes_on.contains(&at);
            assert!(may, "{at} begins although the run stops: {text}");
            assert!(!self.under_way.contains(&at), "{at} is under way already");
            self.under_way.push(at);
        }
        self.pending.push(text);
    }

    /// What was taken is durable; what it asked for may be done now.
    pub(super) fn durable(&mut self) {
        for text in self.pending.drain(..) {
            if let Some(at) = finished_by(&text) {
                self.finished.insert(at);
            }
            self.journal.push(text);
        }
        for at in &self.under_way {
            let open = self.state.open_step(&StepAddress::new(at)).unwrap_or_else(|| panic!("{at} is not open"));
            assert!(!self.finished.contains(at) || self.outside.healed, "{at} was done already");
            let first = self.inputs.entry(at.clone()).or_insert_with(|| serde_json::Value::clone(&open.input));
            assert!(*first == *open.input || self.outside.healed, "{at} is given something else than before");
        }
    }

    pub(super) fn take_durable(&mut self, kind: EventKind) {
        self.take(kind);
        self.durable();
    }

    /// The process dies: the events that were not durable are lost, and another one folds the journal.
    pub(super) fn die(&mut self) {
        self.sees("deaths");
        if self.pending.is_empty() {
            assert!(self.folded() == self.state, "the fold of the journal is the live state");
        } else {
            let kept = self.chance.below(self.pending.len() as u64 + 1) as usize;
            self.pending.truncate(kept);
            let requested = std::mem::take(&mut self.under_way);
            self.durable();
            self.under_way = requested;
            self.state = self.folded();
        }
        for at in std::mem::take(&mut self.under_way) {
            // It was requested only if the event before was durable; some requests were on their way.
            if self.inputs.contains_key(&at) && self.chance.one_in(2) {
                self.made.insert(at);
            }
        }
        if matches!(self.state.phase, Phase::Ended(_)) {
            return;
        }
        self.resumes();
    }

    fn folded(&self) -> State {
        let mut state = State::new(self.program);
        for text in &self.journal {
            step(self.program, &mut state, crate::simulation::world::read(text))
                .expect("what was taken once is taken again");
        }
        state
    }

    pub(super) fn resumes(&mut self) {
        let flow = &self.state.as_flow().unwrap().progress;
        let lost: Vec<String> = flow
            .open()
            .into_iter()
            .filter(|open| open.name == "drop" && open.progress == Progress::Requested)
            .map(|open| open.address.to_string())
            .collect();
        if matches!(self.state.phase, Phase::Stepping) {
            self.lost.extend(lost);
        }
        self.take_durable(EventKind::Resumed);
    }

    /// What holds after each event: no loop works on more items than it may, and with a budget one step at a time asks a
    /// model.
    fn holds(&self) {
        let flow = self.program.as_flow().unwrap();
        let state = &self.state.as_flow().unwrap().progress;
        each_loop(&state.root, &mut |items| {
            let StepAction::Foreach(foreach) = &flow.step_at(&items.at).unwrap().action else { unreachable!() };
            let places = places(foreach, items);
            // An item whose human has answered goes on at once, or, with a budget, waits for its turn to spend.
            let may_have_more =
                foreach.on_pause == OnItemPause::GoOn && (self.program.budget.is_some() || self.has_decided_beside);
            assert!(
                may_have_more || places <= foreach.max_concurrency as usize,
                "{}: {places} items at a time",
                items.at
            );
        });
        let mut has_item_budget = false;
        flow.each(&mut |step| {
            has_item_budget |= matches!(&step.action, StepAction::Foreach(foreach) if foreach.item_budget.is_some());
        });
        if self.program.budget.is_some() && !has_item_budget {
            let asks = |open: &&&OpenStep| open.name == "loop" && open.progress == Progress::Requested;
            assert!(state.open().iter().filter(asks).count() <= 1, "two steps spend at a time");
        }
    }
}

/// How many items have one of the places of a loop.
fn places(foreach: &Foreach, items: &ItemsState) -> usize {
    let waits = |frame: &&StepFrame| match (&frame.current, foreach.on_pause) {
        (_, OnItemPause::GoOn) if frame.rests => true,
        (Current::Open(open), OnItemPause::GoOn) => match &open.progress {
            // It is asked again whether it still waits.
            Progress::Asks(AskedFor::Subrun(waits)) => waits.decided.is_none(),
            progress => progress.waits(),
        },
        // An item whose items wait gives its place away too; which do is counted for that loop.
        (Current::Items(_), OnItemPause::GoOn) => true,
        _ => false,
    };
    items.open.values().filter(|frame| !waits(frame)).count()
}

pub(super) fn each_loop(frame: &StepFrame, visit: &mut dyn FnMut(&ItemsState)) {
    if let Current::Items(items) = &frame.current {
        visit(items);
        items.open.values().for_each(|frame| each_loop(frame, visit));
    }
}

/// The address of the step that a durable event ends.
fn finished_by(text: &str) -> Option<String> {
    match crate::simulation::world::read(text).kind {
        EventKind::StepReturned(returned) => Some(returned.at),
        EventKind::Human(Decided { at, decision: Decision::Happened(_), .. }) => at,
        _ => None,
    }
}
