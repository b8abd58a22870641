//! The rounds of a call whose server asks: what each request of the call says of what was answered before.

use serde_json::{Map, Value, json};

use crate::drive::secret::Vault;
use loopctl_engine::server_question::{AnsweredQuestion, MAX_ROUNDS};

/// What the code of an error says that a server refuses the parameters of a request.
pub(super) const BAD_PARAMETERS: &str = "-32602";

/// How far a call is.
pub(super) struct CallRounds<'a> {
    answered: &'a [AnsweredQuestion],
    /// How many of the answers the server knows, with the request that is next.
    known: usize,
    /// What the next request says beside the name and the input.
    next: Map<String, Value>,
    /// Whether the server has forgotten the call, and it was started afresh.
    is_fresh: bool,
    /// How many requests were made after the first one.
    made: usize,
}

/// What follows a question.
pub(super) enum NextRound {
    /// Another request, with what is known.
    Request,
    /// A human is asked; the server knows this many of the answers before.
    Ask(usize),
}

impl<'a> CallRounds<'a> {
    /// The call with what was answered so far.
    pub fn of(answered: &'a [AnsweredQuestion]) -> Self {
        let mut rounds = Self { answered, known: answered.len(), next: Map::new(), is_fresh: false, made: 0 };
        if let Some(last) = answered.last() {
            rounds.next = sent(Some(&last.responses), last.request_state.as_deref());
        }
        rounds
    }

    /// What the next request says beside the name and the input.
    pub fn params(&self) -> &Map<String, Value> {
        &self.next
    }

    /// Begins the call afresh, for a server that knows nothing any more of what it asked. Whether that helps: not twice, and not
    /// where nothing was answered.
    pub fn begin_afresh(&mut self) -> bool {
        if self.is_fresh || self.answered.is_empty() {
            return false;
        }
        (self.is_fresh, self.known, self.next) = (true, 0, Map::new());
        true
    }

    /// Takes a question of the server. What it asks as before is answered as before.
    pub fn take(&mut self, result: &Value, vault: &Vault) -> NextRound {
        self.made = self.made.saturating_add(1);
        let requests = result.get("inputRequests").and_then(Value::as_object).filter(|requests| !requests.is_empty());
        let state = result.get("requestState").and_then(Value::as_str);
        if self.made > MAX_ROUNDS {
            return NextRound::Ask(self.known);
        }
        match (requests, self.answered.get(self.known)) {
            // It wants the same call once more, and asks nobody.
            (None, _) if state.is_some() => self.next = sent(None, state),
            (Some(requests), Some(before))
                if vault.scrub_value(Value::Object(requests.clone())) == json!(before.requests) =>
            {
                self.next = sent(Some(&before.responses), state);
                self.known = self.known.saturating_add(1);
            }
            _ => return NextRound::Ask(self.known),
        }
        NextRound::Request
    }
}

fn sent(responses: Option<&Map<String, Value>>, state: Option<&str>) -> Map<String, Value> {
    let responses = responses.map(|responses| ("inputResponses".to_owned(), Value::Object(responses.clone())));
    let state = state.map(|state| ("requestState".to_owned(), Value::from(state)));
    responses.into_iter().chain(state).collect()
}
