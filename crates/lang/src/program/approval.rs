//! When a human must approve the call of a tool.

use std::sync::Arc;

use serde_json::Value;

use super::condition::{CompiledCondition, OrderRules};
use super::reference::Scope;
use crate::language::approval::{ApprovalSettings, OnExpiry};
use crate::program::json_texts::JsonRule;

/// When a human must approve a call. What the action says and what the declaration says stand side by side: either of
/// them is enough.
#[derive(Debug)]
pub struct ApprovalPolicy {
    /// Whether each call must be approved.
    pub always: bool,
    /// The calls whose input meets one of these conditions must be approved.
    pub when: Vec<CompiledCondition>,
    /// How long a call waits in milliseconds; none without end.
    pub expires_after_ms: Option<u64>,
    /// What happens then.
    pub on_expiry: OnExpiry,
    /// How many different people must approve a call, at least 1.
    pub approvers: u32,
    /// The targets that the question is posted to, each once; none without one.
    pub ask: Option<Arc<[String]>>,
}

impl Default for ApprovalPolicy {
    /// No call must be approved.
    fn default() -> Self {
        Self {
            always: false,
            when: Vec::new(),
            expires_after_ms: None,
            on_expiry: OnExpiry::Escalate,
            approvers: 1,
            ask: None,
        }
    }
}

/// The targets of an `ask`, each once; none without one.
pub fn targets(written: Option<&[String]>) -> Option<Arc<[String]>> {
    let mut named: Vec<String> = Vec::new();
    for name in written.unwrap_or_default() {
        if !named.contains(name) {
            named.push(name.clone());
        }
    }
    (!named.is_empty()).then(|| named.into())
}

/// Whether a call must be approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalNeed {
    /// It may be made.
    NotNeeded,
    /// A human must approve it.
    Needed,
    /// A condition can't be evaluated, so a human must approve it.
    Unknown {
        /// Why not, in a sentence without a final stop.
        why: String,
    },
}

/// What the conditions of an approval are judged by.
#[derive(Debug, Clone, Copy)]
pub struct CallRules<'r> {
    /// How the run reads texts as JSON.
    pub json: JsonRule,
    /// How values are ordered.
    pub order: OrderRules<'r>,
    /// The moment of the call, RFC 3339.
    pub now: &'r str,
}

impl ApprovalPolicy {
    /// Adds what an action or a declaration sets: of two settings the stricter one counts.
    pub fn tighten(&mut self, settings: &ApprovalSettings) {
        let ApprovalSettings { expires_after_ms, on_expiry, approvers, ask } = settings.clone();
        self.expires_after_ms = self.expires_after_ms.into_iter().chain(expires_after_ms).min();
        // Who sets a time and does not say what follows has the default.
        let on_expiry = on_expiry.or(expires_after_ms.map(|_| OnExpiry::default()));
        self.on_expiry = on_expiry.map_or(self.on_expiry, |on_expiry| self.on_expiry.max(on_expiry));
        self.approvers = self.approvers.max(approvers.unwrap_or(1));
        // Both are asked.
        let known = self.ask.iter().flat_map(|known| known.iter().cloned());
        self.ask = targets(Some(&known.chain(ask.into_iter().flatten()).collect::<Vec<_>>()));
    }

    /// Whether some calls may have to be approved.
    pub fn may_ask(&self) -> bool {
        self.always || !self.when.is_empty()
    }

    /// Whether a call with this input must be approved.
    pub fn of_call(&self, input: &Value, by: &CallRules<'_>) -> ApprovalNeed {
        if self.always {
            return ApprovalNeed::Needed;
        }
        let scope = Scope { now: by.now, ..Scope::of_input(input, by.json.into()) };
        let mut need = ApprovalNeed::NotNeeded;
        for condition in &self.when {
            match condition.evaluate(&scope, by.order) {
                Ok(true) => return ApprovalNeed::Needed,
                Ok(false) => {}
                Err(fault) => need = ApprovalNeed::Unknown { why: fault.0 },
            }
        }
        need
    }
}
