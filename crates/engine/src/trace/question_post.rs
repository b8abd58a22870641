//! Posts of questions: with secrets hidden, and as sentences.

use super::redact::Redaction;
use crate::question_post::{QuestionPost, QuestionPosts};
use crate::timestamp::rfc3339;

/// All posts of a run, in the order of their places.
pub fn posts(all: &QuestionPosts, redact: &Redaction) -> Vec<QuestionPost> {
    let hidden = |post: &QuestionPost| QuestionPost {
        error: post.error.as_deref().map(|why| redact.text(why).into_owned()),
        ..post.clone()
    };
    all.all().into_iter().map(hidden).collect()
}

/// A post in a sentence: `pay: asked ops at 2026-11-22T06:30:00.000Z, after it failed once`.
pub fn post_sentence(post: &QuestionPost) -> String {
    let QuestionPost { at, to, tries, posted_at_ms, error, next_try_at_ms, without_link, reminder, escalated } = post;
    let asked = if reminder.is_some() { "reminded" } else { "asked" };
    let escalated = if *escalated { ", escalated" } else { "" };
    let why = error.as_deref().unwrap_or_default();
    let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let how = match (posted_at_ms, next_try_at_ms) {
        (Some(at_ms), _) => {
            let failed = tries.saturating_sub(1);
            let failed = if failed > 0 { format!(", after it failed {}", times(failed)) } else { String::new() };
            let linkless = without_link.as_ref().map(|why| format!(", without a link: {why}")).unwrap_or_default();
            format!("{asked} {to} at {}{escalated}{failed}{linkless}", rfc3339(*at_ms))
        }
        (None, Some(next_ms)) => {
            let next = rfc3339(*next_ms);
            format!("{to} was not {asked}{escalated}, it failed {}: {why}; the next try is at {next}", times(*tries))
        }
        (None, None) => format!("{to} was not {asked}{escalated}, it failed {} and is given up: {why}", times(*tries)),
    };
    format!("{at}: {how}")
}
