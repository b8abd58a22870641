//! What is shown while a run goes on: a story with a spinner for people, lines of JSON for machines.

mod lines;
mod story;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use lines::Lines;
pub use story::Story;

use super::output::{Output, json_line};
use super::surface::Surface;
use crate::engine::notice::{Listener, Notice};
use crate::trace::look::cut;
use crate::trace::text::Pieces;
use crate::trace::{Redaction, escape};

/// Listens to a run and shows it.
pub struct Progress {
    surface: Surface,
    output: Output,
    seen: Mutex<ShownProgress>,
}

struct ShownProgress {
    story: Story,
    spinner: Option<ProgressBar>,
    /// The writer of lines for machines.
    lines: Option<Lines>,
    /// The run's id, once it has started.
    run_id: Option<String>,
}

impl Progress {
    /// A listener for this output.
    pub fn new(surface: &Surface, output: Output, redact: Redaction) -> Self {
        let story = Story::new(Pieces { look: surface.err, shorten: true }, redact);
        let lines = (output == Output::Ndjson).then(|| Lines::new(*surface));
        Self {
            surface: *surface,
            output,
            seen: Mutex::new(ShownProgress { story, spinner: None, lines, run_id: None }),
        }
    }

    /// The id of the run that has started or resumed, if any.
    pub fn run_id(&self) -> Option<String> {
        self.seen().run_id.clone()
    }

    /// Prints a line about the command itself, between the lines of the story.
    pub fn say(&self, text: &str) {
        let seen = self.seen();
        self.write(&seen, text);
    }

    /// Prints a remark about the command itself, in the style of the story.
    pub fn remark(&self, text: &str) {
        let seen = self.seen();
        self.write(&seen, &Pieces { look: self.surface.err, shorten: true }.remark(text));
    }

    /// Removes the spinner.
    pub fn finish(&self) {
        if let Some(spinner) = self.seen().spinner.take() {
            spinner.finish_and_clear();
        }
    }

    fn seen(&self) -> MutexGuard<'_, ShownProgress> {
        // If another thread panicked, at worst a line is missing.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, seen: &ShownProgress, text: &str) {
        match &seen.spinner {
            Some(spinner) => spinner.suspend(|| self.surface.say(text)),
            None => self.surface.say(text),
        }
    }

    fn human(&self, seen: &mut ShownProgress, notice: &Notice) {
        let text = seen.story.on(notice);
        if !text.is_empty() {
            self.write(seen, &text);
        }
        if !self.surface.err_terminal {
            return;
        }
        match doing(notice) {
            Doing::Same => {}
            Doing::Nothing => {
                if let Some(spinner) = seen.spinner.take() {
                    spinner.finish_and_clear();
                }
            }
            Doing::This(what) => {
                let what = cut(&escape::line(&what), self.surface.err.width.saturating_sub(16));
                let spinner = seen.spinner.get_or_insert_with(spinner);
                spinner.reset_elapsed();
                spinner.set_message(what);
            }
        }
    }

    /// Waits until all lines are written.
    pub async fn drained(&self) {
        let lines = self.seen().lines.take();
        if let Some(lines) = lines {
            lines.drained().await;
        }
    }
}

impl Listener for Progress {
    fn on(&self, notice: Notice) {
        let mut seen = self.seen();
        let known = seen.run_id.is_some();
        if let Notice::RunStarted { run_id, .. } | Notice::RunResumed { run_id, .. } = &notice {
            seen.run_id = Some(run_id.clone());
        }
        match self.output {
            // The run resumes after a decision in the terminal: its header was already shown.
            Output::Human if known && matches!(notice, Notice::RunResumed { .. }) => {}
            Output::Human => self.human(&mut seen, &notice),
            Output::Json => {}
            Output::Ndjson => {
                let line = seen.story.json(&notice).and_then(|value| json_line(&value));
                if let (Some(lines), Ok(line)) = (&seen.lines, line) {
                    lines.write(line);
                }
            }
        }
    }
}

/// What the spinner shows after a notice.
enum Doing {
    Same,
    Nothing,
    This(String),
}

fn doing(notice: &Notice) -> Doing {
    match notice {
        Notice::ModelAsked { .. } => Doing::This("thinking".to_owned()),
        Notice::ModelRetried { .. } => Doing::This("waiting to retry the request".to_owned()),
        Notice::ToolCalled { action, .. } => Doing::This(format!("calling {action}")),
        Notice::ModelReplied { .. } | Notice::Paused { .. } | Notice::RunEnded { .. } => Doing::Nothing,
        Notice::RunStarted { .. }
        | Notice::RunResumed { .. }
        | Notice::ModelDelta { .. }
        | Notice::Observed { .. }
        | Notice::Decided { .. }
        | Notice::BudgetWarning { .. }
        | Notice::HistoryTrimmed { .. }
        | Notice::Progress { .. } => Doing::Same,
    }
}

fn spinner() -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("     {spinner} {msg} · {elapsed}") {
        spinner.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
    }
    spinner.enable_steady_tick(Duration::from_millis(90));
    spinner
}
