//! What calls, runs and humans give: functions of what they are given, so that no order of events can change them.

use serde_json::{Map, Value, json};

/// The world outside of a workflow.
#[derive(Debug, Clone, Copy)]
pub struct Outside {
    pub seed: u64,
    /// One call in so many fails, one approval is denied, one form expires; 0 is none.
    pub fails: u64,
    /// Whether what failed goes well now.
    pub healed: bool,
}

impl Outside {
    /// A number that depends on all of these, and on nothing else.
    fn number(&self, what: &str, given: &Value) -> u64 {
        // The moment differs from run to run, and decides nothing.
        let mut given = given.clone();
        given.as_object_mut().and_then(|given| given.remove("at"));
        let text = format!("{what} {given}");
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let number = text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ self.seed, hash);
        crate::simulation::chance::Chance::new(number).below(u64::MAX)
    }

    fn goes_wrong(&self, what: &str, given: &Value) -> bool {
        self.fails > 0 && self.number(what, given).is_multiple_of(self.fails)
    }

    /// What a call, or the run of a step, answers.
    pub fn call(&self, step: &str, input: &Value) -> Option<Value> {
        let fails = !self.healed && self.goes_wrong(&format!("fails {step}"), input);
        let number = self.number(step, input);
        let list = (0..number % 4).map(|index| json!({ "n": (number >> 8) % 7 + index }));
        let list: Vec<Value> = list.collect();
        (!fails).then(|| json!({ "n": (number >> 4) % 8, "of": step, "list": list }))
    }

    /// How many attempts at a call fail before that.
    pub fn failing_attempts(&self, input: &Value) -> u64 {
        self.number("attempts", input) % 3
    }

    /// How many questions the run of a step asks.
    pub fn questions(&self, input: &Value) -> u64 {
        self.number("questions", input).saturating_sub(u64::MAX / 2) % 3
    }

    /// Whether a human approves what is shown; a no that stopped the run becomes a yes later.
    pub fn approves(&self, shown: &Value, stops: bool) -> bool {
        self.healed && stops || !self.goes_wrong("approves", shown)
    }

    /// Whether nobody decides about a call in time.
    pub fn lets_expire(&self, input: &Value) -> bool {
        !self.healed && self.fails > 0 && self.number("nobody decides", input).is_multiple_of(4)
    }

    /// The input in the place of that of a call which needs approval.
    pub fn edits(&self, input: &Value) -> Option<Value> {
        let edited = json!({ "step": input["step"], "of": "edited" });
        self.number("edits", input).is_multiple_of(4).then_some(edited)
    }

    /// What a human fills in; none when nobody does.
    pub fn fills(&self, at: &str, keys: &[Value], expires: bool) -> Option<Map<String, Value>> {
        let given = json!(at);
        let value = |key: &Value| {
            (key.as_str().unwrap_or_default().to_owned(), json!({ "n": self.number("form", &given) % 8 }))
        };
        let expired = expires && self.fails > 0 && self.number("expires", &given).is_multiple_of(4);
        let filled = self.healed || !expired;
        filled.then(|| keys.iter().map(value).collect())
    }
}
