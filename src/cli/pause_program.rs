//! `--on-pause`: notifies a program that a run waits for a human.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;

use super::output::json_line;
use super::signals::Signals;
use super::surface::Surface;
use crate::drive::tool::NamedProgram;
use crate::engine::notice::Notice;
use crate::engine::state::State;
use crate::journal::failpoint;
use crate::program::Program;
use crate::trace::{PausedRun, Redaction, Tone};

/// The most characters of what a failed program printed.
const MAX_SHOWN_CHARACTERS: usize = 1_000;
/// The longest time that the program may take.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(30);

/// The program that is notified of a pause.
#[derive(Debug, Clone, Default, Args)]
pub struct OnPauseArgs {
    /// A program to start when the run pauses: its argument is the run's id, its stdin what the run waits for, as JSON
    #[arg(long, value_name = "PROGRAM")]
    pub on_pause: Option<PathBuf>,
}

/// Whether the run paused while this command drove it: a pause is reported once.
#[derive(Debug, Default)]
pub struct PauseSeen(AtomicBool);

impl PauseSeen {
    /// Looks at a notice.
    pub fn look(&self, notice: &Notice) {
        if matches!(notice, Notice::Paused { .. }) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

impl OnPauseArgs {
    /// Starts the program if the run paused in this command, and waits for a human now. Its failure is a warning.
    pub async fn tell(&self, surface: &Surface, seen: &PauseSeen, program: &Program, state: &State) {
        let Some(named) = self.on_pause.as_deref().filter(|_| seen.0.load(Ordering::SeqCst)) else { return };
        let redact = Redaction::new(&program.project.redact);
        let paused = PausedRun::of(state, &redact).filter(|paused| !paused.pause.question.kind.is_wait());
        let Some(paused) = paused else { return };
        let Ok(stdin) = json_line(&paused) else { return };
        let run = NamedProgram { program: named, argument: &paused.agent_run_id, stdin, at_most: longest() };
        let mut signals = Signals::new();
        // The run is in the store: nothing is lost when the program is killed.
        let why = tokio::select! {
            ended = run.run() => match ended {
                Ok(()) => return,
                Err(fault) if fault.detail.trim().is_empty() => fault.class,
                Err(fault) => format!("{}: {}", fault.class, cut(fault.detail.trim())),
            },
            () = signals.next() => "stopped by a signal".to_owned(),
        };
        surface.say(&surface.line(Tone::Warn, "warning", &sentence(named, &why)));
    }
}

/// The longest time that the program may take; a test makes it shorter.
fn longest() -> Duration {
    failpoint::time("on_pause").unwrap_or(PROGRAM_TIMEOUT)
}

fn sentence(program: &Path, why: &str) -> String {
    format!("--on-pause: {} was not notified of the pause: {why}", program.display())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
