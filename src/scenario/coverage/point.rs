//! A point of a document: what is counted.

use std::sync::Arc;

/// Something that a run of a document can come to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CoveragePoint {
    /// The file of the document.
    pub file: Arc<str>,
    /// The JSON pointer of what it is about.
    pub pointer: String,
    /// What it is.
    pub kind: CoverageKind,
    /// The name of the tool, the ending, the pattern, the model, the step, or the condition.
    pub name: String,
    /// What happens to it.
    pub outcome: CoverageOutcome,
}

/// What happens to what a point is about, in the order in which it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverageOutcome {
    /// It happens: an ending, a pattern, a hint, a fallback.
    Happens,
    /// A step ran.
    Runs,
    /// A call gave a result.
    Succeeds,
    /// A call or a step failed.
    Fails,
    /// A human allowed it.
    IsApproved,
    /// A human did not allow it.
    IsDenied,
    /// A human filled in a form.
    IsFilledIn,
    /// Nobody filled in a form in time.
    Expires,
    /// The filter of a step does not hold.
    IsSkipped,
    /// A condition holds.
    IsTrue,
    /// A condition does not hold.
    IsFalse,
}

impl CoverageOutcome {
    /// What is said of it in a sentence.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Happens => "happens",
            Self::Runs => "runs",
            Self::Succeeds => "succeeds",
            Self::Fails => "fails",
            Self::IsApproved => "is approved",
            Self::IsDenied => "is denied",
            Self::IsFilledIn => "is filled in",
            Self::Expires => "expires",
            Self::IsSkipped => "is skipped",
            Self::IsTrue => "is true",
            Self::IsFalse => "is false",
        }
    }
}

/// What a point of a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverageKind {
    /// A run ends or waits in this way.
    Ending,
    /// A call of a tool.
    Tool,
    /// The agent repeats itself in this way.
    StuckPattern,
    /// A model in circles is given a hint.
    Hint,
    /// Another model answers.
    Fallback,
    /// A step of a workflow.
    Step,
    /// A condition of a text (`{{#if}}`).
    Condition,
}

impl CoverageKind {
    /// What is said of points of this kind that no scenario comes to; `what` lists them.
    pub(super) fn sentence(self, name: &str, what: &str) -> String {
        match self {
            Self::Ending => format!("no scenario ends or waits by {what}"),
            Self::Tool => format!("no call of the tool `{name}` {what}"),
            Self::StuckPattern => format!("no scenario is stuck by {what}"),
            Self::Hint => "no scenario gives the hint".to_owned(),
            Self::Fallback => format!("the fallback `{name}` answers in no scenario"),
            Self::Step => format!("in no scenario the step `{name}` {what}"),
            Self::Condition => format!("in no scenario the condition `{name}` {what}"),
        }
    }

    /// Whether points of this kind at the same place are listed by their names, and not by what happens to them.
    pub(super) fn is_by_name(self) -> bool {
        matches!(self, Self::Ending | Self::StuckPattern)
    }
}

impl CoveragePoint {
    /// What it is about, in a few words.
    pub fn in_words(&self) -> String {
        let Self { name, outcome, .. } = self;
        match self.kind {
            CoverageKind::Ending => format!("ends or waits by `{name}`"),
            CoverageKind::Tool => format!("a call of `{name}` {}", outcome.words()),
            CoverageKind::StuckPattern => format!("is stuck by `{name}`"),
            CoverageKind::Hint => "the hint is given".to_owned(),
            CoverageKind::Fallback => format!("the fallback `{name}` answers"),
            CoverageKind::Step => format!("the step `{name}` {}", outcome.words()),
            CoverageKind::Condition => format!("the condition `{name}` {}", outcome.words()),
        }
    }
}
