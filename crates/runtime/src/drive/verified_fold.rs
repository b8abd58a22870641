//! A run folded again from its store: each event must fit, and all must come out as they were stored.

use serde_json::Value;
use std::fmt::Write as _;

use super::fault::Fault;
use super::fold::written;
use super::status::status_record;
use super::world::Engine;
use loopctl_engine::conversation::Conversation;
use loopctl_engine::digest::Digest;
use loopctl_engine::event::Event;
use loopctl_engine::outcome::Status;
use loopctl_engine::state::{Phase, State};
use loopctl_engine::step::step;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::Program;

/// A run that was folded again.
pub struct Refolded {
    /// The digest of its state.
    pub state: Digest,
    /// How many events it has.
    pub events: usize,
    /// What the model was asked, request by request.
    pub requests: Vec<RequestDigest>,
    /// What came out otherwise than it was stored; none when all is the same.
    pub differs: Option<String>,
}

/// The digest of what a model is sent.
pub struct RequestDigest {
    /// The iteration, from 1.
    pub iteration: u32,
    /// How many messages are sent.
    pub messages: usize,
    /// Of all of them.
    pub digest: Digest,
}

impl Engine {
    /// Folds a run again, twice, and compares: the events with those that this version would write, the states with each
    /// other, and the record in lists with the state.
    ///
    /// # Errors
    /// When there is no such run, or its journal can't be read.
    pub async fn refold(&self, program: &Program, run_id: &str) -> Result<Refolded, Fault> {
        let stored = self.journal().read(run_id).await.map_err(Fault::Store)?;
        let events = self.events(run_id).await?;
        let (state, requests) = folded(program, run_id, &events)?;
        let (again, _) = folded(program, run_id, &events)?;
        let mut differs = None;
        for (at, (event, stored)) in events.iter().zip(&stored).enumerate() {
            if !holds(&written(event)?, stored) {
                differs = Some(format!("event {at} would be written otherwise"));
                break;
            }
        }
        let digest = digest_of(&state);
        if differs.is_none() && digest != digest_of(&again) {
            differs = Some("two folds of the same events give two states".to_owned());
        }
        if let Some(summary) = self.find(run_id).await?.filter(|_| differs.is_none()) {
            let record = status_record(program, &state);
            let listed = (summary.status, summary.termination);
            // Lists say more of a run that is under way.
            let is_under_way = matches!(summary.status, Status::Running | Status::Quarantined);
            if !is_under_way
                && (listed != (record.status, record.termination) || summary.iterations != record.iterations)
            {
                differs = Some("the list of runs says otherwise than its events".to_owned());
            }
        }
        Ok(Refolded { state: digest, events: events.len(), requests, differs })
    }
}

fn folded(program: &Program, run_id: &str, events: &[Event]) -> Result<(State, Vec<RequestDigest>), Fault> {
    let (mut state, mut requests) = (State::new(program), Vec::new());
    for (at, event) in events.iter().enumerate() {
        let before = state.model_calls();
        step(program, &mut state, event.clone()).map_err(|refused| Fault::Journal {
            run: run_id.to_owned(),
            reason: format!("event {at} does not fit: {refused}"),
        })?;
        let asks = matches!(state.phase, Phase::Thinking { .. } | Phase::Summarizing { .. });
        let is_new = at == 0
            || state.model_calls() != before
            || !matches!(event.kind, loopctl_engine::event::EventKind::Interrupted);
        if let Some(of_loop) = state.as_loop().filter(|_| asks && is_new) {
            requests.push(RequestDigest {
                iteration: state.counters.iterations.saturating_add(1),
                messages: of_loop.conversation.messages.len(),
                digest: digest_of_messages(&of_loop.conversation),
            });
        }
    }
    requests.dedup_by(|next, one| next.iteration == one.iteration && next.digest == one.digest);
    Ok((state, requests))
}

/// The digest of what a model is sent.
fn digest_of_messages(conversation: &Conversation) -> Digest {
    let mut digest = Digest::new();
    for message in &conversation.messages {
        digest.add(&format!("{:?}", message.role));
        digest.add(&message.text);
        for call in message.calls() {
            digest.add(&call.name);
            digest.add(&call.arguments);
        }
    }
    digest
}

/// The digest of a whole state: all of its fields, with their names.
fn digest_of(state: &State) -> Digest {
    struct Into(Digest);
    impl std::fmt::Write for Into {
        fn write_str(&mut self, part: &str) -> std::fmt::Result {
            self.0.extend(part);
            Ok(())
        }
    }
    let mut into = Into(Digest::new());
    // Writing into a digest can't fail.
    let _ = write!(into, "{state:?}");
    into.0
}

/// Whether what would be written has everything that is stored: byte for byte, or, in a journal of an earlier version,
/// with fields beside it that this one names.
fn holds(written: &str, stored: &str) -> bool {
    fn within(small: &Value, large: &Value) -> bool {
        match (small, large) {
            (Value::Object(small), Value::Object(large)) => {
                small.iter().all(|(name, value)| large.get(name).is_some_and(|other| within(value, other)))
            }
            _ => small == large,
        }
    }
    if written == stored {
        return true;
    }
    let read = |text| json_text::read::<Value>(text).ok();
    read(stored).zip(read(written)).is_some_and(|(stored, written)| within(&stored, &written))
}
