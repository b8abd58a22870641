//! What a run asks a human, as a client that can ask its user puts it: an elicitation for each question. Approvals, and calls of
//! unknown outcome, are never put.

use serde_json::{Map, Value, json};

use super::answer_notes::AnswerNotes;
use super::client_message::McpRefusal;
use crate::engine::canonical;
use crate::engine::digest::Sha256;
use crate::engine::event::{Decided, Decision, DecisionRights};
use crate::engine::outcome::{Status, Termination};
use crate::engine::question::StepQuestion;
use crate::program::form::TIME_PATTERN;
use crate::trace::RunResult;
use crate::trace::escape;
use crate::trace::result::PauseView;

/// The key of the question of a loop, and of its answer.
const ANSWER: &str = "answer";
/// The most characters of what is shown beside a question.
const MAX_SHOWN_CHARS: usize = 4_000;
/// How much of the digest of a question is in its key.
const KEY_DIGITS: usize = 12;
/// What a client may be asked with: it draws a form of it.
const FORM_KEYWORDS: [&str; 9] =
    ["title", "description", "default", "enum", "minimum", "maximum", "minLength", "maxLength", "format"];

/// A question that a client puts to its user.
#[derive(Debug, Clone, PartialEq)]
pub struct PutQuestion {
    /// What names it.
    pub key: String,
    /// The step that asks; none for a loop.
    at: Option<String>,
    message: String,
    schema: Value,
}

impl PutQuestion {
    /// The request to the client. `why`: what was wrong with an answer to it.
    fn request(&self, why: Option<&str>) -> Value {
        let message = match why {
            Some(why) => format!("{}\n\n({why})", self.message),
            None => self.message.clone(),
        };
        // The words may be a model's, or those of another server.
        let message = escape::report(&message);
        let params = json!({ "mode": "form", "message": message, "requestedSchema": self.schema });
        json!({ "method": "elicitation/create", "params": params })
    }

    /// What names it in a task: no other question of the run has this key, as long as it lasts. A step may ask more than once, and a
    /// loop asks once in a pause; the answer to one step changes the number of the pause, and not what another one asks.
    pub fn task_key(&self, pause: u32) -> String {
        match &self.at {
            None => format!("{}-{pause}", self.key),
            Some(at) => {
                let asked = Sha256::of_parts(|part| {
                    part(&self.message);
                    canonical::spell(&self.schema, &mut |piece: &str| part(piece));
                });
                format!("{at}-{}", asked.to_string().chars().take(KEY_DIGITS).collect::<String>())
            }
        }
    }
}

/// The questions of a task, as the client puts them to its user.
pub fn of_task(questions: &[PutQuestion], pause: u32) -> Map<String, Value> {
    questions.iter().map(|question| (question.task_key(pause), question.request(None))).collect()
}

/// The responses to the questions of a task, by their keys in the pause. Others are passed over, as the protocol has it.
pub fn task_responses(questions: &[PutQuestion], pause: u32, responses: &Map<String, Value>) -> Map<String, Value> {
    let of = |question: &PutQuestion| {
        let response = responses.get(&question.task_key(pause))?;
        Some((question.key.clone(), response.clone()))
    };
    questions.iter().filter_map(of).collect()
}

/// What a client's user said.
#[derive(Debug, PartialEq)]
pub struct GivenAnswers {
    /// The decisions, one for each question that was answered.
    pub answers: Vec<GivenAnswer>,
    /// What is wrong with the others.
    pub notes: AnswerNotes,
}

/// An answer to a question.
#[derive(Debug, PartialEq)]
pub struct GivenAnswer {
    /// What names the question.
    pub key: String,
    /// What it decides.
    pub decided: Decided,
}

/// The questions of a run that waits for nothing else; none of any other run.
pub fn of_run(result: &RunResult) -> Vec<PutQuestion> {
    let Some(pause) = result.pause.as_ref().filter(|_| result.status == Status::Paused) else { return Vec::new() };
    let questions: Option<Vec<PutQuestion>> = match pause.steps.as_slice() {
        [] => of_loop(pause).map(|question| vec![question]),
        steps => steps.iter().map(of_step).collect(),
    };
    questions.unwrap_or_default()
}

fn of_loop(pause: &PauseView) -> Option<PutQuestion> {
    let question = &pause.question;
    if question.kind != Termination::Human || pause.call.is_some() {
        return None;
    }
    let mut message = question.text.clone();
    if let Some(context) = &question.context {
        message = format!("{message}\n\n{context}");
    }
    let mut schema = json!({ "type": "string" });
    if let (Some(members), false) = (schema.as_object_mut(), question.options.is_empty()) {
        members.insert(
            "description".to_owned(),
            json!(escape::report(&format!("offered: {}", question.options.join("; ")))),
        );
    }
    let schema = json!({ "type": "object", "properties": { ANSWER: schema }, "required": [ANSWER] });
    Some(PutQuestion { key: ANSWER.to_owned(), at: None, message, schema })
}

fn of_step(step: &StepQuestion) -> Option<PutQuestion> {
    if step.question.kind != Termination::Human || !step.calls.is_empty() || step.awaits.is_some() {
        return None;
    }
    let schema = match &step.answer_schema {
        Some(schema) => drawn(schema)?,
        None if step.expected_keys.is_empty() => return None,
        None => {
            let all = step.expected_keys.iter().map(|key| (key.clone(), json!({ "type": "string" })));
            let properties: Map<String, Value> = all.collect();
            json!({ "type": "object", "properties": properties, "required": step.expected_keys })
        }
    };
    let mut message = step.question.text.clone();
    if let Some(shown) = &step.show {
        message = format!("{message}\n\n{}", beside(&shown.to_string()));
    }
    Some(PutQuestion { key: step.at.clone(), at: Some(step.at.clone()), message, schema })
}

/// What is shown beside a question, with a mark where it is cut.
fn beside(shown: &str) -> String {
    match shown.char_indices().nth(MAX_SHOWN_CHARS) {
        None => shown.to_owned(),
        Some((end, _)) => {
            let (begin, rest) = shown.split_at(end);
            let more = rest.chars().count();
            format!("{begin}\n[cut here: {more} more characters. `loopctl trace`, and the page of a server, show all]")
        }
    }
}

/// The schema of a form as clients draw one: an object of texts, numbers and booleans. None for a form of something else.
fn drawn(schema: &Value) -> Option<Value> {
    let mut properties = Map::new();
    for (name, field) in schema.get("properties")?.as_object()? {
        let kind = match field.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null")?,
            None if field.get("enum").is_some() => "string",
            _ => return None,
        };
        if !matches!(kind, "string" | "number" | "integer" | "boolean") {
            return None;
        }
        let mut member = Map::new();
        member.insert("type".to_owned(), json!(kind));
        for keyword in FORM_KEYWORDS {
            match field.get(keyword) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if matches!(keyword, "title" | "description") => {
                    member.insert(keyword.to_owned(), json!(escape::report(text)));
                }
                Some(value) => {
                    member.insert(keyword.to_owned(), value.clone());
                }
            }
        }
        // Clients draw no pattern: who fills it in must read what is taken.
        if field.get("pattern").and_then(Value::as_str) == Some(TIME_PATTERN) {
            member.entry("description").or_insert_with(|| json!("Hours and minutes of 24 hours, like 09:30."));
        }
        properties.insert(name.clone(), Value::Object(member));
    }
    let mut drawn = json!({ "type": "object", "properties": properties });
    if let (Some(members), Some(required)) = (drawn.as_object_mut(), schema.get("required")) {
        members.insert("required".to_owned(), required.clone());
    }
    Some(drawn)
}

/// The result that puts questions. `notes`: what was wrong with the answers that came; each question has what is its own.
pub fn result(run_id: &str, questions: &[PutQuestion], state: &str, notes: &AnswerNotes) -> Value {
    let general = notes.note(questions.iter().map(|question| &*question.key));
    let put = |question: &PutQuestion| {
        let own = notes.of(&question.key).or(general.as_deref());
        (question.key.clone(), question.request(own))
    };
    let requests: Map<String, Value> = questions.iter().map(put).collect();
    json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state,
        "_meta": { "loopctl/run_id": run_id } })
}

/// What the responses of a client decide in a pause. Answers to no question of it are noted, to be said.
///
/// # Errors
/// When one is no response to an elicitation.
pub fn given(
    questions: &[PutQuestion],
    responses: &Map<String, Value>,
    decider: &Decider,
) -> Result<GivenAnswers, McpRefusal> {
    let mut given = GivenAnswers { answers: Vec::new(), notes: AnswerNotes::default() };
    for question in questions {
        let Some(response) = responses.get(&question.key) else { continue };
        let odd = |why: &str| McpRefusal::params(format!("the response {:?} {why}", question.key));
        match response.get("action").and_then(Value::as_str) {
            Some("accept") => {
                // Who fills in nothing may leave it out: the form says then what it lacks.
                let nothing = Map::new();
                let content = match response.get("content") {
                    None | Some(Value::Null) => &nothing,
                    Some(Value::Object(content)) => content,
                    Some(_) => return Err(odd("has a `content`, which is an object")),
                };
                let answer = match (&question.at, content.get(ANSWER)) {
                    (Some(_), _) => Value::Object(content.clone()).to_string(),
                    (None, Some(Value::String(answer))) => answer.clone(),
                    (None, Some(other)) if !other.is_null() => other.to_string(),
                    (None, _) => {
                        given.notes.fault(&question.key, "the response has no `answer` in its `content`");
                        continue;
                    }
                };
                let decided = Decided {
                    // After the first one, the run may be in another pause.
                    pause: given.answers.is_empty().then_some(decider.pause),
                    at: question.at.clone(),
                    by: decider.by.clone(),
                    rights: decider.rights,
                    ..Decided::from(Decision::Answer(answer))
                };
                given.answers.push(GivenAnswer { key: question.key.clone(), decided });
            }
            Some("decline" | "cancel") => given.notes.is_declined = true,
            _ => return Err(odd("has an `action`: accept, decline or cancel")),
        }
    }
    given.notes.late_but(questions.iter().map(|question| &*question.key), responses);
    Ok(given)
}

/// Who decides, and about which pause.
#[derive(Debug, Clone)]
pub struct Decider {
    /// The number of the pause.
    pub pause: u32,
    /// Their name.
    pub by: Option<String>,
    /// What they may decide about.
    pub rights: DecisionRights,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_drawn_of_what_clients_draw_and_of_nothing_else() {
        let schema = json!({ "type": "object", "additionalProperties": false, "required": ["who"], "properties": {
            "who": { "type": "string", "maxLength": 9, "pattern": "x" }, "when": { "type": ["string", "null"], "format": "date" },
            "how": { "enum": ["a", "b"], "title": "H\u{202e}ow" }, "at": { "type": "string", "pattern": TIME_PATTERN } } });
        let form = drawn(&schema).unwrap();
        assert_eq!(form["required"], json!(["who"]));
        assert_eq!(form["properties"]["who"], json!({ "type": "string", "maxLength": 9 }));
        assert_eq!(form["properties"]["when"], json!({ "type": "string", "format": "date" }));
        assert_eq!(form["properties"]["how"], json!({ "type": "string", "title": "H\\u{202E}ow", "enum": ["a", "b"] }));
        assert!(form["properties"]["at"]["description"].as_str().unwrap().contains("09:30"), "{form}");
        assert!(drawn(&json!({ "properties": { "all": { "type": "array" } } })).is_none());
    }

    #[test]
    fn what_is_shown_beside_a_question_is_cut_with_a_mark() {
        let whole = "é".repeat(MAX_SHOWN_CHARS);
        assert_eq!(beside(&whole), whole);
        let cut = beside(&format!("{whole}abc"));
        assert!(cut.starts_with(&format!("{whole}\n[cut here: 3 more characters.")), "{cut}");
    }

    #[test]
    fn responses_decide_their_questions_and_odd_ones_are_refused() {
        let question = |key: &str, at: Option<&str>| PutQuestion {
            key: key.to_owned(),
            at: at.map(str::to_owned),
            message: String::new(),
            schema: Value::Null,
        };
        let questions = [question(ANSWER, None), question("who", Some("who"))];
        let decider = Decider { pause: 3, by: None, rights: DecisionRights::Ordinary };
        let of = |responses: Value| given(&questions, responses.as_object().unwrap(), &decider);
        let both = json!({ "answer": { "action": "accept", "content": { "answer": "yes" } },
            "who": { "action": "accept", "content": { "name": "Ada" } }, "more": 7 });
        let decided: Vec<Decided> = of(both).unwrap().answers.into_iter().map(|answer| answer.decided).collect();
        assert_eq!(decided[0].decision, Decision::Answer("yes".to_owned()));
        assert_eq!((decided[0].pause, decided[1].at.as_deref(), decided[1].pause), (Some(3), Some("who"), None));
        assert_eq!(decided[1].decision, Decision::Answer("{\"name\":\"Ada\"}".to_owned()));
        assert!(of(json!({ "answer": { "action": "decline" } })).unwrap().notes.is_declined);
        assert_eq!(of(json!({})).unwrap(), GivenAnswers { answers: Vec::new(), notes: AnswerNotes::default() });
        // Nothing is filled in: a form says what it lacks, and another answer beside it is taken.
        for nothing in [json!({ "action": "accept" }), json!({ "action": "accept", "content": null })] {
            let given = of(json!({ "answer": nothing, "who": nothing })).unwrap();
            assert_eq!((given.answers.len(), &given.answers[0].key), (1, &"who".to_owned()), "{given:?}");
            assert_eq!(given.answers[0].decided.decision, Decision::Answer("{}".to_owned()));
            assert!(given.notes.of("answer").unwrap().contains("no `answer`"));
        }
        for odd in [json!(7), json!({}), json!({ "action": "accept", "content": 7 })] {
            assert_eq!(of(json!({ "answer": odd })).unwrap_err().code, -32602, "{odd}");
        }
    }
}
