//! Quotas: what each token and each organisation uses of the server. A request beyond the quota is refused, so that no
//! caller can block the others.

mod account;
mod bounds;
mod bucket;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::http::StatusCode;

use super::authorizer::{Caller, OrgReach};
use super::problem::{ProblemDetails, TOO_MANY_CONNECTIONS};
use crate::drive::clock;
use crate::language::serving::Limits;

use account::Account;
pub use account::QuotaItem;
pub use bounds::Capacity;
use bounds::QuotaLimits;

/// The owner of a run, a connection or a request: an organisation, and the name of its token. A run that was
/// recovered from the store has no token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The organisation; none for owners without one.
    pub org: Option<String>,
    /// The name of the token.
    pub token: Option<String>,
}

impl Owner {
    /// What surrounds the work for this owner: lines of the log have these fields.
    pub fn span(&self) -> tracing::Span {
        // Of the level of errors, so that it is there where anything is logged.
        tracing::error_span!("owner", org = self.org.as_deref(), token = self.token.as_deref())
    }
}

impl From<&Caller> for Owner {
    fn from(caller: &Caller) -> Self {
        // An organisation that a request chooses has no account by that: anybody could name any number of them.
        let org = caller.org.clone().filter(|_| caller.reach != OrgReach::Chosen);
        Self { org, token: caller.name.clone() }
    }
}

/// The accounts of all tokens and organisations.
pub struct Quotas {
    token: QuotaLimits,
    org: QuotaLimits,
    /// Without tokens all callers are one.
    is_open: bool,
    began: Instant,
    taken: Mutex<Accounts>,
}

#[derive(Default)]
struct Accounts {
    /// For known tokens and organisations, and for those whose runs the store has: no caller adds others.
    tokens: HashMap<Owner, Account>,
    orgs: HashMap<Option<String>, Account>,
    event_streams: usize,
}

/// Counts in a quota until it is dropped.
pub struct Permit {
    shares: Arc<Quotas>,
    owner: Owner,
    held: QuotaItem,
}

impl Permit {
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.shares.taken();
        for account in self.shares.accounts(&mut taken, &self.owner) {
            account.give_back(self.held);
        }
        taken.event_streams -= usize::from(self.held == QuotaItem::EventStream && taken.event_streams > 0);
    }
}

impl Quotas {
    /// Empty accounts. `is_open`: there are no tokens.
    pub fn new(limits: &Limits, whole: Capacity, is_open: bool) -> Self {
        let (token, org) = QuotaLimits::of(limits, whole);
        Self { token, org, is_open, began: clock::instant(), taken: Mutex::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Accounts> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        clock::elapsed_ms(self.began)
    }

    /// The owner as the accounts know it.
    pub fn known(&self, owner: &Owner) -> Owner {
        if self.is_open { Owner::default() } else { owner.clone() }
    }

    /// The accounts of an owner's token and organisation.
    fn accounts<'a>(&self, taken: &'a mut Accounts, owner: &Owner) -> [&'a mut Account; 2] {
        let now = self.now_ms();
        [
            taken.tokens.entry(owner.clone()).or_insert_with(|| Account::new(self.token, now)),
            taken.orgs.entry(owner.org.clone()).or_insert_with(|| Account::new(self.org, now)),
        ]
    }

    /// Takes an item for as long as the permit lives.
    ///
    /// # Errors
    /// 429 when the token or its organisation has reached its limit.
    pub fn take(self: &Arc<Self>, owner: &Owner, held: QuotaItem) -> Result<Permit, ProblemDetails> {
        let owner = self.known(owner);
        let mut taken = self.taken();
        let [token, org] = self.accounts(&mut taken, &owner);
        for (whose, account) in [(TOKEN, &*token), (ORG, &*org)] {
            if !account.has(held) {
                return Err(spent(held, whose, account.count(held).1));
            }
        }
        token.take(held);
        org.take(held);
        taken.event_streams += usize::from(held == QuotaItem::EventStream);
        drop(taken);
        Ok(Permit { shares: Arc::clone(self), owner, held })
    }

    /// The runs of owners that wait in the store and that no permit counts: those of an earlier process wait on after a restart.
    pub fn carry(&self, waiting: &[(Owner, usize)]) {
        let mut taken = self.taken();
        taken.tokens.values_mut().for_each(|account| account.carry(0));
        taken.orgs.values_mut().for_each(|account| account.carry(0));
        let mut orgs: HashMap<Option<String>, usize> = HashMap::new();
        for (owner, runs) in waiting {
            let owner = self.known(owner);
            let of_org = orgs.entry(owner.org.clone()).or_default();
            *of_org = of_org.saturating_add(*runs);
            let (runs, of_org) = (*runs, *of_org);
            let [token, org] = self.accounts(&mut taken, &owner);
            token.carry(runs);
            org.carry(of_org);
        }
    }

    /// Whether an owner may send another request: not while it has used up its bytes.
    ///
    /// # Errors
    /// 429 until bytes are available again.
    pub fn check_bytes(&self, owner: &Owner) -> Result<(), ProblemDetails> {
        let now = self.now_ms();
        let wait = self.longest(owner, |account| account.bytes_in_ms(now));
        let detail = "the bytes a minute (`bytes_per_minute`) of this token or its organisation are spent";
        if wait > 0 { Err(later("bytes_spent", detail, wait)) } else { Ok(()) }
    }

    /// Whether an owner may start another run.
    ///
    /// # Errors
    /// 429 until running time is available again.
    pub fn check_time(&self, owner: &Owner) -> Result<(), ProblemDetails> {
        let now = self.now_ms();
        let wait = self.longest(owner, |account| account.time_in_ms(now));
        let detail =
            "the running time of an hour (`running_seconds_per_hour`) of this token or its organisation is spent";
        if wait > 0 { Err(later("running_time_spent", detail, wait)) } else { Ok(()) }
    }

    fn longest(&self, owner: &Owner, wait: impl FnMut(&mut Account) -> u64) -> u64 {
        let mut taken = self.taken();
        self.accounts(&mut taken, &self.known(owner)).into_iter().map(wait).max().unwrap_or_default()
    }

    /// Whether bytes are counted.
    pub fn counts_bytes(&self) -> bool {
        self.token.bytes.is_some() || self.org.bytes.is_some()
    }

    /// Counts bytes that an owner sent or received.
    pub fn sent(&self, owner: &Owner, bytes: usize) {
        let (now, bytes) = (self.now_ms(), u64::try_from(bytes).unwrap_or(u64::MAX));
        let mut taken = self.taken();
        self.accounts(&mut taken, &self.known(owner)).into_iter().for_each(|account| account.send(bytes, now));
    }

    /// A run of an owner is driven from now on: the time counts until [`Quotas::left`].
    pub fn driven(&self, owner: &Owner) {
        let now = self.now_ms();
        let mut taken = self.taken();
        self.accounts(&mut taken, &self.known(owner)).into_iter().for_each(|account| account.drive(now));
    }

    /// A run of an owner is not driven any more.
    pub fn left(&self, owner: &Owner) {
        let now = self.now_ms();
        let mut taken = self.taken();
        self.accounts(&mut taken, &self.known(owner)).into_iter().for_each(|account| account.leave(now));
    }

    /// How many streams of events are open.
    pub fn event_streams(&self) -> usize {
        self.taken().event_streams
    }
}

const TOKEN: &str = "this token";
const ORG: &str = "the token's organisation";

fn spent(held: QuotaItem, whose: &str, most: usize) -> ProblemDetails {
    let (code, things) = match held {
        QuotaItem::Connection => (TOO_MANY_CONNECTIONS, "connections (`connections`)"),
        QuotaItem::EventStream => ("too_many_event_streams", "streams of events (`event_streams`)"),
        QuotaItem::Queued => ("too_many_queued", "runs that wait for their turn (`queued`)"),
    };
    later(code, &format!("{whose} has the {most} {things} that `serve.limits` gives it: end some first"), 1_000)
}

/// 429: a quota is used up, and is available again after `wait_ms` milliseconds.
pub fn later(code: &'static str, detail: &str, wait_ms: u64) -> ProblemDetails {
    let mut problem = ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, code, detail);
    problem.retry_after = Some(u32::try_from(wait_ms.div_ceil(1_000).max(1)).unwrap_or(u32::MAX));
    problem
}
