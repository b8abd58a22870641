//! The written form of a decision, as fields of a request or as flags of a command: one table of the kinds, and
//! one message for each mistake.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::event::{CallId, Decided, Decision, DecisionRights};
#[cfg(feature = "clap")]
use loopctl_lang::program::file_value::written_json;

/// The most characters of a comment: it is in every trace of the run.
const COMMENT_CHARS: usize = 2_000;

/// What a human wrote: exactly one kind of decision, and what it is about. The bodies of routes and the flags of
/// `loopctl resume` hold it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct WrittenDecision {
    /// The answer to the question, or guidance for a run that repeats itself.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "TEXT",
            help = "The answer to the run's question, or guidance for an agent that is stuck"
        )
    )]
    pub answer: Option<String>,
    /// `true`: the waiting call may be made.
    #[serde(deserialize_with = "is_true")]
    #[schemars(with = "Option<bool>")]
    #[cfg_attr(feature = "clap", arg(long, help = "Approve the waiting tool call"))]
    pub approve: bool,
    /// `true`: the waiting call may not be made.
    #[serde(deserialize_with = "is_true")]
    #[schemars(with = "Option<bool>")]
    #[cfg_attr(feature = "clap", arg(long, help = "Deny the waiting tool call"))]
    pub deny: bool,
    /// Why not; the model reads it.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "TEXT", help = "The reason for the denial; the model reads it")
    )]
    pub reason: Option<String>,
    /// The waiting call may be made with this input.
    #[serde(deserialize_with = "given")]
    #[cfg_attr(feature = "clap", arg(
        long,
        value_name = "JSON",
        value_parser = json,
        help = "Approve the waiting tool call with this input in place of its own"
    ))]
    pub edit: Option<Value>,
    /// The call of unknown outcome happened, with this result.
    #[serde(deserialize_with = "given")]
    #[cfg_attr(feature = "clap", arg(
        long,
        value_name = "JSON",
        value_parser = json,
        help = "State that the call of unknown outcome happened, and what it returned"
    ))]
    pub happened: Option<Value>,
    /// The call of unknown outcome failed, for this reason.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "REASON", help = "State that the call of unknown outcome failed, and why")
    )]
    pub fail: Option<String>,
    /// `true`: the call of unknown outcome, or the model that could not be reached, is retried.
    #[serde(deserialize_with = "is_true")]
    #[schemars(with = "Option<bool>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, help = "Retry the call of unknown outcome, or ask the model again that could not be reached")
    )]
    pub retry: bool,
    /// A quarantined run is to be resumed: a field of the one request that takes it.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub resume: bool,
    /// Which of several waiting calls: the iteration and the place in the turn, like `2.0`.
    #[serde(deserialize_with = "call_id")]
    #[schemars(with = "Option<String>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "ITERATION.INDEX", help = "The waiting call to decide, if there are several")
    )]
    pub call: Option<CallId>,
    /// The waiting step of a workflow, by its address, if there are several.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "ADDRESS",
            help = "The waiting step of a workflow to decide, if there are several; `*` stands for any part with --retry"
        )
    )]
    pub at: Option<String>,
    /// The hash of the call as it was shown: the decision is refused when the call is another one now.
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "if",
            value_name = "HASH",
            help = "The hash of the call as it was shown; refuse the decision if a different call waits now"
        )
    )]
    pub hash: Option<String>,
    /// What is recorded with the decision, at most 2,000 characters; the model does not read it.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "TEXT", help = "A comment to record with the decision; the model does not read it")
    )]
    pub comment: Option<String>,
    /// Which pause is decided, from 1: the decision is refused when there is a newer one.
    #[serde(deserialize_with = "pause_number")]
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "N",
            help = "The number of the pause to decide, from 1; refuse the decision if the run has another pause now"
        )
    )]
    pub pause: Option<u32>,
}

/// `null` is a value like any other.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// `null` is as good as nothing.
fn is_true<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(from)? == Some(true))
}

/// A flattened field is read from a buffer, in which a number of arbitrary precision is no number of serde.
fn pause_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let value = Value::deserialize(from)?;
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    if number.is_none() && !value.is_null() {
        return Err(D::Error::custom("`pause` is the number of a pause, from 1"));
    }
    Ok(number)
}

fn call_id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<CallId>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        Value::String(text) => text.parse().map(Some).map_err(|why| D::Error::custom(format_args!("`call`: {why}"))),
        other => Err(D::Error::custom(format_args!("`call` is a text, like \"2.0\", and not {other}"))),
    }
}

#[cfg(feature = "clap")]
fn json(text: &str) -> Result<Value, String> {
    written_json(text).map_err(|why| format!("{why}; write a text as '\"text\"'"))
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
    /// The decision, by somebody with these rights; none when the run is only resumed.
    ///
    /// # Errors
    /// A sentence that says what to write instead.
    pub fn read(
        mut self,
        syntax: DecisionSyntax,
        by: Option<String>,
        rights: DecisionRights,
    ) -> Result<Option<Decided>, String> {
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
        let may_mean_several =
            |decision: &Decision| matches!(decision, Decision::Retry | Decision::Happened(_) | Decision::Failed(_));
        if self.at.as_deref().is_some_and(|at| at.contains('*')) && !decisions.iter().all(may_mean_several) {
            return Err(format!(
                "{} names one step: `*` goes with {}, {} or {}",
                syntax.name("at"),
                syntax.name("happened"),
                syntax.name("fail"),
                syntax.name("retry")
            ));
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
        let Self { pause, call, at, hash, comment, .. } = self;
        Ok(Some(Decided { pause, call, at, hash, decision, by, also: Vec::new(), comment, rights, came_at_ms: None }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(written: &WrittenDecision, syntax: DecisionSyntax) -> Result<Option<Decided>, String> {
        written.clone().read(syntax, None, DecisionRights::All)
    }

    fn sentence(written: &WrittenDecision, syntax: DecisionSyntax) -> String {
        read(written, syntax).unwrap_err()
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
                let decided = read(written, syntax).unwrap().unwrap();
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
    fn a_yes_a_no_and_an_answer_are_about_one_address() {
        let at = WrittenDecision { at: Some("each.*.ok".to_owned()), ..WrittenDecision::default() };
        for one in [
            WrittenDecision { approve: true, ..at.clone() },
            WrittenDecision { deny: true, ..at.clone() },
            WrittenDecision { edit: Some(json!({})), ..at.clone() },
            WrittenDecision { answer: Some("x".to_owned()), ..at.clone() },
        ] {
            assert_eq!(
                sentence(&one, DecisionSyntax::Flags),
                "`--at` names one step: `*` goes with `--happened`, `--fail` or `--retry`"
            );
        }
        assert!(read(&WrittenDecision { retry: true, ..at }, DecisionSyntax::Flags).is_ok());
    }

    #[test]
    fn without_a_decision_a_command_resumes_and_a_request_is_refused() {
        let nothing = WrittenDecision::default();
        assert_eq!(read(&nothing, DecisionSyntax::Flags), Ok(None));
        assert!(sentence(&nothing, DecisionSyntax::Fields).starts_with("give one decision"));
        let resume = WrittenDecision { resume: true, ..nothing.clone() };
        assert_eq!(read(&resume, DecisionSyntax::Fields), Ok(None));
        let hash = WrittenDecision { hash: Some("3f9c".to_owned()), ..nothing };
        assert!(sentence(&hash, DecisionSyntax::Flags).starts_with("`--if` goes with a decision: `--answer`"));
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn a_body_is_read_on_its_own_and_within_a_request() {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Request {
            #[serde(flatten)]
            decision: WrittenDecision,
        }
        let read = |body: &str| serde_json::from_str::<Request>(body).map(|request| request.decision);
        let text = r#"{"edit":{"n":1.0,"m":12345678901234567890123},"approve":null,"pause":3,"call":"2.1"}"#;
        let written = read(text).unwrap();
        assert_eq!(serde_json::from_str::<WrittenDecision>(text).unwrap(), written);
        assert_eq!(written.edit.unwrap().to_string(), r#"{"n":1.0,"m":12345678901234567890123}"#);
        assert_eq!((written.approve, written.pause), (false, Some(3)));
        assert_eq!(written.call, Some(CallId { iteration: 2, index: 1 }));
        assert_eq!(read(r#"{"happened":null}"#).unwrap().happened, Some(Value::Null));
        for (body, why) in [
            (r#"{"call":"2"}"#, "`call`: write the iteration and the index in the turn, like 2.0"),
            (r#"{"pause":-1}"#, "`pause` is the number of a pause, from 1"),
            (r#"{"aprove":true}"#, "unknown field `aprove`"),
            (r#"{"resume":true}"#, "unknown field `resume`"),
        ] {
            let error = read(body).unwrap_err().to_string();
            assert!(error.contains(why), "{body}: {error}");
        }
    }
}
