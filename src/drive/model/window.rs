//! A model's window, as its server shows it: by the words with which it refuses a request that is too long, or by a reply
//! that ends where the window does. Learned once for each model of a server in a process.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::engine::event::{Finish, Tokens};

/// The windows and counts that are believed, in tokens.
const BELIEVED: std::ops::RangeInclusive<u64> = 16..=100_000_000;

/// Words of servers behind which their window stands, in lower case.
const BEFORE_WINDOW: [&str; 15] = [
    // OpenAI, vLLM, DeepSeek, OpenRouter, llama-cpp-python.
    "maximum context length is",
    "maximum context length of",
    "max_model_len",
    // Anthropic: `prompt is too long: 208310 tokens > 200000 maximum`, and `... exceed context limit: 1 + 2 > 3`.
    "prompt is too long:",
    "exceed context limit:",
    // Gemini.
    "maximum number of tokens allowed (",
    "maximum number of tokens allowed is",
    // SGLang, TGI, LM Studio, llama-cpp-python, Ollama.
    "model's context length (",
    "context length of only",
    "context length of",
    "must be <=",
    "context window of",
    "context window is",
    "n_ctx",
    "context size (",
];

/// Words behind which the tokens of the request stand.
const BEFORE_PROMPT: [&str; 9] = [
    "resulted in",
    "prompt is too long:",
    "exceed context limit:",
    "input token count (",
    "the input (",
    "request has",
    "contains at least",
    "prompt contains",
    "given:",
];

/// Words before which the tokens of the request stand.
const BEHIND_PROMPT: [&str; 4] = ["in the messages", "of text input", "tokens from the input", "in your prompt"];

/// What a server says of the length of a request that it refuses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RefusedLength {
    /// The window in tokens.
    pub(super) window: Option<u64>,
    /// The tokens that it counted in the request.
    pub(super) prompt: Option<u64>,
}

impl RefusedLength {
    /// Reads the fields of an error (llama.cpp has `n_ctx` and `n_prompt_tokens`), or else its words.
    pub(super) fn read(error: &Value, message: &str) -> Self {
        let field = |name: &str| error.get(name).and_then(Value::as_u64);
        let message = message.to_lowercase();
        let window = field("n_ctx").or_else(|| BEFORE_WINDOW.iter().find_map(|words| window(&message, words)));
        let behind = || BEFORE_PROMPT.iter().find_map(|words| first_number(behind(&message, words)?));
        let before = || BEHIND_PROMPT.iter().find_map(|words| last_number(before(&message, words)?));
        let prompt = field("n_prompt_tokens").or_else(before).or_else(behind);
        let believed = |tokens: &u64| BELIEVED.contains(tokens);
        Self { window: window.filter(believed), prompt: prompt.filter(believed) }
    }
}

/// The window that stands behind these words: behind the last `>` of `1 + 2 > 3`, else the first number.
fn window(message: &str, words: &str) -> Option<u64> {
    let rest = behind(message, words)?;
    let is_sum = words.ends_with(':');
    first_number(if is_sum { rest.split_once('>')?.1 } else { rest })
}

/// How far behind its words a number is looked for, in characters.
const NEAR: usize = 40;

fn behind<'m>(message: &'m str, words: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(words)?;
    rest.get(..rest.floor_char_boundary(NEAR))
}

fn before<'m>(message: &'m str, words: &str) -> Option<&'m str> {
    let (begin, _) = message.split_once(words)?;
    begin.get(begin.ceil_char_boundary(begin.len().saturating_sub(NEAR))..)
}

fn first_number(text: &str) -> Option<u64> {
    let begin = text.find(|letter: char| letter.is_ascii_digit())?;
    let number = text.get(begin..)?;
    // `128,000` is one number.
    let is_part = |at: usize, letter: char| {
        letter.is_ascii_digit()
            || matches!(letter, ',' | '_') && number.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    let end = number.char_indices().find(|(at, letter)| !is_part(*at, *letter)).map_or(number.len(), |(at, _)| at);
    number.get(..end)?.replace([',', '_'], "").parse().ok()
}

fn last_number(text: &str) -> Option<u64> {
    let end = text.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let number = text.get(..end)?;
    let begin = number.rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |at| at + 1);
    number.get(begin..)?.parse().ok()
}

/// What was learned of the window of a model of a server.
#[derive(Debug, Default)]
pub(super) struct LearnedWindow {
    /// Its tokens; 0 when nothing is known.
    tokens: AtomicU64,
    /// The tokens of request and reply where a reply was last cut off before its own limit.
    cut_off_at: AtomicU64,
}

impl LearnedWindow {
    /// The window in tokens, when it is known.
    pub(super) fn known(&self) -> Option<u64> {
        Some(self.tokens.load(Ordering::Relaxed)).filter(|tokens| *tokens > 0)
    }

    /// The server said it.
    pub(super) fn learn(&self, tokens: u64) {
        self.tokens.store(tokens, Ordering::Relaxed);
    }

    /// The window that a reply shows which may have had `asked` tokens: it was cut off well before them. A provider may
    /// have a limit of its own for replies, so the tokens must make a round number, as windows are, or be the same a
    /// second time.
    pub(super) fn of_reply(&self, finish: Finish, usage: Option<Tokens>, asked: u32) -> Option<NonZeroU32> {
        let Tokens { input, output, .. } = usage.filter(|counted| counted.input > 0 && counted.output > 0)?;
        let all = input.saturating_add(output);
        if self.known().is_some_and(|known| all > known.saturating_add(1)) {
            // The server has a larger one by now.
            self.learn(0);
        }
        let asked = u64::from(asked);
        if finish != Finish::Length || output >= asked - asked / 16 || !BELIEVED.contains(&all) {
            return None;
        }
        let before = self.cut_off_at.swap(all, Ordering::Relaxed);
        let round = [all, all + 1, all - 1].into_iter().find(|tokens| tokens % 256 == 0 || tokens % 100 == 0);
        let window = round.or_else(|| (before.abs_diff(all) <= 1).then_some(all))?;
        self.learn(window);
        NonZeroU32::new(u32::try_from(window).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(error: &Value) -> (Option<u64>, Option<u64>) {
        let length = RefusedLength::read(error, error["message"].as_str().unwrap());
        (length.window, length.prompt)
    }

    /// As the servers of the providers say it, by their documentation and reports of 2023 to 2026.
    #[test]
    fn the_window_is_read_from_the_words_of_each_provider() {
        let said = |message: &str| read(&json!({ "message": message }));
        let llama = json!({ "code": 400, "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256 });
        assert_eq!(read(&llama), (Some(256), Some(1407)));
        for (message, window, prompt) in [
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130021 tokens. \
                 Please reduce the length of the messages.",
                Some(128_000),
                Some(130_021),
            ),
            (
                "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the \
                 messages, 10000 in the completion). Please reduce the length of the messages or completion.",
                Some(16_384),
                Some(112_946),
            ),
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 2048 \
                 tokens and your request has 700 input tokens (4096 > 2048 - 700).",
                Some(2_048),
                Some(700),
            ),
            (
                "This model's maximum context length is 4096 tokens. However, you requested 500 output tokens and your \
                 prompt contains at least 3597 input tokens, for a total of at least 4097 tokens.",
                Some(4_096),
                Some(3_597),
            ),
            ("prompt is too long: 208310 tokens > 200000 maximum", Some(200_000), Some(208_310)),
            (
                "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or \
                 `max_tokens` and try again",
                Some(200_000),
                Some(178_959),
            ),
            (
                "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
                Some(1_200_293),
            ),
            ("Requested tokens (2285) exceed context window of 2048", Some(2_048), None),
            (
                "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
                Some(4_096),
                Some(5_000),
            ),
            (
                "This endpoint's maximum context length is 8,192 tokens. However, you requested about 12000 tokens (8000 \
                 of text input, 4000 in the output).",
                Some(8_192),
                Some(8_000),
            ),
            (
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                None,
                None,
            ),
            ("maximum context length is 99999999999999999999 tokens", None, None),
            ("maximum context length is 1 token", None, None),
        ] {
            assert_eq!(said(message), (window, prompt), "{message}");
        }
    }

    #[test]
    fn a_reply_that_is_cut_off_at_a_round_number_or_twice_at_the_same_shows_the_window() {
        let usage = |input, output| Some(Tokens { input, output, ..Tokens::default() });
        let of = |window: &LearnedWindow, input, output| {
            window.of_reply(Finish::Length, usage(input, output), 1_000).map(|window| u64::from(window.get()))
        };
        for (input, output, shown) in [
            (1_800, 248, Some(2_048)),
            (1_800, 249, Some(2_048)),
            (900, 100, Some(1_000)),
            // As many as it was asked for, or nearly.
            (1_048, 1_000, None),
            (1_098, 950, None),
            // A limit of the provider for replies.
            (1_111, 512, None),
        ] {
            assert_eq!(of(&LearnedWindow::default(), input, output), shown, "{input} {output}");
        }
        let window = LearnedWindow::default();
        assert_eq!(window.of_reply(Finish::Stop, usage(1_800, 248), 1_000), None);
        assert_eq!((of(&window, 1_111, 512), of(&window, 1_333, 290)), (None, Some(1_623)));
        assert_eq!(window.known(), Some(1_623));
        assert_eq!(window.of_reply(Finish::Stop, usage(1_700, 20), 1_000), None);
        assert_eq!(window.known(), None, "a larger request was answered");
    }
}
