//! The two outputs: results on stdout, everything else on stderr. Colours and width are decided here.

use std::io::{IsTerminal as _, Write as _};

use crate::trace::{Look, Tone, escape};

/// The longest line, however wide the terminal is: longer ones are hard to read.
const MAX_COLUMNS: usize = 110;
/// The width of output to a file or a pipe.
const PIPE_COLUMNS: usize = 100;

/// Stdout can't be written.
#[derive(Debug)]
pub struct OutputError(pub std::io::Error);

/// How to write to stdout and stderr.
#[derive(Debug, Clone, Copy)]
pub struct Surface {
    /// The layout of stdout.
    pub out: Look,
    /// The layout of stderr.
    pub err: Look,
    /// Whether stdout is a terminal.
    pub out_terminal: bool,
    /// The columns of the terminal that stdout is; none for a pipe or a file. Tables use all of them.
    pub out_columns: Option<usize>,
    /// The lines of that terminal.
    pub out_rows: Option<usize>,
    /// Whether stderr is a terminal.
    pub err_terminal: bool,
}

impl Surface {
    /// The surface of this process: no colours with `NO_COLOR`, or without a terminal.
    pub fn of_process() -> Self {
        let colour = |choice: anstream::ColorChoice| choice != anstream::ColorChoice::Never;
        let out_terminal = std::io::stdout().is_terminal();
        let err_terminal = std::io::stderr().is_terminal();
        let size = terminal_size::terminal_size();
        let columns = size.map_or(PIPE_COLUMNS, |(terminal_size::Width(width), _)| width.into());
        let rows = size.map(|(_, terminal_size::Height(height))| height.into());
        let width = |terminal: bool| if terminal { columns.clamp(20, MAX_COLUMNS) } else { PIPE_COLUMNS };
        Self {
            out: Look { colour: colour(anstream::AutoStream::choice(&std::io::stdout())), width: width(out_terminal) },
            err: Look { colour: colour(anstream::AutoStream::choice(&std::io::stderr())), width: width(err_terminal) },
            out_terminal,
            out_columns: out_terminal.then(|| columns.max(20)),
            out_rows: rows.filter(|_| out_terminal),
            err_terminal,
        }
    }

    /// Writes to stderr. A failure can't be reported anywhere.
    pub fn say(&self, text: &str) {
        let _ = anstream::stderr().write_all(text.as_bytes());
    }

    /// Writes to stdout. A reader that has gone away is no error: it has read what it wanted.
    ///
    /// # Errors
    /// When stdout can't be written for another reason, like a full disk.
    pub fn print(&self, text: &str) -> Result<(), OutputError> {
        let mut out = anstream::AutoStream::new(std::io::stdout().lock(), self.choice());
        tolerate(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// Writes to stdout as long as somebody reads it; returns whether somebody does.
    ///
    /// # Errors
    /// As [`Surface::print`].
    pub fn print_while_read(&self, text: &str) -> Result<bool, OutputError> {
        let mut out = anstream::AutoStream::new(std::io::stdout().lock(), self.choice());
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(OutputError(error)),
            Ok(()) => Ok(true),
        }
    }

    /// Writes bytes to stdout unchanged.
    ///
    /// # Errors
    /// As [`Surface::print`].
    pub fn print_bytes(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let mut out = std::io::stdout().lock();
        tolerate(out.write_all(bytes).and_then(|()| out.flush()))
    }

    /// Text of a document, a model or a tool for stdout: escaped for a terminal, and without control characters
    /// for a file.
    pub fn harmless<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        if self.out_terminal { escape::terminal(text) } else { escape::controls(text) }
    }

    /// A line like `error: ...` for stderr. The message is escaped here.
    pub fn line(&self, tone: Tone, label: &str, message: &str) -> String {
        let message = escape::terminal(message);
        format!("{}{} {}\n", self.err.paint(tone, label), self.err.paint(Tone::Bold, ":"), message.trim_end())
    }

    fn choice(&self) -> anstream::ColorChoice {
        if self.out.colour { anstream::ColorChoice::Auto } else { anstream::ColorChoice::Never }
    }
}

fn tolerate(written: std::io::Result<()>) -> Result<(), OutputError> {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(OutputError(error)),
        _ => Ok(()),
    }
}
