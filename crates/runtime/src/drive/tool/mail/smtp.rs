//! What is said to a server of mail, and what its answers mean: 4xx may pass, 5xx does not. After the text was sent, a connection that ends
//! without an answer leaves it unknown whether the message arrives.

use std::error::Error as _;
use std::time::Duration;

use lettre::Message;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};
use serde_json::Value;

use super::stream::MailStream;
use crate::drive::retry::Transient;
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;

/// The longest answer of a server that is kept, in bytes.
const MAX_ANSWER_BYTES: usize = 8 << 10;

/// How long a server that has taken the message is waited for.
const QUIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The name and the password at a server.
pub(super) struct MailLogin {
    pub user: Option<String>,
    pub password: Option<String>,
}

/// Sends a message.
///
/// # Errors
/// When the server refuses it, or the connection ends.
pub(super) async fn send(stream: MailStream, login: MailLogin, message: &Message) -> Result<Value, RawFault> {
    let hello = ClientId::Domain("localhost".to_owned());
    let greeted = AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello).await;
    let mut server = greeted.map_err(|error| refused("the greeting", &error))?;
    if let MailLogin { user: Some(user), password: Some(password) } = login {
        let known = server.auth(DEFAULT_MECHANISMS, &Credentials::new(user, password)).await;
        known.map_err(|error| refused("the login", &error))?;
    }
    let envelope = message.envelope();
    let is_ascii = |address: &lettre::Address| AsRef::<str>::as_ref(address).is_ascii();
    let mut parameters = Vec::new();
    if !envelope.from().into_iter().chain(envelope.to()).all(is_ascii) {
        if !server.server_info().supports_feature(Extension::SmtpUtfEight) {
            let why = "an address is not ASCII, and the server takes no such addresses (SMTPUTF8)";
            return Err(fault("not sent", why).into());
        }
        parameters.push(MailParameter::SmtpUtfEight);
    }
    let taken = server.command(Mail::new(envelope.from().cloned(), parameters)).await;
    taken.map_err(|error| refused("the sender", &error))?;
    // All of them or none: a message that reached some of them is sent to these twice when it is sent again.
    for to in envelope.to() {
        let taken = server.command(Rcpt::new(to.clone(), Vec::new())).await;
        taken.map_err(|error| refused(&format!("the recipient {to}"), &error))?;
    }
    server.command(Data).await.map_err(|error| refused("the message", &error))?;
    let answer = server.message(&message.formatted()).await.map_err(|error| judged(&error))?;
    // The message is taken: how the connection ends does not matter, and a server that hangs then would have it sent again.
    drop(tokio::time::timeout(QUIT_TIMEOUT, server.quit()).await);
    let said = answer.message().collect::<Vec<_>>().join(" ");
    Ok(if said.len() > MAX_ANSWER_BYTES { Value::Null } else { Value::String(said) })
}

/// What a refusal of a part means that came before the text.
fn refused(what: &str, error: &Error) -> RawFault {
    let class = match error.status() {
        Some(code) => format!("smtp {code}: {what} is refused"),
        None => "smtp: no answer that can be used".to_owned(),
    };
    let detail = said(error).unwrap_or_else(|| format!("{what}: {error}"));
    may_pass(error, RawFault::from(fault(class, detail)))
}

/// What a refusal of the text means. What the server says may repeat the text, with a link that answers a question: it is an
/// answer, which a trace shows as one, and never a part of a sentence.
fn judged(error: &Error) -> RawFault {
    let class = match error.status() {
        Some(code) => format!("smtp {code}: the message is refused"),
        None => "smtp: no answer to the message".to_owned(),
    };
    let answer = said(error).map(|said| Box::new(Value::String(said)));
    let raw = RawFault { answer, is_uncertain: error.status().is_none(), ..RawFault::from(fault(class, "")) };
    may_pass(error, raw)
}

/// What the server, or the connection, says; without controls.
fn said(error: &Error) -> Option<String> {
    let text = error.source()?.to_string();
    Some(text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect())
}

fn may_pass(error: &Error, raw: RawFault) -> RawFault {
    if error.is_permanent() || error.is_client() {
        return raw;
    }
    RawFault { transient: Some(Transient { status: None, after: None }), ..raw }
}
