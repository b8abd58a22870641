//! How a run is watched while a command drives it: the flags for it, and what shows the run and listens to signals.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;

use super::failure::CommandError;
use super::interactive;
use super::next_commands::NextCommands;
use super::output::Output;
use super::pause_program::{OnPauseArgs, PauseSeen};
use super::progress::ProgressDisplay;
use super::signals;
use super::surface::Surface;
use super::telemetry::{Telemetry, TracedProcess};
use crate::diagnostic::Source;
use crate::drive::engine::{Finished, Watch};
use crate::drive::fault::Fault;
use crate::drive::run_meter::RunMeters;
use crate::drive::stop::Stop;
use crate::engine::notice::{Listener, Notice};
use crate::program::Program;
use crate::trace::{Tone, escape};

/// How a run is watched: the flags of every command that drives one.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// With --output ndjson: also print replies while they arrive, as `model_delta`
    #[arg(long)]
    pub deltas: bool,
    /// Ask in the terminal when the run waits for a human
    #[arg(long)]
    pub interactive: bool,
    #[command(flatten)]
    pub on_pause: OnPauseArgs,
}

impl WatchArgs {
    /// Refuses flags that would have no effect here.
    ///
    /// # Errors
    /// When replies are asked for in another output than that of programs, or there is no terminal to ask in.
    pub fn judge(&self, surface: &Surface) -> Result<(), CommandError> {
        if self.deltas && self.output != Output::Ndjson {
            return Err(CommandError::usage_help(
                "--deltas adds replies in parts to the events",
                "add --output ndjson",
            ));
        }
        if self.interactive {
            interactive::needs_terminal(surface)?;
        }
        Ok(())
    }
}

/// A run that is shown while it is driven, and that signals stop.
pub struct Watched {
    progress: ProgressDisplay,
    telemetry: Mutex<Option<Telemetry>>,
    stop: Stop,
    /// Whether the run has paused.
    pub pause_seen: PauseSeen,
}

impl Listener for Watched {
    fn on(&self, notice: Notice) {
        self.pause_seen.look(&notice);
        self.progress.on(notice);
    }

    fn on_line(&self, first: &str, keeps_turn: bool) {
        let stopped = match keeps_turn {
            true => {
                "Ctrl-C leaves this run in the line, and those behind it wait until `loopctl resume` continues it or \
                 `loopctl cancel` ends it"
            }
            false => "Ctrl-C takes this run out of the line",
        };
        self.note(&format!("waits for run {} to end; {stopped}", escape::line(first)));
    }

    fn wants_deltas(&self) -> bool {
        self.progress.wants_deltas()
    }
}

impl Watched {
    /// A watch over a run that is about to start.
    pub fn new(surface: &Surface, shown: &WatchArgs, program: &Program) -> Self {
        let telemetry = Telemetry::of_environment(TracedProcess::Command).unwrap_or_else(|why| {
            surface.say(&surface.line(Tone::Warn, "warning", &why));
            None
        });
        let progress = ProgressDisplay::new(surface, shown.output, shown.deltas, program);
        Self { progress, telemetry: Mutex::new(telemetry), stop: Stop::new(), pause_seen: PauseSeen::default() }
    }

    fn telemetry(&self) -> MutexGuard<'_, Option<Telemetry>> {
        // The value is only taken out, at the end.
        self.telemetry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What makes spans of the run and of those that it calls, if somebody asks for that.
    pub fn meters(&self) -> Option<Arc<dyn RunMeters>> {
        self.telemetry().as_ref().and_then(Telemetry::meters)
    }

    /// The watch for the engine.
    pub fn watch(&self) -> Watch<'_> {
        Watch { listener: Some(self), stop: Some(self.stop.clone()) }
    }

    /// Prints a remark about the command itself.
    pub fn remark(&self, text: &str) {
        self.progress.remark(text);
    }

    /// Prints a fact about the command itself that is no warning.
    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }

    /// Drives the run; `None` when it had to be dropped after two signals.
    pub async fn drive<T>(&self, run: impl Future<Output = T>) -> Option<T> {
        let result = signals::drive(run, &self.stop, &self.progress).await;
        self.progress.finish();
        result
    }

    /// The result, once all output is written; `None` when nobody reads the output and a signal arrived.
    pub async fn drained<T>(&self, finished: Option<T>) -> Option<T> {
        let mut signals = signals::Signals::new();
        let telemetry = self.telemetry().take();
        let all = async {
            self.progress.drained().await;
            if let Some(telemetry) = telemetry {
                telemetry.finish().await;
            }
        };
        tokio::select! {
            () = all => finished,
            () = signals.next() => None,
        }
    }

    /// The result; or the fault, with the command that resumes the run when the store failed during it or it
    /// had to be dropped.
    ///
    /// # Errors
    /// The fault of the run.
    pub fn finished(
        &self,
        finished: Option<Result<Finished, Fault>>,
        next: &dyn Fn(&str) -> NextCommands,
        sources: &[Source],
    ) -> Result<Option<Finished>, CommandError> {
        let resume = || self.progress.run_id().map(|run_id| next(&run_id).command("resume", ""));
        match finished {
            Some(Ok(finished)) => Ok(Some(finished)),
            Some(Err(fault)) => Err(CommandError::Fault { fault, sources: sources.to_vec(), resume: resume() }),
            None => {
                if let Some(command) = resume() {
                    self.progress.say(&format!("resume with: {}\n", escape::line(&command)));
                }
                Ok(None)
            }
        }
    }
}
