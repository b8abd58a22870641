//! The beginning of a run: what it needs is gathered, and made durable before the first call.

use std::sync::Arc;

use super::called::Origin;
use super::clock;
use super::engine::{Engine, Watch, written};
use super::fault::Fault;
use super::hold::Hold;
use super::run::{Driver, Seat};
use super::start::{self, Start};
use crate::compile::Program;
use crate::engine::effect::Effects;
use crate::engine::event::{Event, Moment, What};
use crate::engine::state::State;
use crate::engine::step::step;
use crate::journal::{Created, NewRun};

/// What came of a start.
pub(super) enum Begun<'a> {
    /// A new run, to be driven.
    New(Box<Driver<'a>>, Effects),
    /// There is this run already, of the same document and input.
    There(String),
}

impl Engine {
    /// Gathers what the run needs and makes it durable; `origin` tells where one comes from that another
    /// run calls.
    pub(super) async fn begin<'a>(
        &'a self,
        program: &'a Arc<Program>,
        start: Start,
        origin: Option<&Origin>,
        watch: Watch<'a>,
    ) -> Result<Begun<'a>, Fault> {
        self.world.vault.find_all();
        let models = match self.models(program, start.model.as_deref()) {
            Ok(models) => models,
            Err(fault) => return self.there(program, (&start, origin), fault).await,
        };
        let facts = models.first().map(|model| model.facts.clone()).unwrap_or_default();
        if origin.is_none() {
            self.can_call(program, &facts.name)?;
        }
        let run_id = start.id();
        let mut started = start.event(program, run_id.clone(), Some(facts), &self.world.texts)?;
        if let Some(session) = &started.session {
            started.memory = self.world.journal.recall(session).await.map_err(Fault::Store)?;
        }
        let identity = match origin {
            Some(origin) => origin.mark(&mut started)?,
            None => start::identity(&started, &start),
        };
        let loop_name = started.loop_name.clone();
        let session = started.session.clone();
        let event =
            Event { at: Moment { wall_ms: clock::wall_ms(), active_ms: 0 }, what: What::Started(Box::new(started)) };
        let new = NewRun {
            run_id: run_id.clone(),
            loop_name,
            session,
            identity,
            at_ms: event.at.wall_ms,
            event: written(&event)?,
            texts: event.what.texts(),
        };
        // What can't begin leaves nothing in the store.
        let mut state = State::default();
        let effects = step(program, &mut state, event)?;
        match self.world.journal.create(new).await.map_err(Fault::Store)? {
            Created::New(lease) => {
                let hold = Hold::new(&self.world.journal, &run_id, &lease);
                let seat = Seat { run_id, fence: lease.fence, events: 1, hold };
                let driver = Driver::new(&self.world, program, models, (state, seat), watch);
                driver.tell_start(false);
                Ok(Begun::New(driver, effects))
            }
            Created::Same => Ok(Begun::There(run_id)),
            Created::Conflict => Err(Fault::Conflict(run_id)),
        }
    }

    /// The run of this id, for a start that has no model: one that has ended is told again without it.
    async fn there<'a>(
        &'a self,
        program: &Program,
        (start, origin): (&Start, Option<&Origin>),
        missing: Fault,
    ) -> Result<Begun<'a>, Fault> {
        let Some(run_id) = start.run_id.clone() else { return Err(missing) };
        let Some(run) = self.find(&run_id).await? else { return Err(missing) };
        let mut started = start.event(program, run_id.clone(), None, &self.world.texts)?;
        let identity = match origin {
            Some(origin) => origin.mark(&mut started)?,
            None => start::identity(&started, start),
        };
        if run.identity == identity { Ok(Begun::There(run_id)) } else { Err(Fault::Conflict(run_id)) }
    }
}
