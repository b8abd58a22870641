//! Callbacks: posts each pause of a run and its result to the URL that its caller gave, signed as Hyphen's webhooks
//! are. A post is retried until it is accepted; the store has its progress.

mod pause;
mod post_shares;
mod question_links;
mod question_poster;
mod reminder;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use reqwest::{Client, Url};
use ring::hmac;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use tokio::sync::Semaphore;

use self::pause::PausesInPost;
pub use self::pause::pause_of;
use self::post_shares::PostShares;
pub use self::question_links::CallbacksLink;
pub use self::question_poster::QuestionPoster;
use super::metrics::Metrics;
use super::problem::ProblemDetails;
use super::run_store::{FoldedRun, RunRow, RunStore};
use super::view::AgentStatus;
use crate::drive::egress::Egress;
use crate::drive::fault::Fault;
use crate::drive::secret::Vault;
use crate::engine::outcome::{Ending, Status};
use crate::engine::state::Phase;
use crate::journal::{Callback, CallbackProgress, CallbackState, RunSummary, StoreError, Ticket, needs_no_human};
use crate::language::Project;
use crate::policy::host::names_host;
use crate::trace::units::rfc3339;
use axum::http::StatusCode;

/// The maximum number of tries for a post.
const MAX_TRIES: u32 = 16;
/// The wait after the first try; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait between two tries.
const MAX_WAIT: Duration = Duration::from_secs(15 * 60);
/// How long a try may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait before a retry after the store failed.
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The interval of the looks for posts that no living server makes.
const POST_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// When a callback is looked at again that can't be made, because its run can't be read.
const UNREADABLE_RETRY_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The maximum number of runs that are posted or wait for the next try here; more stay in the store.
const MAX_HELD_RUNS: usize = 1_024;
/// The maximum number of concurrent posts.
const MAX_CONCURRENT_POSTS: usize = 64;
/// That of the runs of one organisation: an address that does not answer delays no others.
const MAX_POSTS_OF_ORG: usize = 8;
/// The maximum number of runs that are read, or claimed, at a time.
const MAX_CONCURRENT_READS: usize = 16;
/// The longest URL.
const MAX_URL_BYTES: usize = 2_048;

/// Where the key is that signs what is posted.
pub struct CallbackKey {
    vault: Vault,
    source: String,
}

impl CallbackKey {
    /// The key at this source, `env:VAR` or `file:PATH`.
    ///
    /// # Errors
    /// A sentence that names the source, when it can't be read.
    pub fn new(vault: Vault, source: String) -> Result<Self, String> {
        let key = Self { vault, source };
        key.read()?;
        Ok(key)
    }

    /// The key as it is now: files change while a server runs.
    fn read(&self) -> Result<hmac::Key, String> {
        self.vault.refresh();
        let key = self.vault.read(&self.source).map_err(|why| format!("`serve.callback_secret`: {why}"))?;
        Ok(hmac::Key::new(hmac::HMAC_SHA256, key.expose_secret().as_bytes()))
    }
}

impl From<String> for CallbackKey {
    /// A key that never changes.
    fn from(text: String) -> Self {
        let (vault, source) = (Vault::new(BTreeMap::new(), Path::new("")), "the key of callbacks".to_owned());
        // Of an empty one, nothing can be read later.
        drop(vault.keep(&source, &SecretString::from(text)));
        Self { vault, source }
    }
}

/// Posts pauses and results.
pub struct Callbacks {
    runs: Arc<RunStore>,
    metrics: Arc<Metrics>,
    egress: Egress,
    /// Reads the key that signs; none without one.
    key: Option<CallbackKey>,
    /// The address at which others reach the server.
    public_url: Option<String>,
    client: OnceLock<Client>,
    room: Semaphore,
    /// What each organisation has of it.
    shares: PostShares,
    /// Bounds the runs that are read at once: after a restart, many may wait.
    reading: Semaphore,
    /// The pauses that are being posted.
    pauses: PausesInPost,
    under_way: Mutex<HashMap<String, usize>>,
    /// Whether the log says that the key can't be read.
    is_key_noted: AtomicBool,
}

/// Why a try of a post failed.
enum PostError {
    /// The key that signs can't be read; the log says so.
    NoKey(String),
    /// It was not accepted.
    NotAccepted(String),
}

impl PostError {
    fn why(self) -> String {
        match self {
            Self::NoKey(why) | Self::NotAccepted(why) => why,
        }
    }
}

impl Callbacks {
    /// The callbacks under a project's egress rules; without a key nothing is posted.
    pub fn new(runs: Arc<RunStore>, project: &Project, key: Option<CallbackKey>, metrics: Arc<Metrics>) -> Self {
        Self {
            runs,
            metrics,
            egress: Egress::new(&project.allow),
            key,
            public_url: project.serve.public_url.clone(),
            client: OnceLock::new(),
            room: Semaphore::new(MAX_CONCURRENT_POSTS),
            shares: PostShares::default(),
            reading: Semaphore::new(MAX_CONCURRENT_READS),
            pauses: PausesInPost::default(),
            under_way: Mutex::default(),
            is_key_noted: AtomicBool::new(false),
        }
    }

    /// The signature of a body by the key, as its variable or file has it now. The log says once that it can't be read, and
    /// once that it can be again.
    fn signature(&self, body: &str) -> Result<String, PostError> {
        let Some(key) = &self.key else { return Err(PostError::NoKey("there is no key".to_owned())) };
        match key.read() {
            Ok(key) => {
                if self.is_key_noted.swap(false, Ordering::SeqCst) {
                    tracing::warn!("the key that signs callbacks can be read again");
                }
                let tag = hmac::sign(&key, body.as_bytes());
                Ok(tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
            }
            Err(why) => {
                if !self.is_key_noted.swap(true, Ordering::SeqCst) {
                    tracing::error!("callbacks can't be signed, and are tried again later: {why}");
                }
                Err(PostError::NoKey(why))
            }
        }
    }

    /// The name of the key that signs, when it can't be read.
    pub fn missing_key(&self) -> Option<String> {
        let is_missing = self.key.as_ref().is_some_and(|key| key.read().is_err());
        is_missing.then(|| "serve.callback_secret".to_owned())
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
        if url.len() > MAX_URL_BYTES {
            return Err(refuse(format!("`callback_url` is longer than {MAX_URL_BYTES} bytes")));
        }
        if !names_host(url) {
            return Err(refuse("`callback_url` is no address: it names no host".to_owned()));
        }
        let parsed = Url::parse(url).map_err(|error| refuse(format!("`callback_url` is no address: {error}")))?;
        self.egress.check(&parsed).map_err(|fault| refuse(format!("`callback_url`: {fault}")))
    }

    /// Posts the result of a run that has ended, or the pause of one that waits for a human, in a task of its own, when
    /// the run has a callback.
    pub fn post_what_is_due(self: &Arc<Self>, run_id: &str) {
        if self.key.is_none() {
            return;
        }
        let (callbacks, run_id) = (Arc::clone(self), run_id.to_owned());
        *self.under_way().entry(run_id.clone()).or_default() += 1;
        tokio::spawn(
            async move {
                callbacks.post_in_time(&run_id).await;
                let mut under_way = callbacks.under_way();
                if let Some(tasks) = under_way.get_mut(&run_id) {
                    *tasks -= 1;
                    if *tasks == 0 {
                        under_way.remove(&run_id);
                    }
                }
            }
            .boxed(),
        );
    }

    /// The tasks that post, by their runs.
    fn under_way(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn post_in_time(&self, run_id: &str) {
        while let Err(fault) = self.deliver(run_id).await {
            tracing::error!(run_id, code = fault.code(), "the callback can't be made: {fault}");
            match &fault {
                Fault::Store(fault) if passes(fault) => tokio::time::sleep(STORE_RETRY_INTERVAL).await,
                _ => return drop(self.put_off(run_id).await),
            }
        }
    }

    /// A run whose callback can't be made is looked at again much later.
    async fn put_off(&self, run_id: &str) -> Result<(), Fault> {
        let Some((_, Callback { progress, .. })) = self.pending(run_id).await? else { return Ok(()) };
        self.runs
            .journal
            .note_callback(run_id, progress, Some(UNREADABLE_RETRY_INTERVAL), None)
            .await
            .map_err(Fault::Store)
    }

    /// Posts each second what no living server posts, until this is dropped.
    pub fn watch(self: &Arc<Self>) {
        let callbacks = Arc::downgrade(self);
        if self.key.is_none() {
            return;
        }
        tokio::spawn(
            async move {
                while let Some(callbacks) = callbacks.upgrade() {
                    if let Err(fault) = callbacks.claim().await {
                        tracing::error!(code = fault.code(), "callbacks can't be claimed: {fault}");
                    }
                    drop(callbacks);
                    tokio::time::sleep(POST_POLL_INTERVAL).await;
                }
            }
            .boxed(),
        );
    }

    /// Claims what is due, and posts it.
    async fn claim(self: &Arc<Self>) -> Result<(), StoreError> {
        loop {
            let most = MAX_HELD_RUNS.saturating_sub(self.under_way().len()).min(MAX_CONCURRENT_READS);
            if most == 0 {
                return Ok(());
            }
            let claimed = self.runs.journal.claim_callbacks(most).await?;
            for run_id in &claimed {
                // A task of this server that still posts it keeps it.
                if !self.under_way().contains_key(run_id) {
                    self.post_what_is_due(run_id);
                }
            }
            if claimed.len() < most {
                return Ok(());
            }
        }
    }

    async fn deliver(&self, run_id: &str) -> Result<(), Fault> {
        if self.key.is_none() {
            return Ok(());
        }
        let Some((run, callback)) = self.pending(run_id).await? else { return Ok(()) };
        // A model that can't be reached is asked again without a human, and a wait ends by itself. Nobody can decide about a run that has
        // no place in its line: it is looked at again.
        let waits_by_itself = run.termination.is_some_and(needs_no_human) || run.behind.is_some();
        if run.status == Status::Paused && waits_by_itself {
            return Ok(());
        }
        let folded = self.folded(run_id).await?;
        match &folded.state.phase {
            Phase::Ended(ending) => {
                let (name, body) = ended(&folded, &run, ending);
                // The body is all that the tries need.
                drop(folded);
                let post = Post { key: name, url: callback.url, org: run.org.clone(), body };
                self.deliver_end(&run, callback.progress.tries, &post).await
            }
            Phase::Paused { .. } => self.deliver_pause(folded, &run).await,
            _ => Ok(()),
        }
    }

    /// A run whose end is still to be posted; so are its pauses until then.
    async fn pending(&self, run_id: &str) -> Result<Option<(RunSummary, Callback)>, Fault> {
        let Some(run) = self.runs.journal.find(run_id).await.map_err(Fault::Store)? else { return Ok(None) };
        let callback = run.callback.clone().filter(|callback| callback.progress.state == CallbackState::Pending);
        Ok(callback.map(|callback| (run, callback)))
    }

    /// A run's state, when it is its turn to be read.
    async fn folded(&self, run_id: &str) -> Result<FoldedRun, Fault> {
        let _turn = self.reading.acquire().await;
        self.runs.folded(run_id).await
    }

    async fn deliver_end(&self, run: &RunSummary, mut tries: u32, post: &Post) -> Result<(), Fault> {
        let (run_id, end_ms) = (run.run_id.as_str(), run.updated_at_ms);
        loop {
            let taken = self.post(post).await;
            tries = tries.saturating_add(1);
            let state = match &taken {
                Ok(()) => CallbackState::Delivered,
                Err(_) if tries >= MAX_TRIES => CallbackState::GivenUp,
                Err(_) => CallbackState::Pending,
            };
            let progress = CallbackProgress { state, tries };
            let again_in = (state == CallbackState::Pending).then(|| wait_after(tries));
            // Only the note is retried, not the post.
            noted(run_id, || self.runs.journal.note_callback(run_id, progress, again_in, Some(end_ms))).await?;
            if let Err(PostError::NotAccepted(why)) = taken {
                tracing::warn!(run_id, tries, "the callback was not accepted: {why}");
            }
            if state == CallbackState::GivenUp {
                self.metrics.gave_up_callback();
                tracing::error!(run_id, tries, "the callback is given up");
            }
            if state != CallbackState::Pending {
                return Ok(());
            }
            tokio::time::sleep(wait_after(tries)).await;
            // It may have been retried meanwhile: its next end is posted by itself.
            let is_this_end = |now: &RunSummary| now.updated_at_ms == end_ms && now.status == run.status;
            if !self.pending(run_id).await?.is_some_and(|(now, _)| is_this_end(&now)) {
                return Ok(());
            }
        }
    }

    /// Makes a try, signed with the key as it is now.
    async fn post(&self, post: &Post) -> Result<(), PostError> {
        let posted = match self.signature(&post.body) {
            Ok(signature) => self.send(post, &signature).await.map_err(PostError::NotAccepted),
            Err(fault) => Err(fault),
        };
        self.metrics.posted(match &posted {
            Ok(()) => "accepted",
            Err(PostError::NotAccepted(_)) => "not_accepted",
            Err(PostError::NoKey(_)) => "no_key",
        });
        posted
    }

    async fn send(&self, post: &Post, signature: &str) -> Result<(), String> {
        // One that waits for the share of its organisation takes no room of the others.
        let share = self.shares.of(post.org.as_deref());
        let _share = share.acquire().await.map_err(|error| error.to_string())?;
        let _room = self.room.acquire().await.map_err(|error| error.to_string())?;
        let url = Url::parse(&post.url).map_err(|error| error.to_string())?;
        self.egress.check(&url).map_err(|fault| fault.to_string())?;
        let answer = self
            .client()?
            .post(url)
            .timeout(TRY_TIMEOUT)
            .header("content-type", "application/json")
            .header("idempotency-key", &post.key)
            .header("x-hyphen-signature", format!("sha256={signature}"))
            .body(post.body.clone())
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
        let client = self.egress.client(usize::MAX, TRY_TIMEOUT)?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// The name of the post of an end, and its body.
fn ended(folded: &FoldedRun, run: &RunSummary, ending: &Ending) -> (String, String) {
    let event = match ending.status {
        Status::Completed => "agent_run_completed",
        Status::Cancelled => "agent_run_cancelled",
        _ => "agent_run_failed",
    };
    let payload = AgentStatus::new(folded, &RunRow::from(run), false);
    // Another end of the same run is no duplicate of the first.
    let name = match folded.state.continuations.len() {
        0 => run.run_id.clone(),
        ends => format!("{}#{ends}", run.run_id),
    };
    // The time is the same for each try, so the receiver can recognise a duplicate.
    (name, body(event, rfc3339(ending.at_ms), payload))
}

fn body<T: Serialize>(event: &'static str, timestamp: String, payload: T) -> String {
    serde_json::to_string(&Envelope { event, timestamp, payload }).unwrap_or_default()
}

/// Stores the progress of a post, as often as it takes.
async fn noted(run_id: &str, note: impl Fn() -> Ticket<()>) -> Result<(), Fault> {
    while let Err(fault) = note().await {
        if !passes(&fault) {
            return Err(Fault::Store(fault));
        }
        tracing::error!(run_id, code = fault.code(), "the progress of the callback can't be stored: {fault}");
        tokio::time::sleep(STORE_RETRY_INTERVAL).await;
    }
    Ok(())
}

/// The wait after `tries` tries.
fn wait_after(tries: u32) -> Duration {
    FIRST_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(MAX_WAIT)
}

/// Whether a retry may succeed after this fault.
fn passes(fault: &StoreError) -> bool {
    !matches!(fault, StoreError::Corrupt(_) | StoreError::NoSuchRun(_))
}

/// Hyphen's envelope.
#[derive(Serialize)]
struct Envelope<T> {
    event: &'static str,
    timestamp: String,
    payload: T,
}

/// A post: each try sends the same bytes. Its body may hold tokens: it has no `Debug`.
struct Post {
    /// The idempotency key.
    key: String,
    url: String,
    /// The organisation of the run.
    org: Option<String>,
    body: String,
}
