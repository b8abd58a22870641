//! Warnings that repeat are counted in place of written. While a database or a model is away, many workers say the same, several times
//! a second; and who floods a server with requests that are refused must not fill its disk.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tracing::Level;
use tracing::callsite::Identifier;

use super::line::LogLine;

/// How long equal warnings are counted, and not written.
pub const REPEAT_INTERVAL: Duration = Duration::from_secs(60);
/// The most warnings of one place in the program, and of one token, that are written in this time, if each is about something else.
const MAX_LINES_OF_A_PLACE: usize = 200;

/// The warnings and errors that were written lately.
#[derive(Debug, Default)]
pub struct Repeats {
    known: HashMap<String, Repeated>,
    places: HashMap<LogSource, LoggingPlace>,
}

/// Whose lines share a bound: those of a place in the program about one token. Who has none can't hide the lines of others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LogSource {
    place: Identifier,
    token: Option<String>,
}

/// A line that was written.
#[derive(Debug)]
struct Repeated {
    source: LogSource,
    written_at: Instant,
    equal: u64,
    /// The last of the equal ones since; none if there was none.
    last: Option<LogLine>,
}

/// The lines of one place in the program.
#[derive(Debug)]
struct LoggingPlace {
    began_at: Instant,
    written: usize,
    like_it: u64,
    /// The last of those that were left out; none if none was.
    last: Option<LogLine>,
}

impl Repeats {
    /// A line that is to be written now; none for one that is counted. All but warnings and errors are written.
    pub fn admit(&mut self, line: LogLine, now: Instant) -> Option<LogLine> {
        if line.level > Level::WARN {
            return Some(line);
        }
        let key = line.sameness();
        if let Some(known) = self.known.get_mut(&key) {
            known.equal = known.equal.saturating_add(1);
            if is_over(known.written_at, now) {
                known.written_at = now;
                known.last = None;
                return Some(line.with_equal(std::mem::take(&mut known.equal).saturating_sub(1)));
            }
            known.last = Some(line);
            return None;
        }
        let source = LogSource { place: line.place.clone(), token: line.token().map(str::to_owned) };
        let place = self.places.entry(source.clone());
        let place = place.or_insert_with(|| LoggingPlace { began_at: now, written: 0, like_it: 0, last: None });
        if is_over(place.began_at, now) && place.like_it == 0 {
            (place.began_at, place.written) = (now, 0);
        }
        // Those that come again have a line in each interval, too.
        let held = self.known.values().filter(|known| known.source == source).take(MAX_LINES_OF_A_PLACE);
        if place.written >= MAX_LINES_OF_A_PLACE || held.count() >= MAX_LINES_OF_A_PLACE {
            place.like_it = place.like_it.saturating_add(1);
            place.last = Some(line);
            return None;
        }
        place.written += 1;
        self.known.insert(key, Repeated { source, written_at: now, equal: 0, last: None });
        Some(line)
    }

    /// The lines for what was counted in times that are over.
    pub fn due(&mut self, now: Instant) -> Vec<LogLine> {
        self.counted(|since| is_over(since, now), now)
    }

    /// The lines for all that was counted.
    pub fn all(&mut self, now: Instant) -> Vec<LogLine> {
        self.counted(|_| true, now)
    }

    fn counted(&mut self, is_due: impl Fn(Instant) -> bool, now: Instant) -> Vec<LogLine> {
        let mut lines = Vec::new();
        self.known.retain(|_, known| {
            if !is_due(known.written_at) {
                return true;
            }
            let equal = std::mem::take(&mut known.equal);
            known.written_at = now;
            // What did not come again is over.
            let Some(line) = known.last.take() else { return false };
            lines.push(line.with_equal(equal));
            true
        });
        self.places.retain(|_, place| {
            if !is_due(place.began_at) {
                return true;
            }
            let like_it = std::mem::take(&mut place.like_it);
            (place.began_at, place.written) = (now, 0);
            let Some(line) = place.last.take() else { return false };
            lines.push(line.with_like_it(like_it));
            true
        });
        lines
    }
}

fn is_over(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) >= REPEAT_INTERVAL
}
