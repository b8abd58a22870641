//! What a client sends back with its answers: which pause of which run it was asked about, sealed for this caller, tool and input. The
//! key is the process's own: another process refuses it, and the run still waits.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::{hmac, rand};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client_message::McpRefusal;
use super::protocol::ToolRequest;
use crate::engine::canonical;
use crate::engine::digest::Sha256;
use crate::engine::json;
use crate::serve::quotas::Owner;

/// How long what a client was asked may be answered, in milliseconds: a day.
const LASTS_MS: i64 = 24 * 60 * 60 * 1_000;

static KEY: LazyLock<Option<hmac::Key>> =
    LazyLock::new(|| hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new()).ok());

/// The pause that a client was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedPause {
    /// The run.
    pub run_id: String,
    /// The number of its pause.
    pub pause: u32,
}

/// For which call a state is.
#[derive(Debug, Clone, Copy)]
pub struct StateScope<'s> {
    /// Who calls.
    pub owner: &'s Owner,
    /// The call.
    pub call: &'s ToolRequest,
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
}

#[derive(Serialize, Deserialize)]
struct SealedState {
    run: String,
    pause: u32,
    until_ms: i64,
    scope: String,
}

/// Who has no token.
static NOBODY: Owner = Owner { org: None, token: None };

impl<'s> StateScope<'s> {
    /// For a call of whoever started this process.
    pub fn of_process(call: &'s ToolRequest, now_ms: i64) -> Self {
        Self { owner: &NOBODY, call, now_ms }
    }

    /// What names the caller, the tool and its input.
    fn digest(self) -> String {
        let arguments = Value::Object(self.call.arguments.clone());
        let (org, token) = (self.owner.org.as_deref(), self.owner.token.as_deref());
        let digest = Sha256::of_parts(|part| {
            for text in [org.unwrap_or_default(), token.unwrap_or_default(), &self.call.name] {
                part(&format!("{}:", text.len()));
                part(text);
            }
            canonical::spell(&arguments, &mut |piece: &str| part(piece));
        });
        digest.to_string()
    }

    /// The sealed text that names a pause; none where no key can be made.
    pub fn seal(self, asked: &AskedPause) -> Option<String> {
        let until_ms = self.now_ms.saturating_add(LASTS_MS);
        let state = SealedState { run: asked.run_id.clone(), pause: asked.pause, until_ms, scope: self.digest() };
        let text = BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_string(&state).ok()?);
        let tag = hmac::sign(KEY.as_ref()?, text.as_bytes());
        Some(format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(tag)))
    }

    /// The pause that a sealed text names.
    ///
    /// # Errors
    /// When it was changed, is another caller's or call's, or too old.
    pub fn open(self, sealed: &str) -> Result<AskedPause, McpRefusal> {
        let state = self.verified(sealed).filter(|state| state.until_ms > self.now_ms && state.scope == self.digest());
        let SealedState { run, pause, .. } = state.ok_or_else(|| {
            McpRefusal::params(
                "`requestState` is not one of this call, or of another process, or too old: the run still waits, and may be \
                 decided elsewhere",
            )
        })?;
        Ok(AskedPause { run_id: run, pause })
    }

    fn verified(self, sealed: &str) -> Option<SealedState> {
        let (text, tag) = sealed.split_once('.')?;
        let tag = BASE64_URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(KEY.as_ref()?, text.as_bytes(), &tag).ok()?;
        json::from_bytes(&BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_state_is_taken_from_its_caller_for_its_call_and_in_time_only() {
        let call = |name: &str, arguments: Value| ToolRequest {
            name: name.to_owned(),
            arguments: arguments.as_object().unwrap().clone(),
            progress_token: None,
            idempotency_key: None,
            answered: None,
        };
        let (owner, other) = (Owner::default(), Owner { org: Some("acme".to_owned()), token: None });
        let (asks, other_input) = (call("asks", json!({ "n": 1 })), call("asks", json!({ "n": 2 })));
        let scope = StateScope { owner: &owner, call: &asks, now_ms: 0 };
        let asked = AskedPause { run_id: "r".to_owned(), pause: 2 };
        let sealed = scope.seal(&asked).unwrap();
        assert_eq!(scope.open(&sealed).unwrap(), asked);
        assert!(StateScope { owner: &other, ..scope }.open(&sealed).is_err());
        assert!(StateScope { call: &other_input, ..scope }.open(&sealed).is_err());
        assert!(StateScope { now_ms: LASTS_MS, ..scope }.open(&sealed).is_err());
        for odd in ["", ".", "x.y", &format!("{sealed}-TAMPERED"), &sealed[1..], &sealed.replace('.', "")] {
            assert_eq!(scope.open(odd).unwrap_err().code, -32602, "{odd}");
        }
    }
}
