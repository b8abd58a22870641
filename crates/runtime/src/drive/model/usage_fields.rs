//! What a provider counted: field by field, as it says so, and what that means.

use serde_json::Value;
use serde_json::value::RawValue;

use loopctl_engine::event::Tokens;
use loopctl_lang::policy::json_text;
use loopctl_lang::policy::window::BELIEVED;

/// What a provider counted, as far as it says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CountedTokens {
    /// The tokens that the model read; with [`Self::cache_is_beside`], without those of its cache.
    pub(super) input: Option<u64>,
    /// The tokens that it wrote; with [`Self::reasoning_is_beside`], without its reasoning.
    pub(super) output: Option<u64>,
    /// Those that its cache had.
    pub(super) cached_input: Option<u64>,
    /// Those that were put into its cache.
    pub(super) cache_write: Option<u64>,
    /// Those of its reasoning.
    pub(super) reasoning: Option<u64>,
    /// All of them together.
    pub(super) total: Option<u64>,
    /// Whether what its cache had or received is counted beside the input.
    pub(super) cache_is_beside: bool,
    /// Whether its reasoning is counted beside the output.
    pub(super) reasoning_is_beside: bool,
}

impl CountedTokens {
    /// Takes in a later count of the same reply. A count only grows: the end of a stream may repeat a field as zero, or
    /// leave it out.
    pub(super) fn add(&mut self, later: Self) {
        *self = Self {
            input: self.input.max(later.input),
            output: self.output.max(later.output),
            cached_input: self.cached_input.max(later.cached_input),
            cache_write: self.cache_write.max(later.cache_write),
            reasoning: self.reasoning.max(later.reasoning),
            total: self.total.max(later.total),
            cache_is_beside: self.cache_is_beside || later.cache_is_beside,
            reasoning_is_beside: self.reasoning_is_beside || later.reasoning_is_beside,
        };
    }

    /// The tokens that the model wrote, its reasoning too.
    pub(super) fn written(&self) -> Option<u64> {
        let reasoning = self.reasoning.unwrap_or(0);
        let whole = self.read().zip(self.output).and_then(|(read, output)| read.checked_add(output));
        // Some servers count it in the output, and then the total shows it.
        if self.reasoning_is_beside && whole.is_some() && whole == self.total {
            return self.output;
        }
        if self.reasoning_is_beside {
            return self.output.or(self.reasoning.map(|_| 0)).map(|output| output.saturating_add(reasoning));
        }
        // A server that leaves the completion out may count the reasoning all the same.
        let output = self.output.or(self.reasoning.map(|_| 0))?;
        // The total shows where the reasoning was counted; without one, what is more than the whole is beside it.
        let rest = match (self.total, self.read()) {
            (Some(total), Some(input)) => total.saturating_sub(input).saturating_sub(output),
            _ => 0,
        };
        let is_beside = reasoning > output || reasoning > 0 && rest >= reasoning;
        Some(if is_beside { output.saturating_add(reasoning) } else { output })
    }

    /// The tokens that the model read, those of its cache too.
    fn read(&self) -> Option<u64> {
        let beside = if self.cache_is_beside { [self.cached_input, self.cache_write] } else { [None, None] };
        let beside = beside.into_iter().flatten().fold(0_u64, u64::saturating_add);
        self.input.or((beside > 0).then_some(0)).map(|input| input.saturating_add(beside))
    }

    /// What was counted; none where nothing was. A side that is missing or zero is what the total leaves for it, else zero,
    /// which is no count: no request has no tokens, and no reply that says something. The engine estimates it.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        let (read, written) = (self.read().unwrap_or(0), self.written().unwrap_or(0));
        let rest = |of: u64, other: u64| match (of, other) {
            (0, 1..) => self.total.unwrap_or(0).saturating_sub(other),
            _ => of,
        };
        let (input, output) = (rest(read, written), rest(written, read));
        let cached_input = self.cached_input.unwrap_or(0).min(input);
        (input > 0 || output > 0).then(|| Tokens {
            input,
            output,
            cached_input,
            cache_write: self.cache_write.unwrap_or(0).min(input.saturating_sub(cached_input)),
            reasoning: self.reasoning.unwrap_or(0).min(output),
        })
    }
}

/// The usage of an answer, whose fields are read one by one: what can't be read is not counted.
pub(super) struct UsageFields(Value);

impl UsageFields {
    pub(super) fn read(usage: Option<&RawValue>) -> Self {
        Self(usage.and_then(|usage| json_text::read(usage.get()).ok()).unwrap_or_default())
    }

    /// The first count at these JSON pointers that one reply may have. Some servers write numbers with a fraction.
    pub(super) fn count(&self, pointers: &[&str]) -> Option<u64> {
        pointers.iter().find_map(|pointer| {
            let number = self.0.pointer(pointer)?;
            let count = number.as_u64().or_else(|| format!("{:.0}", number.as_f64()?).parse().ok());
            count.filter(|count| count <= BELIEVED.end())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(input: u64, output: u64) -> CountedTokens {
        CountedTokens { input: Some(input), output: Some(output), ..CountedTokens::default() }
    }

    fn shown(counted: CountedTokens) -> Option<[u64; 5]> {
        let tokens = counted.tokens()?;
        Some([tokens.input, tokens.output, tokens.cached_input, tokens.cache_write, tokens.reasoning])
    }

    #[test]
    fn zeros_are_no_count() {
        assert_eq!(shown(counted(0, 0)), None);
        assert_eq!(shown(CountedTokens { total: Some(0), cached_input: Some(0), ..counted(0, 0) }), None);
        assert_eq!(shown(CountedTokens::default()), None);
        // The side that was not counted is left to the engine.
        assert_eq!(shown(CountedTokens { input: Some(5), ..CountedTokens::default() }), Some([5, 0, 0, 0, 0]));
        assert_eq!(shown(counted(0, 7)), Some([0, 7, 0, 0, 0]));
        assert_eq!(shown(counted(7, 0)), Some([7, 0, 0, 0, 0]));
    }

    #[test]
    fn the_total_says_what_a_side_lacks() {
        let of = |input, output, total| CountedTokens { total: Some(total), ..counted(input, output) };
        assert_eq!(shown(of(0, 7, 107)), Some([100, 7, 0, 0, 0]));
        assert_eq!(shown(of(100, 0, 107)), Some([100, 7, 0, 0, 0]));
        assert_eq!(shown(CountedTokens { input: None, ..of(0, 7, 107) }), Some([100, 7, 0, 0, 0]));
        assert_eq!(shown(of(100, 0, 100)), Some([100, 0, 0, 0, 0]));
        assert_eq!(shown(of(0, 0, 107)), None);
        assert_eq!(shown(of(100, 7, 900)), Some([100, 7, 0, 0, 0]));
    }

    #[test]
    fn a_field_that_cannot_be_read_is_no_count_and_takes_no_other_with_it() {
        let raw =
            RawValue::from_string(r#"{"a": 7, "b": 7.0, "c": "7", "d": -1, "e": null, "f": {"g": 3}}"#.to_owned());
        let fields = UsageFields::read(raw.as_deref().ok());
        let read = ["/a", "/b", "/c", "/d", "/e", "/f/g", "/h/i"].map(|pointer| fields.count(&[pointer]));
        assert_eq!(read, [Some(7), Some(7), None, None, None, Some(3), None]);
        assert_eq!(fields.count(&["/e", "/c", "/f/g"]), Some(3));
        let raw = RawValue::from_string(r#"{"a": 18446744073709551615, "b": 1e300, "c": 100000000}"#.to_owned());
        let fields = UsageFields::read(raw.as_deref().ok());
        let read = ["/a", "/b", "/c"].map(|pointer| fields.count(&[pointer]));
        assert_eq!(read, [None, None, Some(100_000_000)]);
        assert_eq!(UsageFields::read(None).count(&["/a"]), None);
    }

    #[test]
    fn a_later_count_only_raises_each_field() {
        let mut all = CountedTokens { cached_input: Some(300), cache_is_beside: true, ..counted(700, 1) };
        all.add(CountedTokens { cached_input: Some(0), cache_is_beside: true, ..counted(0, 16) });
        all.add(CountedTokens::default());
        assert_eq!(shown(all), Some([1_000, 16, 300, 0, 0]));
        all.add(CountedTokens { cache_write: Some(50), ..counted(700, 9) });
        assert_eq!(shown(all), Some([1_050, 16, 300, 50, 0]));
    }

    #[test]
    fn reasoning_beside_the_output_is_output() {
        let of =
            |output, reasoning, total| CountedTokens { reasoning: Some(reasoning), total, ..counted(1_000, output) };
        for (counted, written) in [
            (of(10, 500, Some(1_510)), 510),
            (of(510, 500, Some(1_510)), 510),
            (of(510, 500, None), 510),
            (of(10, 500, None), 510),
            (of(10, 500, Some(1_010)), 510),
            // A total with something else in it.
            (of(510, 500, Some(1_600)), 510),
            (of(10, 0, Some(1_510)), 10),
        ] {
            assert_eq!(counted.written(), Some(written), "{counted:?}");
        }
        let beside = CountedTokens { output: None, reasoning_is_beside: true, ..of(0, 7, None) };
        assert_eq!(beside.written(), Some(7));
    }

    #[test]
    fn what_a_cache_had_is_never_more_than_the_input() {
        let all = CountedTokens { cached_input: Some(1_200), cache_write: Some(9), ..counted(1_000, 1) };
        assert_eq!(shown(all), Some([1_000, 1, 1_000, 0, 0]));
        assert_eq!(
            shown(CountedTokens { reasoning: Some(u64::MAX), ..counted(1, 1) }),
            Some([1, u64::MAX, 0, 0, u64::MAX])
        );
    }
}
