//! A canonical text for JSON, so that values are compared by meaning. For comparisons only, never shown.

use serde_json::{Number, Value};

use crate::policy::json_text;

/// A part of a value that is still to be written.
enum SpellingPart<'a> {
    Value(&'a Value),
    Key(&'a str),
    Text(&'static str),
}

/// A text that is the same for equal JSON, and for no other: keys sorted, no spaces, numbers by their value
/// (`1`, `1.0` and `10e-1` are equal; `-0` is `0`). Works at any depth.
///
/// Numbers are compared digit by digit, never as floats. Exponents of more than 36 digits are compared as
/// written.
pub fn spelling(value: &Value) -> String {
    let mut out = String::with_capacity(64);
    spell(value, &mut |piece| out.push_str(piece));
    out
}

/// Whether two values are equal JSON: numbers by what they are worth, to the last digit, also inside lists and objects.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || number(one) == number(other),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => spelling(one) == spelling(other),
        _ => one == other,
    }
}

/// The same, piece by piece.
pub fn spell(value: &Value, out: &mut impl FnMut(&str)) {
    if let Value::String(text) = value {
        return quote(text, out);
    }
    let mut parts = Vec::with_capacity(8);
    parts.push(SpellingPart::Value(value));
    while let Some(part) = parts.pop() {
        match part {
            SpellingPart::Text(text) => out(text),
            SpellingPart::Key(key) => {
                quote(key, out);
                out(":");
            }
            SpellingPart::Value(Value::Null) => out("null"),
            SpellingPart::Value(Value::Bool(true)) => out("true"),
            SpellingPart::Value(Value::Bool(false)) => out("false"),
            SpellingPart::Value(Value::Number(digits)) => out(&number(digits)),
            SpellingPart::Value(Value::String(text)) => quote(text, out),
            SpellingPart::Value(Value::Array(items)) => {
                out("[");
                parts.push(SpellingPart::Text("]"));
                for (index, item) in items.iter().enumerate().rev() {
                    parts.push(SpellingPart::Value(item));
                    if index > 0 {
                        parts.push(SpellingPart::Text(","));
                    }
                }
            }
            SpellingPart::Value(Value::Object(map)) => {
                out("{");
                parts.push(SpellingPart::Text("}"));
                let mut members: Vec<_> = map.iter().collect();
                members.sort_unstable_by_key(|(key, _)| key.as_str());
                for (index, (key, member)) in members.into_iter().enumerate().rev() {
                    parts.push(SpellingPart::Value(member));
                    parts.push(SpellingPart::Key(key));
                    if index > 0 {
                        parts.push(SpellingPart::Text(","));
                    }
                }
            }
        }
    }
}

/// The canonical text of a number: its digits without leading and trailing zeros, and the power of ten to
/// multiply them with: `1500` is `15e2`.
pub fn number(number: &Number) -> String {
    let digits = json_text::digits(number);
    let text = digits.as_ref();
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let joined = format!("{whole}{fraction}");
    let digits = joined.trim_start_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    let kept = digits.trim_end_matches('0');
    let cut = digits.len().saturating_sub(kept.len());
    match power(exponent, fraction.len(), cut) {
        Some(0) => format!("{sign}{kept}"),
        Some(power) => format!("{sign}{kept}e{power}"),
        None => format!("{sign}{kept}e{exponent}-{}+{cut}", fraction.len()),
    }
}

/// The power of ten, unless it is too large.
fn power(exponent: &str, fraction: usize, cut: usize) -> Option<i128> {
    let (negative, digits) = exponent
        .strip_prefix('-')
        .map_or_else(|| (false, exponent.strip_prefix('+').unwrap_or(exponent)), |digits| (true, digits));
    let digits = digits.trim_start_matches('0');
    if digits.len() > 36 {
        return None;
    }
    let size: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let exponent = if negative { size.checked_neg()? } else { size };
    exponent.checked_sub(i128::try_from(fraction).ok()?)?.checked_add(i128::try_from(cut).ok()?)
}

/// A text in double quotes; `"`, `\` and control characters escaped.
fn quote(text: &str, out: &mut impl FnMut(&str)) {
    let special = |c: char| matches!(c, '"' | '\\') || u32::from(c) < 0x20;
    out("\"");
    for piece in text.split_inclusive(special) {
        match piece.strip_suffix(special) {
            None => out(piece),
            Some(plain) => {
                out(plain);
                match piece.get(plain.len()..) {
                    Some("\"") => out("\\\""),
                    Some("\\") => out("\\\\"),
                    control => out(&control.unwrap_or_default().escape_unicode().to_string()),
                }
            }
        }
    }
    out("\"");
}
