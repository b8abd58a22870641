//! The message of a text: its subject is the first line.

use std::time::UNIX_EPOCH;

use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, SinglePart};
use lettre::{Address, Message};

use crate::drive::clock;
use loopctl_engine::digest::Sha256;
use loopctl_lang::policy::characters::is_hidden;
use loopctl_lang::policy::mail::MailAddress;
use loopctl_lang::program::MailTool;

/// The most characters of a subject.
const MAX_SUBJECT_CHARS: usize = 100;
/// The most bytes of a text. Servers refuse longer messages in their own way.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The message of a call with this key. No sign of the text ends a line of the head.
///
/// # Errors
/// When an address is none, or the text is too long.
pub(super) fn of(mail: &MailTool, text: &str, key: &str) -> Result<Message, String> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("the text has {} bytes, and a mail at most {MAX_TEXT_BYTES}", text.len()));
    }
    let mailbox = |written: &String| {
        let read = MailAddress::parse(written).and_then(|MailAddress { name, user, host }| {
            let address = Address::new(user, host).ok()?;
            Some(Mailbox::new(name, address))
        });
        read.ok_or_else(|| format!("`{}` is no address of mail", written.escape_debug()))
    };
    let from = mailbox(&mail.from)?;
    let domain = Some(from.email.domain()).filter(|domain| domain.is_ascii()).unwrap_or("localhost");
    let id = format!("<{}@{domain}>", Sha256::of(key).to_string().trim_start_matches("sha256:"));
    let milliseconds = u64::try_from(clock::wall_ms()).unwrap_or_default();
    let now = UNIX_EPOCH.checked_add(std::time::Duration::from_millis(milliseconds)).unwrap_or(UNIX_EPOCH);
    let mut message = Message::builder().from(from).message_id(Some(id)).date(now).subject(subject(text));
    for written in &mail.to {
        message = message.to(mailbox(written)?);
    }
    // Programs that answer mail by themselves leave these alone.
    let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
    let message = message.raw_header(automatic);
    let text = with_line_ends(text);
    let mut part = SinglePart::builder().header(ContentType::TEXT_PLAIN);
    // Some servers refuse or change a control character that is written out.
    if text.chars().any(|sign| sign.is_control() && !"\r\n\t".contains(sign)) {
        part = part.header(ContentTransferEncoding::QuotedPrintable);
    }
    message.singlepart(part.body(text)).map_err(|error| error.to_string())
}

/// The text with the line ends of mail. A part of one is what some servers take for the end of a message.
fn with_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n")
}

/// The first line of a text that has one, without signs that nobody sees.
fn subject(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("loopctl");
    let shown: String = line.chars().filter(|sign| !sign.is_control() && !is_hidden(*sign)).collect();
    match shown.char_indices().nth(MAX_SUBJECT_CHARS) {
        Some((at, _)) => format!("{}…", shown.split_at(at).0),
        None => shown,
    }
}
