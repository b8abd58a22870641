//! The calls of a world: what comes back, how many at a time, and what a driver does that is asked to stop.

use loopctl::Termination;
use loopctl::engine::address::StepAddress;
use loopctl::engine::event::{
    EventKind, StepLeft, StepPaused, StepRetried, StepReturned, Tokens, ToolFault, ToolResult,
};
use loopctl::engine::operation::{AskedFor, OpenStep, Progress};
use loopctl::engine::question::{Question, SubrunQuestion};
use loopctl::engine::state::Phase;
use serde_json::json;

use super::world::World;

/// What the run of a step spends.
pub(super) const RUN_TOKENS: u64 = 15;

impl World<'_> {
    /// The driver is asked to stop: calls end, no step begins, and another driver goes on.
    pub(super) fn stops_and_goes_on(&mut self) {
        if !matches!(self.state.phase, Phase::Stepping) {
            return;
        }
        self.sees("stops");
        self.take_durable(EventKind::Stopping);
        while !self.under_way.is_empty() && matches!(self.state.phase, Phase::Stepping) {
            let at = self.under_way.swap_remove(self.chance.below(self.under_way.len() as u64) as usize);
            let outcome = if self.is_left(&at) {
                self.sees("steps left");
                EventKind::StepLeft(StepLeft { at, tokens: None, cost_usd: None })
            } else {
                self.outcome(&at)
            };
            self.take_durable(outcome);
        }
        if matches!(self.state.phase, Phase::Stepping) {
            self.resumes();
        }
    }

    /// Whether the driver stops between two attempts of the model that a step asks; a run of its own stops by itself.
    fn is_left(&mut self, at: &str) -> bool {
        self.open(at).name != "loop" && self.chance.one_in(3)
    }

    /// Some of the calls under way come back, together.
    pub(super) fn outcomes(&mut self) {
        assert!(!self.under_way.is_empty(), "nothing is under way, and the run does not wait: {:?}", self.state.phase);
        let most = if self.trouble == 0 { 1 } else { 1 + self.chance.below(self.under_way.len() as u64) };
        // Alone: in the order of their requests.
        let requested: Vec<String> = (0..most)
            .map(|_| match self.trouble {
                0 => self.under_way.remove(0),
                _ => self.under_way.swap_remove(self.chance.below(self.under_way.len() as u64) as usize),
            })
            .collect();
        for at in requested {
            if matches!(self.state.phase, Phase::Stepping) {
                let outcome = self.outcome(&at);
                self.take(outcome);
            }
        }
        if self.goes_wrong(25) {
            return self.die();
        }
        self.durable();
    }

    pub(super) fn open(&self, at: &str) -> &OpenStep {
        self.state.open_step(&StepAddress::new(at)).unwrap_or_else(|| panic!("{at} is not open"))
    }

    fn outcome(&mut self, at: &str) -> EventKind {
        let OpenStep { name: kind, input, progress, attempts, repetition, .. } = self.open(at).clone();
        let attempt = attempts.len() as u64 + 1;
        if kind == "put" && attempt <= self.outside.failing_attempts(&input) {
            let error = ToolFault { class: "http 503".to_owned(), ..ToolFault::default() };
            let attempt = u32::try_from(attempt).unwrap();
            return EventKind::StepRetried(Box::new(StepRetried {
                at: at.to_owned(),
                attempt,
                error,
                duration_ms: 1,
                waited_ms: 0,
                delay_ms: 1,
                lost: false,
            }));
        }
        let mut result = self.outside.call(&kind, &input);
        let mut tokens = None;
        if kind == "loop" {
            tokens = Some(Tokens { input: RUN_TOKENS - 5, output: 5, ..Tokens::default() });
            let run_id = format!("r.{at}.{}", repetition.round);
            let answered = self.answered.entry(run_id.clone()).or_default();
            if let Progress::Asks(AskedFor::Subrun(waits)) = &progress
                && let Some(decided) = &waits.decided
            {
                // A decision that comes twice counts once.
                *answered = (*answered).max(u64::from(decided.pause.unwrap()));
            }
            if *answered < self.outside.questions(&input) {
                let pause = u32::try_from(*answered).unwrap() + 1;
                let asks = question(run_id.clone(), pause);
                self.sees("questions of runs");
                return EventKind::StepPaused(Box::new(StepPaused {
                    at: at.to_owned(),
                    run_id,
                    asks,
                    tokens,
                    cost_usd: None,
                }));
            }
            result = result.map(|answer| json!({ "answer": answer, "confidence": 1 }));
        }
        let result = result.map_or_else(
            || ToolResult::Failed(ToolFault { class: "down".to_owned(), ..ToolFault::default() }),
            ToolResult::Ok,
        );
        EventKind::StepReturned(Box::new(StepReturned {
            attempts: Vec::new(),
            waited_ms: 0,
            partly: false,
            outage: false,
            limited: false,
            at: at.to_owned(),
            kind,
            result,
            duration_ms: 1,
            tokens,
            cost_usd: None,
            estimated: false,
            at_most: false,
            run_id: None,
            retryable: false,
        }))
    }
}

fn question(run_id: String, pause: u32) -> SubrunQuestion {
    let question = Question { run_id: Some(run_id), ..Question::new(Termination::Human, "Go on?") };
    SubrunQuestion { pause, question, calls: Vec::new(), steps: Vec::new(), until_ms: None }
}
