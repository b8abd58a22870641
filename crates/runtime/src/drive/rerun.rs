//! Reruns: a new run with the input of an earlier one.

use super::fault::Fault;
use super::start::Start;
use crate::journal::RunSummary;
use loopctl_engine::event::{Event, EventKind};
use loopctl_lang::policy::redact::HIDDEN;
use loopctl_lang::program::Program;

/// How to start a run with the input, the session, the time limit and the earlier run of a run. `recorded` is the
/// program of that run; if its model is not the one that the program names, the new run has that model too.
///
/// # Errors
/// When the events are not those of a run.
pub fn start(run_id: &str, events: &[Event], recorded: Option<&Program>) -> Result<Start, Fault> {
    let Some(EventKind::Started(started)) = events.first().map(|event| &event.kind) else {
        return Err(Fault::Journal { run: run_id.to_owned(), reason: "it does not begin with its start".to_owned() });
    };
    let own = recorded.and_then(|program| program.model().or(program.project.model.as_deref()));
    let model = Some(started.model.name.as_str()).filter(|name| !name.is_empty() && own != Some(name));
    Ok(Start {
        input: started.input.clone(),
        lists: started.run_input().lists,
        files: started.files.clone(),
        session: started.session.clone(),
        // Without a model of its own, a run that a script played has the script's name as its model.
        model: model.filter(|name| own.is_some() || *name != SCRIPT).map(str::to_owned),
        timeout_ms: started.timeout_ms,
        previous_run_id: started.previous.as_ref().map(|previous| previous.run_id.clone()),
        rerun_of: Some(run_id.to_owned()),
        ..Start::default()
    })
}

/// Whether a new run may begin with what a run was given, or did.
///
/// # Errors
/// When values of it are hidden here, or it is not whole.
pub fn may_begin_with(run: &RunSummary) -> Result<(), Fault> {
    run.is_whole().map_err(Fault::Store)?;
    if run.has_hidden_values() {
        return Err(Fault::refused(format!(
            "run {} came in a file in which values of it are hidden, and a new run would go on with `{HIDDEN}` in their place: \
             import a file with its secrets into another store",
            run.run_id
        )));
    }
    Ok(())
}

/// The model of a run that a script played, when none was named.
const SCRIPT: &str = "script";
