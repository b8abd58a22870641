//! Where lines go: to stderr, at once or by a thread of its own. Who reads the log of a server may stop reading: then lines are
//! dropped and counted, and no run waits.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use super::LogFormat;
use super::line::LogLine;
use super::repeats::Repeats;
use crate::cli::surface::Surface;
use crate::drive::clock;

/// The most lines that wait to be written.
const QUEUE_LINES: usize = 4_096;
/// How often it is looked whether counted lines are due.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time that the end of the process waits for the log.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes lines.
pub struct LogOutput {
    format: LogFormat,
    /// None where each line is written by whoever logs it.
    queue: Option<SyncSender<Queued>>,
    /// The lines that found no place in the queue.
    dropped: Arc<AtomicU64>,
}

enum Queued {
    Line(Box<LogLine>),
    /// A text that is no line of the log.
    Text(String),
    /// What was counted is to be written, and this is to be answered.
    Finish(SyncSender<()>),
}

impl LogOutput {
    /// Lines are written at once, also those that repeat.
    pub fn direct(format: LogFormat) -> Self {
        Self { format, queue: None, dropped: Arc::default() }
    }

    /// Lines are written by a thread, and those that repeat are counted.
    pub fn queued(format: LogFormat) -> Self {
        let (queue, lines) = sync_channel(QUEUE_LINES);
        let dropped = Arc::<AtomicU64>::default();
        let thread = std::thread::Builder::new().name("log".to_owned());
        let (to, counted) = (std::io::stderr(), Arc::clone(&dropped));
        let mut writer = LogWriter { format, repeats: Repeats::default(), to, is_cut: false, dropped: counted };
        let is_started = thread.spawn(move || writer.write_all(&lines)).is_ok();
        Self { format, queue: is_started.then_some(queue), dropped }
    }

    /// Takes a line.
    pub fn take(&self, line: LogLine) {
        let Some(queue) = &self.queue else { return write(std::io::stderr().lock(), &line.written(self.format)) };
        if queue.try_send(Queued::Line(Box::new(line))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a text that is no line of the log, and that is written as it is.
    pub fn say(&self, surface: &Surface, text: &str) {
        match &self.queue {
            Some(queue) => drop(queue.try_send(Queued::Text(text.to_owned()))),
            None => surface.say(text),
        }
    }

    /// Waits until what was taken is written, for a bounded time.
    pub fn finish(&self) {
        let Some(queue) = &self.queue else { return };
        let (done, answer) = sync_channel(1);
        let mut message = Queued::Finish(done);
        let asked_at = clock::instant();
        // A queue that is full is being written, or nobody reads it.
        while let Err(TrySendError::Full(back)) = queue.try_send(message) {
            if clock::elapsed(asked_at) >= FINISH_TIMEOUT {
                return;
            }
            message = back;
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = answer.recv_timeout(FINISH_TIMEOUT);
    }
}

/// The thread that writes.
struct LogWriter<W> {
    format: LogFormat,
    repeats: Repeats,
    to: W,
    /// Whether the last line could be written in part only, as on a full disk.
    is_cut: bool,
    dropped: Arc<AtomicU64>,
}

impl<W: Write> LogWriter<W> {
    fn write_all(&mut self, lines: &Receiver<Queued>) {
        let mut looked_at = clock::instant();
        loop {
            match lines.recv_timeout(LOOK_INTERVAL) {
                Ok(Queued::Line(line)) => self.take(*line),
                Ok(Queued::Text(text)) => self.put(&text),
                Ok(Queued::Finish(done)) => {
                    self.take_queued(lines);
                    self.report_dropped();
                    self.take_queued(lines);
                    let counted = self.repeats.all(clock::instant());
                    self.write(counted);
                    let _ = done.send(());
                }
                // The queue has room for the line that says it.
                Err(RecvTimeoutError::Timeout) => self.report_dropped(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // Also where lines come without a pause.
            if clock::elapsed(looked_at) >= LOOK_INTERVAL {
                looked_at = clock::instant();
                let counted = self.repeats.due(looked_at);
                self.write(counted);
            }
        }
    }

    fn take_queued(&mut self, lines: &Receiver<Queued>) {
        lines.try_iter().for_each(|queued| match queued {
            Queued::Line(line) => self.take(*line),
            Queued::Text(text) => self.put(&text),
            Queued::Finish(_) => {}
        });
    }

    fn take(&mut self, line: LogLine) {
        let admitted = self.repeats.admit(line, clock::instant());
        self.write(admitted);
    }

    /// Logs how many lines found no place in the queue.
    fn report_dropped(&self) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "lines of the log were dropped: they came faster than they were read");
        }
    }

    fn write(&mut self, lines: impl IntoIterator<Item = LogLine>) {
        for line in lines {
            self.put(&line.written(self.format));
        }
    }

    /// Writes a text. After one that was cut, it begins on a line of its own.
    fn put(&mut self, text: &str) {
        let mut put = |text: &str| self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
        if self.is_cut && put("\n").is_err() {
            return;
        }
        self.is_cut = put(text).is_err();
    }
}

/// A log that can't be written can't be reported.
fn write(mut to: impl Write, line: &str) {
    let _ = to.write_all(line.as_bytes()).and_then(|()| to.flush());
}

#[cfg(test)]
mod tests {
    use std::io::{Error, Write};

    use super::{LogFormat, LogWriter};
    use crate::cli::log::repeats::Repeats;

    /// A disk that has room for a few bytes until somebody clears it.
    struct FullDisk {
        room: usize,
        written: Vec<u8>,
    }

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 && !bytes.is_empty() {
                return Err(Error::from(std::io::ErrorKind::StorageFull));
            }
            self.room -= taken;
            self.written.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_was_cut_leaves_the_next_one_whole() {
        let to = FullDisk { room: 10, written: Vec::new() };
        let repeats = Repeats::default();
        let mut writer =
            LogWriter { format: LogFormat::Json, repeats, to, is_cut: false, dropped: std::sync::Arc::default() };
        for line in ["{\"a\": 1}\n", "{\"b\": 2}\n", "{\"c\": 3}\n"] {
            writer.put(line);
        }
        writer.to.room = 1_000;
        writer.put("{\"d\": 4}\n");
        writer.put("{\"e\": 5}\n");
        let written = String::from_utf8(writer.to.written).unwrap();
        assert_eq!(written, "{\"a\": 1}\n{\n{\"d\": 4}\n{\"e\": 5}\n");
    }
}
