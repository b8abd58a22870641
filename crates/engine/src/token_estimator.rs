//! Estimates the tokens of a text by its bytes, corrected by the counts of providers.

/// The data of the estimate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenEstimator {
    /// The tokens that a provider counted in a request, and its bytes: the first and the last count.
    first: Option<(u64, usize)>,
    last: Option<(u64, usize)>,
}

/// By how many bytes two requests must differ, so that the difference gives the bytes of a token.
const APART: usize = 2_000;
/// The largest and the smallest estimate for a thousand bytes, whatever was counted.
const MAX_TOKENS_PER_1000_BYTES: u64 = 1_000;
pub(crate) const MIN_TOKENS_PER_1000_BYTES: u64 = 60;
/// Without any count: a token of English or JSON has about four bytes.
const USUAL: u64 = 250;

impl TokenEstimator {
    /// A provider counted the tokens of a request of `bytes` bytes.
    pub fn counted(&mut self, tokens: u64, bytes: usize) {
        if tokens == 0 || bytes == 0 {
            return;
        }
        self.first.get_or_insert((tokens, bytes));
        self.last = Some((tokens, bytes));
    }

    /// The estimated tokens of `bytes` bytes of text.
    pub fn tokens(&self, bytes: usize) -> u64 {
        number(bytes).saturating_mul(self.in_a_thousand()).div_ceil(1_000)
    }

    /// The estimated bytes of a text of `tokens` tokens.
    pub fn bytes(&self, tokens: u64) -> usize {
        let bytes = tokens.saturating_mul(1_000).checked_div(self.in_a_thousand()).unwrap_or(0);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The tokens of a thousand bytes: from the difference of two requests, because every request has tokens
    /// that are not in our text; otherwise from the last request as a whole.
    fn in_a_thousand(&self) -> u64 {
        let Some((tokens, bytes)) = self.last else { return USUAL };
        let (before, before_bytes) = self.first.unwrap_or_default();
        let (more, more_bytes) = (tokens.saturating_sub(before), bytes.saturating_sub(before_bytes));
        let (tokens, bytes) = if more > 0 && more_bytes >= APART { (more, more_bytes) } else { (tokens, bytes) };
        tokens
            .saturating_mul(1_000)
            .checked_div(number(bytes))
            .unwrap_or(USUAL)
            .clamp(MIN_TOKENS_PER_1000_BYTES, MAX_TOKENS_PER_1000_BYTES)
    }
}

fn number(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_count_a_token_has_four_bytes() {
        assert_eq!(TokenEstimator::default().tokens(4_000), 1_000);
        assert_eq!((TokenEstimator::default().tokens(1), TokenEstimator::default().tokens(0)), (1, 0));
    }

    #[test]
    fn one_count_sets_the_estimate_right_by_its_ratio() {
        let mut estimator = TokenEstimator::default();
        estimator.counted(500, 1_000);
        assert_eq!(estimator.tokens(3_000), 1_500);
    }

    #[test]
    fn what_every_request_holds_beside_the_text_is_not_taken_for_the_text() {
        let mut estimator = TokenEstimator::default();
        // 3,000 tokens of tool schemas, and a quarter token a byte.
        estimator.counted(3_000 + 250, 1_000);
        estimator.counted(3_000 + 1_250, 5_000);
        assert_eq!(estimator.tokens(8_000), 2_000);
    }

    #[test]
    fn counts_that_make_no_sense_stay_within_reason() {
        for (tokens, bytes) in [(0, 10), (10, 0), (u64::MAX, 1), (1, usize::MAX)] {
            let mut estimator = TokenEstimator::default();
            estimator.counted(tokens, bytes);
            assert!((60..=1_000).contains(&estimator.tokens(1_000)), "{tokens} {bytes}");
        }
    }
}
