//! What an event, or a start, says of somebody's act: its line in the list of what was done.

use super::start::Start;
use crate::journal::{AuditAction, AuditEntry};
use loopctl_engine::decision::decision_record::DecisionRecord;
use loopctl_engine::event::{Decided, Event, EventKind, RaisedLimits, WebhookDelivery};

/// The line of an event; none where nobody decided it.
pub(super) fn of_event(event: &Event) -> Option<Box<AuditEntry>> {
    let (action, actor, detail) = match &event.kind {
        EventKind::Human(decided) => (AuditAction::Decided, &decided.by, Some(decision(decided))),
        EventKind::Retried(retried) => (AuditAction::Retried, &retried.by, None),
        EventKind::LimitsRaised(raised) => (AuditAction::LimitsRaised, &raised.by, Some(limits(&raised.limits))),
        EventKind::Cancelled(cancelled) => (AuditAction::Cancelled, &cancelled.by, None),
        _ => return None,
    };
    Some(Box::new(AuditEntry::new(event.at.wall_ms, action, actor.as_deref(), detail.as_deref())))
}

/// The line of a start. `caller`: the run that starts it, when one does.
pub(super) fn of_start(start: &Start, at_ms: i64, caller: Option<&str>) -> Box<AuditEntry> {
    let actor = start.token.as_deref().or(start.by.as_deref());
    let detail = match (caller, &start.scheduled, &start.delivery, &start.rerun_of) {
        (Some(caller), ..) => Some(format!("by the run {caller}")),
        (None, Some(_), ..) => Some("by its schedule".to_owned()),
        (None, None, Some(WebhookDelivery { name, delivery }), _) => {
            Some(format!("by the delivery {delivery} to the webhook {name}"))
        }
        (None, None, None, Some(earlier)) => Some(format!("rerun of {earlier}")),
        (None, None, None, None) => None,
    };
    Box::new(AuditEntry::new(at_ms, AuditAction::Started, actor, detail.as_deref()))
}

/// The word of a decision, and what it is about; never its texts, which may hold what nobody else is to read.
fn decision(decided: &Decided) -> String {
    let word = decided.decision.kind().word();
    match (&decided.at, &decided.call) {
        (Some(at), _) => format!("{word} {at}"),
        (None, Some(call)) => format!("{word} {call}"),
        (None, None) => word.to_owned(),
    }
}

/// Whether an event is a decision that does not say what it is about: by its hash, or about the only question.
pub(super) fn names_nothing(what: &EventKind) -> bool {
    matches!(what, EventKind::Human(Decided { at: None, call: None, .. }))
}

/// The line of such a decision, with what the run found it to be about.
pub(super) fn with_places(line: &AuditEntry, records: &[DecisionRecord]) -> AuditEntry {
    let place = |record: &DecisionRecord| record.step.clone().or_else(|| record.call.map(|call| call.to_string()));
    let word = line.detail.clone();
    let parts: Vec<String> = word.into_iter().chain(records.iter().filter_map(place)).collect();
    AuditEntry::new(line.at_ms, line.action, line.actor.as_deref(), Some(&parts.join(" ")))
}

fn limits(raised: &RaisedLimits) -> String {
    let RaisedLimits { max_iterations, timeout_ms, budget } = raised;
    let texts = [
        max_iterations.map(|most| format!("max_iterations {most}")),
        timeout_ms.map(|most| format!("timeout_ms {most}")),
        budget.tokens.map(|most| format!("budget.tokens {most}")),
        budget.cost_usd.map(|most| format!("budget.cost_usd {most}")),
    ];
    texts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopctl_engine::event::{Allowance, Cancelled, Decision, LimitsRaised, Moment, Retried};
    use serde_json::json;

    fn noted(kind: EventKind) -> Option<AuditEntry> {
        of_event(&Event { at: Moment { wall_ms: 7, active_ms: 0 }, kind }).map(|entry| *entry)
    }

    fn by(actor: &str, action: AuditAction, detail: Option<&str>) -> Option<AuditEntry> {
        Some(AuditEntry::new(7, action, Some(actor), detail))
    }

    #[test]
    fn an_act_of_somebody_has_a_line_without_what_they_wrote() {
        let ann = || Some("ann".to_owned());
        let edit =
            Decided { by: ann(), at: Some("pay.3".to_owned()), ..Decision::Edit(json!({ "iban": "DE1" })).into() };
        assert_eq!(noted(EventKind::Human(edit)), by("ann", AuditAction::Decided, Some("edit pay.3")));
        let answer =
            Decided { by: ann(), comment: Some("secret".to_owned()), ..Decision::Answer("hunter2".to_owned()).into() };
        assert_eq!(noted(EventKind::Human(answer)), by("ann", AuditAction::Decided, Some("answer")));
        assert_eq!(noted(EventKind::Retried(Retried::by(ann()))), by("ann", AuditAction::Retried, None));
        let limits = RaisedLimits {
            max_iterations: Some(40),
            timeout_ms: None,
            budget: Allowance { tokens: Some(9), cost_usd: None },
        };
        let raised = noted(EventKind::LimitsRaised(LimitsRaised { limits, by: ann(), bound: None }));
        assert_eq!(raised, by("ann", AuditAction::LimitsRaised, Some("max_iterations 40, budget.tokens 9")));
        let cancelled = Cancelled { reason: Some("hunter2".to_owned()), by: ann() };
        assert_eq!(noted(EventKind::Cancelled(cancelled)), by("ann", AuditAction::Cancelled, None));
        assert_eq!(noted(EventKind::Resumed), None);
    }

    #[test]
    fn a_start_names_its_token_or_its_user_and_what_started_it() {
        let start = Start { token: Some("ci".to_owned()), by: Some("ann".to_owned()), ..Start::default() };
        assert_eq!(*of_start(&start, 7, None), by("ci", AuditAction::Started, None).unwrap());
        let rerun = Start { by: Some("ann\n".to_owned()), rerun_of: Some("r-1".to_owned()), ..Start::default() };
        assert_eq!(*of_start(&rerun, 7, None), by("ann", AuditAction::Started, Some("rerun of r-1")).unwrap());
        let called = of_start(&Start::default(), 7, Some("r-1"));
        assert_eq!(*called, AuditEntry::new(7, AuditAction::Started, None, Some("by the run r-1")));
    }
}
