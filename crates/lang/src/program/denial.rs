//! What a no to an approval does to the steps after it: those of its list, up to the next approval or the end.

use serde_json::Value;

use super::condition::CompiledCondition;

/// The key of what a human decided.
pub const DECIDED: &str = "__approved";

/// A step of a list, or one that takes its place when its filter does not hold.
#[derive(Debug, Clone)]
pub struct ChainLink<'l> {
    /// Whether it is an approval.
    pub asks: bool,
    /// Its filter.
    pub filter: Option<&'l CompiledCondition>,
    /// The keys that it writes, those of the steps inside it too.
    pub writes: Vec<String>,
}

/// By which rule a no to an approval that says nothing of it stops the steps: a run keeps the one that it began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenialRule {
    /// The letters of later steps decide it.
    Letters,
    /// A filter that reads the decision holds a step, also where something else may make it hold.
    Loose,
    /// Only a filter that what was decided makes fail holds a step.
    Firm,
}

/// What a step of a list is to an approval before it. A list of links is the step, and those in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepAfter {
    /// An approval that asks in any case: the earlier decision is replaced by its own.
    Asks,
    /// An approval that its filter may skip: then the earlier decision is still the last one.
    MayAsk,
    /// Another step, by its filter.
    Step(Hold),
    /// A step that may run after a no, and writes a decision of its own: later filters read that one.
    Decides,
}

/// How far the filter of a step makes it depend on what was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It has none, or one that does not read the decision.
    None,
    /// Its filter reads the decision, and holds after a no as after a yes.
    Idle,
    /// Its filter may hold after a no as well as after a yes: something else decides that.
    Loose,
    /// Its filter holds after a yes only, or after a no only.
    Firm,
}

/// What is known where an approval asks: the values that its own filter demands.
pub type DemandedValues = [(Vec<String>, Value)];

/// How a filter depends on what was decided.
pub fn hold(filter: Option<&CompiledCondition>, demanded: &DemandedValues) -> Hold {
    let Some(filter) = filter.filter(|filter| filter.reads(&[DECIDED])) else { return Hold::None };
    match (outcome(filter, demanded, false), outcome(filter, demanded, true)) {
        (Some(true), Some(true)) => Hold::Idle,
        (Some(false), _) | (_, Some(false)) => Hold::Firm,
        _ => Hold::Loose,
    }
}

/// Whether a filter holds after a decision; none when something else decides that.
fn outcome(filter: &CompiledCondition, demanded: &DemandedValues, decided: bool) -> Option<bool> {
    filter.outcome(&|path| match path {
        [name] if name == DECIDED => Some(Value::Bool(decided)),
        _ => demanded.iter().find(|(known, _)| known == path).map(|(_, value)| value.clone()),
    })
}

/// Whether what was decided alone says whether a filter holds: what takes the place of its step runs after the other
/// decision only.
fn is_exact(filter: Option<&CompiledCondition>, demanded: &DemandedValues) -> bool {
    filter.filter(|filter| filter.reads(&[DECIDED])).is_some_and(|filter| {
        let outcomes = (outcome(filter, demanded, false), outcome(filter, demanded, true));
        matches!(outcomes, (Some(false), Some(true)) | (Some(true), Some(false)))
    })
}

/// How far a step and those in its place depend on what was decided. One that also runs where something else made the filter
/// of the step before it fail is reached after a no. The number of the link that says it comes with it.
fn hold_of_chain(chain: &[ChainLink<'_>], demanded: &DemandedValues, rule: DenialRule) -> (Hold, usize) {
    let mut is_decided = false;
    let mut of_first = None;
    for (number, link) in chain.iter().enumerate() {
        let hold = hold(link.filter, demanded);
        let is_held = hold == Hold::Firm || rule == DenialRule::Loose && hold == Hold::Loose;
        if !is_decided && !is_held {
            return (hold, number);
        }
        of_first = of_first.or(Some(hold));
        is_decided |= is_exact(link.filter, demanded);
    }
    (of_first.unwrap_or(Hold::None), 0)
}

/// The steps after an approval, one after the other, as they are after a no.
#[derive(Debug, Clone)]
pub struct StepsAfterNo {
    /// The values that are known: those that the filter of the approval demands, until a step writes another one.
    known: Vec<(Vec<String>, Value)>,
    rule: DenialRule,
}

impl StepsAfterNo {
    /// Those after an approval with this filter.
    pub fn new(filter: Option<&CompiledCondition>, rule: DenialRule) -> Self {
        Self { known: filter.map(CompiledCondition::equalities).unwrap_or_default(), rule }
    }

    /// What the next step is to the approval.
    pub fn next(&mut self, chain: &[ChainLink<'_>]) -> StepAfter {
        let after = self.after(chain);
        if self.rule == DenialRule::Loose {
            return after;
        }
        let written = self.written_after_no(chain);
        self.known.retain(|(path, _)| path.first().is_none_or(|root| !written.contains(&root.as_str())));
        let decides = chain.iter().any(|link| !link.asks) && written.contains(&DECIDED);
        match after {
            StepAfter::Step(Hold::Firm) if decides => StepAfter::Decides,
            after => after,
        }
    }

    /// The number of the link of the next step that says how far it depends on what was decided.
    pub fn deciding_link(&self, chain: &[ChainLink<'_>]) -> usize {
        hold_of_chain(chain, &self.known, self.rule).1
    }

    fn after(&self, chain: &[ChainLink<'_>]) -> StepAfter {
        let only_asks = chain.iter().all(|link| link.asks);
        if only_asks && chain.last().is_some_and(|link| link.filter.is_none()) {
            return StepAfter::Asks;
        }
        match hold_of_chain(chain, &self.known, self.rule).0 {
            Hold::None | Hold::Idle if only_asks => StepAfter::MayAsk,
            Hold::Loose if only_asks && self.rule == DenialRule::Firm => StepAfter::MayAsk,
            hold => StepAfter::Step(hold),
        }
    }

    /// The keys that a step, or one in its place, may write after a no. An approval writes the decision about itself.
    fn written_after_no<'c>(&self, chain: &'c [ChainLink<'_>]) -> Vec<&'c str> {
        let mut written = Vec::new();
        for link in chain {
            let holds = link.filter.map_or(Some(true), |filter| outcome(filter, &self.known, false));
            if holds != Some(false) {
                let keys = link.writes.iter().map(String::as_str);
                written.extend(keys.filter(|key| !link.asks || *key != DECIDED));
            }
            if holds == Some(true) {
                break;
            }
        }
        written
    }
}

/// Whether the steps after an approval that says nothing of a no run after one: each of them is held by what was decided.
pub fn runs_on(mut steps: StepsAfterNo, later: &[Vec<ChainLink<'_>>]) -> bool {
    let (mut is_held, mut may_ask) = (false, false);
    for chain in later {
        match steps.next(chain) {
            StepAfter::Asks => break,
            StepAfter::MayAsk => may_ask = true,
            // What only follows a further approval says nothing of this one.
            StepAfter::Step(Hold::Firm) => is_held |= !may_ask,
            StepAfter::Step(Hold::Loose) if steps.rule == DenialRule::Loose => is_held |= !may_ask,
            StepAfter::Step(_) | StepAfter::Decides => return false,
        }
    }
    is_held
}
