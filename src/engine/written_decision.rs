//! The written form of a decision, as fields of a request or as flags of a command: one table of the kinds, and
//! one message for each mistake.

use serde_json::Value;

use super::event::{CallId, Decided, Decision, DecisionRights};

/// The most characters of a comment: it is in every trace of the run.
const COMMENT_CHARS: usize = 2_000;

/// What a human wrote: exactly one kind of decision, and what it is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WrittenDecision {
    /// The answer to a question.
    pub answer: Option<String>,
    /// The waiting call may be made.
    pub approve: bool,
    /// The waiting call may not be made.
    pub deny: bool,
    /// Why not.
    pub reason: Option<String>,
    /// The input to make the waiting call with.
    pub edit: Option<Value>,
    /// The result of a call of unknown outcome.
    pub happened: Option<Value>,
    /// Why a call of unknown outcome failed.
    pub fail: Option<String>,
    /// A call of unknown outcome is to be made again.
    pub retry: bool,
    /// A quarantined run is to be resumed.
    pub resume: bool,
    /// The pause that is decided.
    pub pause: Option<u32>,
    /// The call that is decided.
    pub call: Option<CallId>,
    /// The address of the step of a workflow that is decided.
    pub at: Option<String>,
    /// The hash of the call as it was shown.
    pub hash: Option<String>,
    /// What is to be recorded with the decision.
    pub comment: Option<String>,
    /// Who decides.
    pub by: Option<String>,
    /// What they may decide about.
    pub rights: DecisionRights,
}

/// Where a decision is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionSyntax {
    /// As the fields of a JSON object.
    Fields,
    /// As the flags of `loopctl resume`, which may come without a decision.
    Flags,
}

/// A kind of decision: its name, and the function that takes it from the fields.
type DecisionKind = (&'static str, fn(&mut WrittenDecision) -> Option<Decision>);

/// The kinds of decisions.
const KINDS: &[DecisionKind] = &[
    ("answer", |written| written.answer.take().map(Decision::Answer)),
    ("approve", |written| written.approve.then_some(Decision::Approve)),
    ("deny", |written| written.deny.then(|| Decision::Deny(written.reason.take()))),
    ("edit", |written| written.edit.take().map(Decision::Edit)),
    ("happened", |written| written.happened.take().map(Decision::Happened)),
    ("fail", |written| written.fail.take().map(Decision::Failed)),
    ("retry", |written| written.retry.then_some(Decision::Retry)),
];

impl DecisionSyntax {
    /// The name of a field or a flag, as a message shows it.
    fn name(self, name: &str) -> String {
        match self {
            Self::Fields => format!("`{name}`"),
            Self::Flags => format!("`--{name}`"),
        }
    }

    /// All kinds of decisions, as a message lists them.
    fn kinds(self) -> String {
        // On the command line, `resume` is the command.
        let resume = (self == Self::Fields).then_some("resume");
        let mut names: Vec<String> =
            KINDS.iter().map(|(name, _)| *name).chain(resume).map(|name| self.name(name)).collect();
        let last = names.pop().unwrap_or_default();
        format!("{} or {last}", names.join(", "))
    }

    /// The name of the field that binds a decision to the shown call.
    fn hash(self) -> &'static str {
        match self {
            Self::Fields => "hash",
            Self::Flags => "if",
        }
    }
}

impl WrittenDecision {
    /// The decision; none when the run is only resumed.
    ///
    /// # Errors
    /// A sentence that says what to write instead.
    pub fn read(mut self, syntax: DecisionSyntax) -> Result<Option<Decided>, String> {
        let is_denied = self.deny;
        let mut decisions = KINDS.iter().filter_map(|(_, take)| take(&mut self)).collect::<Vec<_>>();
        let count = decisions.len() + usize::from(self.resume);
        if count > 1 || (count == 0 && syntax == DecisionSyntax::Fields) {
            return Err(format!("give one decision: {}", syntax.kinds()));
        }
        if matches!(decisions.last(), Some(Decision::Failed(reason)) if reason.trim().is_empty()) {
            return Err(format!("{} is the reason why the call failed", syntax.name("fail")));
        }
        if self.reason.is_some() && !is_denied {
            return Err(format!("{} goes with {}", syntax.name("reason"), syntax.name("deny")));
        }
        if self.comment.as_deref().is_some_and(|comment| comment.chars().count() > COMMENT_CHARS) {
            return Err(format!("{} has at most {COMMENT_CHARS} characters", syntax.name("comment")));
        }
        let Some(decision) = decisions.pop() else {
            let about = [
                ("pause", self.pause.is_some()),
                ("call", self.call.is_some()),
                ("at", self.at.is_some()),
                (syntax.hash(), self.hash.is_some()),
                ("comment", self.comment.is_some()),
            ];
            return match about.iter().find(|(_, is_given)| *is_given && !self.resume) {
                Some((name, _)) => Err(format!("{} goes with a decision: {}", syntax.name(name), syntax.kinds())),
                None => Ok(None),
            };
        };
        let Self { pause, call, at, hash, comment, by, rights, .. } = self;
        Ok(Some(Decided { pause, call, at, hash, decision, by, also: Vec::new(), comment, rights }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sentence(written: &WrittenDecision, syntax: DecisionSyntax) -> String {
        written.clone().read(syntax).unwrap_err()
    }

    #[test]
    fn each_kind_is_its_decision_and_two_are_none() {
        let nothing = WrittenDecision::default();
        let one = [
            (WrittenDecision { answer: Some("yes".to_owned()), ..nothing.clone() }, Decision::Answer("yes".to_owned())),
            (WrittenDecision { approve: true, ..nothing.clone() }, Decision::Approve),
            (WrittenDecision { deny: true, ..nothing.clone() }, Decision::Deny(None)),
            (
                WrittenDecision { deny: true, reason: Some("much".to_owned()), ..nothing.clone() },
                Decision::Deny(Some("much".to_owned())),
            ),
            (WrittenDecision { edit: Some(json!({})), ..nothing.clone() }, Decision::Edit(json!({}))),
            (WrittenDecision { happened: Some(Value::Null), ..nothing.clone() }, Decision::Happened(Value::Null)),
            (WrittenDecision { fail: Some("no".to_owned()), ..nothing.clone() }, Decision::Failed("no".to_owned())),
            (WrittenDecision { retry: true, ..nothing }, Decision::Retry),
        ];
        for syntax in [DecisionSyntax::Fields, DecisionSyntax::Flags] {
            for (written, decision) in &one {
                let decided = written.clone().read(syntax).unwrap().unwrap();
                assert_eq!(&decided.decision, decision);
                for second in [
                    WrittenDecision { approve: true, retry: true, ..written.clone() },
                    WrittenDecision { resume: true, ..written.clone() },
                ] {
                    assert!(sentence(&second, syntax).starts_with("give one decision"), "{second:?}");
                }
            }
        }
    }

    #[test]
    fn the_same_mistake_gets_the_same_sentence_with_the_names_of_its_syntax() {
        let reason = WrittenDecision { retry: true, reason: Some("much".to_owned()), ..WrittenDecision::default() };
        assert_eq!(sentence(&reason, DecisionSyntax::Fields), "`reason` goes with `deny`");
        assert_eq!(sentence(&reason, DecisionSyntax::Flags), "`--reason` goes with `--deny`");
        let blank = WrittenDecision { fail: Some(" ".to_owned()), ..WrittenDecision::default() };
        assert_eq!(sentence(&blank, DecisionSyntax::Flags), "`--fail` is the reason why the call failed");
        let two = WrittenDecision { approve: true, retry: true, ..WrittenDecision::default() };
        assert_eq!(
            sentence(&two, DecisionSyntax::Fields),
            "give one decision: `answer`, `approve`, `deny`, `edit`, `happened`, `fail`, `retry` or `resume`"
        );
        assert_eq!(
            sentence(&two, DecisionSyntax::Flags),
            "give one decision: `--answer`, `--approve`, `--deny`, `--edit`, `--happened`, `--fail` or `--retry`"
        );
    }

    #[test]
    fn without_a_decision_a_command_resumes_and_a_request_is_refused() {
        let nothing = WrittenDecision::default();
        assert_eq!(nothing.clone().read(DecisionSyntax::Flags), Ok(None));
        assert!(sentence(&nothing, DecisionSyntax::Fields).starts_with("give one decision"));
        let resume = WrittenDecision { resume: true, ..nothing.clone() };
        assert_eq!(resume.read(DecisionSyntax::Fields), Ok(None));
        let hash = WrittenDecision { hash: Some("3f9c".to_owned()), ..nothing };
        assert!(sentence(&hash, DecisionSyntax::Flags).starts_with("`--if` goes with a decision: `--answer`"));
    }
}
