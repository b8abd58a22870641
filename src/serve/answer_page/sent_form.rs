//! What a browser sends of the forms of the page.

use std::borrow::Cow;

use reqwest::Url;
use serde_json::{Map, Value};

use super::AskedDecision;
use super::fields::name_of;
use crate::engine::decision::written_decision::WrittenDecision;
use crate::engine::json::from_bytes;
use crate::program::file_value;
use crate::program::form::AskedField;

/// The fields of a form, as they were typed.
#[derive(Debug, Default)]
pub struct SentForm {
    fields: Vec<(String, String)>,
    /// The length of the body, in bytes.
    length: usize,
}

/// A decision, and the keys of a form when it is one.
#[derive(Debug, Default, PartialEq)]
pub struct SentDecision {
    /// The decision; no field of it for a form.
    pub decision: WrittenDecision,
    /// The keys of a form.
    pub data: Option<Map<String, Value>>,
}

impl SentForm {
    /// The fields of a body.
    pub fn read(body: &[u8]) -> Self {
        let Ok(mut url) = Url::parse("http://localhost/") else { return Self::default() };
        url.set_query(Some(&String::from_utf8_lossy(body)));
        // Browsers end the lines of a text as the mail does.
        let plain = |text: Cow<'_, str>| text.replace("\r\n", "\n");
        let fields = url.query_pairs().map(|(name, text)| (plain(name), plain(text))).collect();
        Self { fields, length: body.len() }
    }

    /// The length of the body that it came in, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// What was typed in a field; nothing without it.
    pub fn text(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text)
    }

    fn given(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.trim().is_empty()).map(str::to_owned)
    }

    /// The decision about what is asked.
    ///
    /// # Errors
    /// A sentence that says what to write.
    pub fn decision(&self, asked: &AskedDecision) -> Result<SentDecision, String> {
        let (plain, comment) = (WrittenDecision::default(), self.given("comment"));
        if let Ok(number) = self.text("option").parse::<usize>() {
            let option = asked.question.options.get(number).ok_or("this answer is not offered any more")?;
            return Ok(WrittenDecision { answer: Some(option.clone()), ..plain }.into());
        }
        let kind = self.text("decision");
        if !asked.choices.contains(&kind) {
            return Err("this decision is not asked for".to_owned());
        }
        let decision = match kind {
            "answer" => WrittenDecision { answer: Some(self.given("answer").ok_or("write an answer first")?), ..plain },
            "approve" => WrittenDecision { approve: true, comment, ..plain },
            "deny" => {
                let reason = self.given("reason");
                let comment = reason.clone().filter(|_| asked.is_approval_step());
                WrittenDecision { deny: true, reason, comment, ..plain }
            }
            "edit" => WrittenDecision { edit: Some(json(self.text("edit"), "the input")?), comment, ..plain },
            "happened" => {
                WrittenDecision { happened: Some(json(self.text("happened"), "what it gave")?), comment, ..plain }
            }
            "fail" => WrittenDecision { fail: Some(self.given("fail").ok_or("say why it failed first")?), ..plain },
            "retry" => WrittenDecision { retry: true, comment, ..plain },
            _ => {
                let data =
                    if asked.fields.is_empty() { self.filled_in(&asked.keys)? } else { self.typed(&asked.fields) };
                return Ok(SentDecision { data: Some(data), ..SentDecision::default() });
            }
        };
        Ok(decision.into())
    }

    /// What was typed in the fields of a form, as texts. What is empty is left out.
    fn typed(&self, fields: &[AskedField]) -> Map<String, Value> {
        let texts = (0..).map(|number| self.text(&name_of(number)));
        let typed = fields.iter().zip(texts).filter(|(_, text)| !text.is_empty());
        typed.map(|(field, text)| (field.name.clone(), Value::from(text))).collect()
    }

    /// The keys of a form: what is typed is a text, or JSON.
    fn filled_in(&self, keys: &[String]) -> Result<Map<String, Value>, String> {
        let value = |number: usize, key: &str| -> Result<Value, String> {
            let text = self.text(&format!("key.{number}"));
            match self.text(&format!("kind.{number}")) {
                "text" => Ok(Value::String(text.to_owned())),
                "json" => json(text, key),
                _ => match json(text, key) {
                    Ok(value) if !value.is_string() => Ok(value),
                    _ => Ok(Value::String(text.to_owned())),
                },
            }
        };
        keys.iter().enumerate().map(|(number, key)| Ok((key.clone(), value(number, key)?))).collect()
    }
}

impl From<WrittenDecision> for SentDecision {
    fn from(decision: WrittenDecision) -> Self {
        Self { decision, data: None }
    }
}

/// A text as JSON.
fn json(text: &str, name: &str) -> Result<Value, String> {
    let value = from_bytes(text.as_bytes()).map_err(|error| format!("{name} is no JSON: {error}"))?;
    if let Some(key) = file_value::reserved_key(text) {
        return Err(format!("{} in {name}", file_value::reserved(&key)));
    }
    match file_value::key_twice_in(text) {
        Some(key) => Err(format!("the key {key:?} is twice in an object of {name}, and JSON keeps one of the two")),
        None => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::outcome::Termination;
    use crate::engine::question::Question;

    fn asked(choices: &'static [&'static str], keys: &[&str]) -> AskedDecision {
        AskedDecision {
            run_id: "r".to_owned(),
            loop_name: "pay".to_owned(),
            objective: String::new(),
            question: Question { options: vec!["yes".to_owned()], ..Question::new(Termination::Human, "?") },
            call: None,
            concerns: Vec::new(),
            choices,
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            fields: Vec::new(),
            show: None,
            on_rejected: None,
            expires_at_ms: 0,
        }
    }

    #[test]
    fn a_body_is_read_as_a_browser_writes_it() {
        let form = SentForm::read("token=t-1&answer=a+b%0D%0Ac%26%C3%BC%25&answer=second&odd#%zz=<é>".as_bytes());
        assert_eq!(form.text("token"), "t-1");
        assert_eq!(form.text("answer"), "a b\nc&ü%");
        assert_eq!((form.text("odd#%zz"), form.text("none")), ("<é>", ""));
        assert_eq!(SentForm::read(b"\xff=\xff&a=1").text("a"), "1");
    }

    #[test]
    fn a_decision_is_one_of_those_that_are_asked_for() {
        let read = |body: &str, choices| SentForm::read(body.as_bytes()).decision(&asked(choices, &[]));
        let approval: &[&str] = &["approve", "deny", "edit"];
        let approve = read("decision=approve&comment=fine", approval).unwrap().decision;
        assert!(approve.approve && approve.comment.as_deref() == Some("fine"));
        let deny = read("decision=deny&reason=+&comment=x", approval).unwrap().decision;
        assert!(deny.deny && deny.reason.is_none() && deny.comment.is_none(), "{deny:?}");
        let edit = read("decision=edit&edit=%7B%22n%22%3A1.50%7D", approval).unwrap().decision.edit.unwrap();
        assert_eq!(edit.to_string(), r#"{"n":1.50}"#);
        assert_eq!(read("option=0", &["answer"]).unwrap().decision.answer.as_deref(), Some("yes"));
        for (body, choices) in [
            ("", approval),
            ("decision=answer&answer=x", approval),
            ("decision=edit&edit=%7B", approval),
            ("decision=edit&edit=%7B%22a%22%3A1%2C%22a%22%3A2%7D", approval),
            ("decision=data", approval),
            ("option=1", &["answer"]),
            ("decision=answer&answer=+", &["answer"]),
            ("decision=approve", &["answer"]),
            ("decision=fail", &["happened", "fail", "retry"]),
        ] {
            assert!(read(body, choices).is_err(), "{body}");
        }
    }

    #[test]
    fn a_form_has_all_its_keys_as_texts_or_json() {
        let body = "decision=data&key.0=12&key.1=12&kind.1=text&key.2=%5B1&kind.2=auto&key.3=%22t%22&kind.3=json";
        let form = SentForm::read(body.as_bytes());
        let data = form.decision(&asked(&["data"], &["a", "b", "c", "d", "e"])).unwrap().data.unwrap();
        assert_eq!(Value::Object(data), json!({ "a": 12, "b": "12", "c": "[1", "d": "t", "e": "" }));
        assert!(
            SentForm::read(b"decision=data&key.0=x&kind.0=json").decision(&asked(&["data"], &["a"])).is_err(),
            "it is no JSON"
        );
    }
}
