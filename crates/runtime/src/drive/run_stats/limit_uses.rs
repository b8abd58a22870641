//! What the accounts of spending limits hold, for reports and metrics.

use crate::journal::ledger::{LedgerAccount, SpentAmount};
use crate::journal::{Journal, StoreError};
use loopctl_engine::run_stats::LimitUse;
use loopctl_engine::timestamp::rfc3339;
use loopctl_lang::program::spending::AccountName;

/// What the accounts hold in which something is spent or reserved, that with the largest share first. `org`: only those of this organisation; the empty text is the
/// runs of none, which have no account that others do not share.
///
/// # Errors
/// When the store fails.
pub async fn limit_uses(journal: &dyn Journal, now_ms: i64, org: Option<&str>) -> Result<Vec<LimitUse>, StoreError> {
    let accounts = journal.ledger(now_ms).await?;
    let mut uses: Vec<LimitUse> = accounts.iter().filter_map(|account| limit_use(account, org)).collect();
    uses.sort_by(|one, other| other.used.total_cmp(&one.used));
    Ok(uses)
}

fn limit_use(account: &LedgerAccount, org: Option<&str>) -> Option<LimitUse> {
    let name = AccountName::read(&account.account)?;
    if org.is_some_and(|org| name.organisation().is_none_or(|own| own != org)) {
        return None;
    }
    let LedgerAccount { until_ms, balance, most, .. } = account;
    let (settled, reserved) = (balance.settled, balance.reserved);
    let all = settled.plus(reserved);
    // Its day is over, and maybe no project has the limit any more.
    if all == SpentAmount::default() {
        return None;
    }
    let tokens = most.tokens.map(|most| share(all.tokens, most));
    let money = most.usd_nanos.map(|most| share(all.usd_nanos, most));
    Some(LimitUse {
        of: name.whose(),
        every: name.time(),
        until: until_ms.map(rfc3339),
        used: tokens.into_iter().chain(money).fold(0.0, f64::max),
        tokens: count(settled.tokens),
        reserved_tokens: count(reserved.tokens),
        most_tokens: most.tokens.map(count),
        cost_usd: dollars(settled),
        reserved_usd: dollars(reserved),
        most_usd: most.usd_nanos.map(|usd_nanos| dollars(SpentAmount { tokens: 0, usd_nanos })),
    })
}

fn count(tokens: i64) -> u64 {
    u64::try_from(tokens).unwrap_or_default()
}

fn dollars(amount: SpentAmount) -> f64 {
    number(amount.usd_nanos) / 1_000_000_000.0
}

fn share(part: i64, most: i64) -> f64 {
    if most > 0 { number(part) / number(most) } else { 1.0 }
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "no amount has 2^53 parts")]
fn number(amount: i64) -> f64 {
    amount as f64
}
