//! The ledger in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

use super::MemoryJournal;
use crate::journal::ledger::{
    AccountBalance, LedgerAccount, MOST_LEDGER_ACCOUNTS, MostSpent, RateShare, Reservation, Reserving, RollingParts,
    Settlement, SpentAmount,
};

/// A warning that is further ahead is of a clock that was wrong.
const DAY_MS: i64 = 86_400_000;

/// The accounts, by their names.
#[derive(Debug, Default)]
pub(super) struct KnownLedger {
    accounts: BTreeMap<String, KnownAccount>,
    /// From when on the rates of models have room again.
    rates: BTreeMap<String, RateTimes>,
}

/// From when on a rate has room for requests and for tokens, in microseconds since 1970.
#[derive(Debug, Default)]
struct RateTimes {
    requests_us: i64,
    tokens_us: i64,
}

#[derive(Debug, Default)]
struct KnownAccount {
    from_ms: i64,
    until_ms: Option<i64>,
    /// From the first moment of a part of a rolling window until it has left; none for a day or month.
    stays_ms: Option<i64>,
    settled: SpentAmount,
    most: MostSpent,
    warned_ms: Option<i64>,
    /// What was spent in the parts of a rolling window.
    parts: BTreeMap<i64, SpentAmount>,
    open: HashMap<String, OpenReservation>,
}

#[derive(Debug)]
struct OpenReservation {
    run_id: String,
    fence: u64,
    amount: SpentAmount,
}

impl KnownAccount {
    fn reserved(&self) -> SpentAmount {
        self.open.values().fold(SpentAmount::default(), |sum, open| sum.plus(open.amount))
    }

    fn drop_parts(&mut self, rolling: RollingParts) {
        let settled = &mut self.settled;
        self.parts.retain(|began_ms, amount| {
            let stays = (rolling.gone_ms + 1..=rolling.last_ms()).contains(began_ms);
            if !stays {
                *settled = settled.minus(*amount);
            }
            stays
        });
    }

    fn balance(&self) -> AccountBalance {
        let first = self.parts.first_key_value().zip(self.stays_ms);
        let frees_at_ms = first.map(|((began_ms, _), stays_ms)| began_ms.saturating_add(stays_ms));
        AccountBalance { settled: self.settled, reserved: self.reserved(), frees_at_ms }
    }
}

impl KnownLedger {
    /// `is_held`: whether a run has this lease.
    pub(super) fn reserve(&mut self, new: Reservation, is_held: impl Fn(&str, u64) -> bool) -> Reserving {
        let account = self.accounts.entry(new.account).or_default();
        if !new.time.continues(account.from_ms) || account.until_ms.is_none() {
            account.settled = match new.time.rolling {
                Some(_) => account.settled,
                None => SpentAmount::default(),
            };
            (account.from_ms, account.until_ms) = (new.time.from_ms, new.time.until_ms);
        }
        account.most = new.most;
        account.stays_ms = new.time.rolling.map(|rolling| rolling.stays_ms);
        if let Some(rolling) = new.time.rolling {
            account.drop_parts(rolling);
        }
        account.open.retain(|_, open| is_held(&open.run_id, open.fence));
        let balance = account.balance();
        if !new.most.holds(balance.settled.plus(balance.reserved).plus(new.amount)) {
            return Reserving::Full(balance);
        }
        account.open.insert(new.id, OpenReservation { run_id: new.run_id, fence: new.fence, amount: new.amount });
        Reserving::Reserved
    }

    /// Returns whether a warning is due that was not given.
    pub(super) fn settle(&mut self, settlement: &Settlement) -> bool {
        let Some(account) = self.accounts.get_mut(&settlement.account) else { return false };
        if account.open.remove(&settlement.id).is_none() {
            return false;
        }
        account.settled = account.settled.plus(settlement.used);
        if let Some(rolling) = settlement.time.rolling {
            let part = account.parts.entry(rolling.now_ms).or_default();
            *part = part.plus(settlement.used);
        }
        let valid = settlement.warned_since_ms..=settlement.now_ms.saturating_add(DAY_MS);
        let is_new = account.warned_ms.is_none_or(|warned_ms| !valid.contains(&warned_ms));
        let is_due = is_new && settlement.is_warned_at(account.settled);
        if is_due {
            account.warned_ms = Some(settlement.now_ms);
        }
        is_due
    }

    pub(super) fn pace(&mut self, share: RateShare) -> i64 {
        let RateShare { account, now_us, requests_us, tokens_us, hold_us, far_us } = share;
        let times = self.rates.entry(account).or_default();
        let (free_us, last_us) = (now_us.saturating_add(hold_us), now_us.saturating_add(far_us));
        let begin = |known_us: i64| if known_us > last_us { free_us } else { known_us.max(free_us) };
        let (requests, tokens) = (begin(times.requests_us), begin(times.tokens_us));
        times.requests_us = requests.saturating_add(requests_us);
        times.tokens_us = tokens.saturating_add(tokens_us);
        requests.max(tokens).saturating_sub(now_us)
    }

    pub(super) fn accounts(&self, now_ms: i64, is_held: impl Fn(&str, u64) -> bool) -> Vec<LedgerAccount> {
        // An account without a time is none of a spending limit.
        let is_limit =
            |(_, account): &(&String, &KnownAccount)| account.until_ms.is_some() || account.stays_ms.is_some();
        let listed = self.accounts.iter().filter(is_limit).map(|(name, account)| {
            let open = account.open.values().filter(|open| is_held(&open.run_id, open.fence));
            let reserved = open.fold(SpentAmount::default(), |sum, open| sum.plus(open.amount));
            // Also one of a clock that was ahead.
            let is_over = account.until_ms.is_some_and(|until_ms| {
                until_ms <= now_ms || account.from_ms.saturating_sub(now_ms) > until_ms.saturating_sub(account.from_ms)
            });
            let settled = match account.stays_ms {
                Some(stays_ms) => {
                    let first_ms = now_ms.saturating_sub(stays_ms).saturating_add(1);
                    let parts = account.parts.range(first_ms..=now_ms.saturating_add(stays_ms));
                    parts.fold(SpentAmount::default(), |sum, (_, part)| sum.plus(*part))
                }
                None if is_over => SpentAmount::default(),
                None => account.settled,
            };
            LedgerAccount {
                account: name.clone(),
                from_ms: account.until_ms.map(|_| account.from_ms),
                until_ms: account.until_ms,
                balance: AccountBalance { settled, reserved, ..account.balance() },
                most: account.most,
            }
        });
        listed.collect()
    }
}

/// The accounts whose names contain a text, that with the largest share first.
pub(super) fn largest_first(mut accounts: Vec<LedgerAccount>, part: Option<&str>) -> Vec<LedgerAccount> {
    accounts.retain(|account| part.is_none_or(|part| account.account.contains(part)));
    accounts.sort_by(|one, other| other.used().total_cmp(&one.used()));
    accounts.truncate(MOST_LEDGER_ACCOUNTS);
    accounts
}

impl MemoryJournal {
    /// Whether a run is driven with this lease.
    pub(super) fn is_held(&self, run_id: &str, fence: u64) -> bool {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.by_id.get(run_id).is_some_and(|run| {
            let data = run.data();
            data.driven && data.fence == fence
        })
    }
}
