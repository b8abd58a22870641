//! What is typed in the terminal: a line, or a text of several lines. What the terminal loses is said.

use super::Asker;
use crate::cli::signals::Signals;
use crate::program::form::MAX_LONG_TEXT_CHARS;
use crate::trace::Tone;

/// The terminal hands over a line of at most this many bytes, without its end, and drops the rest.
const MAX_LINE_BYTES: usize = if cfg!(target_os = "macos") { 1_023 } else { 4_095 };
/// What ends a text of several lines.
const END_OF_TEXT: &str = ".";

impl Asker<'_> {
    /// A line that is typed after the question is shown, without surrounding blanks; none at the end of the
    /// input or at a signal.
    pub(super) async fn line(&self, question: &str) -> Option<String> {
        self.typed(question).await.map(|text| text.trim().to_owned())
    }

    /// The same with its blanks.
    pub(super) async fn typed(&self, question: &str) -> Option<String> {
        loop {
            // Created before the question is shown, so that no signal is missed.
            let mut signals = Signals::new();
            self.ask_for(question);
            let line = self.next_line(&mut signals).await?;
            if self.is_whole(&line) {
                return Some(line);
            }
        }
    }

    /// A text of several lines, up to a line with a point alone. It is empty when its first line is.
    pub(super) async fn long_text(&self, question: &str) -> Option<String> {
        loop {
            let mut signals = Signals::new();
            self.ask_for(question);
            if let Some(text) = self.lines(&mut signals).await? {
                return Some(text);
            }
        }
    }

    /// `Some(None)`: the text is not whole, or too long.
    async fn lines(&self, signals: &mut Signals) -> Option<Option<String>> {
        let (mut text, mut is_first) = (String::new(), true);
        loop {
            let line = self.next_line(signals).await?;
            if !self.is_whole(&line) {
                return Some(None);
            }
            if line == END_OF_TEXT || (is_first && line.is_empty()) {
                return Some(Some(text));
            }
            if !is_first {
                text.push('\n');
            }
            is_first = false;
            text.push_str(&line);
            if text.chars().count() > MAX_LONG_TEXT_CHARS {
                let why = format!("the text has more than {MAX_LONG_TEXT_CHARS} characters");
                self.surface.say(&self.surface.line(Tone::Warn, "not taken", &why));
                return Some(None);
            }
        }
    }

    /// Shows a question. What was typed before it is no answer to it.
    fn ask_for(&self, question: &str) {
        if has_typed_ahead() {
            let what = "lines that were typed before the question that follows";
            self.surface.say(&self.surface.line(Tone::Warn, "dropped", what));
        }
        forget_typed_ahead();
        self.surface.say(&format!("  {} ", self.surface.err.paint(Tone::Accent, &format!("{question} >"))));
    }

    /// The next line without its end; none at the end of the input or at a signal.
    async fn next_line(&self, signals: &mut Signals) -> Option<String> {
        let read = tokio::task::spawn_blocking(|| {
            let mut text = String::new();
            std::io::stdin().read_line(&mut text).ok().filter(|bytes| *bytes > 0).map(|_| text)
        });
        let text = tokio::select! {
            read = read => read.ok().flatten(),
            () = signals.next() => None,
        };
        if text.is_none() {
            self.surface.say("\n");
        }
        text.map(|text| text.trim_end_matches(['\n', '\r']).to_owned())
    }

    /// Whether the terminal has handed over all of a line; it says so if it may not have.
    fn is_whole(&self, line: &str) -> bool {
        let is_whole = line.len() < MAX_LINE_BYTES;
        if !is_whole {
            let why = format!(
                "the terminal takes less than {MAX_LINE_BYTES} bytes a line, and drops the rest; longer ones go to \
                 `loopctl resume RUN --answer`"
            );
            self.surface.say(&self.surface.line(Tone::Warn, "not taken", &why));
        }
        is_whole
    }
}

/// Whether a line was typed that nobody has read.
#[cfg(unix)]
fn has_typed_ahead() -> bool {
    use std::os::fd::AsFd as _;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    let stdin = std::io::stdin();
    let mut looked = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let is_ready = poll(&mut looked, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
    let has_line = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| events == PollFlags::POLLIN);
    is_ready && looked.first().is_some_and(has_line)
}

#[cfg(unix)]
fn forget_typed_ahead() {
    // If this fails, there is nothing to discard.
    let _ = nix::sys::termios::tcflush(std::io::stdin(), nix::sys::termios::FlushArg::TCIFLUSH);
}

/// Other systems have no such calls.
#[cfg(not(unix))]
fn has_typed_ahead() -> bool {
    false
}

#[cfg(not(unix))]
fn forget_typed_ahead() {}
