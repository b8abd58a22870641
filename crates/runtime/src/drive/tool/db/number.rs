//! Decimal numbers, compared by their digits.

/// The digits of a decimal number without leading and trailing zeros, and the power of ten of the last digit.
/// Equal numbers give equal results. Zero has no digits.
pub(super) fn digits(text: &str) -> Option<(String, i64)> {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let cut = all.trim_end_matches('0');
    let dropped = i64::try_from(all.len() - cut.len()).ok()?;
    let digits = cut.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        return Some((digits, 0));
    }
    let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(dropped)?;
    Some((digits, exponent))
}

/// A whole number as its digits, with its sign; none for one with a fraction, or with more than 40 digits.
pub(super) fn whole(text: &str) -> Option<String> {
    const MAX_DIGITS: usize = 40;
    let (digits, exponent) = digits(text)?;
    let zeros = usize::try_from(exponent).ok()?;
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    (digits.len().saturating_add(zeros) <= MAX_DIGITS).then(|| format!("{sign}{digits}{}", "0".repeat(zeros)))
}
