//! What spends besides the model of the run: questions to a model, and runs of another loop, which have a
//! journal of their own: they go on where they stood, whoever asks them, and ask humans too.

use loopctl::Termination;
use loopctl::engine::budget::cost_usd;
use loopctl::engine::event::{
    Allowance, CallId, Decided, EventKind, Tokens, ToolLeft, ToolPaused, ToolResult, ToolReturned,
};
use loopctl::engine::question::{Question, SubrunQuestion, WaitingCall};
use loopctl::language::project::Price;
use serde_json::json;

use crate::simulation::chance::Chance;
use crate::simulation::words;

/// What a million tokens cost, where they cost something.
pub const PRICE: Price = Price { input: 1.0, output: 2.0, cached_input: None, cache_write: None };

/// The tokens of one reply, and never more than the run's own model uses.
fn some_tokens(chance: &mut Chance) -> Tokens {
    Tokens { input: 20 + chance.below(180), output: 1 + chance.below(60), ..Tokens::default() }
}

/// A question to a model is answered, or is not: it was paid for all the same, or it was not made.
pub fn asked(call: CallId, chance: &mut Chance) -> EventKind {
    let tokens = (!chance.one_in(6)).then(|| some_tokens(chance));
    let result = if chance.one_in(5) { words::failed("model not reachable") } else { ToolResult::Ok(json!("said")) };
    returned(call, result, tokens, None)
}

/// A question to a model is left between two attempts, of which one was paid for or none.
pub fn left(call: CallId, chance: &mut Chance) -> EventKind {
    let tokens = (!chance.one_in(3)).then(|| some_tokens(chance));
    EventKind::ToolLeft(ToolLeft { call, tokens, cost_usd: tokens.map(|tokens| cost_usd(tokens, PRICE)) })
}

fn returned(call: CallId, result: ToolResult, tokens: Option<Tokens>, run_id: Option<String>) -> EventKind {
    let cost_usd = tokens.map(|tokens| cost_usd(tokens, PRICE));
    EventKind::ToolReturned(ToolReturned {
        attempts: Vec::new(),
        waited_ms: 0,
        call,
        result,
        duration_ms: 5,
        tokens,
        cost_usd,
        estimated: false,
        at_most: false,
        run_id,
    })
}

/// A run that was called: what is durable of it.
pub struct Run {
    /// What it may spend.
    bound: Allowance,
    spent: Tokens,
    pauses: u32,
    waits: Option<SubrunQuestion>,
    ended: Option<ToolResult>,
}

impl Run {
    pub fn new(bound: Allowance) -> Self {
        Self { bound, spent: Tokens::default(), pauses: 0, waits: None, ended: None }
    }

    /// Goes on until it ends or waits for a human, with what one decided.
    pub fn goes_on(&mut self, call: CallId, decided: Option<&Decided>, chance: &mut Chance) -> EventKind {
        if self.waits.as_ref().is_some_and(|asks| decided.is_some_and(|said| said.pause == Some(asks.pause))) {
            self.waits = None;
        }
        while self.waits.is_none() && self.ended.is_none() {
            if self.is_spent() {
                self.ended = Some(words::failed("the loop `help` ended: budget"));
                break;
            }
            let tokens = some_tokens(chance);
            self.spent.input += tokens.input;
            self.spent.output += tokens.output;
            match chance.below(6) {
                0 => self.waits = Some(self.asks(call, chance)),
                1..=3 => self.ended = Some(ToolResult::Ok(json!("helped"))),
                _ => {}
            }
        }
        let run_id = format!("r.{call}");
        match (&self.waits, &self.ended) {
            (Some(asks), _) => EventKind::ToolPaused(Box::new(ToolPaused {
                call,
                run_id,
                asks: asks.clone(),
                tokens: Some(self.spent),
                cost_usd: Some(cost_usd(self.spent, PRICE)),
            })),
            (None, ended) => {
                let result = ended.clone().expect("it waits or has ended");
                returned(call, result, Some(self.spent), Some(run_id))
            }
        }
    }

    fn is_spent(&self) -> bool {
        self.bound.tokens.is_some_and(|most| self.spent.input + self.spent.output >= most)
            || self.bound.cost_usd.is_some_and(|most| cost_usd(self.spent, PRICE) >= most)
    }

    fn asks(&mut self, call: CallId, chance: &mut Chance) -> SubrunQuestion {
        self.pauses += 1;
        let kind = chance.pick(&[Termination::Human, Termination::Approval]);
        let below = WaitingCall {
            id: "1.0".to_owned(),
            call: CallId { iteration: 1, index: 0 },
            action: "below".to_owned(),
            action_input: json!({}),
            hash: "h".to_owned(),
            approval: None,
            ask: None,
        };
        SubrunQuestion {
            pause: self.pauses,
            question: Question { run_id: Some(format!("r.{call}")), ..Question::new(kind, "Go on?") },
            calls: if kind == Termination::Approval { vec![below] } else { Vec::new() },
            steps: Vec::new(),
            until_ms: None,
        }
    }
}
