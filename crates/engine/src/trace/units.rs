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
mod tests;
