//! What is shown while a run continues: a story with a spinner for people, lines of JSON for machines.

mod lines;
mod story;
mod waiting;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use lines::Lines;
pub use story::Story;
use waiting::Waiting;

use super::failure::CommandError;
use super::output::{Output, json_line};
use super::surface::Surface;
use crate::drive::clock;
use crate::engine::notice::{Listener, Notice};
use crate::journal::failpoint;
use crate::program::Program;
use crate::trace::live_reply::{LivePosition, LiveReply};
use crate::trace::text::Pieces;
use crate::trace::{Redaction, Tone, events};

/// Listens to a run and shows it.
pub struct ProgressDisplay {
    surface: Surface,
    output: Output,
    /// Whether lines for machines contain replies while they arrive.
    deltas: bool,
    seen: Mutex<ShownProgress>,
}

struct ShownProgress {
    story: Story,
    spinner: Option<ProgressBar>,
    /// The writer of lines for machines.
    lines: Option<Lines>,
    /// The run's id, once it has started.
    run_id: Option<String>,
    /// The reply that is arriving, and how much of it the lines for machines have.
    reply: LiveReply,
    position: LivePosition,
    waiting: Waiting,
}

impl ProgressDisplay {
    /// A listener for this output.
    pub fn new(surface: &Surface, output: Output, deltas: bool, program: &Program) -> Self {
        let redact = Redaction::new(&program.project.redact);
        let reply = LiveReply::new(redact.clone());
        let story = Story::of(Pieces { look: surface.err, shorten: true }, program);
        let waiting = Waiting::new(clock::instant(), failpoint::time("quiet"), redact);
        let lines = (output == Output::Ndjson).then(|| Lines::new(*surface));
        Self {
            surface: *surface,
            output,
            deltas,
            seen: Mutex::new(ShownProgress {
                story,
                spinner: None,
                lines,
                run_id: None,
                reply,
                position: LivePosition::default(),
                waiting,
            }),
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

    /// Prints a fact about the command itself that is no warning, in the style of the story.
    pub fn note(&self, text: &str) {
        let seen = self.seen();
        self.write(&seen, &Pieces { look: self.surface.err, shorten: true }.note(text));
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
        let (text, now) = (seen.story.on(notice), clock::instant());
        if !text.is_empty() {
            self.write(seen, &text);
            seen.waiting.said(now);
        }
        let is_other = seen.waiting.on(notice, now);
        if is_other && !matches!(notice, Notice::ModelDelta { .. }) {
            seen.reply.clear();
        }
        if !seen.waiting.is_any() {
            seen.waiting.said(now);
        }
        let is_delta = matches!(notice, Notice::ModelDelta { .. });
        if !self.surface.err_terminal || !is_other && !is_delta {
            return;
        }
        let Some((what, tail)) = seen.waiting.line(&seen.reply, self.surface.err.width) else {
            if let Some(spinner) = seen.spinner.take() {
                spinner.finish_and_clear();
            }
            return;
        };
        let spinner = seen.spinner.get_or_insert_with(spinner);
        if is_other {
            spinner.reset_elapsed();
        }
        spinner.set_message(what);
        spinner.set_prefix(self.surface.err.paint(Tone::Dim, &tail));
    }

    fn machine(&self, seen: &mut ShownProgress, notice: &Notice) {
        let Some(lines) = &seen.lines else { return };
        let line = match notice {
            // A reader that is behind gets the parts that it missed as one.
            Notice::ModelDelta { .. } if lines.is_behind() => return,
            Notice::ModelDelta { .. } => {
                let Some(delta) = seen.reply.since(&mut seen.position) else { return };
                events::delta(&delta).map_err(|error| CommandError::Output(std::io::Error::other(error)))
            }
            _ => seen.story.json(notice),
        };
        if let Ok(line) = line.and_then(|value| json_line(&value)) {
            lines.write(line);
        }
    }

    /// Says now and then what the run waits for, where no line shows it. Never returns.
    pub async fn break_silence(&self) {
        if self.output != Output::Human || self.surface.err_terminal {
            return std::future::pending().await;
        }
        loop {
            let left = {
                let mut seen = self.seen();
                let now = clock::instant();
                let left = seen.waiting.quiet_for(now);
                if left.is_zero() {
                    if let Some(text) = seen.waiting.still(&seen.reply, now) {
                        self.write(&seen, &text);
                    }
                    seen.waiting.said(now);
                }
                left
            };
            clock::sleep(left).await;
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

impl Listener for ProgressDisplay {
    fn on(&self, notice: Notice) {
        let mut seen = self.seen();
        let known = seen.run_id.is_some();
        if let Notice::RunStarted { run_id, .. } | Notice::RunResumed { run_id, .. } = &notice {
            seen.run_id = Some(run_id.clone());
        }
        seen.reply.take(&notice);
        match self.output {
            // The run resumes after a decision in the terminal: its header was already shown.
            Output::Human if known && matches!(notice, Notice::RunResumed { .. }) => {}
            Output::Human => self.human(&mut seen, &notice),
            Output::Json => {}
            Output::Ndjson => self.machine(&mut seen, &notice),
        }
    }

    fn wants_deltas(&self) -> bool {
        self.deltas || self.output == Output::Human
    }
}

fn spinner() -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("     {spinner} {msg} · {elapsed}{prefix}") {
        spinner.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
    }
    spinner.enable_steady_tick(Duration::from_millis(90));
    spinner
}
