//! The turn of a request in the `rate` of its model, which all processes of a store share. The store keeps from when on the rate has room
//! again, and each request moves that on by the time in which the rate gives what it takes: so requests are spread evenly, in the order
//! in which they came, and whoever is first in the line of its process knows how long to wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::drive::clock;
use crate::journal::ledger::RateShare;
use crate::journal::{Journal, StoreError};
use loopctl_lang::language::call_limits::CallRate;
use loopctl_lang::language::model_rate::ModelRate;

const SECOND_US: i64 = 1_000_000;
/// What was not used in the last second may be caught up, and a request is sent some time after its turn. With a second for each in a
/// minute, no 60 seconds have more than the rate, wherever they begin.
const MINUTE_US: i64 = 62 * SECOND_US;
/// With 50 ms for the way of a call from its turn to its server, no second has more than a rate of seconds: nothing is caught up there.
const SPACED_SECOND_US: i64 = 1_050_000;
/// The longest time that one request takes of a rate.
const LONGEST_SHARE_US: i64 = 3_600 * SECOND_US;
/// What is further ahead is of a clock that was wrong: a server asks for five minutes at most.
const FAR_US: i64 = 600 * SECOND_US;

/// A rate of requests to a model, or of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GateRate {
    Model(ModelRate),
    Calls(CallRate),
}

impl GateRate {
    /// How much of the time that was not used may be caught up.
    fn caught_up_us(self) -> i64 {
        match self {
            Self::Calls(CallRate { per_second: Some(_), .. }) => 0,
            Self::Model(_) | Self::Calls(_) => SECOND_US,
        }
    }
}

/// What the last request that was let in took of a rate.
#[derive(Debug, Clone)]
pub(super) struct LastShare {
    at: Instant,
    share: RateShare,
    rate: GateRate,
    tokens: u64,
}

impl LastShare {
    /// By which rate.
    pub fn is_by(&self, rate: GateRate) -> bool {
        self.rate == rate
    }

    /// The rate is another one now: what is left of the time is as long as it would be by this one, if that is less.
    pub fn judge_by(self, journal: &Arc<dyn Journal>, rate: GateRate) {
        let (requests_us, tokens_us) = times_us(rate, self.tokens);
        let passed_us = i64::try_from(clock::elapsed(self.at).as_micros()).unwrap_or(i64::MAX);
        let over = |before_us: i64, now_us: i64| {
            let left = i128::from(before_us.saturating_sub(passed_us).max(0));
            let kept = left.saturating_mul(i128::from(now_us)) / i128::from(before_us.max(1));
            i64::try_from(left.saturating_sub(kept).max(0)).unwrap_or_default()
        };
        let over = (over(self.share.requests_us, requests_us), over(self.share.tokens_us, tokens_us));
        give_back(journal, &self.share, over.0, over.1);
    }
}

/// What a request has taken of the rate of its model. Dropping it gives it back, unless the request was sent.
pub(super) struct RateTurn {
    journal: Arc<dyn Journal>,
    share: RateShare,
    rate: GateRate,
    tokens: u64,
    /// Until the request may be sent.
    pub wait: Duration,
    is_sent: bool,
}

impl RateTurn {
    /// Takes the next turn for a request; `tokens`: the most that it may use.
    ///
    /// # Errors
    /// That of the store.
    pub async fn take(
        journal: &Arc<dyn Journal>,
        account: String,
        rate: GateRate,
        tokens: u64,
    ) -> Result<Self, StoreError> {
        let (requests_us, tokens_us) = times_us(rate, tokens);
        let far_us = FAR_US.saturating_add(requests_us.max(tokens_us).saturating_mul(10));
        let share = RateShare { account, now_us: now_us(), requests_us, tokens_us, hold_us: 0, far_us };
        let ahead_us = journal.pace(share.clone()).await?;
        let wait = Duration::from_micros(u64::try_from(ahead_us.saturating_sub(rate.caught_up_us())).unwrap_or(0));
        Ok(Self { journal: Arc::clone(journal), share, rate, tokens, wait, is_sent: false })
    }

    /// Lets nobody in for this time, in any process.
    pub fn hold(journal: &Arc<dyn Journal>, account: String, time: Duration) {
        let hold_us = i64::try_from(time.as_micros()).unwrap_or(FAR_US).min(FAR_US / 2).saturating_add(SECOND_US);
        let share = RateShare { account, now_us: now_us(), requests_us: 0, tokens_us: 0, hold_us, far_us: FAR_US };
        drop(journal.pace(share));
    }

    /// The request is sent: what it took is used.
    pub fn sent(&mut self) {
        self.is_sent = true;
    }

    /// The same, to be kept.
    pub fn last(&self) -> LastShare {
        LastShare { at: clock::instant(), share: self.share.clone(), rate: self.rate, tokens: self.tokens }
    }

    /// What the request used is known: the rest of what it took is given back. Returns whether there is such a rest.
    pub fn settle(mut self, used: u64) -> bool {
        self.is_sent = true;
        let (_, used_us) = times_us(self.rate, used);
        let rest_us = self.share.tokens_us.saturating_sub(used_us);
        give_back(&self.journal, &self.share, 0, rest_us);
        rest_us > 0
    }
}

impl Drop for RateTurn {
    fn drop(&mut self) {
        if !self.is_sent {
            give_back(&self.journal, &self.share, self.share.requests_us, self.share.tokens_us);
        }
    }
}

/// Gives time back. Nobody waits for it: what is not given back passes.
fn give_back(journal: &Arc<dyn Journal>, share: &RateShare, requests_us: i64, tokens_us: i64) {
    if requests_us != 0 || tokens_us != 0 {
        let (requests_us, tokens_us) = (requests_us.saturating_neg(), tokens_us.saturating_neg());
        drop(journal.pace(RateShare { now_us: now_us(), requests_us, tokens_us, ..share.clone() }));
    }
}

fn now_us() -> i64 {
    clock::wall_ms().saturating_mul(1_000)
}

/// The times in which a rate gives a request, and its tokens.
fn times_us(rate: GateRate, tokens: u64) -> (i64, i64) {
    match rate {
        GateRate::Model(ModelRate { requests_per_minute, tokens_per_minute }) => {
            let of = |amount, rate: Option<u64>| rate.map_or(0, |rate| share_us(amount, MINUTE_US, rate));
            (of(1, requests_per_minute), of(tokens, tokens_per_minute))
        }
        GateRate::Calls(CallRate { per_second, per_minute }) => {
            let seconds = per_second.map(|rate| share_us(1, SPACED_SECOND_US, rate.into()));
            let minutes = per_minute.map(|rate| share_us(1, MINUTE_US, rate.into()));
            (seconds.max(minutes).unwrap_or(0), 0)
        }
    }
}

/// The time in which a rate gives this amount.
fn share_us(amount: u64, time_us: i64, most: u64) -> i64 {
    let time_us = u128::from(time_us.unsigned_abs());
    let time_us = (u128::from(amount).saturating_mul(time_us)).div_ceil(u128::from(most.max(1)));
    i64::try_from(time_us).unwrap_or(LONGEST_SHARE_US).min(LONGEST_SHARE_US)
}
