//! A model in each dialect and with each provider: the same content in another form.
#![allow(dead_code, reason = "each test file uses its part of it")]

use serde_json::{Value, json};

use super::server::{Answer, Request};

/// The dialects.
pub const DIALECTS: [&str; 4] = ["json", "tool_calls", "tags", "final_answer"];

/// What a model says in one turn.
#[derive(Debug, Clone, Default)]
pub struct Says {
    pub thought: String,
    pub calls: Vec<(String, Value)>,
    pub answer: Option<String>,
}

/// A thought and its calls.
pub fn calls(thought: &str, calls: &[(&str, Value)]) -> Says {
    let calls = calls.iter().map(|(name, input)| ((*name).to_owned(), input.clone())).collect();
    Says { thought: thought.to_owned(), calls, answer: None }
}

/// A thought and an answer.
pub fn answers(thought: &str, answer: &str) -> Says {
    Says { thought: thought.to_owned(), calls: Vec::new(), answer: Some(answer.to_owned()) }
}

impl Says {
    /// The reply of a server of OpenAI's protocol (`/chat/completions`) or of Anthropic's (`/messages`). `turn`
    /// makes the ids differ.
    pub fn reply(&self, dialect: &str, request: &Request, turn: usize) -> Answer {
        let (text, calls) = self.words(dialect);
        if request.path.ends_with("/messages") { anthropic(&text, &calls, turn) } else { openai(&text, &calls, turn) }
    }

    fn words(&self, dialect: &str) -> (String, Vec<(String, Value)>) {
        let Self { thought, calls, answer } = self;
        match dialect {
            "json" => {
                let (action, input) = match (calls.as_slice(), answer) {
                    ([(name, input)], None) => (name.clone(), input.clone()),
                    ([], Some(answer)) => ("__complete__".to_owned(), json!({ "answer": answer })),
                    other => panic!("json has one action a turn: {other:?}"),
                };
                let object = json!({ "thought": thought, "action": action, "action_input": input });
                (object.to_string(), Vec::new())
            }
            "tags" => {
                let mut text = format!("<think>\n{thought}\n</think>\n");
                for (name, input) in calls {
                    let call = json!({ "name": name, "arguments": input });
                    text.push_str(&format!("<tool_call>\n{call}\n</tool_call>\n"));
                }
                if let Some(answer) = answer {
                    text.push_str(&format!("<answer>\n{answer}\n</answer>"));
                }
                (text, Vec::new())
            }
            "tool_calls" => match answer {
                Some(answer) => (format!("<think>{thought}</think>\n\n{answer}"), calls.clone()),
                None => (thought.clone(), calls.clone()),
            },
            _ => match answer {
                Some(answer) => (format!("{thought}\nFINAL_ANSWER: {answer}"), calls.clone()),
                None => (thought.clone(), calls.clone()),
            },
        }
    }
}

/// A reply of OpenAI's protocol with native calls.
pub fn openai(text: &str, calls: &[(String, Value)], turn: usize) -> Answer {
    let calls = calls.iter().enumerate().map(|(place, (name, input))| {
        json!({ "id": format!("id_{turn}_{place}"), "type": "function",
            "function": { "name": name, "arguments": input.to_string() } })
    });
    let calls: Vec<Value> = calls.collect();
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    message_of(&message)
}

/// A reply of OpenAI's protocol with this message.
pub fn message_of(message: &Value) -> Answer {
    Answer::json(&json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } }))
}

fn anthropic(text: &str, calls: &[(String, Value)], turn: usize) -> Answer {
    let mut content = vec![json!({ "type": "thinking", "thinking": "hm", "signature": "s" })];
    if !text.is_empty() {
        content.push(json!({ "type": "text", "text": text }));
    }
    for (place, (name, input)) in calls.iter().enumerate() {
        content
            .push(json!({ "type": "tool_use", "id": format!("toolu_{turn}_{place}"), "name": name, "input": input }));
    }
    Answer::json(&json!({ "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn",
        "usage": { "input_tokens": 10, "output_tokens": 5 } }))
}

/// The roles of a request's messages, in their order.
pub fn roles(request: &Request) -> Vec<String> {
    let body = request.json();
    let messages = body["messages"].as_array().expect("messages");
    messages.iter().map(|message| message["role"].as_str().expect("a role").to_owned()).collect()
}

/// A trace without the fields that differ from run to run.
pub fn comparable(trace: &Value) -> Vec<Value> {
    let entries = trace.as_array().expect("a trace").iter();
    let names = ["iteration", "thought", "action", "action_input", "observation", "success"];
    entries.map(|entry| names.iter().map(|name| ((*name).to_owned(), entry[*name].clone())).collect()).collect()
}
