//! How questions were posted to the targets of `ask`: to whom, when, and how often that failed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::event::QuestionPosted;
use super::timestamp::as_rfc3339_if_any;

/// How a question was posted to one target. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuestionPost {
    /// The address of the step that asks, or the id of the call.
    pub at: String,
    /// The target.
    pub to: String,
    /// How often it was tried.
    pub tries: u32,
    /// When it was posted, RFC 3339; left out before.
    #[serde(rename = "posted_at", skip_serializing_if = "Option::is_none", serialize_with = "as_rfc3339_if_any")]
    #[schemars(with = "Option<String>")]
    pub posted_at_ms: Option<i64>,
    /// Why the last try failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it is tried again, RFC 3339; left out when it was posted, or is given up.
    #[serde(rename = "next_try_at", skip_serializing_if = "Option::is_none", serialize_with = "as_rfc3339_if_any")]
    #[schemars(with = "Option<String>")]
    pub next_try_at_ms: Option<i64>,
    /// Why it was posted without a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_link: Option<String>,
    /// Which reminder it was, from 1; left out for the question itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reminder: Option<u32>,
    /// Whether it was asked again because nobody decided in time; left out otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub escalated: bool,
}

/// The posts of the questions of a run, by question and target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuestionPosts {
    by_question: BTreeMap<String, BTreeMap<String, QuestionPost>>,
    /// The question and the target of the last try.
    last: Option<Box<PostName>>,
}

/// Names a post.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PostName {
    question: String,
    to: String,
}

impl QuestionPosts {
    /// All of them, in the order of their questions' names.
    pub fn all(&self) -> Vec<&QuestionPost> {
        self.by_question.values().flat_map(BTreeMap::values).collect()
    }

    /// The one that was tried last.
    pub fn last(&self) -> Option<&QuestionPost> {
        let PostName { question, to } = &**self.last.as_ref()?;
        self.find(question, to)
    }

    /// Those of what asks at an address.
    pub fn at(&self, at: &str) -> Vec<&QuestionPost> {
        self.all().into_iter().filter(|post| post.at == at).collect()
    }

    /// How a question was posted to a target.
    pub fn find(&self, key: &str, to: &str) -> Option<&QuestionPost> {
        self.by_question.get(key)?.get(to)
    }

    /// Notes what became of a try.
    pub(super) fn take(&mut self, posted: QuestionPosted, now_ms: i64) {
        let QuestionPosted { question, at, to, tries, error, next_try_at_ms, without_link, reminder, escalated } =
            posted;
        let posted_at_ms = error.is_none().then_some(now_ms);
        let reminder = (reminder > 0).then_some(reminder);
        let post = QuestionPost {
            at,
            to: to.clone(),
            tries,
            posted_at_ms,
            error,
            next_try_at_ms,
            without_link,
            reminder,
            escalated,
        };
        self.last = Some(Box::new(PostName { question: question.clone(), to: to.clone() }));
        self.by_question.entry(question).or_default().insert(to, post);
    }
}
