//! The ledger: what was spent in the accounts of spending limits, and what calls under way may still spend.
//!
//! What a call may spend at most is reserved before it is made, and settled with what it used. A reservation is one of a lease: when the
//! lease is over, it counts no more, and what it held is given back when the room is needed.

use serde::Serialize;

/// Tokens, and money in billionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SpentAmount {
    /// Tokens, those read and those written together.
    pub tokens: i64,
    /// Billionths of a US dollar.
    pub usd_nanos: i64,
}

impl SpentAmount {
    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            usd_nanos: self.usd_nanos.saturating_add(other.usd_nanos),
        }
    }

    /// The difference, at least 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens).max(0),
            usd_nanos: self.usd_nanos.saturating_sub(other.usd_nanos).max(0),
        }
    }
}

/// The most that may be spent in an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MostSpent {
    /// Tokens.
    pub tokens: Option<i64>,
    /// Billionths of a US dollar.
    pub usd_nanos: Option<i64>,
}

impl MostSpent {
    /// Whether an amount is within it.
    pub fn holds(self, amount: SpentAmount) -> bool {
        self.tokens.is_none_or(|most| amount.tokens <= most)
            && self.usd_nanos.is_none_or(|most| amount.usd_nanos <= most)
    }
}

/// The time that an account counts, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountTime {
    /// The first moment of the day or month; 0 for a rolling window.
    pub from_ms: i64,
    /// The first moment after it; none for a rolling window.
    pub until_ms: Option<i64>,
    /// The parts of a rolling window.
    pub rolling: Option<RollingParts>,
}

/// The parts of a rolling window, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RollingParts {
    /// Parts that began at this moment or before have left the window.
    pub gone_ms: i64,
    /// The first moment of the part in which what is spent now counts.
    pub now_ms: i64,
    /// From the first moment of a part until it has left the window.
    pub stays_ms: i64,
}

impl AccountTime {
    /// Whether what an account holds that counted from this moment counts still. A day or month that is further ahead than the next one
    /// is of a clock that was wrong.
    pub(super) fn continues(self, from_ms: i64) -> bool {
        let is_near = |until_ms: i64| from_ms < until_ms.saturating_mul(2).saturating_sub(self.from_ms);
        from_ms >= self.from_ms && self.until_ms.is_none_or(is_near)
    }
}

impl RollingParts {
    /// A part that began after this moment is of a clock that was wrong.
    pub(super) fn last_ms(self) -> i64 {
        self.now_ms.saturating_add(self.stays_ms)
    }
}

/// The most that is settled in an account, and in a part of one: what passes it is cut, as a sum must stay a number of the store.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) const MOST_SETTLED: i64 = 4_000_000_000_000_000_000;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) const MOST_OF_PART: i64 = 50_000_000_000_000_000;

/// What a call may spend at most, in one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The account: see `AccountName`.
    pub account: String,
    /// Its own name: no other reservation of the account has it.
    pub id: String,
    /// The run that makes the call.
    pub run_id: String,
    /// The lease of its driver.
    pub fence: u64,
    /// What it may spend.
    pub amount: SpentAmount,
    /// The most of the account.
    pub most: MostSpent,
    /// The time that it counts in.
    pub time: AccountTime,
}

/// The outcome of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserving {
    /// It is reserved.
    Reserved,
    /// There is no room for it.
    Full(AccountBalance),
}

/// What an account holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountBalance {
    /// What was spent.
    pub settled: SpentAmount,
    /// What calls under way may spend.
    pub reserved: SpentAmount,
    /// When the first part of a rolling window leaves it.
    pub frees_at_ms: Option<i64>,
}

/// What a call used: its reservation is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The account.
    pub account: String,
    /// The reservation.
    pub id: String,
    /// What was used.
    pub used: SpentAmount,
    /// The time that it counts in.
    pub time: AccountTime,
    /// From which amount on a warning is due; none where it is not given for this.
    pub warn_at: MostSpent,
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
    /// Before this moment, a warning was one of an earlier window.
    pub warned_since_ms: i64,
}

impl Settlement {
    /// Whether a warning is due at this amount.
    pub(super) fn is_warned_at(&self, settled: SpentAmount) -> bool {
        self.warn_at.tokens.is_some_and(|at| settled.tokens >= at)
            || self.warn_at.usd_nanos.is_some_and(|at| settled.usd_nanos >= at)
    }
}

/// What a request to a model takes of the rate of that model, as the time in which the rate gives as much. The store keeps from when on
/// the rate has room again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateShare {
    /// The account: that of a model.
    pub account: String,
    /// Now, in microseconds since 1970. A store that several machines share goes by its own clock.
    pub now_us: i64,
    /// The time in which the rate gives the request, in microseconds; below 0 it is given back.
    pub requests_us: i64,
    /// The same of the rate of tokens.
    pub tokens_us: i64,
    /// For how long from now on there is no room, whatever was taken.
    pub hold_us: i64,
    /// What is further ahead of now is of a clock that was wrong.
    pub far_us: i64,
}

/// An account as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerAccount {
    /// Its name.
    pub account: String,
    /// The first moment of its day or month, in milliseconds since 1970; none for a rolling window.
    pub from_ms: Option<i64>,
    /// The first moment after that.
    pub until_ms: Option<i64>,
    /// What it holds.
    pub balance: AccountBalance,
    /// The most that may be spent in it, when a call was last reserved.
    pub most: MostSpent,
}

impl LedgerAccount {
    /// The share of it that is spent or reserved: of its tokens or its money, whichever is more.
    pub fn used(&self) -> f64 {
        let held = self.balance.settled.plus(self.balance.reserved);
        let tokens = self.most.tokens.map(|most| share(held.tokens, most));
        let money = self.most.usd_nanos.map(|most| share(held.usd_nanos, most));
        tokens.into_iter().chain(money).fold(0.0, f64::max)
    }
}

/// Of a limit of 0, all is used.
fn share(part: i64, most: i64) -> f64 {
    if most > 0 { number(part) / number(most) } else { 1.0 }
}

/// An amount, to be compared with another one.
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "no amount has 2^53 parts")]
pub fn number(amount: i64) -> f64 {
    amount as f64
}

/// The most accounts of a list.
pub const MOST_LEDGER_ACCOUNTS: usize = 1_000;
