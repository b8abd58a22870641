//! The spending limits of a project: what a call of a model may cost is reserved in the store before it is made, and settled with what
//! it used, so that the limits hold for all processes of the store together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use super::clock;
use crate::journal::ledger::{
    AccountBalance, AccountTime, MostSpent, Reservation, Reserving, RollingParts, Settlement, SpentAmount, number,
};
use crate::journal::{Journal, StoreError};
use loopctl_engine::budget;
use loopctl_engine::event::{ModelFacts, ReachedLimit, Tokens};
use loopctl_engine::state::RunHeader;
use loopctl_lang::language::project::Price;
use loopctl_lang::language::spending_limit::{OnSpendingLimit, SpendingLimit};
use loopctl_lang::program::Program;
use loopctl_lang::program::spending::{AccountName, CountedTime, OTHER_MODELS, Spending};

const NANOS_OF_A_DOLLAR: i64 = 1_000_000_000;
/// The most that is counted of one call, whatever its provider and the price say: sums of many calls stay numbers of the store.
const MOST_TOKENS_OF_A_CALL: i64 = 1_000_000_000_000;
const MOST_NANOS_OF_A_CALL: i64 = 10_000 * NANOS_OF_A_DOLLAR;

/// The numbers of the reservations of this process.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Holds the calls of a run to the spending limits of its project.
pub struct SpendingGuard<'a> {
    journal: &'a Arc<dyn Journal>,
    program: &'a Program,
    limits: &'a [SpendingLimit],
    run: SpendingRun<'a>,
    /// The organisation of the run, once a limit asked for it.
    org: OnceCell<Option<String>>,
    /// Why the store did not answer: the run is left then.
    fault: Mutex<Option<StoreError>>,
}

/// A run that spends.
#[derive(Clone, Copy)]
pub(super) struct SpendingRun<'a> {
    pub run_id: &'a str,
    /// The lease of its driver.
    pub fence: u64,
    pub loop_name: &'a str,
}

/// A call that is about to be made.
#[derive(Clone, Copy)]
pub(super) struct CallToReserve<'a> {
    pub model: &'a ModelFacts,
    /// The tokens of what the model reads, estimated.
    pub input: u64,
    /// The most tokens of its reply.
    pub max_tokens: u32,
}

impl CallToReserve<'_> {
    /// The most tokens that it uses.
    pub(super) fn most_tokens(&self) -> u64 {
        self.input.saturating_add(u64::from(self.max_tokens))
    }
}

/// What is reserved for a call. Dropping it gives it back, unless its request was sent: then nobody knows what it used, and the most
/// counts that it may have used.
#[derive(Default)]
pub(super) struct HeldReservations<'g> {
    guard: Option<&'g SpendingGuard<'g>>,
    held: Vec<HeldReservation<'g>>,
    /// What the call may have used at most, once its request is sent.
    lost: Option<LostUsage>,
}

#[derive(Debug, Clone, Copy)]
struct LostUsage {
    tokens: Tokens,
    price: Option<Price>,
}

struct HeldReservation<'g> {
    limit: &'g SpendingLimit,
    account: AccountName,
    id: String,
    amount: SpentAmount,
}

/// Why a call is not made.
pub(super) struct NoRoom {
    pub message: String,
    /// The limit that leaves no room; none where the store did not answer.
    pub limit: Option<ReachedLimit>,
}

impl<'a> SpendingGuard<'a> {
    /// That of a run; none where its project has no limits.
    pub(super) fn of(journal: &'a Arc<dyn Journal>, program: &'a Program, run: SpendingRun<'a>) -> Option<Self> {
        let limits = program.project.limits.as_slice();
        let (org, fault) = (OnceCell::new(), Mutex::default());
        (!limits.is_empty()).then_some(Self { journal, program, limits, run, org, fault })
    }

    /// The same for a call of a tool, or a step, that asks a model.
    pub(super) fn of_call(
        journal: &'a Arc<dyn Journal>,
        program: &'a Program,
        header: &'a RunHeader,
        fence: u64,
    ) -> Option<Self> {
        let run = SpendingRun { run_id: &header.run_id, fence, loop_name: &header.loop_name };
        Self::of(journal, program, run)
    }

    /// Why the store did not answer.
    pub(super) fn take_fault(&self) -> Option<StoreError> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A call has waited for some seconds: the operator is to know for what.
    pub(super) fn log_wait(&self, model: &str) {
        let run_id = self.run.run_id;
        tracing::info!(
            run_id,
            model,
            "a call waits for room in a spending limit: calls under way hold what is left of it"
        );
    }

    fn failed(&self, fault: StoreError) -> NoRoom {
        let message = format!("the spending limits can't be looked up: {fault}");
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
        NoRoom { message, limit: None }
    }

    /// Reserves what a call may spend, in each account that it counts in; none while calls under way hold what is left.
    pub(super) async fn try_to_reserve(&self, call: CallToReserve<'_>) -> Result<Option<HeldReservations<'_>>, NoRoom> {
        let org = self.org().await?;
        let (loop_name, model) = (self.run.loop_name, call.model.name.as_str());
        let share = if self.program.names_model(model) { model } else { OTHER_MODELS };
        let spending = Spending { loop_name, model, share, org };
        let mut held = HeldReservations { guard: Some(self), held: Vec::new(), lost: None };
        for limit in self.limits.iter().filter(|limit| limit.counts(&spending)) {
            let account = limit.account(&spending);
            let Some(time) = time_of(limit, clock::wall_ms()) else { return Err(no_time(&account)) };
            let amount = self.most_of(limit, call).ok_or_else(|| no_price(&account, &call.model.name))?;
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            let id = format!("{}#{}#{number}", self.run.run_id, self.run.fence);
            let most = most_of_limit(limit);
            let reservation = Reservation {
                account: account.text(),
                id: id.clone(),
                run_id: self.run.run_id.to_owned(),
                fence: self.run.fence,
                amount,
                most,
                time,
            };
            match self.journal.reserve(reservation).await.map_err(|fault| self.failed(fault))? {
                Reserving::Reserved => held.held.push(HeldReservation { limit, account, id, amount }),
                // Only what others may spend and have not spent yet is in the way.
                Reserving::Full(balance) if most.holds(balance.settled.plus(amount)) => return Ok(None),
                Reserving::Full(balance) => {
                    return Err(self.no_room(FullAccount { limit, account, time, amount, balance }).await);
                }
            }
        }
        Ok(Some(held))
    }

    async fn org(&self) -> Result<Option<&str>, NoRoom> {
        match self.limits.iter().any(SpendingLimit::asks_for_org) {
            true => self.org_of_run().await,
            false => Ok(None),
        }
    }

    /// The run of an organisation is not to show what others have spent: the numbers of an account that is not its own are
    /// for the log.
    async fn no_room(&self, full: FullAccount<'_>) -> NoRoom {
        let is_shared = full.account.organisation().is_none();
        match self.org_of_run().await {
            Ok(Some(org)) if is_shared => {
                let (run_id, known) = (self.run.run_id, full.no_room(true).message);
                tracing::info!(run_id, org, "a spending limit leaves no room: {known}");
                full.no_room(false)
            }
            Ok(_) => full.no_room(true),
            Err(fault) => fault,
        }
    }

    async fn org_of_run(&self) -> Result<Option<&str>, NoRoom> {
        let found = || async {
            let run = self.journal.find(self.run.run_id).await.map_err(|fault| self.failed(fault))?;
            Ok(run.and_then(|run| run.org))
        };
        Ok(self.org.get_or_try_init(found).await?.as_deref())
    }

    /// The most that a call may spend; none where its model has no price and the limit is in US dollars.
    fn most_of(&self, limit: &SpendingLimit, call: CallToReserve<'_>) -> Option<SpentAmount> {
        let input = call.input;
        // What is put into a cache may cost more than what is read.
        let tokens = Tokens { input, output: u64::from(call.max_tokens), cache_write: input, ..Tokens::default() };
        let price = call
            .model
            .price
            .map(|price| Price { cache_write: price.cache_write.filter(|written| *written > price.input), ..price });
        amount_of(limit, tokens, price)
    }
}

/// What tokens come to; none where the limit is in US dollars and the price is not known.
fn amount_of(limit: &SpendingLimit, tokens: Tokens, price: Option<Price>) -> Option<SpentAmount> {
    let usd_nanos = match price {
        Some(price) => nanos(budget::cost_usd(tokens, price)),
        None if limit.cost_usd.is_some() => return None,
        None => 0,
    };
    let tokens = i64::try_from(tokens.input.saturating_add(tokens.output)).unwrap_or(i64::MAX);
    Some(SpentAmount { tokens: tokens.min(MOST_TOKENS_OF_A_CALL), usd_nanos: usd_nanos.min(MOST_NANOS_OF_A_CALL) })
}

/// The most of a limit, as the ledger has it.
pub(super) fn most_of_limit(limit: &SpendingLimit) -> MostSpent {
    let tokens = limit.tokens.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX));
    MostSpent { tokens, usd_nanos: limit.cost_usd.map(nanos) }
}

/// From which amounts on a limit warns.
fn warned_at(limit: &SpendingLimit) -> MostSpent {
    let share = |most: i64| rounded_up(number(most) * limit.warn_at);
    let MostSpent { tokens, usd_nanos } = most_of_limit(limit);
    MostSpent { tokens: tokens.map(share), usd_nanos: usd_nanos.map(share) }
}

/// The time of an account at a moment.
fn time_of(limit: &SpendingLimit, now_ms: i64) -> Option<AccountTime> {
    Some(match limit.time_at(now_ms)? {
        CountedTime::Calendar { from_ms, until_ms } => AccountTime { from_ms, until_ms: Some(until_ms), rolling: None },
        CountedTime::Rolling { length_ms, part_ms, now_part_ms } => {
            let stays_ms = length_ms.saturating_add(part_ms);
            let rolling = RollingParts { gone_ms: now_ms.saturating_sub(stays_ms), now_ms: now_part_ms, stays_ms };
            AccountTime { from_ms: 0, until_ms: None, rolling: Some(rolling) }
        }
    })
}

impl HeldReservations<'_> {
    /// Whether nothing is reserved: no limit counts the call.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The request is sent from now on: it may be paid for, whatever becomes of the call. `most`: what it may use.
    pub fn sent(&mut self, most: Option<Tokens>, price: Option<Price>) {
        self.lost = most.map(|tokens| LostUsage { tokens, price });
    }

    /// Settles a call with what it used, or with the most that it may have used.
    pub async fn settle(mut self, used: Tokens, price: Option<Price>) -> Result<(), NoRoom> {
        let Some(guard) = self.guard else { return Ok(()) };
        for held in std::mem::take(&mut self.held) {
            let used = amount_of(held.limit, used, price).unwrap_or(held.amount);
            let Some(settlement) = held.settlement(used) else { continue };
            if guard.journal.settle(settlement).await.map_err(|fault| guard.failed(fault))? {
                held.warn(guard.run.run_id);
            }
        }
        Ok(())
    }
}

impl HeldReservation<'_> {
    fn settlement(&self, used: SpentAmount) -> Option<Settlement> {
        let now_ms = clock::wall_ms();
        let time = time_of(self.limit, now_ms)?;
        let warned_since_ms = time.rolling.map_or(time.from_ms, |rolling| rolling.gone_ms);
        Some(Settlement {
            account: self.account.text(),
            id: self.id.clone(),
            used,
            time,
            warn_at: warned_at(self.limit),
            now_ms,
            warned_since_ms,
        })
    }

    fn warn(&self, run_id: &str) {
        let (time, whose, share) = (self.account.per_time(), self.account.whose(), self.limit.warn_at);
        let limit = limit_in_words(self.limit);
        tracing::warn!(run_id, limit, share, "a spending limit is nearly reached: {limit} {time} for {whose}");
    }
}

impl Drop for HeldReservations<'_> {
    fn drop(&mut self) {
        let Some(guard) = self.guard else { return };
        for held in &self.held {
            let used = self.lost.map_or_else(SpentAmount::default, |LostUsage { tokens, price }| {
                amount_of(held.limit, tokens, price).unwrap_or(held.amount)
            });
            // Nobody waits for it: what could not be given back is no longer counted when the lease is over.
            drop(held.settlement(used).map(|settlement| guard.journal.settle(settlement)));
        }
    }
}

/// An account without room for a call.
struct FullAccount<'a> {
    limit: &'a SpendingLimit,
    account: AccountName,
    time: AccountTime,
    amount: SpentAmount,
    balance: AccountBalance,
}

impl FullAccount<'_> {
    /// `with_numbers`: whether the amounts of the limit and of what is spent are shown.
    fn no_room(&self, with_numbers: bool) -> NoRoom {
        let Self { limit, account, time, amount, balance } = self;
        let amount = *amount;
        let most = most_of_limit(limit);
        let fits = most.holds(amount);
        let (time_words, whose) = (account.per_time(), account.whose());
        let is_of_tokens = most.tokens.is_some_and(|most| balance.settled.plus(amount).tokens > most);
        let shown = |amount: SpentAmount| match is_of_tokens {
            true => format!("{} tokens", amount.tokens),
            false => dollars(amount.usd_nanos),
        };
        let limit_words = match is_of_tokens {
            true => format!("{} tokens", most.tokens.unwrap_or_default()),
            false => dollars(most.usd_nanos.unwrap_or_default()),
        };
        let limit_words = match with_numbers {
            true => format!("the spending limit of {limit_words} {time_words} for {whose}"),
            false => format!("the spending limit {time_words} for {whose}"),
        };
        if !fits {
            let message = format!(
                "{limit_words} is less than this one call may spend ({}): raise the limit, or lower `max_tokens`",
                shown(amount)
            );
            return NoRoom { message, limit: Some(ReachedLimit { until_ms: None, waits: false }) };
        }
        let until_ms = time.until_ms.or(balance.frees_at_ms).or_else(|| {
            let rolling = time.rolling?;
            Some(rolling.now_ms.saturating_add(rolling.stays_ms))
        });
        let until = until_ms.map(|until_ms| format!(" until {}", clock::rfc3339(until_ms))).unwrap_or_default();
        let spent = match with_numbers {
            true => format!("{} are spent, and ", shown(balance.settled)),
            false => String::new(),
        };
        let message = format!("{limit_words} is reached{until}: {spent}this call may spend {}", shown(amount));
        let waits = limit.on_limit == OnSpendingLimit::Wait;
        NoRoom { message, limit: Some(ReachedLimit { until_ms, waits }) }
    }
}

fn no_price(account: &AccountName, model: &str) -> NoRoom {
    let (time, whose) = (account.per_time(), account.whose());
    let message = format!(
        "the spending limit {time} for {whose} is in US dollars, and the model `{model}` has no price: give `models` of the project \
         what a million tokens cost"
    );
    NoRoom { message, limit: Some(ReachedLimit { until_ms: None, waits: false }) }
}

fn no_time(account: &AccountName) -> NoRoom {
    let zone = account.timezone.as_deref().unwrap_or("UTC");
    let message = format!("the spending limit {} has a time zone that does not exist: `{zone}`", account.per_time());
    NoRoom { message, limit: Some(ReachedLimit { until_ms: None, waits: false }) }
}

/// The amounts of a limit: `100000 tokens or $5.00`.
fn limit_in_words(limit: &SpendingLimit) -> String {
    let MostSpent { tokens, usd_nanos } = most_of_limit(limit);
    let tokens = tokens.map(|tokens| format!("{tokens} tokens"));
    tokens.into_iter().chain(usd_nanos.map(dollars)).collect::<Vec<_>>().join(" or ")
}

/// An amount in US dollars, with two places and those after them that count.
fn dollars(nanos: i64) -> String {
    let text = format!("${}.{:09}", nanos / NANOS_OF_A_DOLLAR, nanos % NANOS_OF_A_DOLLAR);
    let least = text.find('.').map_or(text.len(), |point| point.saturating_add(3));
    let kept = text.trim_end_matches('0').len().max(least);
    text.get(..kept).unwrap_or(&text).to_owned()
}

/// Billionths of a dollar: no limit is passed by a rounding.
fn nanos(usd: f64) -> i64 {
    rounded_up(usd * number(NANOS_OF_A_DOLLAR))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::as_conversions,
    reason = "a cast of a float stays within the bounds of the integer"
)]
fn rounded_up(amount: f64) -> i64 {
    amount.ceil().max(0.0) as i64
}
