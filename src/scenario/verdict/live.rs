//! Live plays: the models of the document are asked, tools are played, and the same scenario is played several times, since
//! no two replies of a model are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::{Measured, ScenarioVerdict, StagedScenario};
use crate::drive::stage::StagePlan;
use crate::language::scenario::FaultPlan;
use crate::program::{Program, Tool};
use crate::scenario::faults::FaultSet;
use crate::scenario::judge::{Failure, judge};
use crate::scenario::play::{Play, PlayError, Played, failures_of};
use crate::scenario::story::trace_lines;
use crate::trace::Redaction;
use crate::trace::units::{dollars, plural};

/// In how many live plays all of a scenario holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveCount {
    /// Plays in which all holds.
    pub hold: u32,
    /// Plays that were made.
    pub of: u32,
}

/// What all live plays together may cost.
#[derive(Debug)]
pub struct LiveBudget {
    most_usd: Option<f64>,
    spent_usd: Mutex<f64>,
}

impl LiveBudget {
    /// A budget in US dollars; none is no limit.
    pub fn new(most_usd: Option<f64>) -> Self {
        Self { most_usd, spent_usd: Mutex::default() }
    }

    /// US dollars that the plays cost so far.
    pub fn spent_usd(&self) -> f64 {
        *self.spent_usd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spend(&self, usd: f64) {
        *self.spent_usd.lock().unwrap_or_else(PoisonError::into_inner) += usd;
    }

    /// Why no more plays are made, if the budget is used up.
    fn used_up(&self) -> Option<String> {
        let (most, spent) = (self.most_usd?, self.spent_usd());
        (spent >= most)
            .then(|| format!("the plays cost {} so far, and --max-cost is {}", dollars(spent), dollars(most)))
    }
}

impl StagedScenario<'_> {
    /// Why it can't be played live; none if it can.
    pub fn live_obstacle(&self) -> Option<&'static str> {
        if self.recording.is_some() {
            return Some("it plays a recording");
        }
        let faults = match &self.scenario.faults {
            Some(FaultPlan::Listed(faults)) => faults.as_slice(),
            _ => &[],
        };
        let of_reply = faults.iter().any(|fault| fault.reply.is_some());
        of_reply.then_some("it has faults of replies, which only played replies can have")
    }

    /// The first model that a live play may ask, and whose price is not known.
    pub fn unpriced_model(&self) -> Option<String> {
        let program = &self.set.loaded.program;
        let known = |name: &String| program.project.models.get(name).is_some_and(|model| model.price.is_some());
        asked_models(program).into_iter().find(|name| !known(name))
    }

    /// Plays it `repeat` times with the models of its document, and judges each play. What depends on the replies that are
    /// written is not judged: which of them are left over, and the snapshot.
    pub fn test_live(&self, repeat: u32, budget: &LiveBudget) -> ScenarioVerdict {
        let at = self.at();
        let redact = Redaction::new(&self.set.loaded.program.project.redact);
        let mut count = LiveCount { hold: 0, of: 0 };
        let mut fails: BTreeMap<(String, &'static str, String), u32> = BTreeMap::new();
        let mut verdict = ScenarioVerdict {
            name: self.scenario.name.clone(),
            failures: Vec::new(),
            measured: None,
            notes: Vec::new(),
            trace: Vec::new(),
            written: None,
            live: None,
            reached: BTreeSet::new(),
        };
        let mut never_played = None;
        while count.of < repeat {
            never_played = budget.used_up();
            if never_played.is_some() {
                break;
            }
            let played = self.play_live();
            let failures = self.failures_of_live(&played);
            count.of += 1;
            count.hold += u32::from(failures.is_empty());
            verdict.reached.extend(self.reached(&played));
            let measured = played.story.as_ref().map(Measured::of);
            budget.spend(measured.and_then(|measured| measured.cost_usd).unwrap_or_default());
            verdict.measured = match (verdict.measured, measured) {
                (Some(sum), Some(one)) => Some(sum.plus(&one)),
                (sum, one) => sum.or(one),
            };
            // The calls that are shown are those of the last play in which something does not hold.
            if (!failures.is_empty() || verdict.trace.is_empty())
                && let Some(story) = &played.story
            {
                verdict.trace = trace_lines(story, &redact);
            }
            for Failure { pointer, key, message, .. } in failures {
                *fails.entry((pointer, key, message)).or_default() += 1;
            }
            // What can't start once can't start again.
            if played.story.is_none() {
                break;
            }
        }
        verdict.failures.extend(fails.into_iter().map(|((pointer, key, message), times)| {
            let message = if repeat == 1 { message } else { format!("in {times} of {}: {message}", plays(count.of)) };
            Failure { pointer, key, message, near: None }
        }));
        if let Some(why) = never_played {
            let (left, be) = (repeat - count.of, if repeat - count.of == 1 { "was" } else { "were" });
            let message = format!("{left} of {} {be} not made: {why}", plays(repeat));
            verdict.failures.push(Failure { pointer: format!("{at}/name"), key: "max_cost", message, near: None });
        }
        verdict.live = Some(count);
        verdict
    }

    fn play_live(&self) -> Played {
        let faults = match &self.scenario.faults {
            Some(FaultPlan::Listed(faults)) => FaultSet::listed(faults),
            _ => FaultSet::default(),
        };
        let play = self.play(&faults);
        let plan = StagePlan { is_live: true, ..play.plan.clone() };
        Play { plan, ..play }.perform()
    }

    fn failures_of_live(&self, played: &Played) -> Vec<Failure> {
        let at = self.at();
        // A live run needs the decisions that it needs: those that are left over are no failure.
        let faults: Vec<PlayError> =
            played.faults.iter().filter(|fault| !matches!(fault, PlayError::UnusedDecisions(_))).cloned().collect();
        let mut failures = failures_of(&faults, &at);
        failures.extend(self.not_played(played));
        if let Some(story) = &played.story {
            failures.extend(judge(&self.scenario.expect, story, &format!("{at}/expect")));
        }
        failures
    }
}

impl Measured {
    /// What two runs needed together.
    fn plus(&self, other: &Self) -> Self {
        Self {
            iterations: self.iterations.saturating_add(other.iterations),
            calls: self.calls + other.calls,
            tokens: self.tokens.saturating_add(other.tokens),
            cost_usd: self.cost_usd.zip(other.cost_usd).map(|(one, other)| one + other),
            seconds: self.seconds + other.seconds,
        }
    }
}

/// `1 play`, `3 plays`.
fn plays(count: u32) -> String {
    plural(usize::try_from(count).unwrap_or(usize::MAX), "play")
}

/// The models that a program, and what it calls, may ask. Chains of calls are bounded: the recursion ends.
fn asked_models(program: &Program) -> BTreeSet<String> {
    let own = program.model().or(program.project.model.as_deref());
    let asks = program.needs_a_model();
    let mut models: BTreeSet<String> = own.filter(|_| asks).into_iter().map(str::to_owned).collect();
    models.extend(program.fallback_models().iter().map(|fallback| fallback.name().to_owned()));
    models.extend(program.all_tools().into_iter().filter_map(|tool| tool.model().map(str::to_owned)));
    let called = program.called_loops().into_iter();
    let started = program.tools().iter().filter_map(Tool::launched);
    called.chain(started).for_each(|called| models.extend(asked_models(called)));
    models
}
