//! What became of the answers that a call brought: those that could not be taken are said, each with its question.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::request_state::AskedPause;
use crate::engine::canonical;
use crate::engine::digest::Sha256;

/// The most answers that this process remembers to have taken.
const MAX_TAKEN: usize = 4_096;
/// The most answers that are named in a note.
const MAX_NAMED: usize = 10;
/// The most characters of the name of one.
const MAX_NAME_CHARS: usize = 100;

/// What is said of an answer to a question that is put again, and of one to a question that is not.
const ASKED_ANEW: &str = "what the run asks has changed since: answer again";
const NOT_ASKED: &str = "the question was answered before, or never asked";

/// The answers that this process took. What a client sends back is sealed by this process, so no other one took them for it.
static TAKEN: LazyLock<TakenAnswers> = LazyLock::new(TakenAnswers::default);

/// What is wrong with the answers of a call, by the keys of their questions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerNotes {
    faults: BTreeMap<String, String>,
    /// The answers to questions of an earlier pause, once the run is left. Such a question may be asked still, or again.
    settled: BTreeSet<String>,
    /// The answers to questions that nobody asks any more.
    late: Vec<String>,
    /// Whether one of the questions was declined.
    pub is_declined: bool,
}

impl AnswerNotes {
    /// Says what is wrong with an answer.
    pub fn fault(&mut self, key: &str, why: impl Into<String>) {
        self.faults.insert(key.to_owned(), why.into());
    }

    /// That the question of this answer is not asked any more.
    pub fn late(&mut self, key: &str) {
        self.late.push(key.to_owned());
    }

    /// The same of all answers to questions that are not among these.
    pub fn late_but<'k>(&mut self, asked: impl Iterator<Item = &'k str>, responses: &Map<String, Value>) {
        let asked: HashSet<&str> = asked.collect();
        let is_accepted = |response: &Value| response.get("action").and_then(Value::as_str) == Some("accept");
        let late = responses.iter().filter(|(key, response)| is_accepted(response) && !asked.contains(key.as_str()));
        self.late.extend(late.map(|(key, _)| key.clone()));
    }

    /// Once the run is left: an answer that was taken before, and is sent again as it was, is no fault.
    pub fn settle(&mut self, asked: &AskedPause, responses: &Map<String, Value>) {
        for key in std::mem::take(&mut self.late) {
            let was_taken = responses.get(&key).is_some_and(|response| TAKEN.has(asked, &key, response));
            if !was_taken {
                self.settled.insert(key);
            }
        }
    }

    /// What is wrong with the answer to a question that is put again.
    pub fn of(&self, key: &str) -> Option<&str> {
        self.faults.get(key).map(String::as_str).or_else(|| self.settled.contains(key).then_some(ASKED_ANEW))
    }

    /// What is wrong with the answers to questions that are not put again, in a sentence.
    pub fn note<'k>(&self, put: impl Iterator<Item = &'k str>) -> Option<String> {
        let put: HashSet<&str> = put.collect();
        let faults = self.faults.iter().map(|(key, why)| (key, why.as_str()));
        let all: Vec<String> = faults
            .chain(self.settled.iter().map(|key| (key, NOT_ASKED)))
            .filter(|(key, _)| !put.contains(key.as_str()))
            .map(|(key, why)| {
                let key: String = key.chars().take(MAX_NAME_CHARS).collect();
                format!("the answer to {key:?} was not taken: {why}")
            })
            .collect();
        let more = all.len().saturating_sub(MAX_NAMED);
        let named = all.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
        match (all.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(named),
            (false, more) => Some(format!("{named}; and {more} more")),
        }
    }
}

/// Remembers that an answer was taken.
pub fn taken(asked: &AskedPause, key: &str, responses: &Map<String, Value>) {
    if let Some(response) = responses.get(key) {
        TAKEN.add(asked, key, response);
    }
}

/// The answers that were taken, the oldest first.
#[derive(Debug, Default)]
struct TakenAnswers(Mutex<VecDeque<Sha256>>);

impl TakenAnswers {
    fn add(&self, asked: &AskedPause, key: &str, response: &Value) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_TAKEN {
            all.pop_front();
        }
        all.push_back(digest(asked, key, response));
    }

    fn has(&self, asked: &AskedPause, key: &str, response: &Value) -> bool {
        let digest = digest(asked, key, response);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest)
    }
}

fn digest(asked: &AskedPause, key: &str, response: &Value) -> Sha256 {
    let content = response.get("content").unwrap_or(&Value::Null);
    Sha256::of_parts(|part| {
        for text in [&*asked.run_id, &*asked.pause.to_string(), key] {
            part(&format!("{}:", text.len()));
            part(text);
        }
        canonical::spell(content, &mut |piece: &str| part(piece));
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_that_was_taken_is_no_fault_when_it_is_sent_again_and_another_one_is() {
        let asked = AskedPause { run_id: "notes-1".to_owned(), pause: 2 };
        let accepted = |value: Value| json!({ "action": "accept", "content": { "v": value } });
        let sent = |value: Value| json!({ "q": accepted(value), "no": { "action": "decline" } });
        let of = |value: Value| {
            let (mut notes, sent) = (AnswerNotes::default(), sent(value));
            let sent = sent.as_object().unwrap();
            notes.late_but(std::iter::empty(), sent);
            notes.settle(&asked, sent);
            notes.note(std::iter::empty())
        };
        assert!(of(json!(5)).unwrap().contains("\"q\" was not taken: the question was answered before"));
        taken(&asked, "q", sent(json!(5)).as_object().unwrap());
        assert_eq!(of(json!(5)), None);
        assert!(of(json!(7)).is_some());
        // A question that is put again was not answered: another one of the run was.
        let (mut notes, sent) = (AnswerNotes::default(), sent(json!(8)));
        notes.late_but(std::iter::empty(), sent.as_object().unwrap());
        notes.settle(&asked, sent.as_object().unwrap());
        assert_eq!((notes.of("q"), notes.note(["q"].into_iter())), (Some(ASKED_ANEW), None));
        let mut notes = AnswerNotes::default();
        for number in 0..30 {
            notes.fault(&format!("k{number}"), "it is late");
        }
        assert_eq!(notes.of("k3"), Some("it is late"));
        let note = notes.note(["k3"].into_iter()).unwrap();
        assert!(note.ends_with("and 19 more") && !note.contains("\"k3\""), "{note}");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let taken = TakenAnswers::default();
        let asked = AskedPause { run_id: "r".to_owned(), pause: 1 };
        for number in 0..=MAX_TAKEN {
            taken.add(&asked, &number.to_string(), &json!({}));
        }
        assert!(!taken.has(&asked, "0", &json!({})) && taken.has(&asked, "1", &json!({})));
        assert_eq!(taken.0.lock().unwrap().len(), MAX_TAKEN);
    }
}
