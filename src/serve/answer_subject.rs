//! What a token of a posted pause is for, as the store keeps it: a text of words.

use crate::engine::question::{StepQuestion, WaitingCall};

/// What begins the text for a step of a workflow; the id of a call begins with a number.
const STEP_MARK: char = '@';
/// Stands for a hash that there is not.
const NO_HASH: &str = "-";

/// What a token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerSubject {
    /// The question of the pause.
    Question,
    /// A call that waits, as it was shown.
    Call { id: String, hash: String },
    /// A step of a workflow that waits, as it was shown.
    Step(StepSubject),
}

/// A step of a workflow that waits, as it was shown. It is the same in every later pause in which the step still asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSubject {
    /// Its address.
    pub at: String,
    /// The pause of the run that asks, when the step is a run.
    pub run_pause: Option<u32>,
    /// The call of that run.
    pub call: Option<String>,
    /// The hash of the step, or of that call.
    pub hash: Option<String>,
}

impl StepSubject {
    /// What a step asks, or one of the calls of its run.
    pub fn of(question: &StepQuestion, call: Option<&WaitingCall>) -> Self {
        let hash = call.map(|call| call.hash.clone()).or_else(|| question.hash.clone());
        let call = call.map(|call| call.id.clone());
        Self { at: question.at.clone(), run_pause: question.run_pause, call, hash }
    }

    /// Whether a step still asks this.
    pub fn is(&self, question: &StepQuestion) -> bool {
        let calls = question.calls.iter().map(Some);
        calls.chain([None]).any(|call| Self::of(question, call) == *self)
    }
}

impl AnswerSubject {
    /// The subject in the words of the store; nothing for the question of a pause.
    pub fn written(&self) -> Option<String> {
        match self {
            Self::Question => None,
            Self::Call { id, hash } => Some(format!("{id} {hash}")),
            Self::Step(StepSubject { at, run_pause, call, hash }) => {
                let pause = run_pause.map_or_else(|| NO_HASH.to_owned(), |pause| pause.to_string());
                let or_none = |word: &Option<String>| word.clone().unwrap_or_else(|| NO_HASH.to_owned());
                Some(format!("{STEP_MARK}{at} {pause} {} {}", or_none(call), or_none(hash)))
            }
        }
    }

    /// The subject that such words name; none when they name nothing.
    pub fn read(words: Option<&str>) -> Option<Self> {
        let Some(words) = words else { return Some(Self::Question) };
        let Some(words) = words.strip_prefix(STEP_MARK) else {
            let (id, hash) = words.split_once(' ')?;
            return Some(Self::Call { id: id.to_owned(), hash: hash.to_owned() });
        };
        let mut words = words.split(' ');
        let at = words.next()?.to_owned();
        let mut next = || words.next().map(|word| Some(word.to_owned()).filter(|word| word != NO_HASH));
        let run_pause = next()?.map(|pause| pause.parse()).transpose().ok()?;
        Some(Self::Step(StepSubject { at, run_pause, call: next()?, hash: next()? }))
    }

    /// The same in a sentence.
    pub fn said(&self) -> String {
        match self {
            Self::Question => "the question".to_owned(),
            Self::Call { id, .. } => format!("call {id}"),
            Self::Step(StepSubject { at, call: Some(call), .. }) => format!("call {call} of the step {at}"),
            Self::Step(StepSubject { at, .. }) => format!("the step {at}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_read_as_it_is_written() {
        let text = |word: &str| Some(word.to_owned());
        let step = |run_pause, call, hash| {
            AnswerSubject::Step(StepSubject { at: "each.5.ask-2f".to_owned(), run_pause, call, hash })
        };
        for subject in [
            AnswerSubject::Question,
            AnswerSubject::Call { id: "2.0".to_owned(), hash: "0123456789abcdef".to_owned() },
            step(None, None, text("0123456789abcdef")),
            step(Some(3), None, None),
            step(Some(3), text("2.0"), text("0123456789abcdef")),
        ] {
            assert_eq!(AnswerSubject::read(subject.written().as_deref()), Some(subject));
        }
        for words in ["", "2.0", "@", "@a 1 -", "@a x - -"] {
            assert_eq!(AnswerSubject::read(Some(words)), None, "{words}");
        }
    }
}
