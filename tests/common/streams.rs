//! Replies in pieces, in the words of each provider.

use serde_json::{Value, json};

/// The providers whose replies are streamed.
pub const PROVIDERS: [&str; 4] = ["openai", "openai-responses", "anthropic", "gemini"];

/// The data of the events of a reply that comes in these pieces. Its tokens are 10 and 5.
pub fn streamed(provider: &str, pieces: &[&str]) -> Vec<String> {
    let events: Vec<Value> = match provider {
        "openai" => openai(pieces),
        "openai-responses" => responses(pieces),
        "anthropic" => anthropic(pieces),
        "gemini" => gemini(pieces),
        other => panic!("no provider {other}"),
    };
    let done = (provider == "openai").then(|| "[DONE]".to_owned());
    events.iter().map(Value::to_string).chain(done).collect()
}

fn openai(pieces: &[&str]) -> Vec<Value> {
    let piece = |text: &&str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5 } });
    pieces.iter().map(piece).chain([end, usage]).collect()
}

fn responses(pieces: &[&str]) -> Vec<Value> {
    let piece = |text: &&str| json!({ "type": "response.output_text.delta", "delta": text });
    let usage = json!({ "input_tokens": 10, "output_tokens": 5 });
    let response = json!({ "status": "completed", "error": null, "output": [], "usage": usage });
    pieces.iter().map(piece).chain([json!({ "type": "response.completed", "response": response })]).collect()
}

fn anthropic(pieces: &[&str]) -> Vec<Value> {
    let piece = |text: &&str| {
        let delta = json!({ "type": "text_delta", "text": text });
        json!({ "type": "content_block_delta", "index": 0, "delta": delta })
    };
    let end = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
        "usage": { "input_tokens": 10, "output_tokens": 5 } });
    pieces.iter().map(piece).chain([end, json!({ "type": "message_stop" })]).collect()
}

fn gemini(pieces: &[&str]) -> Vec<Value> {
    let piece =
        |text: &&str| json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] } }] });
    let end = json!({ "candidates": [{ "content": { "role": "model", "parts": [] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5 } });
    pieces.iter().map(piece).chain([end]).collect()
}
