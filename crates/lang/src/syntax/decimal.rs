//! Decimal numbers by their digits: exact, whatever their spelling and size.

use std::cmp::Ordering;

use num_bigint::BigUint;

/// The most digits of a whole number that is written out.
const MAX_DIGITS: i64 = 40;
/// The most digits of a number of units.
pub(crate) const MAX_UNIT_DIGITS: i64 = 36;
/// Smaller units are divided by with machine words.
const SMALL_UNIT: u64 = 1_000_000_000_000_000_000;

/// A number: its sign, and its digits without leading and trailing zeros, as the fraction after `0.`, shifted
/// by `point` places. Zero has no digits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    digits: String,
    point: i64,
}

/// How many digits a number has before its point, and behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecimalPlaces {
    pub(crate) whole: i64,
    pub(crate) fraction: i64,
}

/// A number of equal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecimalUnits {
    /// How many.
    pub(crate) count: i128,
    /// Whether they are the whole number.
    pub(crate) is_exact: bool,
}

impl Decimal {
    /// The number of a JSON spelling; none when its exponent is too large.
    pub(crate) fn read(written: &str) -> Option<Self> {
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
    pub(crate) fn is_whole(&self) -> bool {
        i64::try_from(self.digits.len()).is_ok_and(|digits| digits <= self.point) || self.digits.is_empty()
    }

    /// The digits of a whole number, unless it is too large.
    pub(crate) fn whole(&self) -> Option<String> {
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

    /// Whether it is a whole multiple of `unit`. No zeros are written out, however large the exponents are: the
    /// work grows with the digits alone. Only zero is a multiple of zero.
    pub(crate) fn is_multiple_of(&self, unit: &Self) -> bool {
        if self.digits.is_empty() || unit.digits.is_empty() {
            return self.digits.is_empty();
        }
        // Both are whole numbers times a power of ten, and neither number ends in zero: if the unit's power is
        // larger, the quotient has a fraction.
        let power = |number: &Self| number.point.checked_sub(i64::try_from(number.digits.len()).ok()?);
        let zeros = power(self).zip(power(unit)).and_then(|(own, unit)| own.checked_sub(unit));
        let Some(zeros) = zeros.and_then(|zeros| u64::try_from(zeros).ok()) else { return false };
        match unit.digits.parse::<u64>() {
            Ok(unit) if unit < SMALL_UNIT => rest_by_small(&self.digits, zeros, unit) == 0,
            _ => rest_by_large(&self.digits, zeros, &unit.digits).is_some_and(|rest| rest == BigUint::ZERO),
        }
    }

    /// How many whole units of 10^-`places` it has, rounded towards zero, and whether nothing was cut. None when these
    /// have more than 36 digits.
    pub(crate) fn units(&self, places: u8) -> Option<DecimalUnits> {
        let count = self.point.checked_add(i64::from(places))?;
        if self.digits.is_empty() || count <= 0 {
            return Some(DecimalUnits { count: 0, is_exact: self.digits.is_empty() });
        }
        let count = usize::try_from(count).ok().filter(|_| count <= MAX_UNIT_DIGITS)?;
        let is_exact = self.digits.len() <= count;
        let digits: String = self.digits.chars().chain(std::iter::repeat('0')).take(count).collect();
        let size: i128 = digits.parse().ok()?;
        Some(DecimalUnits { count: if self.negative { -size } else { size }, is_exact })
    }

    /// How many digits it has before its point, and behind it, without zeros that say nothing.
    pub(crate) fn places(&self) -> DecimalPlaces {
        let digits = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        DecimalPlaces { whole: self.point.max(0), fraction: digits.saturating_sub(self.point).max(0) }
    }

    /// The number of its digits.
    pub(crate) fn length(&self) -> usize {
        self.digits.len()
    }

    /// Compares it with another.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
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

/// The remainder of `digits`, followed by `zeros` zeros, divided by `unit`.
fn rest_by_small(digits: &str, zeros: u64, unit: u64) -> u64 {
    let unit = u128::from(unit);
    let digits = digits.bytes().map(|digit| u128::from(digit.wrapping_sub(b'0')));
    let mut rest = digits.fold(0, |rest, digit| (rest * 10 + digit) % unit);
    let (mut factor, mut left) = (10 % unit, zeros);
    while left > 0 {
        if left % 2 == 1 {
            rest = rest * factor % unit;
        }
        factor = factor * factor % unit;
        left /= 2;
    }
    u64::try_from(rest).unwrap_or(u64::MAX)
}

/// The same for a unit of any size.
fn rest_by_large(digits: &str, zeros: u64, unit: &str) -> Option<BigUint> {
    let unit = BigUint::parse_bytes(unit.as_bytes(), 10)?;
    let factor = BigUint::from(10_u32).modpow(&BigUint::from(zeros), &unit);
    let mut rest = BigUint::ZERO;
    for chunk in digits.as_bytes().chunks(18) {
        let shift = 10_u64.checked_pow(u32::try_from(chunk.len()).ok()?)?;
        rest = (rest * shift + BigUint::parse_bytes(chunk, 10)?) % &unit;
    }
    Some(rest * factor % &unit)
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

    #[test]
    fn a_multiple_is_found_by_its_digits_and_no_zero_is_written_out() {
        let is =
            |number: &str, unit: &str| Decimal::read(number).unwrap().is_multiple_of(&Decimal::read(unit).unwrap());
        for (number, unit) in [
            ("0.07", "0.01"),
            ("1e999999", "3e-5"),
            ("1e99999999999", "1e-99999999999"),
            ("-6", "3"),
            ("0", "7"),
            ("1.5", "0.5"),
            ("123456789012345678901234567890", "12345678901234567890123456789"),
            ("12345678901234567890123e9999", "12345678901234567890123"),
        ] {
            let expected = !matches!((number, unit), ("1e999999", "3e-5"));
            assert_eq!(is(number, unit), expected, "{number} by {unit}");
        }
        assert!(!is("0.25", "0.1") && !is("7", "2") && !is("1", "1e1") && !is("5", "0") && is("0", "0"));
        assert!(!is("123456789012345678901234567891", "12345678901234567890123456789"));
    }

    #[test]
    fn units_are_counted_and_what_is_cut_is_known() {
        let units = |written: &str| Decimal::read(written).unwrap().units(2).map(|units| (units.count, units.is_exact));
        assert_eq!(units("12.5"), Some((1250, true)));
        assert_eq!(units("-0.019"), Some((-1, false)));
        assert_eq!(units("0.001"), Some((0, false)));
        assert_eq!(units("0.0"), Some((0, true)));
        assert_eq!(units("1e-99999"), Some((0, false)));
        assert_eq!(units("9e33"), Some((9 * 10_i128.pow(35), true)));
        assert_eq!((units("1e34"), units("1e99999999")), (None, None));
    }

    proptest! {
        #[test]
        fn units_agree_with_machine_arithmetic(number in -1_000_000_i128..1_000_000, places in 0_u32..6) {
            let units = Decimal::read(&format!("{number}e-{places}")).unwrap().units(2).unwrap();
            let divisor = 10_i128.pow(places);
            prop_assert_eq!(units.count, number * 100 / divisor);
            prop_assert_eq!(units.is_exact, number * 100 % divisor == 0);
        }

        #[test]
        fn multiples_agree_with_machine_arithmetic(number in -1_000_000_i64..1_000_000, unit in 1_i64..5_000, places in 0_u32..3) {
            let written = |number: i64| Decimal::read(&format!("{number}e-{places}")).unwrap();
            prop_assert_eq!(written(number).is_multiple_of(&written(unit)), number % unit == 0);
        }

        #[test]
        fn it_agrees_with_the_machine_where_that_is_exact(one in -1_000_000_i64..1_000_000, other in -1_000_000_i64..1_000_000, places in 0_i32..4) {
            let written = |number: i64| format!("{number}e-{places}");
            let (first, second) = (Decimal::read(&written(one)).unwrap(), Decimal::read(&written(other)).unwrap());
            prop_assert_eq!(first.compare(&second), one.cmp(&other));
            prop_assert_eq!(Decimal::read(&one.to_string()).unwrap().whole(), Some(one.to_string()));
        }
    }
}
