//! How long the JSON text of a value is, without the text: it may have megabytes.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// Counts the bytes that are written.
struct LengthCounter(usize);

impl fmt::Write for LengthCounter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.saturating_add(text.len());
        Ok(())
    }
}

/// How long the JSON text of a value is, in bytes.
pub fn json_bytes(value: &Value) -> usize {
    let mut counter = LengthCounter(0);
    // Counting does not fail.
    let _ = write!(counter, "{value}");
    counter.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_length_is_that_of_the_text() {
        for value in [json!(null), json!("\u{e9}\n\"\u{1}"), json!({"a": [1.50, true, {}], "\u{fc}": -7}), json!([])] {
            assert_eq!(json_bytes(&value), value.to_string().len(), "{value}");
        }
    }
}
