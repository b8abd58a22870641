//! What a client sends back with its answers: which pause of which run it was asked about, for this caller, tool and input. The store
//! knows its hash, so that every process of the store takes it: a client over the standard streams answers after its server has ended.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client_message::{INTERNAL_ERROR, McpRefusal};
use super::protocol::ToolRequest;
use crate::engine::canonical;
use crate::engine::digest::Sha256;
use crate::engine::json;
use crate::journal::answer_token::NO_PAUSE;
use crate::journal::{AnswerToken, Journal};
use crate::serve::authorizer::hash_text;
use crate::serve::quotas::Owner;

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
}

#[derive(Serialize, Deserialize)]
struct SealedState {
    run: String,
    pause: u32,
    scope: String,
}

/// Who has no token.
static NOBODY: Owner = Owner { org: None, token: None };

impl<'s> StateScope<'s> {
    /// For a call of whoever started this process.
    pub fn of_process(call: &'s ToolRequest) -> Self {
        Self { owner: &NOBODY, call }
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

    /// The text that names a pause, which the store knows from now on; none where it can't be stored.
    pub async fn issue(self, journal: &dyn Journal, asked: &AskedPause) -> Option<String> {
        let state = self.written(asked)?;
        // A token that was used answers nothing by itself.
        let token = AnswerToken { hash: hash(&state), pause: NO_PAUSE, call: None, expires_at_ms: 0, used: true };
        journal.put_answer_tokens(&asked.run_id, vec![token]).await.ok()?;
        Some(state)
    }

    /// The pause that a text names.
    ///
    /// # Errors
    /// When it was changed, is another caller's or call's, or the store can't be read.
    pub async fn open(self, journal: &dyn Journal, state: &str) -> Result<AskedPause, McpRefusal> {
        let unknown = || {
            McpRefusal::params(
                "`requestState` is not one of this call, or of another store: the run still waits, and may be decided elsewhere",
            )
        };
        let asked = self.read(state).ok_or_else(unknown)?;
        match journal.answer_token(&asked.run_id, &hash(state)).await {
            Ok(Some(_)) => Ok(asked),
            Ok(None) => Err(unknown()),
            // Not as one that is unknown: a client would start the call afresh.
            Err(fault) => Err(McpRefusal::new(INTERNAL_ERROR, format!("the store can't be read: {fault}"))),
        }
    }

    fn written(self, asked: &AskedPause) -> Option<String> {
        let mut secret = [0_u8; 32];
        SystemRandom::new().fill(&mut secret).ok()?;
        let state = SealedState { run: asked.run_id.clone(), pause: asked.pause, scope: self.digest() };
        let text = BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_string(&state).ok()?);
        Some(format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(secret)))
    }

    /// What a text says that is for this caller and call, whether the store knows it or not.
    fn read(self, state: &str) -> Option<AskedPause> {
        let (text, _) = state.split_once('.')?;
        let read: SealedState = json::from_bytes(&BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        (read.scope == self.digest()).then_some(AskedPause { run_id: read.run, pause: read.pause })
    }
}

fn hash(state: &str) -> String {
    hash_text(&format!("requestState {state}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_state_is_taken_from_its_caller_for_its_call_only() {
        let call = |name: &str, arguments: Value| ToolRequest {
            name: name.to_owned(),
            arguments: arguments.as_object().unwrap().clone(),
            progress_token: None,
            idempotency_key: None,
            answered: None,
        };
        let (owner, other) = (Owner::default(), Owner { org: Some("acme".to_owned()), token: None });
        let (asks, other_input) = (call("asks", json!({ "n": 1 })), call("asks", json!({ "n": 2 })));
        let scope = StateScope { owner: &owner, call: &asks };
        let asked = AskedPause { run_id: "r".to_owned(), pause: 2 };
        let written = scope.written(&asked).unwrap();
        assert_eq!(scope.read(&written), Some(asked.clone()));
        assert_ne!(scope.written(&asked).unwrap(), written);
        assert_eq!(StateScope { owner: &other, ..scope }.read(&written), None);
        assert_eq!(StateScope { call: &other_input, ..scope }.read(&written), None);
        for odd in ["", ".", "x.y", &written[1..], &written.replace('.', "")] {
            assert_eq!(scope.read(odd), None, "{odd}");
        }
    }
}
