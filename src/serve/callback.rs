//! Callbacks: posts the result of a run to the URL that its caller gave, signed as Hyphen's webhooks are. A callback
//! is retried until it is accepted; the store has its progress.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::{Client, Url};
use ring::hmac;
use tokio::sync::Semaphore;

use super::problem::ProblemDetails;
use super::run_store::RunStore;
use super::view::AgentStatus;
use crate::drive::egress::Egress;
use crate::drive::fault::Fault;
use crate::engine::outcome::Status;
use crate::engine::state::Phase;
use crate::journal::{CallbackProgress, CallbackState, RunFilter, StoreFault};
use crate::language::project::Allow;
use axum::http::StatusCode;

/// The maximum number of tries for a result.
const TRIES: u32 = 16;
/// The wait after the first try; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
/// How long a try may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The wait before a retry after the store failed.
const AGAIN: Duration = Duration::from_secs(2);
/// The maximum number of concurrent posts.
const AT_ONCE: usize = 16;
/// The longest URL.
const LONGEST_URL: usize = 2_048;

/// Posts results.
pub struct Callbacks {
    runs: Arc<RunStore>,
    egress: Egress,
    key: Option<hmac::Key>,
    client: OnceLock<Client>,
    room: Semaphore,
}

impl Callbacks {
    /// The callbacks under a project's egress rules; without a key nothing is posted.
    pub fn new(runs: Arc<RunStore>, allow: &Allow, key: Option<String>) -> Self {
        let key = key.map(|key| hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()));
        Self { runs, egress: Egress::new(allow), key, client: OnceLock::new(), room: Semaphore::new(AT_ONCE) }
    }

    /// Whether results may be posted to a URL.
    ///
    /// # Errors
    /// 422 that says why not.
    pub fn check(&self, url: &str) -> Result<(), ProblemDetails> {
        let refuse = |detail: String| ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, "callback_url", detail);
        if self.key.is_none() {
            return Err(refuse(
                "results are not posted without a key to sign them: give `serve.callback_secret` in loopctl.json"
                    .to_owned(),
            ));
        }
        if url.len() > LONGEST_URL {
            return Err(refuse(format!("`callback_url` is longer than {LONGEST_URL} bytes")));
        }
        let parsed = Url::parse(url).map_err(|error| refuse(format!("`callback_url` is no address: {error}")))?;
        self.egress.check(&parsed).map_err(|fault| refuse(format!("`callback_url`: {fault}")))
    }

    /// Posts the result of a run in a task of its own, when it has ended and has a callback.
    pub fn post_when_ended(self: &Arc<Self>, run_id: &str) {
        let (callbacks, run_id) = (Arc::clone(self), run_id.to_owned());
        tokio::spawn(async move {
            while let Err(fault) = callbacks.deliver(&run_id).await {
                tracing::error!(run_id, code = fault.code(), "the callback can't be made: {fault}");
                match &fault {
                    Fault::Store(fault) if passes(fault) => tokio::time::sleep(AGAIN).await,
                    _ => return,
                }
            }
        });
    }

    /// Posts every result that is still to be posted, after a restart.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn recover_all(self: &Arc<Self>) -> Result<(), StoreFault> {
        let filter = RunFilter { callback_pending: true, ..RunFilter::default() };
        for run in self.runs.journal.list(filter).await? {
            if !matches!(run.status, Status::Running | Status::Paused | Status::Quarantined) {
                self.post_when_ended(&run.run_id);
            }
        }
        Ok(())
    }

    async fn deliver(&self, run_id: &str) -> Result<(), Fault> {
        let Some(key) = &self.key else { return Ok(()) };
        let run = self.runs.journal.find(run_id).await.map_err(Fault::Store)?;
        let Some(callback) = run.as_ref().and_then(|run| run.callback.clone()) else { return Ok(()) };
        if callback.progress.state != CallbackState::Pending {
            return Ok(());
        }
        let folded = self.runs.folded(run_id).await?;
        let Phase::Ended(ending) = &folded.state.phase else { return Ok(()) };
        let status = ending.status;
        let envelope = Envelope {
            event: match status {
                Status::Completed => "agent_run_completed",
                Status::Cancelled => "agent_run_cancelled",
                _ => "agent_run_failed",
            },
            // The same for each try, so the receiver can recognise a duplicate.
            timestamp: crate::trace::units::rfc3339(ending.at_ms),
            payload: AgentStatus::new(&folded, run.as_ref(), false),
        };
        let body = serde_json::to_string(&envelope).unwrap_or_default();
        let signature: String =
            hmac::sign(key, body.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        // Another end of the same run is no duplicate of the first.
        let key_of_post = match folded.state.continuations.len() {
            0 => run_id.to_owned(),
            ends => format!("{run_id}#{ends}"),
        };
        let mut tries = callback.progress.tries;
        loop {
            let post = Post { key: &key_of_post, url: &callback.url, body: &body, signature: &signature };
            let taken = self.post(&post).await;
            tries = tries.saturating_add(1);
            let state = match &taken {
                Ok(()) => CallbackState::Delivered,
                Err(_) if tries >= TRIES => CallbackState::GivenUp,
                Err(_) => CallbackState::Pending,
            };
            let progress = CallbackProgress { state, tries };
            // Only the note is retried, not the post.
            while let Err(fault) = self.runs.journal.note_callback(run_id, progress).await {
                if !passes(&fault) {
                    return Err(Fault::Store(fault));
                }
                tracing::error!(run_id, code = fault.code(), "the progress of the callback can't be stored: {fault}");
                tokio::time::sleep(AGAIN).await;
            }
            if let Err(why) = taken {
                tracing::warn!(run_id, tries, "the callback was not accepted: {why}");
            }
            if state != CallbackState::Pending {
                return Ok(());
            }
            let wait = FIRST_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(LONGEST_WAIT);
            tokio::time::sleep(wait).await;
        }
    }

    async fn post(&self, post: &Post<'_>) -> Result<(), String> {
        let _room = self.room.acquire().await.map_err(|error| error.to_string())?;
        let url = Url::parse(post.url).map_err(|error| error.to_string())?;
        self.egress.check(&url).map_err(|fault| fault.to_string())?;
        let answer = self
            .client()?
            .post(url)
            .timeout(PATIENCE)
            .header("content-type", "application/json")
            .header("idempotency-key", post.key)
            .header("x-hyphen-signature", format!("sha256={}", post.signature))
            .body(post.body.to_owned())
            .send()
            .await
            .map_err(|error| error.without_url().to_string())?;
        // A redirect is no success: only the address in `callback_url` was checked.
        if answer.status().is_success() { Ok(()) } else { Err(format!("http {}", answer.status().as_u16())) }
    }

    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = self.egress.client(usize::MAX).map_err(|error| error.to_string())?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// Whether a retry may succeed after this fault.
fn passes(fault: &StoreFault) -> bool {
    !matches!(fault, StoreFault::Corrupt(_) | StoreFault::NoSuchRun(_))
}

/// Hyphen's envelope.
#[derive(serde::Serialize)]
struct Envelope {
    event: &'static str,
    timestamp: String,
    payload: AgentStatus,
}

struct Post<'a> {
    /// The idempotency key.
    key: &'a str,
    url: &'a str,
    body: &'a str,
    signature: &'a str,
}
