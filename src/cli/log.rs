//! The log, for developers: `LOOPCTL_LOG=debug loopctl run ...`, on stderr, off by default. An event is one
//! line, whatever its texts contain, and secrets are hidden as in traces.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::drive::clock;
use crate::trace::{Redaction, escape};

/// The variable that sets what is logged: a level, or `target=level` as in other Rust programs.
const VARIABLE: &str = "LOOPCTL_LOG";

/// Sets up the log, if the variable is set. Only loopctl's own events are shown, not what libraries log about
/// connections and requests.
pub fn init(repeats: Repeats) {
    let Ok(filter) = tracing_subscriber::EnvFilter::try_from_env(VARIABLE) else { return };
    // A target begins with the name of its crate: `loopctl`, or an inner one such as `loopctl_runtime`.
    let own = FilterFn::new(|event| event.target().starts_with(env!("CARGO_PKG_NAME")));
    let writer = Stderr { repeats: matches!(repeats, Repeats::Counted).then(Arc::default) };
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer).with_filter(filter);
    // A second set-up in one process changes nothing.
    let _ = tracing_subscriber::registry().with(layer.with_filter(own)).try_init();
}

/// What becomes of warnings that are equal to an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// A server's are counted for a minute: while a database is away, many workers warn of the same.
    Counted,
    /// A command's are written: it is over soon, and each one is about something that happened to it.
    Written,
}

/// How long equal warnings are counted, and not written.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);
/// The most warnings that are remembered.
const MAX_REMEMBERED: usize = 256;

/// The warnings and errors that were written lately. While a database is away, many workers say the same, several times a
/// second.
#[derive(Default)]
struct RecentWarnings {
    known: BTreeMap<String, Repeated>,
}

struct Repeated {
    written_at: Instant,
    /// The equal ones since.
    equal: u64,
}

impl RecentWarnings {
    /// Whether a line is to be written, and how many equal ones were not since the last one. All but warnings and errors are.
    fn admit(&mut self, line: &str, now: Instant) -> Option<u64> {
        // What follows the time and the level.
        let mut parts = line.trim_start().splitn(2, ' ');
        let (_, rest) = (parts.next(), parts.next().unwrap_or_default().trim_start());
        if !rest.starts_with("WARN ") && !rest.starts_with("ERROR ") {
            return Some(0);
        }
        if let Some(known) = self.known.get_mut(rest) {
            if now.saturating_duration_since(known.written_at) < REPEAT_INTERVAL {
                known.equal = known.equal.saturating_add(1);
                return None;
            }
            let equal = std::mem::take(&mut known.equal);
            known.written_at = now;
            return Some(equal);
        }
        if self.known.len() >= MAX_REMEMBERED {
            self.known.retain(|_, known| now.saturating_duration_since(known.written_at) < REPEAT_INTERVAL);
        }
        if self.known.len() < MAX_REMEMBERED {
            self.known.insert(rest.to_owned(), Repeated { written_at: now, equal: 0 });
        }
        Some(0)
    }
}

/// Makes writers that escape.
struct Stderr {
    /// None where each line is written.
    repeats: Option<Arc<Mutex<RecentWarnings>>>,
}

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Escaping<std::io::Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        Escaping { to: std::io::stderr(), text: Vec::new(), repeats: self.repeats.clone() }
    }
}

/// Collects an event and writes it as one escaped line.
struct Escaping<W: Write> {
    to: W,
    text: Vec<u8>,
    /// The warnings that were written lately; none where each line counts.
    repeats: Option<Arc<Mutex<RecentWarnings>>>,
}

#[cfg(test)]
impl<W: Write> Escaping<W> {
    fn new(to: W) -> Self {
        Self { to, text: Vec::new(), repeats: None }
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
        let mut line = escape::line(&shown).into_owned();
        self.text.clear();
        if let Some(repeats) = &self.repeats {
            let mut repeats = repeats.lock().unwrap_or_else(PoisonError::into_inner);
            match repeats.admit(&line, clock::instant()) {
                None => return Ok(()),
                Some(0) => {}
                Some(equal) => line.push_str(&format!(" ({equal} equal lines since the last one)")),
            }
        }
        line.push('\n');
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_with_line_ends_and_escapes_is_one_line() {
        let mut out = Vec::new();
        {
            let mut writer = Escaping::new(&mut out);
            writer.write_all(b"INFO loopctl: reply=\"a\nERROR forged\x1b[31m").unwrap();
            writer.write_all(b"?token=abc\"\n").unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "INFO loopctl: reply=\"a\\nERROR forged\\u{1B}[31m?token=[hidden]\"\n");
    }

    #[test]
    fn equal_warnings_of_a_minute_are_one_line_and_a_count() {
        let mut repeats = RecentWarnings::default();
        let now = clock::instant();
        let line = |second: u64, level: &str, text: &str| {
            format!("2026-01-31T12:00:{second:02}.000001Z  {level} loopctl: {text}")
        };
        let mut admit = |second: u64, level: &str, text: &str| {
            repeats.admit(&line(second % 60, level, text), now + Duration::from_secs(second))
        };
        assert_eq!(admit(0, "WARN", "the database is away"), Some(0));
        for second in 1..60 {
            assert_eq!(admit(second, "WARN", "the database is away"), None);
            assert_eq!(admit(second, "INFO", "answered"), Some(0));
        }
        assert_eq!(admit(30, "WARN", "another run"), Some(0));
        assert_eq!(admit(31, "ERROR", "the database is away"), Some(0), "another level is another line");
        assert_eq!(admit(60, "WARN", "the database is away"), Some(59));
        assert_eq!(admit(61, "WARN", "the database is away"), None);
        assert_eq!(admit(200, "WARN", "the database is away"), Some(1));
        // What is remembered is bounded; what is not remembered is written.
        for number in 0..2 * MAX_REMEMBERED {
            assert_eq!(admit(300, "WARN", &number.to_string()), Some(0));
        }
        assert!(repeats.known.len() <= MAX_REMEMBERED);
    }
}
