//! Times, counts and money for people.

pub use crate::timestamp::rfc3339;

/// A span: `312 ms`, `4.2 s`, `1 min 12 s`, `2 h 3 min`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A count with its digits in groups: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A count with its noun: `1 iteration`, `3 iterations`.
pub fn plural(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// US dollars: cents for a dollar and more, four digits below, and never a false zero.
pub fn dollars(cost: f64) -> String {
    if cost >= 1.0 {
        format!("${cost:.2}")
    } else if cost >= 0.0001 || cost <= 0.0 {
        format!("${cost:.4}")
    } else {
        "under $0.0001".to_owned()
    }
}

#[cfg(test)]
mod tests {
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
}
