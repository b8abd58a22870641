//! What goes wrong between us and a server.

use super::frame::RpcError;
use super::oauth::challenge::BearerChallenge;
use crate::drive::retry::Transient;
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;

/// Why a request has no answer.
#[derive(Debug, Clone)]
pub(super) struct Unanswered {
    pub why: McpFault,
    /// Whether the request left us whole: then it may have had its effect.
    pub was_sent: bool,
}

/// What went wrong.
#[derive(Debug, Clone)]
pub(super) enum McpFault {
    /// The server could not be started, or reached: what the operator reads.
    NotStarted(String),
    /// It ended, or closed its output: how.
    Ended(String),
    /// It answered with an error.
    Refused(Box<RpcError>),
    /// A message was larger than is read.
    TooLarge,
    /// So much came before the answer that it is not waited for any more.
    TooMuchBefore,
    /// What it answered is no answer to what was asked.
    Malformed(String),
    /// The time was over: what it said meanwhile that is no message.
    Late { after: String, noise: Option<String> },
    /// It does not know who we are: the status, what it says of that, and the access token that it wants.
    NotAuthorised { status: u16, says: Option<String>, wants: Box<BearerChallenge> },
    /// It knows nothing of our session any more.
    SessionGone,
    /// It has changed since it was pinned: how.
    Changed(String),
    /// A failure of the request itself, as an HTTP action reports it.
    Request(RawFaultParts),
}

/// The parts of a fault of a request that can be shared.
#[derive(Debug, Clone)]
pub(super) struct RawFaultParts {
    pub class: String,
    pub detail: String,
    pub is_transient: bool,
}

impl From<RawFault> for Unanswered {
    fn from(raw: RawFault) -> Self {
        let parts =
            RawFaultParts { class: raw.fault.class, detail: raw.fault.detail, is_transient: raw.transient.is_some() };
        Self { why: McpFault::Request(parts), was_sent: raw.is_uncertain }
    }
}

impl Unanswered {
    /// One whose request never left us.
    pub(super) fn unsent(why: McpFault) -> Self {
        Self { why, was_sent: false }
    }

    /// One whose request was answered, or refused, so that it is known what came of it.
    pub(super) fn known(why: McpFault) -> Self {
        Self { why, was_sent: false }
    }

    /// One whose answer came: one that can't be read says nothing of what came of the request.
    pub(super) fn after_answer(why: McpFault) -> Self {
        let was_sent = !matches!(why, McpFault::Refused(_));
        Self { why, was_sent }
    }

    /// What the model and the operator read of a call of a server's tool.
    pub(super) fn raw(self, server: &str) -> RawFault {
        let Self { why, was_sent } = self;
        let (class, detail) = why.words(server, was_sent);
        let transient = why.is_transient().then(Transient::default);
        RawFault { transient, is_uncertain: was_sent, ..RawFault::from(fault(class, detail)) }
    }
}

impl McpFault {
    fn is_transient(&self) -> bool {
        match self {
            Self::NotStarted(_) | Self::Ended(_) | Self::Late { .. } | Self::SessionGone => true,
            Self::Request(parts) => parts.is_transient,
            _ => false,
        }
    }

    /// What the model reads, and what the operator reads beside it.
    pub(super) fn words(&self, server: &str, was_sent: bool) -> (String, String) {
        match self {
            Self::NotStarted(detail) => (format!("server {server}: could not be started"), detail.clone()),
            Self::Ended(detail) if was_sent => (format!("server {server}: it ended during the call"), detail.clone()),
            Self::Ended(detail) => (format!("server {server}: it ended before the call"), detail.clone()),
            Self::Refused(error) => (format!("server {server}: {}", error.line()), error.data_text()),
            Self::TooLarge => (
                format!("server {server}: the answer was larger than {} MiB", super::frame::MAX_MESSAGE >> 20),
                String::new(),
            ),
            Self::TooMuchBefore => (
                format!("server {server}: it sent more than {} MiB before the answer", super::http::MAX_STREAM >> 20),
                String::new(),
            ),
            Self::Malformed(detail) => (format!("server {server}: it answered what is no answer"), detail.clone()),
            Self::Late { after, noise: None } => (format!("server {server}: timed out after {after}"), String::new()),
            Self::Late { after, noise: Some(noise) } => {
                let class = format!("server {server}: timed out after {after}; it wrote something that is no message");
                (class, noise.clone())
            }
            Self::NotAuthorised { status, says, .. } => {
                let says = says.as_ref().map(|says| format!(": {says}")).unwrap_or_default();
                (format!("server {server}: not authorised"), format!("http {status}{says}"))
            }
            Self::SessionGone => (format!("server {server}: it has ended our session"), String::new()),
            Self::Changed(how) => {
                (format!("server {server}: changed since it was pinned: {how}; pin it again"), String::new())
            }
            Self::Request(parts) => (format!("server {server}: {}", parts.class), parts.detail.clone()),
        }
    }
}

impl RpcError {
    fn data_text(&self) -> String {
        if self.data.is_null() { String::new() } else { self.data.to_string() }
    }
}
