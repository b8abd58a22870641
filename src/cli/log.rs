//! The log, for developers: `LOOPCTL_LOG=debug loopctl run ...`, on stderr, off by default. An event is one
//! line, whatever its texts contain, and secrets are hidden as in traces.

use std::io::Write;

use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::trace::{Redaction, escape};

#[cfg(test)]
mod tests;

/// The variable that sets what is logged: a level, or `target=level` as in other Rust programs.
const VARIABLE: &str = "LOOPCTL_LOG";

/// Sets up the log, if the variable is set. Only loopctl's own events are shown, not what libraries log about
/// connections and requests.
pub fn init() {
    let Ok(filter) = tracing_subscriber::EnvFilter::try_from_env(VARIABLE) else { return };
    let own = FilterFn::new(|event| event.target().split("::").next() == Some(env!("CARGO_PKG_NAME")));
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Stderr).with_filter(filter);
    // A second set-up in one process changes nothing.
    let _ = tracing_subscriber::registry().with(layer.with_filter(own)).try_init();
}

/// Makes writers that escape.
struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Escaping<std::io::Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        Escaping::new(std::io::stderr())
    }
}

/// Collects an event and writes it as one escaped line.
struct Escaping<W: Write> {
    to: W,
    text: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    fn new(to: W) -> Self {
        Self { to, text: Vec::new() }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.text);
        let hidden = Redaction::default();
        let shown = hidden.text(text.trim_end_matches('\n'));
        let line = format!("{}\n", escape::line(&shown));
        self.text.clear();
        self.to.write_all(line.as_bytes())?;
        self.to.flush()
    }
}

impl<W: Write> Drop for Escaping<W> {
    fn drop(&mut self) {
        // A log that can't be written can't be reported.
        let _ = self.flush();
    }
}
