//! Server-sent events: bytes, cut anywhere, to the data of whole events.

/// Reads a stream of events. Lines end by LF, CR or CRLF; comments and fields other than `data` are
/// passed over; the lines of one event's data are joined by LF. It works on bytes: a character that
/// is cut between two pieces comes out whole.
#[derive(Default)]
pub(super) struct SseDecoder {
    /// The line that is not ended yet.
    line: Vec<u8>,
    /// The data of the event that is not ended yet.
    data: Vec<u8>,
    /// Whether the event has a data line, an empty one too.
    has_data: bool,
    /// Whether the last byte was a CR: an LF right after it belongs to it.
    after_cr: bool,
    /// Whether a line was read: only the first one may begin with a byte order mark.
    started: bool,
}

impl SseDecoder {
    /// Takes a piece, and gives each event's data to `event`.
    ///
    /// # Errors
    /// The first one of `event`; the rest of the piece is lost then.
    pub(super) fn push<E>(&mut self, piece: &[u8], mut event: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut rest = piece;
        if let (true, Some((first, after))) = (self.after_cr, rest.split_first()) {
            self.after_cr = false;
            if *first == b'\n' {
                rest = after;
            }
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, after) = rest.split_at(end);
            self.line.extend_from_slice(line);
            rest = match after {
                [b'\r', b'\n', after @ ..] => after,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
            self.end_line(&mut event)?;
        }
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// The stream is over: an event whose empty line is missing counts as ended, a line that is not
    /// ended does not.
    ///
    /// # Errors
    /// The one of `event`.
    pub(super) fn finish<E>(&mut self, event: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if std::mem::take(&mut self.has_data) { event(&std::mem::take(&mut self.data)) } else { Ok(()) }
    }

    fn end_line<E>(&mut self, event: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if !std::mem::replace(&mut self.started, true) {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        let mut outcome = Ok(());
        if text.is_empty() {
            if std::mem::take(&mut self.has_data) {
                outcome = event(&self.data);
                self.data.clear();
            }
        } else if let Some(value) = data_of(text) {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
        }
        // The line's memory is used again.
        line.clear();
        self.line = line;
        outcome
    }
}

/// The value of a `data` line.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    match rest.split_first() {
        None => Some(rest),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
    }
}
