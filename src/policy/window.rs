//! What of a model's window a reply may take when a loop does not say.

/// The most tokens of a reply, when the window is not known; a known window never makes it more.
const MOST: u32 = 4_096;
/// The least that a known window makes of it.
const LEAST: u32 = 256;

/// The default of `max_tokens`: a quarter of the window, 256 to 4,096, and never more than half of it.
pub fn max_tokens(window: Option<u64>) -> u32 {
    let Some(window) = window else { return MOST };
    let part = |parts: u64| u32::try_from(window / parts).unwrap_or(u32::MAX);
    part(4).clamp(LEAST, MOST).min(part(2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::max_tokens;

    #[test]
    fn a_reply_may_take_a_quarter_of_a_known_window() {
        for (window, tokens) in [
            (None, 4_096),
            (Some(1_000_000), 4_096),
            (Some(8_192), 2_048),
            (Some(2_048), 512),
            (Some(600), 256),
            (Some(300), 150),
            (Some(1), 1),
        ] {
            assert_eq!(max_tokens(window), tokens, "{window:?}");
        }
    }
}
