//! How a refusal says that a request is longer than the window, in words that nobody has listed: a part of the conversation,
//! how it is measured right beside it, and that this is more than what fits. It is strict: words of any other matter in the
//! message mean that the refusal may be about that.

/// What is too long.
const PARTS: [&str; 7] = ["prompt", "prompts", "input", "inputs", "messages", "conversation", "sequence"];
/// How it is measured.
const MEASURES: [&str; 4] = ["token", "tokens", "length", "lengths"];
/// The words that may be between the two, beside numbers.
const BETWEEN: [&str; 21] = [
    "prompt",
    "input",
    "request",
    "message",
    "text",
    "total",
    "number",
    "count",
    "size",
    "of",
    "in",
    "the",
    "your",
    "this",
    "is",
    "has",
    "have",
    "had",
    "contains",
    "about",
    "approximately",
];
/// The most words between the two.
const MOST_BETWEEN: usize = 4;
/// Words that say that it is more than what fits.
const MORE: [&str; 12] = [
    "exceed",
    "too long",
    "too large",
    "too many",
    "too big",
    "longer than the",
    "larger than the",
    "over the",
    "above the",
    "maximum is",
    "limit is",
    "maximum allowed is",
];
/// Words of other matters: what the account may have, limits in some time, the length of the reply, and other parts of a
/// request.
const OTHERS: [&str; 60] = [
    "credit",
    "quota",
    "billing",
    "balance",
    "budget",
    "subscription",
    "upgrade",
    "tier",
    "daily",
    "weekly",
    "monthly",
    "minute",
    "second",
    "hour",
    "per day",
    "rate",
    "try again in",
    "retry in",
    "retry after",
    "later",
    "concurren",
    "max_tokens",
    "max_new_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxoutputtokens",
    "maxtokens",
    "max tokens",
    "output",
    "completion tokens",
    "new tokens",
    "generat",
    "thinking",
    "reasoning",
    "image",
    "picture",
    "photo",
    "file",
    "audio",
    "video",
    "pdf",
    "attachment",
    "tool",
    "function",
    "schema",
    "stop",
    "cache",
    "batch",
    "embedding",
    "memory",
    "loading",
    "failed to load",
    "system",
    "character",
    "byte",
    "minimum",
    "too short",
    "empty",
    "must be longer",
    "not support",
];

/// Whether a message says so. `message`: in lower case, without quotation marks.
pub(super) fn is_said(message: &str) -> bool {
    if OTHERS.iter().any(|words| message.contains(words)) {
        return false;
    }
    let clauses = message.split([':', ';', '\n']).flat_map(|part| part.split(". "));
    clauses.filter(|clause| MORE.iter().any(|words| clause.contains(words))).any(|clause| {
        let split = clause.split(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | '-'));
        let words: Vec<&str> = split.filter(|word| !word.is_empty()).collect();
        has_measured_part(&words) || exceeds_context(clause)
    })
}

/// Whether a part of the conversation is measured: `prompt length`, `tokens in the prompt`, `prompt has 5000 tokens`.
fn has_measured_part(words: &[&str]) -> bool {
    let is_between = |word: &&str| BETWEEN.contains(word) || word.starts_with(|letter: char| letter.is_ascii_digit());
    let follows = |at: usize, wanted: &[&str]| {
        let behind = words.iter().copied().skip(at.saturating_add(1)).take(MOST_BETWEEN.saturating_add(1));
        let mut rest = behind.skip_while(|word| is_between(word) && !wanted.contains(word));
        rest.next().is_some_and(|word| wanted.contains(&word))
    };
    words.iter().enumerate().any(|(at, word)| {
        PARTS.contains(word) && follows(at, &MEASURES) || MEASURES.contains(word) && follows(at, &PARTS)
    })
}

/// Whether a part of the conversation comes first, then that it is more, and then the context.
fn exceeds_context(clause: &str) -> bool {
    let mut behind = MORE.iter().filter_map(|words| clause.split_once(words));
    behind.any(|(before, behind)| {
        let last =
            before.split(|letter: char| !letter.is_alphanumeric()).rfind(|word| !word.is_empty() && *word != "is");
        last.is_some_and(|word| PARTS.contains(&word)) && behind.contains("context")
    })
}

#[cfg(test)]
mod tests {
    use crate::policy::window::is_too_long;

    #[test]
    fn words_that_nobody_has_listed_say_that_a_request_is_too_long() {
        for message in [
            "exceeded the model's maximum number of input tokens",
            "The total number of tokens in the prompt exceeds the limit",
            "Prompt of 5000 tokens, and the maximum is 4096",
            "Total length of prompt and completion is over the model's context",
            "Request has 5000 input tokens which exceeds limit 4096",
            "The sequence length of the prompt exceeds max_seq_len: 5000 > 4096",
            "tokens in prompt exceed the window",
            "Input token count is too large",
            "Your messages have 9,000 tokens, which exceeds what the model takes",
            "Bad request: the length of your input is larger than the model allows",
            "The conversation is too long for the model's context.",
            "These messages exceed what fits into the context",
        ] {
            assert!(is_too_long(message), "{message}");
        }
    }

    #[test]
    fn another_matter_is_no_full_window_whatever_it_measures() {
        for message in [
            "Prompt tokens limit exceeded: 36163 > 29652. To increase, visit https://openrouter.ai/settings/credits",
            "You exceeded your input token quota",
            "Input tokens limit exceeded, try again in 20s",
            "Your daily input token limit is exceeded",
            "input tokens too many for your subscription",
            "Invalid input: suffix length exceeds 64",
            "Input validation error: `max_new_tokens` exceeds the maximum of 192 tokens",
            "The number of requested output tokens exceeds the limit; the prompt has 10 tokens",
            "max_tokens must be at least 1, got 0",
            "The image exceeds the maximum size, it takes more input tokens",
            "The prompt length of tool `lookup` exceeds 1024",
            "Prompt tokens must be longer than the prefix",
            "input length exceeds the limit of 256 characters",
            "number of messages exceeds the limit of 100",
            "The input has too many fields",
            "The prompt tokens are too many for the cache",
            "Input prompt contains an unknown token",
            "stop: too many sequences, each of them has tokens",
            "messages.3: the text is too long a word for this filter",
            "Input is not valid, the length of `user` exceeds 64",
            "thinking tokens exceed the budget of input tokens",
            "context window: too many windows are open",
            "Your account exceeds the number of prompts",
        ] {
            assert!(!is_too_long(message), "{message}");
        }
    }
}
