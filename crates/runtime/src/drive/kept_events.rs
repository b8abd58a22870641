//! A run that begins to wait for events looks at those that came before.

use std::collections::BTreeSet;

use super::clock;
use super::fault::Fault;
use super::outside_events::{awaited, decided, has_taken};
use super::run::Driver;
use crate::journal::{AwaitedEvent, OutsideEvent};
use loopctl_engine::effect::Effects;
use loopctl_engine::event::EventKind;

impl Driver<'_> {
    /// Takes the events that came before steps began to wait for them. None: there was none.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn take_kept_events(&mut self) -> Result<Option<Effects>, Fault> {
        // What steps of a called run wait for, its caller looks for.
        if self.state.header.caller.is_some() {
            return Ok(None);
        }
        let key = |step: &AwaitedEvent| format!("{} {:?}", step.at, step.hash);
        let mut new = awaited(&self.state);
        new.retain(|step| !self.looked_for.contains(&key(step)));
        if new.is_empty() {
            return Ok(None);
        }
        let names: BTreeSet<String> = new.iter().map(|step| step.takes.event.clone()).collect();
        let names = names.into_iter().collect();
        let kept = self.world.journal.kept_events(&self.lease.run_id, names, clock::wall_ms()).await;
        let kept = kept.map_err(Fault::Cut)?;
        self.looked_for.extend(new.iter().map(key));
        let mut effects = None;
        for step in new {
            let is_meant = |event: &&OutsideEvent| {
                let data = serde_json::from_str(&event.data).unwrap_or_default();
                step.fits(event, &data) && !has_taken(&self.state, &event.id)
            };
            let Some(event) = kept.iter().find(is_meant) else { continue };
            let event = event.clone();
            let what = EventKind::Human(decided(&step.at, step.hash.as_deref(), &event));
            let taken = match self.take(what).await {
                Ok(taken) => taken,
                // An earlier one of them changed what waits.
                Err(Fault::Refused(_)) => continue,
                Err(fault) => return Err(fault),
            };
            effects.get_or_insert_with(Effects::new).extend(taken);
            self.world.journal.event_taken(event.org.as_deref(), &event.id).await.map_err(Fault::Cut)?;
        }
        Ok(effects)
    }
}
