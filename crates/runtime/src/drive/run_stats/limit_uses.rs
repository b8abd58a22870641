//! What the accounts of spending limits hold, for reports and metrics.

use crate::journal::ledger::{LedgerAccount, MostSpent, SpentAmount, number};
use crate::journal::{Journal, StoreError};
use loopctl_engine::run_stats::LimitUse;
use loopctl_engine::timestamp::rfc3339;
use loopctl_lang::language::spending_limit::SpendingLimit;
use loopctl_lang::program::spending::AccountName;

use crate::drive::spending::most_of_limit;

/// Which accounts are shown, and by which limits.
#[derive(Debug, Clone, Copy, Default)]
pub struct LimitsQuery<'q> {
    /// Only those of this organisation; the empty text is the runs of none, which have no account that others do not share.
    pub org: Option<&'q str>,
    /// The limits of the project as they are now. What is held in an account of none of them is shown behind the others, with the
    /// amounts that the limit had when a call was last reserved.
    pub limits: &'q [SpendingLimit],
}

/// An account, and whether the project has a limit for it.
struct ShownAccount {
    is_limited: bool,
    shown: LimitUse,
}

/// What the accounts hold in which something is spent or reserved, that with the largest share first.
///
/// # Errors
/// When the store fails.
pub async fn limit_uses(
    journal: &dyn Journal,
    now_ms: i64,
    query: LimitsQuery<'_>,
) -> Result<Vec<LimitUse>, StoreError> {
    // As the name of an account has it.
    let part = query.org.map(|org| serde_json::Value::from(org).to_string());
    let accounts = journal.ledger(now_ms, part).await?;
    let mut uses: Vec<ShownAccount> = accounts.iter().filter_map(|account| limit_use(account, query)).collect();
    uses.sort_by(|one, other| other.is_limited.cmp(&one.is_limited).then(other.shown.used.total_cmp(&one.shown.used)));
    Ok(uses.into_iter().map(|account| account.shown).collect())
}

fn limit_use(account: &LedgerAccount, query: LimitsQuery<'_>) -> Option<ShownAccount> {
    let name = AccountName::read(&account.account)?;
    if query.org.is_some_and(|org| name.organisation().is_none_or(|own| own != org)) {
        return None;
    }
    let balance = account.balance;
    let (settled, reserved) = (balance.settled, balance.reserved);
    // Its day is over, and maybe no project has the limit any more.
    if settled.plus(reserved) == SpentAmount::default() {
        return None;
    }
    let now = most_now(&name, query.limits);
    let most = now.unwrap_or(account.most);
    let account = LedgerAccount { most, ..account.clone() };
    let shown = LimitUse {
        of: name.whose(),
        every: name.time(),
        until: account.until_ms.map(rfc3339),
        used: account.used(),
        tokens: count(settled.tokens),
        reserved_tokens: count(reserved.tokens),
        most_tokens: most.tokens.map(count),
        cost_usd: dollars(settled),
        reserved_usd: dollars(reserved),
        most_usd: most.usd_nanos.map(|usd_nanos| dollars(SpentAmount { tokens: 0, usd_nanos })),
    };
    Some(ShownAccount { is_limited: now.is_some(), shown })
}

/// What may be spent in an account by the limits of the project as they are now; none where none of them has it.
fn most_now(name: &AccountName, limits: &[SpendingLimit]) -> Option<MostSpent> {
    let least = |one: Option<i64>, other: Option<i64>| one.into_iter().chain(other).min();
    let own = limits.iter().filter(|limit| limit.has_account(name)).map(most_of_limit);
    own.reduce(|one, other| MostSpent {
        tokens: least(one.tokens, other.tokens),
        usd_nanos: least(one.usd_nanos, other.usd_nanos),
    })
}

fn count(tokens: i64) -> u64 {
    u64::try_from(tokens).unwrap_or_default()
}

fn dollars(amount: SpentAmount) -> f64 {
    number(amount.usd_nanos) / 1_000_000_000.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use loopctl_lang::program::spending::Spending;

    #[test]
    fn an_account_is_shown_with_the_limit_of_now_and_one_without_a_limit_as_it_was() {
        let limit = |written| serde_json::from_value::<SpendingLimit>(written).unwrap();
        let spending = Spending { loop_name: "ask", model: "main", share: "main", org: Some("acme") };
        let day = limit(json!({ "per": "org", "every": "day", "tokens": 100 }));
        let name = day.account(&spending);
        let account = LedgerAccount {
            account: name.text(),
            from_ms: Some(0),
            until_ms: Some(86_400_000),
            balance: crate::journal::ledger::AccountBalance {
                settled: SpentAmount { tokens: 80, usd_nanos: 0 },
                ..Default::default()
            },
            most: most_of_limit(&day),
        };
        let used = |limits: &[SpendingLimit]| {
            let of = limit_use(&account, LimitsQuery { org: Some("acme"), limits }).unwrap();
            (of.is_limited, of.shown.used, of.shown.most_tokens)
        };
        assert_eq!(used(std::slice::from_ref(&day)), (true, 0.8, Some(100)));
        assert_eq!(used(&[limit(json!({ "per": "org", "every": "day", "tokens": 200 }))]), (true, 0.4, Some(200)));
        assert_eq!(used(&[limit(json!({ "per": "org", "every": "month", "tokens": 9 }))]), (false, 0.8, Some(100)));
        assert!(limit_use(&account, LimitsQuery { org: Some("beta"), limits: &[] }).is_none());
    }
}
