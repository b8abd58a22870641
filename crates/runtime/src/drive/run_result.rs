//! The result of driving a run.

use serde::de::DeserializeOwned;

use loopctl_engine::outcome::{Answer, Pause, Status};
use loopctl_engine::state::{Phase, State};

/// A run that nobody drives any more: it ended, waits for a human, or was interrupted.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its state.
    pub state: State,
}

impl Finished {
    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.state.header.run_id
    }

    /// Its status.
    pub fn status(&self) -> Status {
        self.state.status()
    }

    /// Its answer; none unless it completed.
    pub fn answer(&self) -> Option<&Answer> {
        match &self.state.phase {
            Phase::Ended(ending) => ending.answer.as_ref(),
            _ => None,
        }
    }

    /// Its answer as a type.
    ///
    /// # Errors
    /// When the run has not completed, or its answer is no `T`. An `answer_schema` that describes `T` rules the
    /// second case out.
    pub fn answer_as<T: DeserializeOwned>(&self) -> Result<T, AnswerError> {
        let Some(Answer { answer, .. }) = self.answer() else {
            let reason = match &self.state.phase {
                Phase::Ended(ending) => ending.error.as_ref().map(|error| error.message.clone()),
                Phase::Paused { pause, .. } => Some(pause.question.text.clone()),
                _ => None,
            };
            return Err(AnswerError::None { status: self.status(), reason: reason.unwrap_or_default() });
        };
        T::deserialize(answer).map_err(AnswerError::Type)
    }

    /// What it waits for; none unless it is paused.
    pub fn pause(&self) -> Option<&Pause> {
        match &self.state.phase {
            Phase::Paused { pause, .. } => Some(pause),
            _ => None,
        }
    }
}

/// Why [`Finished::answer_as`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The run has no answer.
    #[error("the run has no answer: it is {}{}{reason}", status.word(), if reason.is_empty() { "" } else { ": " })]
    None {
        /// The status of the run.
        status: Status,
        /// Why it failed, or what it asks; else empty.
        reason: String,
    },
    /// The answer is of another type.
    #[error("the answer is of another type: {0}")]
    Type(serde_json::Error),
}
