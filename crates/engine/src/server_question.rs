//! What the server of a tool asks a human before it continues with a call: its requests, the form that is made of them, and what it
//! is answered. Its words are a stranger's: they are shown as such, and an address in them is never opened here.

mod requested_form;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::requested_form::{ReadRequest, read_all};
use crate::decision::form::server_values;
use crate::effect::Refused;
use crate::event::Decision;
use loopctl_lang::program::form::AskedForm;

/// How often a server may ask in one call.
pub const MAX_ROUNDS: usize = 10;
/// The most bytes of its requests, and of what it wants back with their answers.
const MAX_REQUEST_BYTES: usize = 64 << 10;
const MAX_STATE_BYTES: usize = 256 << 10;

/// Who asks a question that no document and no model wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskingServer {
    /// The MCP server, by its name in the project.
    pub mcp_server: String,
    /// The tool that was called, by the server's name for it.
    pub tool: String,
}

/// What a server asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerQuestion {
    /// Who asks.
    #[serde(flatten)]
    pub by: AskingServer,
    /// Its requests, by the keys that it has for them.
    pub requests: Map<String, Value>,
    /// What it wants back as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// How many of the answers before it the server knows: it may have forgotten them.
    #[serde(default)]
    pub after: usize,
    /// What a human is asked.
    pub form: AskedForm,
}

/// What a server asked, and was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct AnsweredQuestion {
    /// Its requests.
    pub requests: Map<String, Value>,
    /// What it wants back as it is.
    pub request_state: Option<String>,
    /// The answers, by the keys of the requests.
    pub responses: Map<String, Value>,
}

impl ServerQuestion {
    /// What a result asks that a server gave in place of one.
    ///
    /// # Errors
    /// Why it is put to no human, in a sentence without a final stop.
    pub fn of(by: AskingServer, result: &Value) -> Result<Self, String> {
        let requests = result.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
        let request_state = match result.get("requestState") {
            None | Some(Value::Null) => None,
            Some(Value::String(state)) if state.len() <= MAX_STATE_BYTES => Some(state.clone()),
            Some(Value::String(_)) => return Err("what it wants back is too long".to_owned()),
            Some(_) => return Err("what it wants back is no text".to_owned()),
        };
        if Value::Object(requests.clone()).to_string().len() > MAX_REQUEST_BYTES {
            return Err(format!("its requests have more than {} KiB", MAX_REQUEST_BYTES >> 10));
        }
        let form = requested_form::form(&by, &read_all(&requests)?)?;
        Ok(Self { by, requests, request_state, after: 0, form })
    }

    /// The result that asks it, as the server gave it.
    pub fn as_result(&self) -> Value {
        let mut result = json!({ "resultType": "input_required", "inputRequests": self.requests });
        if let (Some(state), Some(members)) = (&self.request_state, result.as_object_mut()) {
            members.insert("requestState".to_owned(), Value::from(state.as_str()));
        }
        result
    }

    /// Whether a decision answers it.
    ///
    /// # Errors
    /// Why not, and what would.
    pub(crate) fn accepts(&self, decision: &Decision) -> Result<(), Refused> {
        match decision {
            Decision::Answer(answer) => self.answers(answer).map(drop).map_err(Refused::new),
            Decision::Deny(_) => Ok(()),
            _ => Err(Refused::new("the server of the tool waits for an answer: answer, or deny, which declines")),
        }
    }

    /// What the server is answered by a decision that is accepted.
    pub(crate) fn answered(&self, decision: &Decision) -> AnsweredQuestion {
        let declined = || self.requests.keys().map(|key| (key.clone(), json!({ "action": "decline" }))).collect();
        let responses = match decision {
            Decision::Answer(answer) => self.answers(answer).unwrap_or_else(|_| declined()),
            _ => declined(),
        };
        AnsweredQuestion { requests: self.requests.clone(), request_state: self.request_state.clone(), responses }
    }

    /// The answers to its requests.
    ///
    /// # Errors
    /// What is wrong, at each field.
    fn answers(&self, answer: &str) -> Result<Map<String, Value>, String> {
        let values = server_values(&self.form.fields, answer).map_err(|refusal| refusal.why)?;
        let requests = read_all(&self.requests)?;
        let mut responses = Map::new();
        for request in &requests {
            responses.insert(request.key.to_owned(), request.response(&values)?);
        }
        Ok(responses)
    }
}

impl ReadRequest<'_> {
    /// The answer to it, of the values of all fields.
    fn response(&self, values: &[(String, Value)]) -> Result<Value, String> {
        let of = |name: &str| values.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        if let Some(consent) = self.consent() {
            let action = if of(&consent) == Some(&Value::Bool(true)) { "accept" } else { "decline" };
            return Ok(match (action, self.is_form()) {
                ("accept", true) => json!({ "action": action, "content": {} }),
                _ => json!({ "action": action }),
            });
        }
        let mut content = Map::new();
        for field in &self.fields {
            match of(&field.name) {
                None | Some(Value::Null) => {}
                Some(value) => {
                    content.insert(field.own_name.to_owned(), field.value(value)?);
                }
            }
        }
        let content = Value::Object(content);
        self.fits(&content)?;
        Ok(json!({ "action": "accept", "content": content }))
    }
}
