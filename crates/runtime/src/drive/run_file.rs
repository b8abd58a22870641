//! Files of runs: lines of JSON, each with a checksum over itself and all lines before it. A line that was changed, removed
//! or moved is found where it is, and so is a file that was cut off. The checksum holds against damage, and not against
//! somebody who makes a new file.

use std::io::{BufRead, Read as _};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use loopctl_engine::digest::Sha256;
use loopctl_lang::policy::json_text;

/// The version of the format.
pub const FORMAT: u32 = 1;
/// The longest line that is read, in bytes.
pub const MAX_LINE_BYTES: u64 = 64 << 20;

/// What comes before the checksum in a line, between it and the content, and after that.
const BEGIN: &str = "{\"sum\":\"";
const MIDDLE: &str = "\",\"line\":";
const END: &str = "}";
/// The digits of a checksum.
const DIGITS: usize = 64;

/// The content of a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RunLine {
    /// The first line.
    Runs(FileHead),
    /// A run begins: its texts follow, and then its events.
    Run(Box<RunHeadLine>),
    /// A long text that its events name.
    Text(String),
    /// An event.
    Event(Box<RawValue>),
    /// The last line.
    End(FileEnd),
}

/// What a file of runs is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileHead {
    /// The version of the format.
    pub format: u32,
    /// The version of loopctl that wrote it.
    pub loopctl: String,
    /// Whether what is secret by its name or form is hidden in it.
    pub redacted: bool,
}

/// A run, without what its events come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunHeadLine {
    /// Its id.
    pub run_id: String,
    /// The run that called it, when one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
    /// The organisation that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// What two starts must have in common to be the same.
    pub identity: String,
    /// Whether values of it are hidden in the file: it is then shown, and is no run that somebody continues.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// The number of its texts.
    pub texts: u64,
    /// The number of its events.
    pub events: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The end of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEnd {
    /// The number of runs in it, with those that other runs called.
    pub runs: u64,
}

/// Why a file of runs is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct RunFileFault {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it, and what to do.
    pub why: String,
}

/// The checksum over the content of a line and the checksum before it.
fn checksum(before: &str, content: &str) -> String {
    Sha256::of_list([before, content]).to_string()
}

/// Writes lines.
#[derive(Debug, Default)]
pub struct RunLineWriter {
    sum: String,
}

impl RunLineWriter {
    /// A line, with its newline.
    ///
    /// # Errors
    /// When the content is no JSON.
    pub fn line(&mut self, line: &RunLine) -> Result<String, serde_json::Error> {
        let content = serde_json::to_string(line)?;
        self.sum = checksum(&self.sum, &content);
        Ok(format!("{BEGIN}{}{MIDDLE}{content}{END}\n", self.sum))
    }
}

/// Reads lines, and checks each.
#[derive(Debug)]
pub struct RunLineReader<R> {
    from: R,
    sum: String,
    /// The number of the line that was read last.
    pub number: u64,
}

impl<R: BufRead> RunLineReader<R> {
    /// Reads from the begin of a file.
    pub fn new(from: R) -> Self {
        Self { from, sum: String::new(), number: 0 }
    }

    /// The fault of the line that was read last.
    pub fn fault(&self, why: impl Into<String>) -> RunFileFault {
        RunFileFault { line: self.number, why: why.into() }
    }

    /// The next line; none at the end of the file.
    ///
    /// # Errors
    /// When it is too long, damaged, changed, or no line of such a file.
    pub fn next_line(&mut self) -> Result<Option<RunLine>, RunFileFault> {
        self.number += 1;
        let mut bytes = Vec::new();
        let read = self.from.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut bytes);
        read.map_err(|error| self.fault(format!("the file can't be read: {error}")))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_LINE_BYTES {
            return Err(self.fault(format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20)));
        }
        let Some(text) = bytes.strip_suffix(b"\n") else {
            return Err(self.fault("it was cut off: the file is not whole"));
        };
        let text = str::from_utf8(text).map_err(|_| self.fault("it is no UTF-8: it was damaged"))?;
        let foreign = || self.fault("it is no line of a file that `loopctl export` wrote");
        let (sum, content) = text
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.split_at_checked(DIGITS))
            .and_then(|(sum, rest)| Some((sum, rest.strip_prefix(MIDDLE)?.strip_suffix(END)?)))
            .ok_or_else(foreign)?;
        let expected = checksum(&self.sum, content);
        if sum != expected {
            return Err(
                self.fault("its checksum does not fit: it, or a line before it, was changed, removed or damaged")
            );
        }
        self.sum = expected;
        json_text::read(content).map(Some).map_err(|error| self.fault(format!("it can't be read: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> String {
        let mut writer = RunLineWriter::default();
        let event = RawValue::from_string(r#"{"at":1e2,"kind":"left"}"#.to_owned()).unwrap();
        let head = FileHead { format: FORMAT, loopctl: "0.1.0".to_owned(), redacted: true };
        [
            RunLine::Runs(head),
            RunLine::Text("two\nlines".to_owned()),
            RunLine::Event(event),
            RunLine::End(FileEnd { runs: 0 }),
        ]
        .iter()
        .map(|line| writer.line(line).unwrap())
        .collect()
    }

    fn read(text: &[u8]) -> Result<Vec<RunLine>, RunFileFault> {
        let mut reader = RunLineReader::new(text);
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line()? {
            lines.push(line);
        }
        Ok(lines)
    }

    #[test]
    fn what_is_written_is_read_to_the_last_digit() {
        let text = file();
        assert_eq!(text.lines().count(), 4);
        let lines = read(text.as_bytes()).unwrap();
        let RunLine::Event(event) = &lines[2] else { panic!("{lines:?}") };
        assert_eq!(event.get(), r#"{"at":1e2,"kind":"left"}"#);
    }

    #[test]
    fn each_byte_that_is_changed_is_found_in_its_line() {
        let text = file();
        let mut tried = 0;
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let fault = read(&bytes).expect_err("changed");
            let line = u64::try_from(text[..at].matches('\n').count()).unwrap() + 1;
            // A newline that is gone joins two lines; one that is new ends a line early.
            assert!(fault.line == line || fault.line == line + 1, "{at}: {fault} {line}");
            tried += 1;
        }
        assert!(tried > 400, "{tried}");
    }

    #[test]
    fn a_line_that_is_removed_moved_or_cut_is_found() {
        let text = file();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (order, at) in [(&[0, 2, 3][..], 2), (&[0, 2, 1, 3], 2), (&[0, 1, 1, 2, 3], 3), (&[1, 2, 3], 1)] {
            let other: String = order.iter().map(|line| lines[*line]).collect();
            assert_eq!(read(other.as_bytes()).expect_err("other lines").line, at, "{order:?}");
        }
        assert!(read(&text.as_bytes()[..text.len() - 1]).unwrap_err().why.contains("cut off"));
        assert_eq!(read(b"{}\n").unwrap_err().line, 1);
    }

    #[test]
    fn a_line_without_an_end_is_read_no_further_than_its_bound() {
        /// An endless line.
        struct Endless(u64);
        impl std::io::Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                buffer.fill(b'x');
                self.0 += u64::try_from(buffer.len()).unwrap();
                assert!(self.0 <= MAX_LINE_BYTES + (1 << 20), "it reads on");
                Ok(buffer.len())
            }
        }
        let fault = RunLineReader::new(std::io::BufReader::new(Endless(0))).next_line().unwrap_err();
        assert!(fault.why.contains("64 MiB"), "{fault}");
    }
}
