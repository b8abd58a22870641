//! The runs that a run started without waiting for them: the process waits for their end, and says what became of them.

use super::next_commands::NextCommands;
use super::watch::Watched;
use crate::drive::engine::{Engine, Finished};
use crate::drive::fault::Fault;
use crate::engine::outcome::Status;
use crate::trace::escape;

/// Waits for the runs that a run started, and those that they started. `is_cut`: the process ends at once, and nothing is
/// waited for.
pub async fn wait(watched: &Watched, engine: &Engine, next: &dyn Fn(&str) -> NextCommands, mut is_cut: bool) {
    loop {
        let runs = engine.spawned();
        let open: Vec<String> = runs
            .iter()
            .filter(|run| !run.task.is_finished())
            .map(|run| format!("{} ({})", escape::line(&run.run_id), escape::line(&run.program.name)))
            .collect();
        if !open.is_empty() && !is_cut {
            watched.remark(&format!("waiting for what it started: {}", open.join(", ")));
        }
        if runs.is_empty() {
            return;
        }
        for run in runs {
            let ended = if is_cut { None } else { watched.drive(run.task).await };
            is_cut |= ended.is_none();
            let resume = next(&run.run_id).command("resume", "");
            let what = match ended {
                Some(Ok(Ok(finished))) => outcome(&finished, &resume),
                Some(Ok(Err(Fault::Store(fault) | Fault::Cut(fault)))) => {
                    format!("was cut off: {fault}; resume it with: {resume}")
                }
                Some(Ok(Err(fault))) => format!("could not be driven: {fault}"),
                Some(Err(_)) | None => format!("was cut off; resume it with: {resume}"),
            };
            watched.remark(&format!("run {} {}", escape::line(&run.run_id), escape::line(&what)));
        }
    }
}

fn outcome(finished: &Finished, resume: &str) -> String {
    match finished.status() {
        Status::Paused => format!("waits for a human: {resume}"),
        Status::Running | Status::Quarantined => format!("was stopped; resume it with: {resume}"),
        status => status.word().to_owned(),
    }
}
