//! The window of a model: what of it a reply may take when a loop does not say, and the words by which servers refuse a
//! request that is longer.

use std::ops::RangeInclusive;

use super::long_request;

/// The most tokens of a reply, when the window is not known; a known window never makes it more.
const MAX_REPLY_TOKENS: u32 = 4_096;
/// The least that a known window makes of it.
const MIN_REPLY_TOKENS: u32 = 256;

/// The default of `max_tokens`: a quarter of the window, 256 to 4,096, and never more than half of it.
pub fn max_tokens(window: Option<u64>) -> u32 {
    let Some(window) = window else { return MAX_REPLY_TOKENS };
    let part = |parts: u64| u32::try_from(window / parts).unwrap_or(u32::MAX);
    part(4).clamp(MIN_REPLY_TOKENS, MAX_REPLY_TOKENS).min(part(2)).max(1)
}

/// The windows and counts that are believed, in tokens.
pub const BELIEVED: RangeInclusive<u64> = 16..=100_000_000;

/// The characters of a refusal that are looked at.
const MAX_READ_CHARACTERS: usize = 4_000;
/// The most characters that a `*` of a sentence takes the place of.
const MAX_GAP_CHARACTERS: usize = 100;

/// Codes by which servers refuse a request that is too long. 1261 is GLM's.
const CODES: [&str; 10] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_exceeded",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "model_max_prompt_tokens_exceeded",
    "max_context_length_exceeded",
    "prompt_too_long",
    "input_too_long",
    "1261",
];

/// What servers say of a request that is longer than the model's window, as of November 2026: in lower case, without
/// quotation marks. `{window}` and `{prompt}` are numbers of tokens, and `*` is anything that is not long. The ones with
/// numbers come first.
const SENTENCES: [&str; 105] = [
    // Anthropic, Bedrock, Vertex; Fireworks; Ollama; GLM.
    "prompt is too long: {prompt} tokens > {window}",
    "prompt is too long: {prompt}, model maximum context length: {window}",
    "exceed context limit: {prompt} + *> {window}",
    "exceed context limit",
    "prompt is too long",
    "prompt too long",
    "prompt is too large",
    "prompt too large",
    "prompt exceeds max length",
    "prompt 超长",
    // OpenAI, vLLM, DeepSeek, OpenRouter, Together, LiteLLM.
    "maximum context length is {window}",
    "maximum context length of {window}",
    "maximum context length: {window}",
    "maximum context length",
    "input tokens exceed the configured limit of {window}",
    "input tokens exceed",
    "context_length_exceeded",
    "contextwindowexceeded",
    "context length exceeded",
    "context window exceed",
    "context limit exceeded",
    "exceed*context window",
    "exceed*context length",
    "exceed*context size",
    "exceed*context limit",
    "exceeds the context",
    "exceed the context",
    "prompt (length {prompt}) is longer than the maximum model length of {window}",
    "longer than the maximum model length of {window}",
    "{prompt} input tokens and requested *context length is only {window}",
    "context length is only {window}",
    "inputs tokens + max_new_tokens must be <= {window}",
    "inputs must have less than {window} tokens. given: {prompt}",
    "inputs must have less than {window} tokens",
    // SGLang, Together, DeepInfra, Volcengine.
    "input ({prompt} tokens) is longer than the model's context length ({window}",
    "input length {prompt}*exceeds *maximum *length *{window}",
    "input length *exceeds *maximum *length",
    "input length too long",
    "input is too long",
    "input too long",
    "longer than the model*context length",
    "model's context length",
    "exceed max message tokens",
    // Gemini and Vertex.
    "input token count {prompt} exceeds the maximum number of tokens allowed {window}",
    "input token count is {prompt} but model only supports up to {window}",
    "exceeds the maximum number of tokens allowed *{window}",
    "exceeds the maximum number of tokens",
    "request payload size exceeds the limit",
    // Bedrock.
    "too many input tokens. max input tokens: {window}, request input token count: {prompt}",
    "too many input tokens",
    "prompt tokens {prompt} exceed model maximum {window}",
    "number of input tokens exceeds maximum length",
    // xAI, Copilot, Kimi.
    "maximum prompt length is {window} but the request contains {prompt}",
    "maximum prompt length is {window}",
    "prompt token count of {prompt} exceeds the limit of {window}",
    "exceeded model token limit: {window} (requested: {prompt}",
    "exceeded model token limit",
    "total message size *exceeds limit",
    // Mistral, Groq, Cerebras.
    "prompt contains {prompt} tokens *too large for model with {window}",
    "too large for model with {window} maximum context",
    // vLLM, TensorRT-LLM and MLC.
    "max_tokens must be at least 1, got -",
    "prompt length {prompt} exceeds maximum *length {window}",
    "input prompt ({prompt} tokens) is too long and exceeds limit of {window}",
    "prompt has {prompt} tokens in total, larger than the model input length limit {window}",
    "prompt token count {prompt} cannot exceed {window}",
    "prompt has {prompt} tokens, but the maximum is {window}",
    "reduce the length of the messages *current length is {prompt} while limit is {window}",
    "reduce the length of the messages",
    // DashScope.
    "range of input length should be [1, {window}]",
    "range of input length should be",
    // Cohere.
    "total number of tokens *cannot exceed {window} - received {prompt}",
    "total number of tokens *cannot exceed {window}",
    "too many tokens:",
    // Perplexity, watsonx, Snowflake, ExLlama, and servers behind OpenCode.
    "length of all messages is too long",
    "number of input tokens {prompt} cannot exceed the total tokens limit {window}",
    "number of input tokens {prompt} cannot exceed",
    "max tokens of {window} exceeded",
    "prompt length {prompt} *max_seq_len {window}",
    "request length {prompt} *max_seq_len {window}",
    "context length {prompt} *max_seq_len {window}",
    // LM Studio; Gemini.
    "reached context length of {window} tokens",
    "contains ({prompt}) tokens, which is more than the max tokens limit allowed: ({window}",
    "tokens in request more than max tokens allowed",
    "context window is {window} tokens, you requested {prompt}",
    "maximum number of input tokens {window}",
    "total number of tokens in the prompt *not exceed {window}",
    "total tokens *exceeds model limit {window}",
    "超过模型最大上下文",
    "上下文长度超",
    // LM Studio and llama.cpp.
    "keep the first {prompt} tokens *context length of only {window}",
    "tokens to keep from the initial prompt is greater than the context length",
    "cannot truncate prompt with n_keep {prompt} >= n_ctx {window}",
    "request {prompt} tokens) exceeds the available context size {window}",
    "prompt has {prompt} tokens, but the configured context size is {window}",
    "input and maximum output tokens {prompt} exceeded this model context window limit {window}",
    "context size has been exceeded",
    "context size exceeded",
    "exceed n_ctx",
    // Gateways, and others.
    "{prompt} tokens exceed the maximum of {window}",
    "tokens ({prompt}) exceeds the model*maximum ({window})",
    "context window is full",
    "token length exceed",
    "max_prompt_tokens exceeded",
    "conversation too long",
    "conversation is too long",
];

/// What is beside such a sentence, or beside a code of one.
const BESIDE: [&str; 20] = [
    "({prompt} in the messages",
    "({prompt} in your prompt",
    "({prompt} of text input",
    ": {prompt} tokens from the input",
    "resulted in {prompt} tokens",
    "request has {prompt} input tokens",
    "prompt contains at least {prompt} input tokens",
    "contains at least {prompt} input tokens",
    "given: {prompt} inputs tokens",
    "prompt tokens {prompt} exceeds context size {window}",
    "n_keep: {prompt}>= n_ctx: {window}",
    "n_ctx: {window}",
    "n_ctx = {window}",
    "context window of {window}",
    "context window is {window}",
    "context length of {window}",
    "context size ({window}",
    "context size of {window}",
    "max_model_len *{window}",
    // A limit for each minute that no request of this length can keep.
    "(tpm): limit {window}, requested {prompt}",
];

/// Words of refusals after which a shorter reply would not help.
const WITHOUT_REPLY: [&str; 7] = [
    "range of input length should be",
    "input token count exceeds",
    "input tokens exceed",
    "input is longer",
    "inputs must have less than",
    "maximum prompt length is",
    "exceeds the maximum number of tokens allowed",
];

/// What else is too long, or too much: a limit of requests in some time, or a text in a request that is not the conversation.
const OTHER_MATTERS: [&str; 21] = [
    "session not found",
    "session expired",
    "vector store",
    "identifier",
    "by admin",
    "per minute",
    "per min ",
    "per second",
    "per hour",
    "per day",
    "rate limit",
    "rate_limit",
    "too many requests",
    "throttl",
    "please wait",
    "description",
    "above_max_length",
    "string too long",
    "string_too_long",
    "function name",
    "tool name",
];

/// What a server says of the length of a request that it refuses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefusedLength {
    /// The window in tokens.
    pub window: Option<u64>,
    /// The tokens that it counted in the request.
    pub prompt: Option<u64>,
}

impl RefusedLength {
    /// The numbers that are believed.
    #[must_use]
    pub fn believed(self) -> Self {
        let believed = |tokens: &u64| BELIEVED.contains(tokens);
        Self { window: self.window.filter(believed), prompt: self.prompt.filter(believed) }
    }

    /// The numbers in the words of a refusal that is about its length.
    pub fn read(message: &str) -> Self {
        let message = plain(message);
        let shown: Vec<Self> =
            SENTENCES.iter().chain(&BESIDE).filter_map(|sentence| matched(sentence, &message)).collect();
        let window = shown.iter().find_map(|length| length.window);
        // A request that does not fit without any reply has more tokens than that.
        let more = || window.filter(|_| WITHOUT_REPLY.iter().any(|words| message.contains(words)))?.checked_add(1);
        let prompt = shown.iter().find_map(|length| length.prompt).or_else(more);
        Self { window, prompt }.believed()
    }
}

/// Whether a code of an error says that the request is too long.
pub fn is_code_of_length(code: &str) -> bool {
    CODES.iter().any(|known| code.eq_ignore_ascii_case(known))
}

/// Whether the words of a refusal say that the request is longer than the window.
pub fn is_too_long(message: &str) -> bool {
    let message = plain(message);
    !OTHER_MATTERS.iter().any(|words| message.contains(words))
        && (SENTENCES.iter().any(|sentence| matched(sentence, &message).is_some()) || long_request::is_said(&message))
}

/// A text in lower case, without quotation marks.
fn plain(message: &str) -> String {
    let read = message.chars().take(MAX_READ_CHARACTERS).filter(|letter| !matches!(letter, '`' | '"' | '\\'));
    read.flat_map(char::to_lowercase).map(|letter| if letter == '’' { '\'' } else { letter }).collect()
}

/// The numbers of a sentence, if a text has it.
fn matched(sentence: &str, text: &str) -> Option<RefusedLength> {
    let begin = sentence.get(..sentence.find(['*', '{']).unwrap_or(sentence.len()))?;
    if begin.is_empty() {
        let mut digits = text.char_indices().filter(|(_, letter)| letter.is_ascii_digit());
        return digits.find_map(|(at, _)| matched_at(sentence, text, at, RefusedLength::default()));
    }
    text.match_indices(begin).find_map(|(at, _)| matched_at(sentence, text, at, RefusedLength::default()))
}

/// The same at a place of the text. `found`: the numbers before it.
fn matched_at(sentence: &str, text: &str, at: usize, found: RefusedLength) -> Option<RefusedLength> {
    let rest = text.get(at..)?;
    if sentence.is_empty() {
        return Some(found);
    }
    if let Some(sentence) = sentence.strip_prefix('*') {
        let ends = rest.char_indices().map(|(offset, _)| offset).chain([rest.len()]);
        return ends
            .take(MAX_GAP_CHARACTERS)
            .find_map(|offset| matched_at(sentence, text, at.saturating_add(offset), found));
    }
    if let Some(sentence) = sentence.strip_prefix("{window}") {
        let (window, end) = number(text, at)?;
        return matched_at(sentence, text, end, RefusedLength { window, ..found });
    }
    if let Some(sentence) = sentence.strip_prefix("{prompt}") {
        let (prompt, end) = number(text, at)?;
        return matched_at(sentence, text, end, RefusedLength { prompt, ..found });
    }
    let words = sentence.get(..sentence.find(['*', '{']).unwrap_or(sentence.len()))?;
    let behind = rest.strip_prefix(words)?;
    matched_at(sentence.get(words.len()..)?, text, text.len().saturating_sub(behind.len()), found)
}

/// The number that begins at a place, maybe in brackets, and its end; nothing when the place is within one. One that is
/// too large to count is passed over. `128,000` is one number, and so is `128k`.
fn number(text: &str, at: usize) -> Option<(Option<u64>, usize)> {
    let before = text.get(..at)?.chars().next_back();
    if before.is_some_and(|letter| letter.is_ascii_digit() || letter == '_') {
        return None;
    }
    let rest = text.get(at..)?;
    let digits = rest.trim_start_matches([' ', '(', '=', ':', '~']);
    let is_part = |at: usize, letter: char| {
        letter.is_ascii_digit()
            || matches!(letter, ',' | '_')
                && digits.as_bytes().get(at.saturating_add(1)).is_some_and(u8::is_ascii_digit)
    };
    let end = digits.char_indices().find(|(at, letter)| !is_part(*at, *letter)).map_or(digits.len(), |(at, _)| at);
    let count = digits.get(..end).filter(|count| count.starts_with(|letter: char| letter.is_ascii_digit()))?;
    let (times, unit) = thousands(digits.get(end..)?);
    let read = count.replace([',', '_'], "").parse::<u64>().ok().and_then(|count| count.checked_mul(times));
    let end = end.saturating_add(unit);
    let is_closed = rest.get(..rest.len().saturating_sub(digits.len()))?.contains('(')
        && digits.get(end..).is_some_and(|behind| behind.starts_with(')'));
    let behind = text.len().saturating_sub(digits.len()).saturating_add(end).saturating_add(usize::from(is_closed));
    Some((read, behind))
}

/// What a letter right behind a number multiplies it with, and its length.
fn thousands(behind: &str) -> (u64, usize) {
    let mut letters = behind.chars();
    let times = match letters.next() {
        Some('k') => 1_000,
        Some('m') => 1_000_000,
        _ => return (1, 0),
    };
    if letters.next().is_some_and(char::is_alphanumeric) { (1, 0) } else { (times, 1) }
}

#[cfg(test)]
mod tests {
    use super::{RefusedLength, is_code_of_length, is_too_long, max_tokens};

    /// As the servers of the providers say it, by their documentation and reports of 2023 to 2026.
    const SAID: &[(&str, Option<u64>, Option<u64>)] = &[
        // OpenAI.
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
            "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10341 in your \
                 prompt; 5 for the completion). Please reduce your prompt; or completion length.",
            Some(8_191),
            Some(10_341),
        ),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289573 tokens.",
            Some(272_000),
            Some(289_573),
        ),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
        // vLLM.
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
        (
            "You passed 99073 input tokens and requested 32000 output tokens. However, the model's context length is \
                 only 131072 tokens, resulting in a maximum input length of 99072 tokens. (parameter=input_tokens, \
                 value=99073)",
            Some(131_072),
            Some(99_073),
        ),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", Some(4_096), Some(5_000)),
        // Anthropic, Fireworks.
        ("prompt is too long: 208310 tokens > 200000 maximum", Some(200_000), Some(208_310)),
        (
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or \
                 `max_tokens` and try again",
            Some(200_000),
            Some(178_959),
        ),
        ("The prompt is too long: 267657, model maximum context length: 262143", Some(262_143), Some(267_657)),
        // Gemini, Vertex.
        (
            "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
            Some(1_048_576),
            Some(1_200_293),
        ),
        (
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            Some(1_048_576),
            Some(1_048_577),
        ),
        (
            "Unable to submit request because the input token count is 4117040 but model only supports up to 1048576.",
            Some(1_048_576),
            Some(4_117_040),
        ),
        ("Request payload size exceeds the limit: 20971520 bytes.", None, None),
        // Bedrock.
        ("Input is too long for requested model.", None, None),
        (
            "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9279",
            Some(8_192),
            Some(9_279),
        ),
        // llama.cpp and what is built on it.
        ("Requested tokens (2285) exceed context window of 2048", Some(2_048), None),
        ("the request exceeds the available context size, try increasing it", None, None),
        (
            "request (1407 tokens) exceeds the available context size (256 tokens), try increasing it",
            Some(256),
            Some(1_407),
        ),
        ("Prompt tokens (40000) exceeds context size (32768)", Some(32_768), Some(40_000)),
        (
            "Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens",
            Some(256_000),
            Some(5_958_968),
        ),
        // LM Studio.
        (
            "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the \
                 model with a larger context length, or provide a shorter input",
            None,
            None,
        ),
        (
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= \
                 n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
            Some(4_096),
            Some(13_055),
        ),
        (
            "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with \
                 context length of only 7866 tokens, which is not enough.",
            Some(7_866),
            Some(15_857),
        ),
        ("Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)", Some(4_096), Some(5_000)),
        ("Context size has been exceeded.", None, None),
        ("prompt tokens (9000) + max tokens exceed n_ctx", None, None),
        ("The context window is full. Please reduce the input size.", None, None),
        ("total message token length exceed model limit", None, None),
        ("Requested 9000 tokens exceed the maximum of 8192", Some(8_192), Some(9_000)),
        ("The total number of tokens (9000) exceeds the model's maximum (8192)", Some(8_192), Some(9_000)),
        ("max_prompt_tokens exceeded", None, None),
        // SGLang, Together, DeepInfra, TGI, Cloudflare.
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", Some(4_096), Some(5_000)),
        (
            "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of \
                 140000 tokens: 130000 tokens from the input messages and 10000 tokens for the completion.",
            Some(131_072),
            Some(130_000),
        ),
        ("Input length (265330) exceeds model's maximum context length (262144).", Some(262_144), Some(265_330)),
        (
            "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
            Some(59_862),
            Some(160_062),
        ),
        ("Requested input length 99009 exceeds maximum input length 8192", Some(8_192), Some(99_009)),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and \
                 1024 `max_new_tokens`",
            Some(1_512),
            Some(1_000),
        ),
        ("Input validation error: `inputs` must have less than 1024 tokens. Given: 1168", Some(1_024), Some(1_168)),
        (
            "The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8192).",
            Some(8_192),
            Some(9_000),
        ),
        // OpenRouter, Mistral, Groq, Cerebras, DeepSeek.
        (
            "This endpoint's maximum context length is 8,192 tokens. However, you requested about 12000 tokens (8000 \
                 of text input, 4000 in the output).",
            Some(8_192),
            Some(8_000),
        ),
        (
            "Prompt contains 300000 tokens and 0 images, too large for model with 262144 maximum context length",
            Some(262_144),
            Some(300_000),
        ),
        ("Please reduce the length of the messages or completion.", None, None),
        (
            "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
            Some(8_192),
            Some(9_000),
        ),
        // xAI, Kimi, Copilot, Ollama, GLM, MiniMax.
        (
            "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
            Some(131_072),
            Some(136_973),
        ),
        (
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
            Some(262_144),
            Some(291_351),
        ),
        ("total message size 2306631 exceeds limit 2097152", None, None),
        ("prompt token count of 146270 exceeds the limit of 128000", Some(128_000), Some(146_270)),
        ("prompt too long; exceeded max context length by 100918 tokens", None, None),
        ("the input length exceeds the context length", None, None),
        ("Prompt exceeds max length", None, None),
        ("invalid params, context window exceeds limit (2013)", None, None),
        // DashScope, Volcengine, Cohere.
        (
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
            Some(204_800),
            Some(204_801),
        ),
        ("Input length 203743 exceeds the maximum length 202752", Some(202_752), Some(203_743)),
        ("Total tokens of image and text exceed max message tokens. Request id: 0217", None, None),
        (
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5310. Try using a shorter prompt.",
            Some(4_081),
            Some(5_310),
        ),
        ("too many tokens: size limit exceeded by 4059 tokens. Try using shorter or fewer inputs", None, None),
        // Bedrock's Mantle, Perplexity, watsonx, Snowflake, ExLlama, OpenCode.
        ("prompt tokens (400007) exceed model maximum (278528) for openai.gpt-5.5", Some(278_528), Some(400_007)),
        ("The total length of all messages is too long.", None, None),
        (
            "the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model",
            Some(8_192),
            Some(9_000),
        ),
        ("max tokens of 128000 exceeded", Some(128_000), None),
        ("the prompt length (41234) exceeds max_seq_len (32768)", Some(32_768), Some(41_234)),
        ("Prompt length 41234 is greater than max_seq_len 32768", Some(32_768), Some(41_234)),
        ("Request length 71599 + 2048 is greater than max_seq_len 65536", Some(65_536), Some(71_599)),
        ("Context length 9000 is greater than max_seq_len 8192", Some(8_192), Some(9_000)),
        (
            "Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not currently support mid-generation \
                 context overflow. Try reloading with a larger context length or shortening the prompt/chat.",
            Some(4_096),
            None,
        ),
        (
            "Input request contains (35490) tokens, which is more than the max tokens limit allowed: (30720)",
            Some(30_720),
            Some(35_490),
        ),
        ("tokens in request more than max tokens allowed", None, None),
        ("Model context window is 128k tokens, you requested 256K tokens", Some(128_000), Some(256_000)),
        ("Prompt too large for this model", None, None),
        ("This request's input exceeds the maximum number of input tokens (200000)", Some(200_000), None),
        (
            "Please ensure that the total number of tokens in the prompt and completion does not exceed 32768 tokens",
            Some(32_768),
            None,
        ),
        (
            "The request is too large. Total tokens (prompt + max_tokens) 140000 exceeds model limit 131072",
            Some(131_072),
            None,
        ),
        // vLLM, TensorRT-LLM, MLC.
        ("max_tokens must be at least 1, got -7584. (parameter=max_tokens, value=-7584)", None, None),
        ("Prompt length (9001) exceeds maximum input length (8192).", Some(8_192), Some(9_001)),
        ("Prompt length (9001) exceeds maximum sequence length (8192).", Some(8_192), Some(9_001)),
        ("Input prompt (5000 tokens) is too long and exceeds limit of 4096", Some(4_096), Some(5_000)),
        (
            "Request prompt has 9000 tokens in total, larger than the model input length limit 8192.",
            Some(8_192),
            Some(9_000),
        ),
        ("BAD_REQUEST: prompt token count (9000) cannot exceed 8192", Some(8_192), Some(9_000)),
        ("Prompt has 5000 tokens, but the maximum is 4096", Some(4_096), Some(5_000)),
        ("输入长度超过模型最大上下文长度", None, None),
        ("Your input exceeds the model's context window", None, None),
        ("This model's maximum context length is 1m tokens", Some(1_000_000), None),
        ("maximum context length is 99999999999999999999 tokens", None, None),
        ("maximum context length is 1 token", None, None),
    ];

    #[test]
    fn the_words_of_each_server_say_that_a_request_is_too_long_and_by_which_numbers() {
        for &(message, window, prompt) in SAID {
            assert!(is_too_long(message), "{message}");
            assert_eq!(RefusedLength::read(message), RefusedLength { window, prompt }, "{message}");
        }
        for code in ["context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded", "1261"]
        {
            assert!(is_code_of_length(code), "{code}");
        }
    }

    #[test]
    fn what_is_too_large_and_not_the_request_is_another_refusal() {
        for message in [
            "",
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
            "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for this model",
            "`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is less than the \
             `context_window` for this model",
            "The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected a \
             value <= 4096, but got 8192 instead.",
            "Range of max_tokens should be [1, 8192]",
            "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that \
             is lower than 4096.",
            "Input validation error: `max_new_tokens` must be <= 192. Given: 250",
            "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got \
             a string with length 1500 instead.",
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576.",
            "tools.0.description: input length 2000 exceeds the maximum length 1024",
            "Rate limit reached for gpt-4 on tokens per min (TPM): Limit 10000, Used 9000, Requested 2000.",
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens \
             must be reduced in order to run successfully.",
            "This request would exceed your organization's rate limit of 50,000 input tokens per minute",
            "Too many tokens, please wait before trying again.",
            "Too many tokens per day, please wait before trying again.",
            "Prompt tokens limit exceeded: 36163 > 29652. To increase, visit https://openrouter.ai/settings/credits",
            "this key may not use the long context window",
            "Model context window too small (minimum is 128k tokens)",
            "max_tokens 9999 exceeds model limit 4096",
            "Context window editing is not supported by this model.",
            "messages: text content blocks must be non-empty",
            "failed to load the model: context size 131072 is too large for the memory",
            "exceeded",
        ] {
            assert!(!is_too_long(message), "{message}");
        }
        for code in ["rate_limit_exceeded", "string_above_max_length", "invalid_request_error", "400", "12610"] {
            assert!(!is_code_of_length(code), "{code}");
        }
    }

    #[test]
    fn a_hostile_text_is_read_in_bounded_time_and_numbers_beside_a_code_count() {
        let long = "input length 1 exceeds maximum ".repeat(10_000);
        assert_eq!(RefusedLength::read(&long), RefusedLength::default());
        assert!(!is_too_long(&"maximum context".repeat(300)));
        assert_eq!(RefusedLength::read("loaded with a context window of 4096 tokens").window, Some(4_096));
        let limit = "Request too large on tokens per minute (TPM): Limit 6000, Requested 14810, please reduce your message size";
        assert_eq!(RefusedLength::read(limit), RefusedLength { window: Some(6_000), prompt: Some(14_810) });
    }

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
