//! Server-sent events: bytes, cut anywhere, to the data of whole events; and how long a stream is read.

use std::time::Duration;

use bytes::Bytes;

use super::failure::AttemptFailure;
use super::reply_progress::StreamState;
use loopctl_lang::policy::json_text;

/// How long more is waited for once the reply has ended: the usage may follow, and the end of the stream.
const AFTER_END: Duration = Duration::from_secs(2);
/// The blank bytes that a stream may begin with.
const MAX_BLANK: usize = 1024;
/// The fields of events.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// Whether bytes begin a stream of events; `None`: more are needed. What has the label of one is one, unless it begins
/// as JSON does.
pub(super) fn is_stream(head: &[u8], labelled: bool) -> Option<bool> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match text.first() {
        None if head.len() > MAX_BLANK => Some(labelled),
        None => None,
        Some(b'{' | b'[') => Some(false),
        Some(_) if labelled => Some(true),
        Some(b':') => Some(true),
        Some(_) => {
            let name = text.split(|byte| matches!(byte, b':' | b'\r' | b'\n')).next().unwrap_or_default();
            match name.len() == text.len() {
                true => FIELDS.iter().all(|field| !field.starts_with(name)).then_some(false),
                false => Some(FIELDS.contains(&name)),
            }
        }
    }
}

/// Where the bytes of a stream come from.
pub(super) trait PieceSource {
    /// The next piece; none at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, AttemptFailure>> + Send;
}

/// Reads a stream until `event` says that it is over, or it ends; once the reply has ended, for [`AFTER_END`] at most, and
/// without caring how. One that may have ended is waited for as long as the source waits. Returns whether the stream is
/// over, so that its connection can be used again.
///
/// # Errors
/// Those of the source, unless the reply has ended or may have, and those of `event`, unless it has ended.
pub(super) async fn read_events(
    source: &mut impl PieceSource,
    event: impl FnMut(&[u8]) -> Result<StreamState, AttemptFailure>,
) -> Result<bool, AttemptFailure> {
    let mut reader = EventReader { decoder: SseDecoder::default(), event, reached: StreamState::Open };
    loop {
        let is_sure = reader.reached == StreamState::Ended;
        let next = reader.until_news(source);
        let next = if is_sure { tokio::time::timeout(AFTER_END, next).await } else { Ok(next.await) };
        match next {
            Ok(Ok(StreamState::Over)) => return Ok(true),
            Ok(Ok(_)) => {}
            Ok(Err(failure)) if !matches!(reader.reached, StreamState::Ended | StreamState::MayHaveEnded) => {
                return Err(failure);
            }
            Ok(Err(_)) | Err(_) => return Ok(false),
        }
    }
}

struct EventReader<E> {
    decoder: SseDecoder,
    event: E,
    /// How far the reply is.
    reached: StreamState,
}

impl<E: FnMut(&[u8]) -> Result<StreamState, AttemptFailure>> EventReader<E> {
    /// Reads on until the reply ends or may have ended, or grows behind its end, or the stream is over.
    async fn until_news(&mut self, source: &mut impl PieceSource) -> Result<StreamState, AttemptFailure> {
        loop {
            let piece = source.next().await?;
            let Self { decoder, event, reached } = self;
            let mut news = if piece.is_some() { StreamState::Open } else { StreamState::Over };
            let mut take = |data: &[u8]| {
                if news != StreamState::Over || piece.is_none() {
                    let state = event(data).inspect_err(|_| {
                        if *reached == StreamState::MayHaveEnded {
                            *reached = StreamState::Grown;
                        }
                    })?;
                    let is_again = state == StreamState::Ended && *reached == StreamState::Ended;
                    if state != StreamState::Open && !is_again {
                        *reached = state;
                        news = state;
                    }
                }
                Ok::<(), AttemptFailure>(())
            };
            match &piece {
                Some(piece) => decoder.push(piece, &mut take)?,
                None => {
                    decoder.finish(&mut take)?;
                    return Ok(StreamState::Over);
                }
            }
            if news != StreamState::Open {
                return Ok(news);
            }
        }
    }
}

/// Reads a stream of events. Lines end by LF, CR or CRLF; comments and fields other than `data` are
/// passed over; the lines of one event's data are joined by LF. It works on bytes: a character that
/// is cut between two pieces comes out whole.
#[derive(Default)]
pub(in crate::drive) struct SseDecoder {
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
    pub(in crate::drive) fn push<E>(
        &mut self,
        piece: &[u8],
        mut event: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
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

    /// The stream is over: an event whose empty line is missing counts as ended. So does a line that is not ended, if it is
    /// the JSON of an object: one that was cut in two is none.
    ///
    /// # Errors
    /// The one of `event`.
    pub(in crate::drive) fn finish<E>(&mut self, mut event: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let is_whole = !self.has_data && data_of(&self.line).is_some_and(is_object);
        if is_whole {
            self.end_line(&mut event)?;
        }
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

/// Whether data is the JSON of an object.
fn is_object(data: &[u8]) -> bool {
    let text = str::from_utf8(data).map(str::trim).unwrap_or_default();
    text.starts_with('{') && json_text::read::<serde::de::IgnoredAny>(text).is_ok()
}

/// The value of a `data` line, or of the line that llama.cpp writes an error in: `error: {"code": 400, ...}`.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    if let Some(error) = line.strip_prefix(b"error:").map(<[u8]>::trim_ascii_start)
        && error.starts_with(b"{")
    {
        return Some(error);
    }
    let rest = line.strip_prefix(b"data")?;
    match rest.split_first() {
        None => Some(rest),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
    }
}
