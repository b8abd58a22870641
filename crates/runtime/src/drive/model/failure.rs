//! Failures of one attempt: what they are, whether trying again may help, and how they are reported.

use std::error::Error;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::content_refusal::RefusalWords;
use super::refused_fields::RequestField;
use super::reply::AttemptReply;
use super::window::refused_length;
use crate::drive::http_client;
use crate::drive::secret::Vault;
use crate::drive::{clock, descriptors, retry};
use loopctl_engine::event::{Finish, ModelFaultCode, Tokens};
use loopctl_engine::json::from_bytes;
use loopctl_lang::policy::characters::is_hidden;
use loopctl_lang::policy::echo;
use loopctl_lang::policy::provider::refuses_no_effort;
use loopctl_lang::policy::quota;
use loopctl_lang::policy::window::{RefusedLength, is_code_of_length, is_too_long};

/// What is asked of who reads that a key was refused.
const ANOTHER_KEY: &str = " (is the key the right one?)";
/// What is asked of who reads that the account has nothing left.
const MORE_QUOTA: &str = " (is the quota or the credit of the account used up?)";

/// The most characters of a server's own words that are shown.
const SHOWN: usize = 300;

/// Words and codes by which servers refuse a key with another status than 401 to 403, or within a stream: Gemini and xAI
/// answer 400, Anthropic and OpenRouter send an event.
const REFUSES_KEY: [&str; 22] = [
    "api key not valid",
    "api key not found",
    "api key expired",
    "api_key_invalid",
    "invalid_api_key",
    "invalid api key",
    "incorrect api key",
    "api key is invalid",
    "authentication_error",
    "authentication failed",
    "unauthenticated",
    "permission_error",
    "permission_denied",
    "token has expired",
    "token is expired",
    "security token included in the request",
    "token included in the request is expired",
    "authenticationerror",
    "invalid x-api-key",
    "expired_api_key",
    "organization has been disabled",
    "has disabled api access",
];

/// Why one attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AttemptFailure {
    /// The kind of fault.
    pub(super) code: ModelFaultCode,
    /// What happened, in a sentence without secrets; what the server said follows the first `: `.
    pub(super) message: String,
    /// Whether the same request may succeed when it is sent again.
    pub(super) transient: bool,
    /// How far the request came, and its reply.
    pub(super) sent: SentPart,
    /// The wait that the server asked for.
    pub(super) after: Option<Duration>,
    /// The status of the answer, when it was a refusal.
    pub(super) status: Option<u16>,
    /// The tokens that the provider counted all the same.
    pub(super) usage: Option<Tokens>,
    /// The bytes of the reply that came all the same: it was made, whether the provider counted it or not.
    pub(super) written: Option<u32>,
    /// The field that the model refuses: without it, the request may succeed.
    pub(super) refused: Option<RequestField>,
    /// What the server said of the length of a request that is too long.
    pub(super) length: Option<Box<RefusedLength>>,
    /// The reply that is empty, or that was refused.
    pub(super) reply: Option<Box<AttemptReply>>,
}

/// How far a request came, and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentPart {
    /// This process, or the machine, had no descriptor for a connection: the server has no part in it.
    NoDescriptor,
    /// The server wants no request for longer than this one waits: it was held back.
    HeldBack,
    /// Nothing listens at the address of the server.
    NobodyListens,
    /// There was no connection.
    Nothing,
    /// The request, as far as is known; then the connection broke, before an answer began: as when a server starts again.
    Broken,
    /// The request, as far as is known.
    Request,
    /// The request, and in the place of a reply, the server said in an answer of status 200 why it makes none.
    Refused,
    /// The request, and a part of its reply came back.
    PartOfReply,
}

/// A number of bytes. A reply is far shorter than what fits.
pub(super) fn saturated(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl AttemptFailure {
    /// No connection, or one that broke: may help to try again.
    pub(super) fn unreachable(message: String) -> Self {
        Self { transient: true, ..Self::lasting(ModelFaultCode::ModelUnreachable, message) }
    }

    /// The server of a model had too many requests and wants none for this time: the request was held back.
    pub(super) fn held_back(model: &str, time: Duration) -> Self {
        let message = format!(
            "the model {model:?} is not asked: its server wants no request for {} ms, which is longer than `retry` waits",
            time.as_millis()
        );
        Self { sent: SentPart::HeldBack, after: Some(time), ..Self::unreachable(message) }
    }

    /// The circuit of a model is open for longer than the request waits: it was held back.
    pub(super) fn kept_out(model: &str, left: Duration, why: &str) -> Self {
        let left_ms = left.as_millis();
        let message = format!("the model {model:?} is not asked: its circuit is open for {left_ms} ms{why}");
        Self { sent: SentPart::HeldBack, after: Some(left), ..Self::unreachable(message) }
    }

    /// An answer that is not of the protocol: a server or a proxy in trouble, so it may help to try again.
    pub(super) fn protocol(message: String) -> Self {
        Self { transient: true, ..Self::lasting(ModelFaultCode::ModelProtocol, message) }
    }

    /// A failure that stays when the same is tried again.
    pub(super) fn lasting(code: ModelFaultCode, message: String) -> Self {
        Self {
            code,
            message,
            transient: false,
            sent: SentPart::Request,
            after: None,
            status: None,
            usage: None,
            written: None,
            refused: None,
            length: None,
            reply: None,
        }
    }

    /// A key that is refused, whatever the status of the answer was.
    pub(super) fn key(mut message: String) -> Self {
        message.push_str(ANOTHER_KEY);
        Self::unread_key(message)
    }

    /// An account that has nothing left, whatever the status of the answer was: to wait does not help.
    fn spent(mut message: String) -> Self {
        message.push_str(MORE_QUOTA);
        Self { status: Some(402), ..Self::lasting(ModelFaultCode::ModelRefused, message) }
    }

    /// A key that can't be read: nothing was sent.
    pub(super) fn unread_key(message: String) -> Self {
        Self { status: Some(401), ..Self::lasting(ModelFaultCode::ModelRefused, message) }
    }

    /// What happened, without what the server said.
    pub(super) fn class(&self) -> String {
        self.message.split_once(": ").map_or(self.message.as_str(), |(class, _)| class).to_owned()
    }

    /// Whether the reason lies outside of the run and somebody must act: the key is wrong, has expired, may not use the
    /// model, or its account is empty. The same request succeeds then; until then it is not sent again.
    pub(super) fn wants_a_key(&self) -> bool {
        self.code == ModelFaultCode::ModelRefused && matches!(self.status, Some(401..=403))
    }

    /// The same failure where no byte of the answer's body came before it. A connection that broke so is no reply that broke off.
    pub(super) fn before_the_first_byte(self) -> Self {
        let sent = if self.sent == SentPart::PartOfReply { SentPart::Broken } else { self.sent };
        Self { sent, ..self }
    }

    /// Whether the request may have been paid for although nothing says what it used: it was sent, and nobody refused it.
    pub(super) fn may_be_paid(&self) -> bool {
        match self.sent {
            SentPart::NoDescriptor
            | SentPart::HeldBack
            | SentPart::NobodyListens
            | SentPart::Nothing
            | SentPart::Refused => false,
            SentPart::Broken | SentPart::Request => self.transient && self.status.is_none(),
            SentPart::PartOfReply => true,
        }
    }

    /// How long the server wants no request: it has had too many, and says until when. A longer time is waited for by nobody who has
    /// another model.
    pub(super) fn held_for(&self) -> Option<Duration> {
        self.after.filter(|after| self.status == Some(429) && self.transient && *after <= retry::LONGEST_ASKED)
    }

    /// Whether the server is away, or could not answer: it may answer the same request later. One that has too many requests and says
    /// when it takes more is there.
    pub(super) fn is_outage(&self) -> bool {
        self.transient && self.reply.is_none() && self.held_for().is_none() && self.sent != SentPart::NoDescriptor
    }

    /// Whether the model replied, and said nothing.
    pub(super) fn is_empty_reply(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.finish == Finish::Stop)
    }

    /// Whether a refusal says nothing of what it is about: Gemini's words for a setting that a model does not take.
    pub(super) fn is_nameless(&self) -> bool {
        self.refuses_request() && self.message.to_lowercase().contains("request contains an invalid argument")
    }

    /// Whether the server says that the request is not as it takes it: another one may be.
    pub(super) fn refuses_request(&self) -> bool {
        matches!(self.status, Some(400 | 422))
    }
}

/// The other side, as it is named in messages.
#[derive(Clone)]
pub(super) struct Peer {
    /// Host and port.
    pub(super) name: String,
    /// Takes secrets out of its words.
    pub(super) vault: Arc<Vault>,
}

impl Peer {
    /// The other side's words as they may be shown: without secrets, without characters that move a
    /// terminal's cursor or turn the direction of text, and short.
    pub(super) fn clean(&self, text: &str) -> String {
        // Cut before the scrub too, as it need not look at megabytes. Secrets before the cut may make
        // the rest so short that what is cut in two would be shown.
        let near = self.vault.scrub_cut(text.chars().take(SHOWN * 40).collect());
        let mut shown = String::new();
        for (count, letter) in near.trim().chars().enumerate() {
            if count == SHOWN {
                shown.push('…');
                break;
            }
            shown.push(if letter.is_control() || is_hidden(letter) { ' ' } else { letter });
        }
        shown
    }

    /// What a status other than success means. `body` is the answer's beginning.
    pub(super) fn status(&self, status: u16, after: Option<Duration>, body: &[u8]) -> AttemptFailure {
        let reported = ServerError::read(body);
        let words = reported.message.as_deref().map(|words| self.clean(words)).filter(|words| !words.is_empty());
        let mut message = format!("http {status} from {}", self.name);
        if let Some(words) = &words {
            message.push_str(": ");
            message.push_str(words);
        }
        if let (400..=407 | 410..=412 | 414..=428 | 430..=499, Some(words)) = (status, &reported.content) {
            return self.content(&message, words);
        }
        match status {
            402 => AttemptFailure::spent(message),
            400..=599 if reported.is_spent() => AttemptFailure::spent(message),
            // Servers that pass on what a model's process says have a status of their own trouble for it.
            500..=599 if reported.is_too_long() => reported.refused_length(message),
            408 | 409 | 424 | 425 | 429 | 498 | 500..=599 => AttemptFailure {
                status: Some(status),
                after: after.or(reported.after),
                ..AttemptFailure::unreachable(message)
            },
            413 => reported.refused_length(message),
            400 if reported.is_of_reply() => {
                AttemptFailure { status: Some(status), ..AttemptFailure::protocol(message) }
            }
            400 if reported.refuses_key() => AttemptFailure::key(message),
            400 | 404..=499 if reported.is_too_long() => reported.refused_length(message),
            400 | 403 if reported.is_busy() => {
                let after = after.or(reported.after);
                AttemptFailure { status: Some(status), after, ..AttemptFailure::unreachable(message) }
            }
            400..=499 => {
                message.push_str(match status {
                    401 | 403 => ANOTHER_KEY,
                    404 | 405 => " (are the model's id and base_url right?)",
                    _ => reported.cure(),
                });
                let refused = matches!(status, 400 | 422).then(|| reported.refused_field()).flatten();
                AttemptFailure {
                    status: Some(status),
                    refused,
                    ..AttemptFailure::lasting(ModelFaultCode::ModelRefused, message)
                }
            }
            300..=399 => {
                message.push_str(" (redirects are not followed: give the address that it leads to as base_url)");
                AttemptFailure::lasting(ModelFaultCode::ModelRefused, message)
            }
            _ => AttemptFailure::protocol(format!("{message}: no reply")),
        }
    }

    /// What an `error` in an answer of status 200, or in a stream, means. Where it comes in place of a reply, it is a refusal as one by a
    /// status is.
    pub(super) fn error_object(&self, error: &[u8]) -> AttemptFailure {
        let reported = ServerError::read_error(error);
        let words = self.clean(reported.message.as_deref().unwrap_or("no reason given"));
        let message = format!("{} answered with an error: {words}", self.name);
        let failure = if let Some(words) = &reported.content {
            self.content(&message, words)
        } else if reported.is_too_long() {
            reported.refused_length(message)
        } else if reported.is_spent() {
            AttemptFailure::spent(message)
        } else if reported.refuses_key() {
            AttemptFailure::key(message)
        } else if reported.refuses_request() {
            let refused = reported.refused_field();
            let failure = AttemptFailure::lasting(ModelFaultCode::ModelRefused, message);
            AttemptFailure { status: Some(400), refused, ..failure }
        } else {
            AttemptFailure { after: reported.after, ..AttemptFailure::protocol(message) }
        };
        AttemptFailure { sent: SentPart::Refused, ..failure }
    }

    /// A request that is refused for its content: sent again, it would be refused again, and another key does not help.
    fn content(&self, message: &str, words: &RefusalWords) -> AttemptFailure {
        let words = self.clean(words.as_str());
        let why = if words.is_empty() { words } else { format!("{words}; ") };
        let message = format!("the provider refused the request for its content: {why}{message}");
        AttemptFailure::lasting(ModelFaultCode::ModelRefused, message)
    }

    /// What a fault of the connection means, by its causes.
    pub(super) fn connection(&self, error: &http_client::Error) -> AttemptFailure {
        let name = &self.name;
        if error.is_timeout() {
            let (what, sent) = match error.is_connect() {
                true => ("took no connection", SentPart::Nothing),
                false => ("sent nothing", SentPart::Request),
            };
            let failure = AttemptFailure::unreachable(format!("timed out: {name} {what} for too long"));
            return AttemptFailure { sent, ..failure };
        }
        let sent = match error.is_connect() {
            true if descriptors::none_left(error) => SentPart::NoDescriptor,
            true => SentPart::Nothing,
            // An answer that breaks off was made, and is paid for.
            false if error.is_body() || error.is_decode() => SentPart::PartOfReply,
            false => SentPart::Broken,
        };
        let mut kind = None;
        let mut deepest: &dyn Error = error;
        while let Some(cause) = deepest.source() {
            deepest = cause;
            kind = deepest.downcast_ref::<std::io::Error>().map(std::io::Error::kind).or(kind);
        }
        let is_refused = kind == Some(ErrorKind::ConnectionRefused);
        let sent = if is_refused { SentPart::NobodyListens } else { sent };
        let failure = AttemptFailure::unreachable(match kind {
            Some(ErrorKind::ConnectionRefused) => format!("connection refused by {name}"),
            Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted) => {
                format!("connection reset by {name}")
            }
            _ if error.is_connect() => {
                let words = deepest.to_string();
                // A server without TLS answers the first bytes of it with a page.
                let is_plain = words.contains("InvalidContentType");
                let hint = if is_plain { " (it does not speak https: does base_url begin with http://?)" } else { "" };
                format!("no connection to {name}: {}{hint}", self.clean(&words))
            }
            _ if error.is_body() || error.is_decode() => format!("the answer of {name} was cut off"),
            _ => format!("the connection to {name} broke: {}", self.clean(&deepest.to_string())),
        });
        AttemptFailure { sent, ..failure }
    }
}

/// What a server says about an error.
#[derive(Default)]
struct ServerError {
    message: Option<String>,
    /// Its message without what it repeats of the request: only this says what the error is.
    said: String,
    /// What a provider said that this server asked.
    behind: Option<String>,
    /// Its codes, with blanks between.
    codes: String,
    /// A code that is a number: that of the status which the answer would have had.
    number: Option<u64>,
    param: Option<String>,
    length: RefusedLength,
    /// What is said of a refusal for the content of the request.
    content: Option<RefusalWords>,
    /// The wait that it asks for.
    after: Option<Duration>,
    /// Whether a quota of a day is used up.
    is_day_over: bool,
}

/// What helps a model that takes tools in the Responses API only.
const OTHER_PROTOCOL: &str = " (give this model \"provider\": \"openai-responses\" in loopctl.json)";

/// What to write when a server refuses what a project can change: words of the refusal, and what helps.
const CURES: [(&str, &str); 6] = [
    (
        "function tools with reasoning_effort",
        " (give this model \"provider\": \"openai-responses\" in loopctl.json, or \"reasoning_effort\": \"none\")",
    ),
    ("v1/responses", OTHER_PROTOCOL),
    (
        "thinking.type.enabled",
        " (write \"thinking\": {\"type\": \"adaptive\"} and \"reasoning_effort\" for this model in loopctl.json)",
    ),
    ("budget_tokens", " (give the loop a max_tokens above the model's thinking.budget_tokens, or lower these)"),
    (
        "must be passed back",
        " (replies of this run were made without their reasoning: start another run, or turn reasoning off with \
         \"extra_body\": {\"thinking\": {\"type\": \"disabled\"}} in loopctl.json)",
    ),
    ("reasoning_effort", " (give the model another \"reasoning_effort\" in loopctl.json)"),
];

impl ServerError {
    /// Reads an error answer: `{"error": {...}}`, `{"message"}`, `{"detail"}`, or plain text. Pages
    /// of HTML have nothing to say.
    fn read(body: &[u8]) -> Self {
        match from_bytes::<Value>(body) {
            Ok(value) => {
                let value = value.get(0).unwrap_or(&value);
                match value.get("error").filter(|error| !error.is_null()) {
                    // Its code is beside it.
                    Some(error @ Value::String(_)) => Self { codes: codes(value), ..Self::of(error) },
                    Some(error) => Self::of(error),
                    None => Self::of(value),
                }
            }
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let text = text.trim();
                let message = (!text.is_empty() && !text.starts_with('<')).then_some(text);
                Self::of(&message.map_or(Value::Null, Value::from))
            }
        }
    }

    /// Reads the value of `error`.
    fn read_error(error: &[u8]) -> Self {
        from_bytes(error).map_or_else(|_| Self::default(), |error| Self::of(&error))
    }

    fn of(error: &Value) -> Self {
        let text = |name: &str| match error.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            _ => None,
        };
        let message = match error {
            Value::String(text) => Some(text.clone()),
            _ => text("message")
                .or_else(|| text("detail"))
                .or_else(|| (error.as_object().is_some_and(|fields| !fields.is_empty())).then(|| error.to_string())),
        };
        // A server may say in the place of a parameter's name what is wrong: no name has a blank.
        let wrong = text("param").filter(|param| param.trim().contains(' '));
        let message = match (message, &wrong) {
            (Some(message), Some(wrong)) if !message.contains(wrong) => Some(format!("{message}: {wrong}")),
            (message, _) => message,
        };
        let codes = codes(error);
        let said = match text("message").or_else(|| text("detail")).or_else(|| error.as_str().map(str::to_owned)) {
            Some(said) => echo::without_quotes(&said),
            None => echo::without_quotes(&echo::without_fields(error).to_string()),
        };
        let said = match wrong {
            Some(wrong) => format!("{said} {}", echo::without_quotes(&wrong)),
            None => said,
        };
        let words = said.as_str();
        let content = RefusalWords::of_error(error, &codes, words);
        let behind = error.pointer("/metadata/raw").and_then(Value::as_str).map(echo::without_quotes);
        let length = refused_length(error, words);
        let length_behind = RefusedLength::read(behind.as_deref().unwrap_or_default());
        Self {
            codes,
            number: error.get("code").and_then(Value::as_u64),
            param: text("param"),
            length: RefusedLength {
                window: length.window.or(length_behind.window),
                prompt: length.prompt.or(length_behind.prompt),
            },
            after: asked_in_body(error).or_else(|| retry::asked_in_words(words)),
            is_day_over: details(error)
                .filter_map(|detail| detail.get("violations").and_then(Value::as_array))
                .flatten()
                .filter_map(|violation| violation.get("quotaId").and_then(Value::as_str))
                .any(quota::is_of_a_day),
            content,
            message,
            said,
            behind,
        }
    }

    /// Whether the account has nothing left: credit, or a quota of a day or longer.
    fn is_spent(&self) -> bool {
        self.is_day_over || quota::is_spent(&self.codes, &self.said)
    }

    /// Whether the server has no place for the request now.
    fn is_busy(&self) -> bool {
        quota::is_busy(&self.codes, &self.said)
    }

    /// Whether the server says that the request is not as it takes it: the same one would be refused again.
    fn refuses_request(&self) -> bool {
        let mut codes = self.codes.split_whitespace();
        let is_of_server = self.number.is_some_and(|number| (500..600).contains(&number)) || self.is_busy();
        codes.any(|code| code == "invalid_request_error") && !is_of_server && !self.is_of_reply()
    }

    /// Whether the model's reply is what the server could not use: it is another one at the next attempt.
    fn is_of_reply(&self) -> bool {
        const OF_REPLY: [&str; 2] = ["tool_use_failed", "json_validate_failed"];
        self.codes.split_whitespace().any(|code| OF_REPLY.contains(&code))
    }

    /// Whether the reason is the key.
    fn refuses_key(&self) -> bool {
        let said = format!("{} {}", self.codes, self.said).to_lowercase();
        matches!(self.number, Some(401..=403)) || REFUSES_KEY.iter().any(|words| said.contains(words))
    }

    /// What to write in place of what was refused.
    fn cure(&self) -> &'static str {
        let message = self.message.as_deref().unwrap_or_default().to_lowercase();
        // The server advises an effort that not all of these models take.
        let refused = message.split_once("not supported for ").and_then(|(_, rest)| rest.split_whitespace().next());
        if message.contains("v1/responses") && refused.is_some_and(refuses_no_effort) {
            return OTHER_PROTOCOL;
        }
        CURES.iter().find(|(words, _)| message.contains(words)).map_or("", |(_, cure)| cure)
    }

    /// The field that the model does not take.
    fn refused_field(&self) -> Option<RequestField> {
        RequestField::refused(self.param.as_deref(), self.message.as_deref()?)
    }

    /// The failure of a request that is too long.
    fn refused_length(&self, message: String) -> AttemptFailure {
        let length = Some(Box::new(self.length));
        AttemptFailure { length, ..AttemptFailure::lasting(ModelFaultCode::ContextExceeded, message) }
    }

    /// Whether the request is longer than the model's window.
    fn is_too_long(&self) -> bool {
        self.number == Some(413)
            || self.codes.split_whitespace().any(is_code_of_length)
            || is_too_long(&self.said)
            || self.behind.as_deref().is_some_and(is_too_long)
    }
}

/// The codes of an error, with blanks between.
fn codes(error: &Value) -> String {
    let codes = ["code", "type", "status"].into_iter().filter_map(|name| match error.get(name)? {
        Value::String(code) if !code.is_empty() => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        _ => None,
    });
    codes.collect::<Vec<_>>().join(" ")
}

/// What Google's errors say beside their message.
fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

/// The wait that an error asks for in its fields: Google's `RetryInfo`, or the headers that OpenRouter passes on.
fn asked_in_body(error: &Value) -> Option<Duration> {
    let delay = details(error).find_map(|detail| detail.get("retryDelay"));
    let delay = delay.and_then(|delay| match delay {
        Value::String(text) => retry::span(text),
        _ => Duration::try_from_secs_f64(delay.as_f64().or_else(|| delay.get("seconds")?.as_f64())?).ok(),
    });
    delay.filter(|delay| !delay.is_zero()).or_else(|| {
        let headers = error.pointer("/metadata/headers")?.as_object()?;
        let header = |asked: &str| {
            let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(asked))?;
            value.as_str()
        };
        retry::asked(429, header, clock::wall_ms())
    })
}
