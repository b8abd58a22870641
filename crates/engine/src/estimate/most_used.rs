//! What a run can use at most: figures that may have no bound, and how they are added.

use schemars::JsonSchema;
use serde::Serialize;

use crate::budget;
use crate::event::Tokens;
use loopctl_lang::language::project::Price;
use loopctl_lang::language::react::Budget;

/// The most that can be used. `null` is a figure without a bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct MostUsed {
    /// Requests to models that are paid for: those that gave a reply, and those whose reply was lost or was not taken.
    pub model_calls: Option<u64>,
    /// Requests of tools, each attempt of one.
    pub tool_calls: Option<u64>,
    /// Tokens that models read.
    pub input_tokens: Option<u64>,
    /// Tokens that models write.
    pub output_tokens: Option<u64>,
    /// Both together: a budget may bound the sum alone.
    pub tokens: Option<u64>,
    /// US dollars, by the prices of the project.
    pub cost_usd: Option<f64>,
}

impl MostUsed {
    /// Nothing.
    pub const NOTHING: Self = Self {
        model_calls: Some(0),
        tool_calls: Some(0),
        input_tokens: Some(0),
        output_tokens: Some(0),
        tokens: Some(0),
        cost_usd: Some(0.0),
    };

    /// Calls of a tool.
    pub(super) fn tool_calls(calls: u64) -> Self {
        Self { tool_calls: Some(calls), ..Self::NOTHING }
    }

    /// A request to a model.
    pub(super) fn request(input: Option<u64>, output: u64, price: Option<Price>) -> Self {
        // What the cache of a provider holds may be dearer or cheaper: the dearest price counts.
        let dearest =
            price.map(|price| Price { input: dearest_input(price), cached_input: None, cache_write: None, ..price });
        let cost = |price| Some(budget::cost_usd(Tokens { input: input?, output, ..Tokens::default() }, price));
        Self {
            model_calls: Some(1),
            tool_calls: Some(0),
            input_tokens: input,
            output_tokens: Some(output),
            tokens: input.map(|input| input.saturating_add(output)),
            cost_usd: dearest.and_then(cost),
        }
    }

    /// Both.
    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        self.with(other, u64::saturating_add, |one, other| one + other)
    }

    /// The larger figure of each.
    #[must_use]
    pub(super) fn or(self, other: Self) -> Self {
        self.with(other, u64::max, f64::max)
    }

    fn with(self, other: Self, whole: fn(u64, u64) -> u64, dollars: fn(f64, f64) -> f64) -> Self {
        let both = |one: Option<u64>, other: Option<u64>| Some(whole(one?, other?));
        Self {
            model_calls: both(self.model_calls, other.model_calls),
            tool_calls: both(self.tool_calls, other.tool_calls),
            input_tokens: both(self.input_tokens, other.input_tokens),
            output_tokens: both(self.output_tokens, other.output_tokens),
            tokens: both(self.tokens, other.tokens),
            cost_usd: self.cost_usd.zip(other.cost_usd).map(|(one, other)| dollars(one, other)),
        }
    }

    /// This many times the same.
    #[must_use]
    pub(super) fn times(self, times: u64) -> Self {
        // No times of what has no bound is nothing.
        if times == 0 {
            return Self::NOTHING;
        }
        let all = |one: Option<u64>| one.map(|one| one.saturating_mul(times));
        Self {
            model_calls: all(self.model_calls),
            tool_calls: all(self.tool_calls),
            input_tokens: all(self.input_tokens),
            output_tokens: all(self.output_tokens),
            tokens: all(self.tokens),
            cost_usd: self.cost_usd.map(|cost| cost * number(times)),
        }
    }

    /// The same for `times` requests, in which the models read `input` tokens together.
    pub(super) fn requests(times: u64, input: Option<u64>, output: u64, price: Option<Price>) -> Self {
        if times == 0 {
            return Self::NOTHING;
        }
        Self { model_calls: Some(times), ..Self::request(input, output.saturating_mul(times), price) }
    }

    /// The smaller figure of each; one without a bound is larger than every other.
    #[must_use]
    pub(super) fn least(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| [one, other].into_iter().flatten().min();
        Self {
            model_calls: least(self.model_calls, other.model_calls),
            tool_calls: least(self.tool_calls, other.tool_calls),
            input_tokens: least(self.input_tokens, other.input_tokens),
            output_tokens: least(self.output_tokens, other.output_tokens),
            tokens: least(self.tokens, other.tokens),
            cost_usd: [self.cost_usd, other.cost_usd].into_iter().flatten().reduce(f64::min),
        }
    }

    /// The figures that can be said: a sum that is too large to be counted is no bound. Also gives whether there was one.
    #[must_use]
    pub(super) fn countable(self) -> (Self, bool) {
        let mut is_cut = false;
        let mut whole = |figure: Option<u64>| {
            is_cut |= figure == Some(u64::MAX);
            figure.filter(|figure| *figure < u64::MAX)
        };
        let counted = Self {
            model_calls: whole(self.model_calls),
            tool_calls: whole(self.tool_calls),
            input_tokens: whole(self.input_tokens),
            output_tokens: whole(self.output_tokens),
            tokens: whole(self.tokens),
            cost_usd: self.cost_usd.filter(|cost| cost.is_finite()),
        };
        (counted, is_cut || self.cost_usd.is_some() && counted.cost_usd.is_none())
    }

    /// The same within a budget. What is under way when it is spent ends: `over` is the most of that.
    #[must_use]
    pub(super) fn within(self, budget: Option<&Budget>, over: Self) -> Self {
        let Some(budget) = budget else { return self };
        let tokens = budget.tokens.and_then(|most| Some(most.saturating_add(over.tokens?)));
        let least = |figure: Option<u64>| [figure, tokens].into_iter().flatten().min();
        let cost = budget.cost_usd.and_then(|most| Some(most + over.cost_usd?));
        Self {
            input_tokens: least(self.input_tokens),
            output_tokens: least(self.output_tokens),
            tokens: least(self.tokens),
            cost_usd: [self.cost_usd, cost].into_iter().flatten().reduce(f64::min),
            ..self
        }
    }
}

/// The dearest price of a million tokens that a model reads.
pub(super) fn dearest_input(price: Price) -> f64 {
    [price.cached_input, price.cache_write].into_iter().flatten().fold(price.input, f64::max)
}

/// A kind of call: how often it can be made, and what one uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallKind {
    pub most_calls: u64,
    pub each: MostUsed,
}

/// The most that this many calls of these kinds use: those first that use the most, for each figure.
pub(super) fn dearest(calls: u64, kinds: &[CallKind]) -> MostUsed {
    let whole = |figure: fn(&MostUsed) -> Option<u64>| {
        let mut sorted: Vec<(Option<u64>, u64)> =
            kinds.iter().map(|kind| (figure(&kind.each), kind.most_calls)).collect();
        // What has no bound comes first.
        sorted.sort_by_key(|(used, _)| std::cmp::Reverse(used.map_or((1, 0), |used| (0, used))));
        let (mut left, mut sum) = (calls, 0_u64);
        for (used, most) in sorted {
            let taken = most.min(left);
            left -= taken;
            if taken > 0 {
                sum = sum.saturating_add(used?.saturating_mul(taken));
            }
        }
        Some(sum)
    };
    let cost = || {
        let mut sorted: Vec<(Option<f64>, u64)> =
            kinds.iter().map(|kind| (kind.each.cost_usd, kind.most_calls)).collect();
        let order = |used: Option<f64>| used.unwrap_or(f64::INFINITY);
        sorted.sort_by(|(one, _), (other, _)| order(*other).total_cmp(&order(*one)));
        let (mut left, mut sum) = (calls, 0.0);
        for (used, most) in sorted {
            let taken = most.min(left);
            left -= taken;
            if taken > 0 {
                sum += used? * number(taken);
            }
        }
        Some(sum)
    };
    MostUsed {
        model_calls: whole(|used| used.model_calls),
        tool_calls: whole(|used| used.tool_calls),
        input_tokens: whole(|used| used.input_tokens),
        output_tokens: whole(|used| used.output_tokens),
        tokens: whole(|used| used.tokens),
        cost_usd: cost(),
    }
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "a cost is a number with a fraction anyway")]
fn number(times: u64) -> f64 {
    times as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input: 1.0, output: 2.0, cached_input: None, cache_write: Some(3.0) };

    #[test]
    fn a_request_costs_the_dearest_price_and_without_one_nothing_is_known() {
        let priced = MostUsed::request(Some(1_000_000), 500_000, Some(PRICE));
        assert_eq!((priced.tokens, priced.cost_usd), (Some(1_500_000), Some(4.0)));
        assert_eq!(MostUsed::request(Some(1), 1, None).cost_usd, None);
        let unknown = MostUsed::request(None, 7, Some(PRICE));
        assert_eq!((unknown.output_tokens, unknown.tokens, unknown.cost_usd), (Some(7), None, None));
    }

    #[test]
    fn no_bound_stays_none_and_no_times_of_it_is_nothing() {
        let unknown = MostUsed::request(None, 7, Some(PRICE));
        assert_eq!(unknown.and(MostUsed::NOTHING), unknown);
        assert_eq!(unknown.or(MostUsed::tool_calls(2)).input_tokens, None);
        assert_eq!(unknown.times(0), MostUsed::NOTHING);
        assert_eq!(unknown.times(3).output_tokens, Some(21));
    }

    #[test]
    fn the_dearest_calls_are_taken_first_and_each_as_often_as_it_can_be_made() {
        let kind =
            |most_calls, cost| CallKind { most_calls, each: MostUsed { cost_usd: cost, ..MostUsed::tool_calls(1) } };
        let kinds = [kind(10, Some(1.0)), kind(2, Some(5.0))];
        assert_eq!(dearest(4, &kinds).cost_usd, Some(12.0));
        assert_eq!((dearest(1, &kinds).cost_usd, dearest(100, &kinds).cost_usd), (Some(5.0), Some(20.0)));
        assert_eq!(dearest(100, &kinds).tool_calls, Some(12));
        let unbounded = [kind(10, Some(1.0)), kind(1, None)];
        assert_eq!((dearest(4, &unbounded).cost_usd, dearest(0, &unbounded).cost_usd), (None, Some(0.0)));
        assert_eq!(dearest(4, &[kind(0, None)]).cost_usd, Some(0.0));
    }

    #[test]
    fn a_sum_that_is_too_large_to_be_counted_is_no_bound() {
        let large = MostUsed::request(Some(u64::MAX - 1), 7, Some(Price { input: 1e308, ..PRICE })).times(3);
        let (said, is_cut) = large.countable();
        assert!(is_cut);
        assert_eq!((said.model_calls, said.input_tokens, said.tokens, said.cost_usd), (Some(3), None, None, None));
        assert_eq!(said.countable(), (said, false));
        assert_eq!(said.least(MostUsed::NOTHING), MostUsed::NOTHING);
    }

    #[test]
    fn a_budget_bounds_the_sum_and_what_is_under_way_ends() {
        let used = MostUsed::request(Some(900), 100, Some(PRICE)).times(10);
        let budget = Budget { tokens: Some(2_000), cost_usd: None, warn_at: 0.8 };
        let capped = used.within(Some(&budget), MostUsed::request(Some(900), 100, Some(PRICE)));
        assert_eq!((capped.input_tokens, capped.output_tokens, capped.tokens), (Some(3_000), Some(1_000), Some(3_000)));
        assert_eq!(capped.cost_usd, used.cost_usd);
        let unknown = used.within(Some(&budget), MostUsed::request(None, 1, None));
        assert_eq!(unknown, used, "a budget bounds nothing where one request has no bound");
    }
}
