//! The ledger of spending limits.

use super::*;
use crate::journal::ledger::{
    AccountBalance, AccountTime, MOST_LEDGER_ACCOUNTS, MostSpent, RateShare, Reservation, Reserving, RollingParts,
    Settlement, SpentAmount,
};

const DAY_MS: i64 = 86_400_000;

fn tokens(tokens: i64) -> SpentAmount {
    SpentAmount { tokens, usd_nanos: tokens * 10 }
}

fn day(number: i64) -> AccountTime {
    AccountTime { from_ms: number * DAY_MS, until_ms: Some((number + 1) * DAY_MS), rolling: None }
}

/// A reservation in an account of 100 tokens, on day 20,000.
fn reservation(run_id: &str, fence: u64, id: &str, amount: i64) -> Reservation {
    Reservation {
        account: "one".to_owned(),
        id: id.to_owned(),
        run_id: run_id.to_owned(),
        fence,
        amount: tokens(amount),
        most: MostSpent { tokens: Some(100), usd_nanos: None },
        time: day(20_000),
    }
}

fn settlement(id: &str, used: i64, time: AccountTime) -> Settlement {
    let (now_ms, warn_at) = (20_000 * DAY_MS, MostSpent { tokens: Some(80), usd_nanos: None });
    let account = "one".to_owned();
    Settlement { account, id: id.to_owned(), used: tokens(used), time, warn_at, now_ms, warned_since_ms: time.from_ms }
}

fn reserve(journal: &dyn Journal, reservation: Reservation) -> Option<AccountBalance> {
    match wait(journal.reserve(reservation)).unwrap() {
        Reserving::Reserved => None,
        Reserving::Full(balance) => Some(balance),
    }
}

fn settle(journal: &dyn Journal, settlement: Settlement) -> bool {
    wait(journal.settle(settlement)).unwrap()
}

/// What the account holds at noon of a day: settled, reserved.
fn held(journal: &dyn Journal, day: i64) -> (i64, i64) {
    let accounts = wait(journal.ledger(day * DAY_MS + DAY_MS / 2, None)).unwrap();
    let balance = accounts.iter().find(|of| of.account == "one").unwrap().balance;
    assert_eq!(balance.settled.usd_nanos, balance.settled.tokens * 10);
    (balance.settled.tokens, balance.reserved.tokens)
}

pub(super) fn what_is_reserved_and_what_was_spent_is_never_more_than_the_most(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    assert_eq!(wait(journal.ledger(0, None)).unwrap(), Vec::new());
    assert!(reserve(journal, reservation("r", fence, "too-much", 101)).is_some(), "also in an account that is new");
    assert_eq!(reserve(journal, reservation("r", fence, "a", 60)), None);
    let full = reserve(journal, reservation("r", fence, "b", 41)).unwrap();
    assert_eq!((full.settled, full.reserved), (tokens(0), tokens(60)));
    assert_eq!(reserve(journal, reservation("r", fence, "b", 40)), None);
    assert_eq!(held(journal, 20_000), (0, 100));
    // Less was used than was reserved.
    assert!(!settle(journal, settlement("a", 10, day(20_000))));
    assert_eq!(held(journal, 20_000), (10, 40));
    assert_eq!(reserve(journal, reservation("r", fence, "c", 50)), None);
    // A call may use more than was reserved for it.
    assert!(settle(journal, settlement("c", 75, day(20_000))), "the warning is due");
    assert!(!settle(journal, settlement("c", 75, day(20_000))), "it is settled");
    assert!(!settle(journal, settlement("b", 20, day(20_000))), "the warning was given");
    assert_eq!(held(journal, 20_000), (105, 0));
    assert!(reserve(journal, reservation("r", fence, "d", 1)).is_some());
}

/// Takes a share of a rate; returns in how many seconds there is room for it. A database goes by its own clock.
fn pace(journal: &dyn Journal, account: &str, share: &RateShare) -> i64 {
    wait(journal.pace(RateShare { account: account.to_owned(), ..share.clone() })).unwrap() / 1_000_000
}

pub(super) fn shares_of_a_rate_are_taken_in_turns_and_given_back(journal: &dyn Journal) {
    const SECOND_US: i64 = 1_000_000;
    let account = String::new();
    let none = RateShare {
        account,
        now_us: 1_700_000_000 * SECOND_US,
        requests_us: 0,
        tokens_us: 0,
        hold_us: 0,
        far_us: 100_000 * SECOND_US,
    };
    let of = |requests: i64, tokens: i64| RateShare {
        requests_us: requests * SECOND_US,
        tokens_us: tokens * SECOND_US,
        ..none.clone()
    };
    let take = |share: RateShare| pace(journal, "rate one", &share);
    assert_eq!(take(of(1_000, 0)), 0, "the first has its turn at once");
    let about = |seconds: i64| seconds - 60..=seconds;
    assert!(about(1_000).contains(&take(of(1_000, 4_000))));
    assert!(about(4_000).contains(&take(of(1_000, 500))), "what is used up longer counts");
    assert!(about(4_500).contains(&take(of(0, 0))), "who takes nothing waits, too");
    take(of(-1_000, -4_000));
    assert!(about(2_000).contains(&take(of(1_000, 0))));
    take(RateShare { hold_us: 9_000 * SECOND_US, ..none.clone() });
    assert!(about(9_000).contains(&take(of(1_000, 0))));
    assert_eq!(pace(journal, "rate two", &of(1_000, 0)), 0, "another model has another rate");
    take(of(80_000, 80_000));
    assert_eq!(take(RateShare { far_us: 50_000 * SECOND_US, ..of(1_000, 0) }), 0, "that was a clock that was wrong");
    assert!(about(1_000).contains(&take(of(1_000, 0))));
    assert_eq!(wait(journal.ledger(0, None)).unwrap(), Vec::new(), "it is no account of a spending limit");
}

pub(super) fn money_is_held_as_tokens_are(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    let of_money = |id: &str, amount: i64| Reservation {
        most: MostSpent { tokens: None, usd_nanos: Some(500) },
        ..reservation("r", fence, id, amount)
    };
    assert_eq!(reserve(journal, of_money("a", 50)), None);
    let full = reserve(journal, of_money("b", 1)).unwrap();
    assert_eq!(full.reserved.usd_nanos, 500);
    let listed = wait(journal.ledger(0, None)).unwrap();
    assert_eq!((listed[0].most, listed[0].from_ms), (of_money("a", 1).most, Some(20_000 * DAY_MS)));
}

pub(super) fn a_new_day_begins_with_nothing_spent_and_what_is_reserved_stays(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    assert_eq!(reserve(journal, reservation("r", fence, "a", 60)), None);
    assert_eq!(reserve(journal, reservation("r", fence, "b", 40)), None);
    settle(journal, settlement("a", 60, day(20_000)));
    assert_eq!((held(journal, 20_000), held(journal, 20_001)), ((60, 40), (0, 40)));
    let tomorrow = |id: &str, amount| Reservation { time: day(20_001), ..reservation("r", fence, id, amount) };
    assert_eq!(reserve(journal, tomorrow("c", 61)).unwrap().settled, tokens(0));
    assert_eq!(reserve(journal, tomorrow("c", 60)), None);
    assert!(settle(journal, settlement("b", 90, day(20_001))), "the warning of the new day");
    // A clock that is behind does not bring the day before back.
    assert!(reserve(journal, reservation("r", fence, "d", 1)).is_some());
    assert_eq!(held(journal, 20_001), (90, 60));
}

pub(super) fn what_was_spent_leaves_a_rolling_window_part_by_part(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    // A window of 60 ms, of parts of 10 ms.
    let at = |now_ms: i64| {
        let rolling = RollingParts { gone_ms: now_ms - 70, now_ms: now_ms / 10 * 10, stays_ms: 70 };
        AccountTime { from_ms: 0, until_ms: None, rolling: Some(rolling) }
    };
    let spend = |id: &str, now_ms: i64, amount: i64| {
        let full = reserve(journal, Reservation { time: at(now_ms), ..reservation("r", fence, id, amount) });
        if full.is_none() {
            settle(journal, settlement(id, amount, at(now_ms)));
        }
        full
    };
    assert_eq!(spend("a", 1_000, 40), None);
    assert_eq!(spend("b", 1_025, 60), None);
    let full = spend("c", 1_069, 10).unwrap();
    assert_eq!((full.settled, full.frees_at_ms), (tokens(100), Some(1_070)));
    assert_eq!(spend("c", 1_070, 40), None);
    assert_eq!(spend("d", 1_089, 1).unwrap().frees_at_ms, Some(1_090));
    assert_eq!(spend("d", 1_090, 60), None);
    let listed = wait(journal.ledger(1_200, None)).unwrap();
    assert_eq!((listed[0].balance.settled, listed[0].from_ms), (tokens(0), None));
}

pub(super) fn what_a_driver_reserved_is_given_back_when_its_lease_is_over(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    assert_eq!(reserve(journal, reservation("r", fence, "a", 90)), None);
    assert_eq!(reserve(journal, reservation("r", fence, "b", 10)), None);
    wait(journal.release("r", fence)).unwrap();
    assert_eq!(held(journal, 20_000), (0, 0));
    let lease = wait(journal.lease("r")).unwrap();
    assert_eq!(held(journal, 20_000), (0, 0), "the lease is another one");
    assert_eq!(reserve(journal, reservation("r", lease.fence, "c", 100)), None);
    // It is too late to settle what was given back.
    assert!(!settle(journal, settlement("a", 90, day(20_000))));
    assert_eq!(held(journal, 20_000), (0, 100));
}

pub(super) fn an_account_without_a_time_counts_what_is_under_way_and_is_no_limit(journal: &dyn Journal) {
    const NOW: AccountTime = AccountTime { from_ms: 0, until_ms: None, rolling: None };
    let fence = begin(journal, "r");
    let call = |fence, id| {
        let (amount, most) = (tokens(1), MostSpent { tokens: Some(2), usd_nanos: None });
        Reservation { time: NOW, amount, most, ..reservation("r", fence, id, 0) }
    };
    assert_eq!((reserve(journal, call(fence, "a")), reserve(journal, call(fence, "b"))), (None, None));
    assert!(reserve(journal, call(fence, "c")).is_some());
    assert!(!settle(journal, settlement("a", 0, NOW)));
    assert_eq!(reserve(journal, call(fence, "c")), None);
    assert!(reserve(journal, call(fence, "d")).is_some());
    assert_eq!(wait(journal.ledger(0, None)).unwrap(), Vec::new());
    wait(journal.release("r", fence)).unwrap();
    let lease = wait(journal.lease("r")).unwrap();
    let again = [call(lease.fence, "d"), call(lease.fence, "e")].map(|call| reserve(journal, call));
    assert_eq!(again, [None, None], "what the driver before had under way is over");
}

pub(super) fn a_clock_that_was_ahead_stops_nobody_for_long(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    let spend = |id: &str, number: i64| {
        let full = reserve(journal, Reservation { time: day(number), ..reservation("r", fence, id, 60) });
        let now_ms = number * DAY_MS;
        let warned = full.is_none() && settle(journal, Settlement { now_ms, ..settlement(id, 90, day(number)) });
        (full.map(|full| full.settled.tokens), warned)
    };
    assert_eq!(spend("a", 20_000), (None, true));
    // The next day may begin early, and keeps what is spent until it is over.
    assert_eq!(spend("b", 20_001), (None, true));
    assert_eq!(spend("c", 20_000), (Some(90), false));
    assert_eq!(spend("c", 20_001), (Some(90), false));
    assert_eq!(spend("d", 20_400), (None, true));
    assert_eq!(held(journal, 20_001), (0, 0), "that is of another time");
    assert_eq!(spend("e", 20_001), (None, true), "no day of the far future holds this one up");
    let listed = wait(journal.ledger(20_001 * DAY_MS, None)).unwrap();
    assert_eq!((listed[0].from_ms, listed[0].until_ms), (Some(20_001 * DAY_MS), Some(20_002 * DAY_MS)));
    assert_eq!((held(journal, 20_001), spend("f", 20_002)), ((90, 0), (None, true)));
    // The same of the last hours.
    let at = |now_ms: i64| {
        let rolling = RollingParts { gone_ms: now_ms - 70, now_ms: now_ms / 10 * 10, stays_ms: 70 };
        AccountTime { from_ms: 0, until_ms: None, rolling: Some(rolling) }
    };
    let spend = |id: &str, now_ms: i64| {
        let two = Reservation { account: "two".to_owned(), time: at(now_ms), ..reservation("r", fence, id, 60) };
        let full = reserve(journal, two);
        let of_two = Settlement { account: "two".to_owned(), now_ms, ..settlement(id, 90, at(now_ms)) };
        settle(journal, of_two);
        full.map(|full| full.frees_at_ms)
    };
    assert_eq!((spend("g", 1_000), spend("h", 9_000), spend("i", 1_200)), (None, None, None));
    assert_eq!(spend("j", 1_210), Some(Some(1_270)));
}

pub(super) fn sums_that_are_too_large_are_cut(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    let rolling = RollingParts { gone_ms: 930, now_ms: 1_000, stays_ms: 70 };
    for time in [day(20_000), AccountTime { from_ms: 0, until_ms: None, rolling: Some(rolling) }] {
        let account = || format!("{time:?}");
        let huge = SpentAmount { tokens: i64::MAX / 4, usd_nanos: i64::MAX / 4 };
        let reserving = |id: &str| {
            let most = MostSpent { tokens: None, usd_nanos: Some(i64::MAX) };
            reserve(journal, Reservation { account: account(), time, most, ..reservation("r", fence, id, 1) })
        };
        for id in ["a", "b", "c", "d", "e"] {
            assert_eq!(reserving(id), None);
            settle(journal, Settlement { account: account(), used: huge, ..settlement(id, 0, time) });
        }
        assert_eq!(reserving("f"), None);
        let now_ms = time.rolling.map_or(time.from_ms, |rolling| rolling.now_ms);
        let listed = wait(journal.ledger(now_ms, None)).unwrap();
        let settled = listed.iter().find(|one| one.account == account()).unwrap().balance.settled;
        assert!(settled.tokens > i64::MAX / 256 && settled.usd_nanos > i64::MAX / 256, "{settled:?}");
    }
}

pub(super) fn of_many_who_reserve_at_once_as_many_as_fit_do(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    let reserved = std::thread::scope(|scope| {
        let all = (0..40).map(|number| {
            scope.spawn(move || reserve(journal, reservation("r", fence, &format!("of-{number}"), 7)).is_none())
        });
        let all: Vec<_> = all.collect();
        all.into_iter().map(|one| one.join().unwrap()).filter(|is_reserved| *is_reserved).count()
    });
    assert_eq!((reserved, held(journal, 20_000)), (14, (0, 98)));
}

pub(super) fn the_accounts_with_the_largest_shares_are_listed_when_there_are_more(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    let count = i64::try_from(MOST_LEDGER_ACCOUNTS).unwrap() + 5;
    for number in 0..count {
        let account = format!("of-{number:04}");
        let most = MostSpent { tokens: Some(count), usd_nanos: None };
        let id = number.to_string();
        let new = Reservation { account: account.clone(), most, ..reservation("r", fence, &id, number + 1) };
        assert_eq!(reserve(journal, new), None);
        settle(journal, Settlement { account, ..settlement(&id, number + 1, day(20_000)) });
    }
    let names = |day: i64, part: Option<&str>| {
        let listed = wait(journal.ledger(day * DAY_MS + DAY_MS / 2, part.map(str::to_owned))).unwrap();
        listed.into_iter().map(|one| one.account).collect::<Vec<_>>()
    };
    let listed = names(20_000, None);
    assert_eq!(listed.len(), MOST_LEDGER_ACCOUNTS);
    assert_eq!((listed[0].as_str(), listed.last().unwrap().as_str()), ("of-1004", "of-0005"));
    assert_eq!(
        names(20_000, Some("of-000")),
        (0..10).rev().map(|number| format!("of-000{number}")).collect::<Vec<_>>()
    );
    // Those of a day that is over come last.
    let today = Reservation { account: "today".to_owned(), time: day(20_001), ..reservation("r", fence, "t", 1) };
    assert_eq!(reserve(journal, today), None);
    assert_eq!(names(20_001, None)[0], "today");
}
