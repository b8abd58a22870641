//! The beginning of a run, apart from the driving of it: a server tells its caller that a run is in the
//! store before anybody drives it.

use std::sync::Arc;

use super::clock;
use super::engine::{Engine, Finished, Watch, written};
use super::fault::Fault;
use super::hold::Hold;
use super::model::Model;
use super::run::{Driver, Seat};
use super::start::{self, Start};
use crate::compile::Program;
use crate::engine::effect::Effects;
use crate::engine::event::{Event, Moment, What};
use crate::engine::state::State;
use crate::engine::step::step;
use crate::journal::{Created, NewRun};

/// What came of beginning a run.
pub enum Begin {
    /// It is in the store, and is the caller's to drive.
    New(Box<Begun>),
    /// A run of this id, document and input was begun before.
    Same(String),
}

/// A run that has begun and that nobody drives yet. Dropped, it stays in the store for whoever takes it
/// up.
pub struct Begun {
    run_id: String,
    state: State,
    effects: Effects,
    models: Vec<Arc<Model>>,
    fence: u64,
    hold: Hold,
}

impl Begun {
    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Leaves the run for later: it is running, and nobody drives it.
    ///
    /// # Errors
    /// When the store fails; the run is there all the same.
    pub async fn leave(self) -> Result<(), Fault> {
        self.hold.give_back().await.map_err(Fault::Store)
    }
}

impl Engine {
    /// Makes a run in the store. Nothing of it is done yet.
    ///
    /// # Errors
    /// When the run can't be started, its id is another run's, or the store fails.
    pub async fn begin(&self, program: &Arc<Program>, start: Start) -> Result<Begin, Fault> {
        self.world.vault.find_all();
        let models = self.models(program, start.model.as_deref())?;
        let facts = models.first().map(|model| model.facts.clone()).unwrap_or_default();
        let run_id = start.id();
        let mut started = start.event(program, run_id.clone(), facts)?;
        if let Some(session) = &started.session {
            started.memory = self.world.journal.recall(session).await.map_err(Fault::Store)?;
        }
        let identity = start::identity(&started, &start);
        let loop_name = started.loop_name.clone();
        let session = started.session.clone();
        let event =
            Event { at: Moment { wall_ms: clock::wall_ms(), active_ms: 0 }, what: What::Started(Box::new(started)) };
        let new = NewRun {
            run_id: run_id.clone(),
            loop_name,
            session,
            org: start.org,
            callback_url: start.callback_url,
            identity,
            at_ms: event.at.wall_ms,
            event: written(&event)?,
        };
        // What can't begin leaves nothing in the store.
        let mut state = State::default();
        let effects = step(program, &mut state, event)?;
        match self.world.journal.create(new).await.map_err(Fault::Store)? {
            Created::New(lease) => {
                let hold = Hold::new(&self.world.journal, &run_id, &lease);
                Ok(Begin::New(Box::new(Begun { run_id, state, effects, models, fence: lease.fence, hold })))
            }
            Created::Same => Ok(Begin::Same(run_id)),
            Created::Conflict => Err(Fault::Conflict(run_id)),
        }
    }

    /// Drives a run that has begun until it ends, waits for a human, or is stopped.
    ///
    /// # Errors
    /// When the store fails under way.
    pub async fn drive(&self, program: &Arc<Program>, begun: Begun, watch: Watch<'_>) -> Result<Finished, Fault> {
        let Begun { run_id, state, effects, models, fence, hold } = begun;
        let seat = Seat { run_id, fence, events: 1, hold };
        let driver = Driver::new(&self.world, program, models, (state, seat), watch.clone());
        driver.tell_start(false);
        let finished = driver.drive(effects).await?;
        self.left(program, finished, &watch).await
    }
}
