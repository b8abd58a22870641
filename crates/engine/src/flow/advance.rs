//! Advances lists of steps: chooses the next step, computes its input, and begins it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::end::StepEnd;
use super::progress::{Current, FailedRun, KeptRun, StepChange, StepFault, StepFrame, Stopping, chosen};
use super::record::{StepRecord, StepStatus};
use super::scope::scope;
use super::step_start::{BeginFault, ChosenStep, Opened};
use super::wait;
use crate::address::StepAddress;
use crate::budget;
use crate::effect::{Effect, Effects};
use crate::event::Moment;
use crate::header::RunHeader;
use crate::operation::{AskedFor, OpenStep, Progress, Repetition};
use crate::question::EndedPart;
use crate::state::{FlowState, StateHead};
use crate::timestamp::rfc3339;
use loopctl_lang::language::foreach::FailureStrategy;
use loopctl_lang::program::condition::{CompiledCondition, OrderRules};
use loopctl_lang::program::flow::{FlowProgram, FlowStep, Foreach, StepAction};
use loopctl_lang::program::reference::Scope;
use loopctl_lang::program::template_work::{TemplateWork, WorkBound};

/// What advancing the steps of a run needs, and what it gives.
pub(super) struct Advance<'p> {
    pub program: &'p FlowProgram,
    pub header: Arc<RunHeader>,
    /// The moment of the event: when steps become due.
    pub now: Moment,
    /// Why no further step begins.
    pub stopping: Option<Stopping>,
    /// Whether no step of the present list begins, because its loop stops.
    pub blocked: bool,
    /// Whether the present list handles a failure, or a list around it does.
    pub is_handling: bool,
    /// How many steps that ask models are open.
    pub spending: usize,
    /// How many of them may be open at once.
    pub may_spend: usize,
    /// Whether a cancelled item left its place among them: a step that was visited before may take it.
    pub freed: bool,
    /// Whether the budget is spent.
    pub is_spent: bool,
    /// Whether no further step begins because of that, whatever it does.
    pub is_over: bool,
    /// The loops around the present list, the outermost first.
    pub around: Vec<TakenItems>,
    /// How often failed steps were run again.
    pub round: u32,
    /// How often the request of a step was changed, by its address.
    pub changed: BTreeMap<String, u32>,
    /// The runs of steps that continue when their steps run again.
    pub outages: BTreeMap<String, FailedRun>,
    /// What the texts of all steps cost that begin at the event.
    work: Rc<TemplateWork>,
    pub effects: Effects,
    pub changes: Vec<StepChange>,
    pub records: Vec<StepRecord>,
}

/// The items that a loop has taken so far, those of the loops inside included.
pub(super) struct TakenItems {
    /// How many.
    pub count: u64,
    /// How many it may take.
    pub most: u32,
    /// The loop inside that would have taken more than that.
    pub over: Option<StepFault>,
}

/// The names that a list of steps can use, the nearest first: its own, and those around it.
pub(super) type Names<'n> = Vec<&'n Map<String, Value>>;

/// How a list of steps ended.
#[derive(Debug)]
pub(super) enum ListEnd {
    /// All steps ended.
    Completed,
    /// No step ran.
    Skipped,
    /// A step failed.
    Failed(StepFault),
}

/// A list of steps, and what bounds it.
pub(super) struct StepList<'p> {
    /// The steps, and those that run when one of them has failed.
    pub steps: &'p [FlowStep],
    /// The place of the first of the latter.
    pub on_failure: Option<usize>,
    /// The address in front of them.
    pub prefix: String,
    /// The loop whose item it is.
    pub of: Option<&'p Foreach>,
    /// What the item is called.
    pub label: Option<Arc<str>>,
}

impl<'p> StepList<'p> {
    /// The steps of an item of the loop at an address, which are this far.
    pub fn of_item(foreach: &'p Foreach, at: &str, index: u32, frame: &StepFrame) -> Self {
        let (prefix, label) = (format!("{at}.{index}"), frame.label.clone());
        Self { steps: &foreach.steps, on_failure: foreach.on_failure, prefix, of: Some(foreach), label }
    }

    /// The address of a step.
    pub fn address(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}.{name}", self.prefix) }
    }
}

impl<'p> Advance<'p> {
    /// What an event of a run advances.
    pub fn of(program: &'p FlowProgram, state: &FlowState) -> Self {
        let is_spent = budget::is_spent(program, state);
        Self {
            program,
            header: Arc::clone(&state.header),
            now: state.now,
            stopping: state.progress.stopping,
            blocked: false,
            is_handling: false,
            spending: spending(program, &state.progress.open()),
            may_spend: may_spend(program, state),
            freed: false,
            is_spent,
            // A workflow without models spends nothing: what is left of the budget above it, it does not need.
            is_over: is_spent && state.header.stops_when_spent() && program.spends(),
            around: Vec::new(),
            round: state.progress.rounds,
            changed: BTreeMap::new(),
            outages: BTreeMap::new(),
            work: Rc::new(TemplateWork::new(WorkBound::TOGETHER)),
            effects: Effects::new(),
            changes: Vec::new(),
            records: Vec::new(),
        }
    }

    /// Advances a list as far as it goes without an outcome from outside, with the steps for its failure. Returns how it ended,
    /// if it did.
    pub fn list(
        &mut self,
        list: &StepList<'p>,
        frame: &mut StepFrame,
        around: &[&Map<String, Value>],
    ) -> Option<ListEnd> {
        loop {
            let outside = (self.blocked, self.is_handling);
            if frame.is_handling() {
                (self.blocked, self.is_handling) = (false, true);
            }
            let end = self.steps(list, frame, around);
            (self.blocked, self.is_handling) = outside;
            return match end {
                Some(ListEnd::Failed(fault)) => match self.list_failed(list, frame, fault) {
                    None => continue,
                    end => end,
                },
                Some(_) if frame.is_handling() => frame.handled().map(ListEnd::Failed),
                end => end,
            };
        }
    }

    /// Advances the steps of a list.
    fn steps(&mut self, list: &StepList<'p>, frame: &mut StepFrame, around: &[&Map<String, Value>]) -> Option<ListEnd> {
        loop {
            if let Some(fault) = frame.fault.take() {
                return Some(ListEnd::Failed(fault));
            }
            let StepFrame { next, current, keys, given, kept, kept_runs, done, .. } = &mut *frame;
            let step = list.steps.get(*next);
            match current {
                Current::Open(open) => {
                    if let Some(step) = step.and_then(|step| chosen(step, &open.address)) {
                        self.request(step, open);
                    }
                    return None;
                }
                Current::Items(items) => {
                    let step = chosen(step?, &items.at)?;
                    let StepAction::Foreach(foreach) = &step.action else { return None };
                    let names: Names<'_> = [&*keys, &*given].into_iter().chain(around.iter().copied()).collect();
                    let end = self.items(foreach, items, &names)?;
                    self.loop_ended(list, step, frame, end);
                }
                Current::Idle if *next < *done => match (kept.remove(next), kept_runs.remove(next)) {
                    (Some(items), _) => *current = Current::Items(items),
                    (None, Some(run)) => self.run_again(list, step?, frame, *run),
                    (None, None) => *next += 1,
                },
                Current::Idle => {
                    let Some(step) = step else {
                        return Some(if frame.ran { ListEnd::Completed } else { ListEnd::Skipped });
                    };
                    if self.is_barred() {
                        return None;
                    }
                    self.begin(list, step, frame, around);
                }
            }
        }
    }

    /// Requests a step that may be requested now. With a budget, one that asks models waits until the cost of the one
    /// before is known; when the budget is spent, no further step begins.
    fn request(&mut self, step: &FlowStep, open: &mut OpenStep) {
        if open.progress != Progress::Held || self.is_barred() {
            return;
        }
        if step.spends() {
            if self.spending >= self.may_spend {
                return;
            }
            if self.is_spent {
                self.stopping = self.stopping.or(Some(Stopping::Budget));
                return;
            }
            self.spending += 1;
        }
        open.request(self.now.wall_ms);
        self.effects.push(Effect::RunStep(open.address.clone()));
    }

    /// Begins the next step of a list, or the one that takes its place; or skips it.
    fn begin(
        &mut self,
        list: &StepList<'p>,
        step: &'p FlowStep,
        frame: &mut StepFrame,
        around: &[&Map<String, Value>],
    ) {
        if !frame.takes(step) {
            frame.next += 1;
            return;
        }
        let own: Map<String, Value> = std::iter::once(("__step".to_owned(), Value::from(step.number))).collect();
        let chosen = {
            let names: Names<'_> =
                [&own, &frame.keys, &frame.given].into_iter().chain(around.iter().copied()).collect();
            self.with_scope(&names, |advance, scope| advance.choose(step, list, frame, scope))
        };
        let Some(ChosenStep { step, opened }) = chosen else { return self.leave_out(list, step, frame) };
        if self.may_not_begin(step) {
            self.stopping = self.stopping.or(Some(Stopping::Budget));
            return;
        }
        let opened = match opened {
            Ok(opened) => opened,
            Err(BeginFault { code, message }) => {
                frame.ran = true;
                let at = list.address(&step.name);
                let fault = StepFault::new(code, message, at.as_str());
                return self.ended(list, step, frame, StepEnd::failed(at, self.now.wall_ms, fault));
            }
        };
        frame.ran |= !matches!(opened, Opened::Case(_));
        frame.handled |= frame.is_handling() && opened.may_take_back(step);
        let at = list.address(&step.name);
        let is_over = matches!(&opened, Opened::Step { progress, .. } if wait::is_over(progress, self.now.wall_ms));
        frame.current = match opened {
            Opened::Case(case) => return self.chose(list, step, frame, case),
            Opened::Items(items) => {
                for taken in &mut self.around {
                    taken.count = taken.count.saturating_add(items.taken);
                }
                Current::Items(items)
            }
            Opened::Step { input, progress } => {
                let input = Arc::new(input);
                let (kind, item_label) = (step.kind.clone(), list.label.clone());
                self.changes.push(StepChange::Started {
                    at: at.clone(),
                    kind: kind.clone(),
                    input: Arc::clone(&input),
                    item_label: item_label.clone(),
                });
                let failed = self.outages.get(&at).copied();
                let unchanged = if self.is_handling { self.round } else { 0 };
                Current::Open(Box::new(OpenStep {
                    progress,
                    item_label,
                    ask: step.ask().cloned(),
                    reminders_ms: step.ask().map(|_| step.reminders_ms().into()).unwrap_or_default(),
                    ends: self.ended_by(list),
                    is_subrun: step.subrun().is_some(),
                    settled: failed.map(|failed| failed.settled).unwrap_or_default(),
                    repetition: Repetition {
                        round: failed.map_or(self.round, |failed| failed.round),
                        continues: failed.is_some(),
                        request: self.changed.get(&at).copied().unwrap_or(unchanged),
                    },
                    ..OpenStep::new(StepAddress::new(&at), kind, input, self.now.wall_ms)
                }))
            }
        };
        if is_over && let Current::Open(open) = &frame.current {
            let end = StepEnd::of(open, Ok(wait::output(&open.input, false).into()));
            self.ended(list, step, frame, end);
        }
    }

    /// Opens a step again whose run has completed although items in it failed: the run continues with these.
    fn run_again(&mut self, list: &StepList<'_>, step: &FlowStep, frame: &mut StepFrame, kept: KeptRun) {
        let KeptRun { at, run, input, wrote } = kept;
        let Some(step) = chosen(step, &StepAddress::new(&at)) else {
            frame.next += 1;
            return;
        };
        self.changes.push(StepChange::Started {
            at: at.clone(),
            kind: step.kind.clone(),
            input: Arc::clone(&input),
            item_label: list.label.clone(),
        });
        let request = self.changed.get(&at).copied().unwrap_or_default();
        frame.wrote = Some(Box::new(wrote));
        frame.current = Current::Open(Box::new(OpenStep {
            progress: Progress::Held,
            item_label: list.label.clone(),
            ask: step.ask().cloned(),
            reminders_ms: step.ask().map(|_| step.reminders_ms().into()).unwrap_or_default(),
            ends: self.ended_by(list),
            is_subrun: true,
            settled: run.settled,
            repetition: Repetition { round: run.round, continues: true, request },
            ..OpenStep::new(StepAddress::new(&at), step.kind.clone(), input, self.now.wall_ms)
        }));
    }

    /// What ends when a step of a list fails; none in a loop inside of a loop that stops, which the item around it decides.
    fn ended_by(&self, list: &StepList<'_>) -> Option<EndedPart> {
        match list.of.map(|foreach| foreach.failure_strategy) {
            None => Some(EndedPart::Run),
            Some(FailureStrategy::ContinueOnError) => Some(EndedPart::Item),
            Some(FailureStrategy::StopOnError) => (self.around.len() == 1).then_some(EndedPart::Run),
        }
    }

    /// The step that runs, by the filters, and what it is given; none when no step runs.
    fn choose(
        &mut self,
        step: &'p FlowStep,
        list: &StepList<'p>,
        frame: &StepFrame,
        scope: &Scope<'_>,
    ) -> Option<ChosenStep<'p>> {
        let mut chosen = Some(step);
        while let Some(step) = chosen {
            match step.filter.as_ref().map_or(Ok(true), |filter| filter.holds(scope, self.order_rules())) {
                Ok(true) => {
                    let opened = self.over(list, step, frame).map_or_else(|| self.open(step, list, scope), Err);
                    return Some(ChosenStep { step, opened });
                }
                Ok(false) => chosen = step.otherwise.as_deref(),
                Err(fault) => {
                    let fault = BeginFault::new("bad_condition", format!("its `filter` can't be judged: {fault}"));
                    return Some(ChosenStep { step, opened: Err(fault) });
                }
            }
        }
        None
    }

    /// What a step is given when it begins.
    fn open(&mut self, step: &FlowStep, list: &StepList<'_>, scope: &Scope<'_>) -> Result<Opened, BeginFault> {
        match &step.action {
            StepAction::Call(call) => self.call(call, scope),
            StepAction::React(react) => self.react(react, scope),
            StepAction::Foreach(foreach) => self.take_items(foreach, list.address(&step.name), scope),
            StepAction::Approval(approval) => self.approval(approval, scope),
            StepAction::Wait(wait) => self.wait(wait, scope),
            StepAction::Choose(choose) => self.case(choose, scope),
            StepAction::WaitForEvent(step) => self.wait_for_event(step, scope),
            StepAction::Form(form) => {
                let ttl_ms = form.ttl_ms;
                let expires_at_ms = ttl_ms.map(|ttl_ms| self.now.wall_ms.saturating_add_unsigned(ttl_ms));
                let progress = Progress::Asks(AskedFor::Form { expires_at_ms });
                Ok(Opened::Step { input: self.form(form, scope)?, progress })
            }
        }
    }

    /// Whether the budget of the run is spent, so that a step does not begin that asks no model. One that does is held when it is to be
    /// requested, and a choice leads to the steps of a case, which are asked about themselves.
    fn may_not_begin(&self, step: &FlowStep) -> bool {
        let is_asked = step.spends() || matches!(step.action, StepAction::Choose(_));
        self.is_over && !self.is_handling && !is_asked
    }

    /// Whether the time or the budget of an item is spent.
    fn over(&self, list: &StepList<'_>, step: &FlowStep, frame: &StepFrame) -> Option<BeginFault> {
        if frame.is_handling() {
            let is_spent = step.spends() && self.is_spent;
            return is_spent.then(|| BeginFault::new("budget", "the run's budget is spent".to_owned()));
        }
        let foreach = list.of?;
        if let Some(most) = foreach.item_timeout_ms
            && self.now.active_ms.saturating_sub(frame.began_active_ms) >= most
        {
            return Some(BeginFault::new("timeout", format!("the item's {most} ms are over")));
        }
        let counts = step.spends() || self.header.stops_when_spent();
        let budget = foreach.item_budget.as_ref().filter(|_| counts)?;
        let tokens = frame.spent.tokens.input.saturating_add(frame.spent.tokens.output);
        let over = budget.tokens.is_some_and(|most| tokens >= most)
            || budget.cost_usd.is_some_and(|most| frame.spent.cost_usd >= most);
        over.then(|| BeginFault::new("budget", "the item's budget is spent".to_owned()))
    }

    /// No step runs in the place of this one.
    fn leave_out(&mut self, list: &StepList<'_>, step: &FlowStep, frame: &mut StepFrame) {
        if list.of.is_none() {
            self.records.push(self.skipped(list, step));
        }
        frame.next += 1;
    }

    pub fn skipped(&self, list: &StepList<'_>, step: &FlowStep) -> StepRecord {
        StepRecord {
            finished_at_ms: None,
            ..StepRecord::new(list.address(&step.name), step.kind.clone(), StepStatus::Skipped, self.now.wall_ms)
        }
    }

    /// The open steps of an item that was cancelled count no longer among those that spend.
    pub fn no_longer_spends(&mut self, frame: &StepFrame) {
        let spending = spending(self.program, &frame.open());
        self.spending = self.spending.saturating_sub(spending);
        self.freed |= spending > 0;
    }

    /// Evaluates with these names. The moment is that of the event.
    pub fn with_scope<T>(&mut self, names: &[&Map<String, Value>], work: impl FnOnce(&mut Self, &Scope<'_>) -> T) -> T {
        let (header, now) = (Arc::clone(&self.header), rfc3339(self.now.wall_ms));
        let of_step = TemplateWork::of_step(&self.work);
        work(self, &scope(&header, names, &now, of_step))
    }

    /// How the values of the run are ordered.
    pub fn order_rules(&self) -> OrderRules<'p> {
        self.header.order_rules(&self.program.head, self.program.zone.as_ref())
    }

    /// Whether a condition of the workflow holds.
    ///
    /// # Errors
    /// Why it can't be judged.
    pub fn holds(&mut self, condition: &CompiledCondition) -> Result<bool, String> {
        let files = Arc::clone(&self.header.files);
        self.with_scope(&[files.names()], |advance, scope| {
            condition.holds(scope, advance.order_rules()).map_err(|fault| fault.0)
        })
    }
}

/// How many of these steps ask models and have started to.
fn spending(program: &FlowProgram, open: &[&OpenStep]) -> usize {
    let spends = |open: &&&OpenStep| {
        let has_started = !matches!(open.progress, Progress::Held | Progress::Asks(AskedFor::Approval(_)));
        has_started && program.step_at(&open.address).is_some_and(FlowStep::spends)
    };
    open.iter().filter(spends).count()
}

/// How many steps that ask models may be open at once. Without a budget all of them; with one, the cost of a step must be
/// known before the next begins, unless each item has a budget of its own.
fn may_spend(program: &FlowProgram, state: &StateHead) -> usize {
    if !budget::is_bound(program, state) {
        return usize::MAX;
    }
    let left = budget::left(program, state);
    let mut most = 1;
    program.each(&mut |step| {
        if let StepAction::Foreach(foreach) = &step.action
            && let Some(item) = &foreach.item_budget
        {
            let tokens = left.tokens.zip(item.tokens).map(|(left, item)| left / item.max(1));
            let dollars = left.cost_usd.zip(item.cost_usd).map(|(left, item)| whole(left / item));
            let fits = tokens.into_iter().chain(dollars).min();
            most = most.max(fits.and_then(|fits| usize::try_from(fits).ok()).unwrap_or(1));
        }
    });
    most
}

/// A number without its fraction; 0 for what is no number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::as_conversions, reason = "it is bounded")]
fn whole(number: f64) -> u64 {
    if number.is_finite() { number.clamp(0.0, 1e9) as u64 } else { 0 }
}
