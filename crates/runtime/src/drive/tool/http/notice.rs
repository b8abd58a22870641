//! What is sent to a target of `notify`, and an answer that says that it was not delivered.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::RawFault;
use crate::drive::retry::Transient;
use crate::drive::tool::output::fault;
use loopctl_lang::language::notify::NotifyKind;

/// The longest answer that is kept, as JSON in bytes.
const MAX_ANSWER_BYTES: usize = 8 << 10;
/// How an answer of Teams begins that reports a failure with the status 200.
const TEAMS_FAILURE: &str = "Webhook message delivery failed";

/// What is known beside the text of a question: its run, the place that asks, and the page where it is answered; which reminder it
/// is, and whether it is asked again because nobody decided in time.
const OF_QUESTIONS: [&str; 5] = ["run_id", "at", "link", "reminder", "escalated"];

/// The body of a text. What is in a text is data: no sign of it mentions a channel or makes a link of another text.
pub(super) fn body(kind: NotifyKind, input: &Value, key: &str) -> Value {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_question = input.get("run_id").is_some();
    match kind {
        // Whoever fetches a link to preview it is nobody who answers.
        NotifyKind::Slack if is_question => json!({ "text": slack(text("text")), "unfurl_links": false }),
        NotifyKind::Slack => json!({ "text": slack(text("text")) }),
        NotifyKind::Teams => {
            let run = |line: &str| json!({ "type": "RichTextBlock", "inlines": [{ "type": "TextRun", "text": line }] });
            let lines: Vec<Value> = text("text").lines().map(run).collect();
            let mut card = json!({ "type": "AdaptiveCard", "version": "1.4", "body": lines });
            if let (Some(link), Some(card)) = (input.get("link"), card.as_object_mut()) {
                let answer = json!({ "type": "Action.OpenUrl", "title": "Answer", "url": link });
                card.insert("actions".to_owned(), json!([answer]));
            }
            json!({ "type": "message", "attachments": [
                { "contentType": "application/vnd.microsoft.card.adaptive", "content": card }
            ] })
        }
        // Mail is no request.
        NotifyKind::Webhook | NotifyKind::Email => {
            let mut body = json!({ "id": key, "to": text("to"), "text": text("text") });
            for name in OF_QUESTIONS {
                if let (Some(value), Some(body)) = (input.get(name), body.as_object_mut()) {
                    body.insert(name.to_owned(), value.clone());
                }
            }
            body
        }
    }
}

/// A text in which Slack finds none of its control sequences, as `<!channel>` is one.
fn slack(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

/// An answer that reports a failure although its status is that of a success.
pub(super) fn delivered(kind: NotifyKind, answer: Value) -> Result<Value, RawFault> {
    match (kind, answer.as_str()) {
        (NotifyKind::Teams, Some(text)) if text.starts_with(TEAMS_FAILURE) => Err(RawFault {
            transient: Some(Transient { status: None, after: None }),
            answer: Some(Box::new(answer)),
            ..RawFault::from(fault("not delivered", "Teams answered 200 and reports a failure"))
        }),
        // It was delivered, so the step does not fail; nobody needs a long page in each trace.
        _ if answer.to_string().len() > MAX_ANSWER_BYTES => Ok(Value::Null),
        _ => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_data_to_each_kind() {
        let input = json!({ "to": "ops", "text": "<!channel> & [a](https://evil.example)\nsecond" });
        assert_eq!(
            body(NotifyKind::Slack, &input, "r-1"),
            json!({ "text": "&lt;!channel&gt; &amp; [a](https://evil.example)\nsecond" })
        );
        let card = body(NotifyKind::Teams, &input, "r-1");
        let lines = card["attachments"][0]["content"]["body"].as_array().unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["inlines"][0], json!({ "type": "TextRun", "text": "second" }));
        assert_eq!(
            body(NotifyKind::Webhook, &input, "r-1"),
            json!({ "id": "r-1", "to": "ops", "text": "<!channel> & [a](https://evil.example)\nsecond" })
        );
    }

    #[test]
    fn a_failure_that_teams_reports_with_a_success_is_a_failure() {
        let failed =
            Value::from("Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429");
        assert!(delivered(NotifyKind::Teams, failed.clone()).unwrap_err().transient.is_some());
        assert_eq!(delivered(NotifyKind::Webhook, failed.clone()).unwrap(), failed);
        assert_eq!(delivered(NotifyKind::Teams, json!("1")).unwrap(), json!("1"));
    }
}
