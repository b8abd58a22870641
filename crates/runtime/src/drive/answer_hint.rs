//! How people answer questions that are posted: what a server or a command says of it.

use super::future::BoxFuture;
use loopctl_engine::event::DecisionRights;
use loopctl_engine::open_posts::QuestionToPost;

/// Says how people answer a question that is posted.
pub trait AnswerHints: Send + Sync {
    /// How this question is answered.
    ///
    /// # Errors
    /// Why that can't be said now: the post is tried again.
    fn hint(&self, asked: HintRequest) -> BoxFuture<'_, Result<AnswerHint, String>>;
}

/// A question that is about to be posted.
#[derive(Debug)]
pub struct HintRequest {
    /// The run that the answer goes to.
    pub run_id: String,
    /// What the answers to what the run posts may decide about.
    pub rights: Option<DecisionRights>,
    /// What is asked.
    pub asked: QuestionToPost,
}

/// How a question is answered. What does not apply is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerHint {
    /// The page where it is answered.
    pub link: Option<String>,
    /// How it is answered without a link, in a line.
    pub otherwise: Option<String>,
    /// Why there is no link where there could be one.
    pub without_link: Option<&'static str>,
}
