//! Forks: a run that begins with the first steps of another one. They are part of its first event, so that a run with half
//! of them can't exist.

use super::effect::{Effect, Effects, Refused};
use super::event::{CopiedUsage, Event, EventKind, ForkPoint, Started};
use super::state::State;
use super::step::step;
use loopctl_lang::program::Program;

/// Starts a run with steps of another one. What they asked for was done there; only what the last of them asks for is to be
/// done.
pub(super) fn begin(program: &Program, state: &mut State, event: Event) -> Result<Effects, Refused> {
    let (at, EventKind::Started(started)) = (event.at, event.kind) else {
        return Err(Refused::new("only the start of a run has copied steps"));
    };
    let Some(fork) = started.fork.clone() else { return Err(Refused::new("nothing was copied")) };
    let copied = fork.copied().map_err(|why| Refused::new(format!("a copied event can't be read: {why}")))?;
    // What is copied was done with a place: a fork waits for its own one before its first request.
    let alone = Started { fork: None, in_line: false, ..*started };
    let mut forked = State::new(program);
    let mut effects = step(program, &mut forked, Event { at, kind: EventKind::Started(Box::new(alone)) })?;
    for (number, event) in copied.into_iter().enumerate() {
        if matches!(event.kind, EventKind::Admitted) {
            continue;
        }
        effects = step(program, &mut forked, event)
            .map_err(|why| Refused::new(format!("the copied event {number} does not fit: {why}")))?;
    }
    effects.retain(|effect| !matches!(effect, Effect::Remember(_)));
    let point = ForkPoint { run_id: fork.run_id.into_boxed_str(), iteration: fork.iteration };
    let copied = CopiedUsage { tokens: forked.counters.tokens, cost_usd: forked.counters.cost_usd };
    let header = std::sync::Arc::make_mut(&mut forked.header);
    (header.fork, header.copied) = (Some(point), copied);
    *state = forked;
    Ok(effects)
}
