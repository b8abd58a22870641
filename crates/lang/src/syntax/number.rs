//! Numbers: kept as written.

use super::reader::JsonReader;
use super::{Node, NodeKind, Span};
use crate::diagnostic::codes;
use crate::policy::json_text;

impl JsonReader<'_> {
    /// The number that begins here.
    pub(super) fn number(&mut self) -> Node {
        let span = self.word_span();
        let written = self.raw(span);
        match fault_of(written) {
            None if !json_text::is_exact(written) => {
                let report = self.fault(codes::NUMBER, span, json_text::INEXACT.to_owned());
                self.report(report);
                Node { span: Span::new(span.start, span.end), kind: NodeKind::Fault }
            }
            None => Node { span, kind: NodeKind::Number(written.into()) },
            Some(fault) => {
                let report =
                    self.fault(codes::NUMBER, span, format!("`{written}` is no number of JSON: {}", fault.why));
                match fault.meant {
                    Some(meant) => {
                        self.report(report.suggest(meant.as_str()));
                        Node { span, kind: NodeKind::Number(meant.into()) }
                    }
                    None => {
                        let help = "a number is written without a unit; a text needs double quotes";
                        self.report(if fault.text { report.help(help) } else { report });
                        Node { span: Span::new(span.start, span.end), kind: NodeKind::Fault }
                    }
                }
            }
        }
    }
}

struct NumberFault {
    why: &'static str,
    meant: Option<String>,
    text: bool,
}

/// The fault of a number, and the number that was meant if there is only one reading.
fn fault_of(written: &str) -> Option<NumberFault> {
    if is_number(written) {
        return None;
    }
    let hexadecimal = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"));
    if let Some(value) = hexadecimal.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        return Some(NumberFault {
            why: "JSON has decimal numbers alone",
            meant: Some(value.to_string()),
            text: false,
        });
    }
    let ungrouped = written.replace('_', "");
    if ungrouped.len() < written.len() && is_number(&ungrouped) && written.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(NumberFault { why: "its digits are not grouped", meant: Some(ungrouped), text: false });
    }
    let plain = written.strip_prefix('+').unwrap_or(written);
    let (sign, unsigned) = plain.strip_prefix('-').map_or(("", plain), |rest| ("-", rest));
    let (whole, rest) = unsigned.split_once('.').map_or((unsigned, None), |(whole, rest)| (whole, Some(rest)));
    let leading_zero = whole.len() > 1 && whole.starts_with('0') && whole.bytes().all(|byte| byte.is_ascii_digit());
    // `.5` and `5.` have one reading; `010` has two, because some read it as octal.
    let fraction = rest.map(|rest| if rest.is_empty() { ".0".to_owned() } else { format!(".{rest}") });
    let whole = if whole.is_empty() && fraction.is_some() { "0" } else { whole };
    let candidate = format!("{sign}{whole}{}", fraction.unwrap_or_default());
    let meant = Some(candidate).filter(|candidate| unsigned != "." && is_number(candidate));
    let why = if leading_zero {
        "it begins with a zero"
    } else if meant.is_some() && written.starts_with('+') {
        "it begins with a plus"
    } else if meant.is_some() {
        "a digit is missing beside the point"
    } else if unsigned.is_empty() {
        "it has no digits"
    } else if matches!(unsigned, "Infinity" | "NaN") {
        "JSON has no such value"
    } else {
        "it may hold only digits, one point and an exponent"
    };
    Some(NumberFault { why, meant, text: unsigned.contains(char::is_alphabetic) })
}

/// RFC 8259, section 6.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}
