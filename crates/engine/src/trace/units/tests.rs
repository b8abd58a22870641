//! The limits of the units.

use super::*;

#[test]
fn spans_change_their_unit_at_its_bound() {
    let spans = [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (4_250, "4.2 s"),
        (59_999, "59.9 s"),
        (60_000, "1 min 0 s"),
        (3_599_000, "59 min 59 s"),
        (7_380_000, "2 h 3 min"),
    ];
    for (ms, shown) in spans {
        assert_eq!(duration(ms), shown);
    }
}

#[test]
fn counts_are_grouped_and_nouns_agree() {
    assert_eq!(count(999), "999");
    assert_eq!(count(1_234_567), "1,234,567");
    assert_eq!(plural(1_u32, "run"), "1 run");
    assert_eq!(plural(1000_usize, "run"), "1,000 runs");
}

#[test]
fn a_small_cost_is_not_shown_as_zero() {
    assert_eq!(dollars(0.0), "$0.0000");
    assert_eq!(dollars(0.000_001), "under $0.0001");
    assert_eq!(dollars(0.0021), "$0.0021");
    assert_eq!(dollars(12.345), "$12.35");
}

#[test]
fn times_are_utc_to_the_millisecond() {
    assert_eq!(rfc3339(1_769_941_801_250), "2026-02-01T10:30:01.250Z");
    assert_eq!(rfc3339(i64::MAX), i64::MAX.to_string());
}
