//! Numbers by their digits, so that no spelling and no size makes one pass for another.

use std::cmp::Ordering;

/// The most digits of a whole number that is written out.
const MAX_DIGITS: i64 = 40;

/// A number: its sign, and its digits without zeros at either end, as the fraction after `0.`, moved
/// by `point` places. Zero has no digits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: String,
    point: i64,
}

impl Decimal {
    /// The number that a JSON spelling stands for; nothing when its exponent is beyond all use.
    pub(super) fn read(written: &str) -> Option<Self> {
        let (negative, unsigned) = written.strip_prefix('-').map_or((false, written), |rest| (true, rest));
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        let leading = i64::try_from(all.len() - significant.len()).ok()?;
        let digits = significant.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, point: 0 });
        }
        let exponent: i64 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
        let point = i64::try_from(whole.len()).ok()?.checked_sub(leading)?.checked_add(exponent)?;
        Some(Self { negative, digits, point })
    }

    /// Whether it has no fraction.
    pub(super) fn is_whole(&self) -> bool {
        i64::try_from(self.digits.len()).is_ok_and(|digits| digits <= self.point) || self.digits.is_empty()
    }

    /// In digits alone, when it is a whole number that is not immense.
    pub(super) fn whole(&self) -> Option<String> {
        let zeros = self.point.checked_sub(i64::try_from(self.digits.len()).ok()?)?;
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        if zeros < 0 || self.point > MAX_DIGITS {
            return None;
        }
        let sign = if self.negative { "-" } else { "" };
        Some(format!("{sign}{}{}", self.digits, "0".repeat(usize::try_from(zeros).ok()?)))
    }

    /// How it compares with another.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits));
        match (sign(self), sign(other)) {
            (0, 0) => Ordering::Equal,
            (1, 1) => size,
            (-1, -1) => size.reverse(),
            (one, other) => one.cmp(&other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_whole_however_it_is_spelled() {
        for (written, whole) in [
            ("10", Some("10")),
            ("10.0", Some("10")),
            ("1e1", Some("10")),
            ("100E-1", Some("10")),
            ("0.5e+1", Some("5")),
            ("-0", Some("0")),
            ("-0.0e9", Some("0")),
            ("-2.50e1", Some("-25")),
            ("18446744073709551616.000", Some("18446744073709551616")),
            ("0.5", None),
            ("1e-1", None),
            ("1e41", None),
            ("1e99999999999999999999", None),
        ] {
            assert_eq!(Decimal::read(written).and_then(|number| number.whole()).as_deref(), whole, "{written}");
        }
    }

    #[test]
    fn no_digit_is_lost_when_numbers_are_compared() {
        let compare = |one: &str, other: &str| Decimal::read(one).unwrap().compare(&Decimal::read(other).unwrap());
        assert_eq!(compare("2.00000000000000000000001", "2"), Ordering::Greater);
        assert_eq!(compare("18446744073709551616", "18446744073709551615"), Ordering::Greater);
        assert_eq!(compare("-0", "0.0"), Ordering::Equal);
        assert_eq!(compare("-1e-30", "0"), Ordering::Less);
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_machine_where_that_is_exact(one in -1_000_000_i64..1_000_000, other in -1_000_000_i64..1_000_000, places in 0_i32..4) {
            let written = |number: i64| format!("{number}e-{places}");
            let (first, second) = (Decimal::read(&written(one)).unwrap(), Decimal::read(&written(other)).unwrap());
            prop_assert_eq!(first.compare(&second), one.cmp(&other));
            prop_assert_eq!(Decimal::read(&one.to_string()).unwrap().whole(), Some(one.to_string()));
        }
    }
}
