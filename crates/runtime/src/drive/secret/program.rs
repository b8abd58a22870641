//! Secrets that a program prints: kept for their time, asked for again when they are refused, and never by two runs at
//! once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::MAX_FILE;
use crate::drive::clock;
use crate::drive::future::BoxFuture;
use loopctl_lang::language::SecretCommand;
use loopctl_lang::policy::json_text;

/// How long a secret is used when neither the project nor the program says it.
const DEFAULT_TIME: Duration = Duration::from_secs(300);
/// How long before its end a secret is not used any more, at most: a request takes its time.
const EARLIER: Duration = Duration::from_secs(60);
/// After a program failed while the last secret is still there: how long it is not asked again.
const REST: Duration = Duration::from_secs(10);

/// Starts the programs that print secrets.
pub trait SecretPrograms: Send + Sync {
    /// What a program prints, of bounded size and within bounded time.
    ///
    /// # Errors
    /// A sentence that may contain secrets.
    fn printed<'a>(&'a self, command: &'a [String]) -> BoxFuture<'a, Result<Vec<u8>, String>>;
}

/// A program, and what came of asking it.
#[derive(Default)]
pub(super) struct AskedProgram {
    state: Mutex<ProgramState>,
    /// Held by the run that asks; the others wait for what it gets.
    pub(super) asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct ProgramState {
    /// How often it was asked.
    asked: u64,
    /// Until when its secret is used; none when there is none, or the program did not give one.
    until: Option<Instant>,
    /// Why it gave none when it was asked last.
    fault: Option<String>,
    /// Until when it is not asked only to know whether it gives a secret.
    rests_until: Option<Instant>,
}

/// What a program printed.
pub(super) struct PrintedSecret {
    pub(super) text: String,
    expires_in: Option<Duration>,
}

impl AskedProgram {
    fn state(&self) -> MutexGuard<'_, ProgramState> {
        // It is whole at any moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its secret is to be used.
    pub(super) fn is_current(&self) -> bool {
        self.state().until.is_some_and(|until| clock::instant() < until)
    }

    /// Whether it failed a short time ago.
    pub(super) fn rests(&self) -> bool {
        self.state().rests_until.is_some_and(|until| clock::instant() < until)
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> u64 {
        self.state().asked
    }

    /// What came of asking it last.
    pub(super) fn outcome(&self) -> Result<(), String> {
        self.state().fault.clone().map_or(Ok(()), Err)
    }

    /// It gave a secret.
    pub(super) fn gave(&self, command: &SecretCommand, printed: &PrintedSecret) {
        let written = command.ttl_s.map(Duration::from_secs);
        let said = printed.expires_in.map(|time| time.saturating_sub(EARLIER.min(time / 10)));
        let time = written.into_iter().chain(said).min().unwrap_or(DEFAULT_TIME);
        let mut state = self.state();
        let until = clock::instant().checked_add(time);
        *state = ProgramState { asked: state.asked.saturating_add(1), until, ..ProgramState::default() };
    }

    /// It gave none. `is_known`: it gave one earlier, which is used for a while.
    pub(super) fn failed(&self, why: &str, is_known: bool) {
        let mut state = self.state();
        let rests_until = clock::instant().checked_add(REST);
        let until = rests_until.filter(|_| is_known);
        *state = ProgramState { asked: state.asked.saturating_add(1), until, fault: Some(why.to_owned()), rests_until };
    }
}

impl PrintedSecret {
    /// Reads what a program printed: the secret as one line, or the JSON of OAuth.
    ///
    /// # Errors
    /// What is wrong, without what was printed.
    pub(super) fn read(printed: Vec<u8>) -> Result<Self, &'static str> {
        if printed.len() > MAX_FILE {
            return Err("it printed more than 64 KiB");
        }
        let text = String::from_utf8(printed).map_err(|_| "what it printed is not UTF-8")?;
        let text = text.trim();
        let (text, expires_in) = match json_text::read(text) {
            Ok(Value::Object(fields)) => {
                let Some(Value::String(token)) = fields.get("access_token") else {
                    return Err("it printed JSON without a text `access_token`: let it print the secret alone");
                };
                (token.trim().to_owned(), fields.get("expires_in").and_then(seconds))
            }
            Ok(Value::String(text)) => (text.trim().to_owned(), None),
            Ok(Value::Array(_)) => return Err("it printed a list: let it print the secret alone"),
            _ => (text.to_owned(), None),
        };
        if text.is_empty() {
            return Err("it printed nothing");
        }
        if text.contains(char::is_control) {
            return Err("it printed more than one line, or control characters: let it print the secret alone");
        }
        Ok(Self { text, expires_in })
    }
}

/// A time in seconds, which some servers write as a text.
fn seconds(value: &Value) -> Option<Duration> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The name under which the secret of a program is kept.
pub(super) fn source_of(command: &SecretCommand) -> String {
    format!("command:{}", serde_json::json!(command.command))
}

/// The program of such a name, for a label.
pub(super) fn label_of(source: &str) -> Option<String> {
    let words: Vec<String> = json_text::read(source.strip_prefix("command:")?).ok()?;
    Some(format!("of {}", words.first()?))
}

/// Programs that are there for this vault.
pub(super) type Programs = Option<Arc<dyn SecretPrograms>>;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(printed: &str) -> Result<(String, Option<u64>), &'static str> {
        let read = PrintedSecret::read(printed.as_bytes().to_vec())?;
        Ok((read.text, read.expires_in.map(|time| time.as_secs())))
    }

    #[test]
    fn a_token_is_read_alone_and_from_the_json_of_oauth() {
        assert_eq!(read("ya29.a0-b_c\r\n").unwrap(), ("ya29.a0-b_c".to_owned(), None));
        assert_eq!(read("\"quoted\"\n").unwrap(), ("quoted".to_owned(), None));
        assert_eq!(read("12345678901234567890").unwrap(), ("12345678901234567890".to_owned(), None));
        let json = r#"{"access_token": "t-1", "expires_in": 3599, "token_type": "Bearer"}"#;
        assert_eq!(read(json).unwrap(), ("t-1".to_owned(), Some(3599)));
        assert_eq!(read(r#"{"access_token": "t-1", "expires_in": "60"}"#).unwrap(), ("t-1".to_owned(), Some(60)));
        for strange in ["-1", "\"soon\"", "1e400", "null"] {
            let json = format!(r#"{{"access_token": "t-1", "expires_in": {strange}}}"#);
            assert!(read(&json).is_ok_and(|(token, time)| token == "t-1" && time.is_none()) || strange == "1e400");
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_without_repeating_it() {
        let long = "x".repeat(MAX_FILE + 1);
        for printed in
            ["", " \n", "{}", r#"{"accessToken": "s3cret"}"#, "[\"s3cret\"]", "s3cret\nother", "s3\u{1b}cret", &long]
        {
            let why = read(printed).unwrap_err();
            assert!(!why.contains("s3cret") && why.starts_with("it printed"), "{why}");
        }
        assert!(PrintedSecret::read(vec![0xff, 0xfe]).is_err());
    }
}
