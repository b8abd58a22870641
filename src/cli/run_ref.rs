//! The run that a user means: its id, the beginning of it, or the last one.

use super::failure::CommandError;
use crate::diagnostic::nearest;
use crate::journal::{Journal, RunFilter, RunSummary, StoreFault};

/// The newest run.
const LAST: &str = "last";
/// The most runs that a message lists.
const MAX_LISTED_RUNS: usize = 8;
/// The number of the newest runs among which the nearest id is looked for.
const MAX_COMPARED_RUNS: usize = 500;
/// Shorter texts are near to everything.
const MIN_COMPARED_CHARACTERS: usize = 5;

/// The id of the run that a text names: an id, the beginning of one id alone, `last`, or `last:LOOP`. `store` is the
/// store as a message names it.
///
/// # Errors
/// When it names no run, or several, or the store can't be read.
pub async fn resolve(journal: &dyn Journal, given: &str, store: &str) -> Result<String, CommandError> {
    // A run may have any id that its caller gave it.
    if journal.find(given).await?.is_some() {
        return Ok(given.to_owned());
    }
    if given == LAST {
        let newest = journal.list(RunFilter { limit: 1, ..RunFilter::default() }).await?;
        return first(newest).ok_or_else(|| CommandError::usage(format!("there are no runs in {store}")));
    }
    if let Some(name) = given.strip_prefix(LAST).and_then(|rest| rest.strip_prefix(':')) {
        return last_of(journal, name, store).await;
    }
    let with_prefix =
        RunFilter { id_prefix: Some(given.to_owned()), limit: MAX_LISTED_RUNS + 1, ..RunFilter::default() };
    let mut runs = if given.is_empty() { Vec::new() } else { journal.list(with_prefix.clone()).await? };
    if runs.is_empty() && given.contains('.') {
        runs = journal.list(RunFilter { called: true, ..with_prefix }).await?;
    }
    match runs.as_slice() {
        [] => Err(unknown(journal, given, store).await?),
        [only] => Ok(only.run_id.clone()),
        _ => Err(ambiguous(given, &runs)),
    }
}

fn first(runs: Vec<RunSummary>) -> Option<String> {
    runs.into_iter().next().map(|run| run.run_id)
}

async fn last_of(journal: &dyn Journal, name: &str, store: &str) -> Result<String, CommandError> {
    let of = RunFilter { loop_name: Some(name.to_owned()), limit: 1, ..RunFilter::default() };
    if let Some(run_id) = first(journal.list(of).await?) {
        return Ok(run_id);
    }
    let runs = newest(journal).await?;
    let near = nearest(name, runs.iter().map(|run| run.loop_name.as_str()));
    let near = near.map_or_else(String::new, |near| format!("; did you mean `last:{near}`?"));
    Err(CommandError::usage(format!("there is no run of a loop `{name}` in {store}{near}")))
}

async fn newest(journal: &dyn Journal) -> Result<Vec<RunSummary>, StoreFault> {
    journal.list(RunFilter { limit: MAX_COMPARED_RUNS, ..RunFilter::default() }).await
}

async fn unknown(journal: &dyn Journal, given: &str, store: &str) -> Result<CommandError, CommandError> {
    let runs = newest(journal).await?;
    let ids = || runs.iter().map(|run| run.run_id.as_str());
    // What was given may be the beginning of an id, with a slip in it.
    let starts_alike = |id: &str| id.get(..given.len()).is_some_and(|head| nearest(given, [head]).is_some());
    let near =
        nearest(given, ids()).or_else(|| ids().find(|id| given.len() > MIN_COMPARED_CHARACTERS && starts_alike(id)));
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Ok(CommandError::usage_help(
        format!("there is no run {given} in {store}{near}"),
        "`loopctl runs` lists the runs of a store; --store or --document selects another store",
    ))
}

fn ambiguous(given: &str, runs: &[RunSummary]) -> CommandError {
    let listed: Vec<&str> = runs.iter().take(MAX_LISTED_RUNS).map(|run| run.run_id.as_str()).collect();
    let more = if runs.len() > MAX_LISTED_RUNS { ", and more" } else { "" };
    CommandError::usage_help(
        format!("several runs begin with {given}: {}{more}", listed.join(", ")),
        "give more of the id, or the whole id",
    )
}
