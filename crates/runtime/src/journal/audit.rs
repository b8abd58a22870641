//! What people did with the runs of a store, and what they were refused: a list that only grows. Lines about runs are written
//! together with the event that they are about, and stay when the run is deleted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RunSummary;

/// The most characters of a name or a detail of a line.
const MAX_TEXT_CHARACTERS: usize = 200;
/// The most lines that are returned at once.
pub const MAX_AUDIT_LINES: usize = 10_000;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditAction {
    /// A run was started.
    Started,
    /// A run was cancelled.
    Cancelled,
    /// A question or an approval was decided.
    Decided,
    /// A run that had failed was retried.
    Retried,
    /// A limit of a run was raised.
    LimitsRaised,
    /// A quarantined run was released.
    Released,
    /// Old runs were deleted.
    Pruned,
    /// A loop was switched off.
    SwitchedOff,
    /// A loop was switched on again.
    SwitchedOn,
    /// Requests were refused.
    Refused,
}

impl AuditAction {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Started,
        Self::Cancelled,
        Self::Decided,
        Self::Retried,
        Self::LimitsRaised,
        Self::Released,
        Self::Pruned,
        Self::SwitchedOff,
        Self::SwitchedOn,
        Self::Refused,
    ];

    /// Its word, as it is written in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Cancelled => "cancelled",
            Self::Decided => "decided",
            Self::Retried => "retried",
            Self::LimitsRaised => "limits_raised",
            Self::Released => "released",
            Self::Pruned => "pruned",
            Self::SwitchedOff => "switched_off",
            Self::SwitchedOn => "switched_on",
            Self::Refused => "refused",
        }
    }
}

/// What is written of an act: the store adds the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// What was done.
    pub action: AuditAction,
    /// Who did it: the name of a token, or a user of the machine.
    pub actor: Option<String>,
    /// What more there is to say, in words of this program: never what a model or a client wrote.
    pub detail: Option<String>,
}

impl AuditEntry {
    /// An entry whose texts a list can show: of bounded length, in one line.
    pub fn new(at_ms: i64, action: AuditAction, actor: Option<&str>, detail: Option<&str>) -> Self {
        Self { at_ms, action, actor: actor.map(plain), detail: detail.map(plain) }
    }
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_TEXT_CHARACTERS).collect()
}

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// Its number: a later line has a higher one. 0 in a line that is to be written.
    pub id: u64,
    /// What was done, when, and by whom.
    pub entry: AuditEntry,
    /// The run that it was done to.
    pub run_id: Option<String>,
    /// The loop of this run, or the loop that was switched.
    pub loop_name: Option<String>,
    /// The organisation of the run, or of who was refused.
    pub org: Option<String>,
    /// How many times: more than one of refusals in the same minute, and of deleted runs.
    pub times: u64,
}

impl AuditLine {
    /// A line about no run.
    pub fn new(entry: AuditEntry) -> Self {
        Self { id: 0, entry, run_id: None, loop_name: None, org: None, times: 1 }
    }

    /// A line about a run that is done by no event of it.
    pub fn of_run(run: &RunSummary, at_ms: i64, action: AuditAction, actor: Option<&str>) -> Self {
        let (run_id, loop_name) = (Some(run.run_id.clone()), Some(run.loop_name.clone()));
        let entry = AuditEntry::new(at_ms, action, actor, None);
        Self { run_id, loop_name, org: run.org.clone(), ..Self::new(entry) }
    }
}

/// Which lines; the newest first, unless `after` is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// At this moment or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Before this moment, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// Of this organisation only; the empty text is the runs of none.
    pub org: Option<String>,
    /// About this run only.
    pub run_id: Option<String>,
    /// By this actor only.
    pub actor: Option<String>,
    /// Of this kind only.
    pub action: Option<AuditAction>,
    /// Only lines before this number.
    pub before: Option<u64>,
    /// Only lines after this number, the oldest first.
    pub after: Option<u64>,
    /// The maximum number, at most [`MAX_AUDIT_LINES`]; 0 is that.
    pub limit: usize,
}

impl AuditFilter {
    /// The maximum number of lines.
    pub fn most(&self) -> usize {
        if self.limit == 0 { MAX_AUDIT_LINES } else { self.limit.min(MAX_AUDIT_LINES) }
    }

    /// Whether a line is one of them.
    pub fn takes(&self, line: &AuditLine) -> bool {
        let AuditLine { id, entry, run_id, org, .. } = line;
        self.since_ms.is_none_or(|since_ms| entry.at_ms >= since_ms)
            && self.until_ms.is_none_or(|until_ms| entry.at_ms < until_ms)
            && match self.org.as_deref() {
                None => true,
                Some("") => org.is_none() && run_id.is_some(),
                Some(wanted) => org.as_deref() == Some(wanted),
            }
            && (self.run_id.is_none() || self.run_id == *run_id)
            && (self.actor.is_none() || self.actor == entry.actor)
            && self.action.is_none_or(|action| action == entry.action)
            && self.before.is_none_or(|before| *id < before)
            && self.after.is_none_or(|after| *id > after)
    }
}

/// Whether a loop was switched off, or on again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopSwitch {
    /// The name of the loop or workflow.
    pub name: String,
    /// Whether nobody may start it.
    pub is_off: bool,
    /// Since when, in milliseconds since 1970.
    pub at_ms: i64,
    /// Who switched it.
    pub actor: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

impl LoopSwitch {
    /// The line of it.
    pub fn line(&self) -> AuditLine {
        let action = if self.is_off { AuditAction::SwitchedOff } else { AuditAction::SwitchedOn };
        let entry = AuditEntry::new(self.at_ms, action, self.actor.as_deref(), None);
        AuditLine { loop_name: Some(self.name.clone()), ..AuditLine::new(entry) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_has_the_word_that_json_has() {
        for action in AuditAction::ALL {
            assert_eq!(serde_json::to_value(action).unwrap(), action.word());
        }
    }

    #[test]
    fn an_entry_is_a_line_of_bounded_length() {
        let entry = AuditEntry::new(1, AuditAction::Decided, Some("a\0b\nc"), Some(&"x".repeat(9_000)));
        assert_eq!(entry.actor.as_deref(), Some("abc"));
        assert_eq!(entry.detail.map(|detail| detail.len()), Some(MAX_TEXT_CHARACTERS));
    }
}
