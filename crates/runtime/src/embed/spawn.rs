//! Runs in tasks of their own: started, or resumed.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use super::{Loop, RunHandle};
use crate::drive::begin::Begin;
use crate::drive::engine::{Resume, Watch};
use crate::drive::fault::Fault;
use crate::drive::future::BoxFuture;
use crate::drive::handled_runs::{HandledRun, LeftRun};
use crate::drive::run_result::Finished;
use crate::drive::start::Start;
use crate::drive::stop::Stop;
use loopctl_engine::event::{Decided, Decision, RaisedLimits};
use loopctl_engine::notice::{Listener, Notice};
use loopctl_engine::state::State;
use loopctl_lang::program::Program;

/// A run to be started: [`Loop::start`]. [`StartRun::spawn`] starts it, and gives a handle; `.await` starts it too, and waits for it.
/// Either way a task of its own drives it, also when who waits is dropped.
#[must_use = "the run starts when it is spawned or awaited"]
pub struct StartRun {
    of: Loop,
    start: Start,
    watched: OwnedWatch,
}

/// A run to be resumed: [`Loop::resume`]. [`ResumeRun::spawn`] resumes it, and gives a handle; `.await` resumes it too, and waits for it.
/// Either way a task of its own drives it, also when who waits is dropped.
#[must_use = "the run is resumed when it is spawned or awaited"]
pub struct ResumeRun {
    of: Loop,
    run_id: String,
    resume: Resume,
    by: Option<String>,
    watched: OwnedWatch,
}

/// Who watches a run, for its whole time.
#[derive(Default)]
struct OwnedWatch {
    listener: Option<Arc<dyn Listener>>,
    stop: Option<Stop>,
}

impl OwnedWatch {
    /// The run as it is registered: with a stop of its own, below the one that is given.
    fn driven(&self) -> Arc<HandledRun> {
        let own = Stop::new();
        HandledRun::new(self.stop.as_ref().map_or_else(|| own.clone(), |above| own.below(above)))
    }
}

/// Passes on what the listener of a program hears, and says that there is news.
struct Relay {
    to: Option<Arc<dyn Listener>>,
    run: Arc<HandledRun>,
    accepted: watch::Sender<bool>,
}

impl Listener for Relay {
    fn on(&self, notice: Notice) {
        self.run.touch();
        if let Some(to) = &self.to {
            to.on(notice);
        }
    }

    fn wants_deltas(&self) -> bool {
        self.to.as_ref().is_some_and(|to| to.wants_deltas())
    }

    fn on_accepted(&self) {
        self.accepted.send_replace(true);
        if let Some(to) = &self.to {
            to.on_accepted();
        }
    }

    fn on_line(&self, first: &str, keeps_turn: bool) {
        if let Some(to) = &self.to {
            to.on_line(first, keeps_turn);
        }
    }

    fn wants_questions(&self) -> bool {
        self.to.as_ref().is_some_and(|to| to.wants_questions())
    }

    fn on_questions(&self, program: &Program, state: &State) {
        if let Some(to) = &self.to {
            to.on_questions(program, state);
        }
    }
}

impl StartRun {
    pub(super) fn new(of: Loop, input: Value) -> Self {
        Self { of, start: Start { input, ..Start::default() }, watched: OwnedWatch::default() }
    }

    /// The id of the run. The same id again, with the same document and input, continues or returns that run; with another one it is
    /// [`Fault::Conflict`]. Default: a new one.
    pub fn id(mut self, run_id: impl Into<String>) -> Self {
        self.start.run_id = Some(run_id.into());
        self
    }

    /// The session whose memory it shares.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.start.session = Some(session.into());
        self
    }

    /// The model, in place of the document's.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.start.model = Some(name.into());
        self
    }

    /// The active time that it may take, in place of the document's.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.start.timeout_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// The organisation that it belongs to: a [`Service`] of the same store shows each organisation its own runs.
    ///
    /// [`Service`]: https://docs.rs/loopctl/latest/loopctl/serve/struct.Service.html
    pub fn org(mut self, org: impl Into<String>) -> Self {
        self.start.org = Some(org.into());
        self
    }

    /// Who starts it, for the record.
    pub fn by(mut self, name: impl Into<String>) -> Self {
        self.start.by = Some(name.into());
        self
    }

    /// The run that it reads as the previous one, in place of the last one of its session.
    pub fn after(mut self, run_id: impl Into<String>) -> Self {
        self.start.previous_run_id = Some(run_id.into());
        self
    }

    /// Hears each notice as it happens, also the pieces of replies, if it wants them. It is called between two steps: return soon.
    /// [`RunHandle::notices`] reads notices at the reader's speed, from the store.
    pub fn listener(mut self, listener: impl Listener + 'static) -> Self {
        self.watched.listener = Some(Arc::new(listener));
        self
    }

    /// Stops the run when this is requested.
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.watched.stop = Some(stop.clone());
        self
    }

    /// Starts the run. It is durable when the handle is there, and a task drives it.
    ///
    /// # Errors
    /// When it can't be started: the input does not match ([`Fault::Diagnostics`]), another run has the id ([`Fault::Conflict`]), a
    /// model or a secret is missing ([`Fault::Missing`]), or the store fails.
    pub async fn spawn(self) -> Result<RunHandle, Fault> {
        let Self { of, start, watched } = self;
        let begin = Box::pin(of.engine.begin(&of.program, start)).await?;
        let run_id = match &begin {
            Begin::New(started) => started.run_id().to_owned(),
            Begin::Same(run_id) => run_id.clone(),
        };
        let run = watched.driven();
        let relay = Relay { to: watched.listener, run: Arc::clone(&run), accepted: watch::Sender::new(true) };
        let Loop { engine, program, .. } = of.clone();
        let handle = RunHandle::driven(of, run_id, run);
        handle.drive(async move {
            let watch = Watch { listener: Some(&relay), stop: Some(relay.run.stop().clone()) };
            engine.run_created(&program, begin, watch).await
        });
        Ok(handle)
    }
}

impl ResumeRun {
    pub(super) fn new(of: Loop, run_id: String) -> Self {
        Self { of, run_id, resume: Resume::default(), by: None, watched: OwnedWatch::default() }
    }

    /// Answers its question.
    pub fn answer(self, text: impl Into<String>) -> Self {
        self.decide(Decision::Answer(text.into()))
    }

    /// Decides about what it waits for: a [`Decision`], or one about a call as it was shown
    /// ([`PausedCall::approve_as_shown`](super::PausedCall::approve_as_shown)).
    pub fn decide(mut self, decision: impl Into<Decided>) -> Self {
        self.resume.decided = Some(decision.into());
        self
    }

    /// Continues with a document, or with tools, that have changed since the run began.
    pub fn new_document(mut self) -> Self {
        self.resume.new_document = true;
        self
    }

    /// Retries what a run failed by: its model, a step, or an item.
    pub fn retry(mut self) -> Self {
        self.resume.retried = Resume::retry().retried;
        self
    }

    /// Raises limits. A run that ended by one of them continues.
    pub fn raise(mut self, limits: RaisedLimits) -> Self {
        self.resume.raised = Resume::raise(limits).raised;
        self
    }

    /// Continues although the steps of `on_failure` have run.
    pub fn after_on_failure(mut self) -> Self {
        self.resume.after_on_failure = true;
        self
    }

    /// Who decides, for the record.
    pub fn by(mut self, name: impl Into<String>) -> Self {
        self.by = Some(name.into());
        self
    }

    /// As [`StartRun::listener`].
    pub fn listener(mut self, listener: impl Listener + 'static) -> Self {
        self.watched.listener = Some(Arc::new(listener));
        self
    }

    /// As [`StartRun::stop`].
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.watched.stop = Some(stop.clone());
        self
    }

    /// Resumes the run. What was decided is durable when the handle is there, and a task drives the run. A run that has ended, or
    /// waits for a human who has not decided, stays as it is.
    ///
    /// # Errors
    /// When the decision does not fit ([`Fault::Refused`]), the document has changed ([`Fault::Changed`]), another process drives the
    /// run and can't take what is decided, or the store fails.
    pub async fn spawn(self) -> Result<RunHandle, Fault> {
        let Self { of, run_id, resume, by, watched } = self;
        let resume = match by {
            Some(by) => resume.by(&by),
            None => resume,
        };
        let run = watched.driven();
        let accepted = watch::Sender::new(false);
        let mut is_accepted = accepted.subscribe();
        let relay = Relay { to: watched.listener, run: Arc::clone(&run), accepted };
        let Loop { engine, program, .. } = of.clone();
        let handle = RunHandle::driven(of, run_id.clone(), Arc::clone(&run));
        handle.drive(async move {
            let watch = Watch { listener: Some(&relay), stop: Some(relay.run.stop().clone()) };
            engine.resume(&program, &run_id, resume, watch).await
        });
        tokio::select! {
            biased;
            // An error means that the task has dropped the sender: it has left the run.
            Ok(_) = is_accepted.wait_for(|is_accepted| *is_accepted) => Ok(handle),
            left = run.left() => left.map(|_| handle),
        }
    }
}

impl IntoFuture for StartRun {
    type Output = LeftRun;
    type IntoFuture = BoxFuture<'static, Result<Finished, Fault>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.spawn().await?.wait().await })
    }
}

impl IntoFuture for ResumeRun {
    type Output = LeftRun;
    type IntoFuture = BoxFuture<'static, Result<Finished, Fault>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.spawn().await?.wait().await })
    }
}
