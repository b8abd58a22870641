//! The posts of questions that the driver of a run makes.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use loopctl_engine::event::EventKind;

/// The posts of a run that are being made.
#[derive(Default)]
pub(super) struct PostsUnderWay {
    pub posts: JoinSet<EventKind>,
    /// The question and the target of each, as a line.
    pub names: BTreeSet<String>,
}

impl PostsUnderWay {
    /// Whether none is being made.
    pub fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }

    /// What became of the next one; none when it panicked, and is left to the next driver. Pending for as long as none is being
    /// made.
    pub async fn next(&mut self) -> Option<EventKind> {
        match self.posts.join_next().await {
            Some(ended) => ended.ok(),
            None => std::future::pending().await,
        }
    }
}

/// A question and a target in a line.
pub(super) fn name(question: &str, to: &str) -> String {
    format!("{question}\n{to}")
}
