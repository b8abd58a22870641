//! Images and PDF documents in the input of a loop: its model is sent them in the form of its provider.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::streams::{PROVIDERS, streamed};
use crate::common::{Place, Ran, complete, think};

/// The smallest beginning of a PNG image, and of a PDF document, with their base64.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n1234";
const PNG_BASE64: &str = "iVBORw0KGgoxMjM0";
const PDF: &[u8] = b"%PDF-1.4\n%end\n";
const PDF_BASE64: &str = "JVBERi0xLjQKJWVuZAo=";

fn place(server: &Server, provider: &str) -> Place {
    let place = Place::new();
    place.json(
        "loop.json",
        &json!({
            "type": "loop",
            "input": {
                "type": "object",
                "properties": {
                    "receipt": { "type": "object", "contentMediaType": "image/*" },
                    "bills": { "type": "array", "items": { "contentMediaType": "application/pdf" } }
                }
            },
            "properties": { "mode": "react", "objective": "Say what was bought.", "tools": [] }
        }),
    );
    let base = if provider == "openai" || provider == "openai-responses" { "/v1" } else { "" };
    place.json(
        "loopctl.json",
        &json!({
            "allow": { "private_addresses": true },
            "model": "m",
            "models": { "m": { "provider": provider, "model": "fake-1", "base_url": format!("{}{base}", server.url()),
                "api_key": "env:KEY", "context_tokens": 100_000, "stream": false } }
        }),
    );
    place.file("receipt.png", PNG);
    place.file("bill.pdf", PDF);
    place
}

/// A reply of this provider that is not streamed.
fn reply(provider: &str, text: &str) -> Answer {
    match provider {
        "openai" => Answer::openai(text),
        "anthropic" => Answer::anthropic(text),
        "gemini" => Answer::json(&json!({ "candidates": [{ "finishReason": "STOP",
            "content": { "role": "model", "parts": [{ "text": text }] } }] })),
        _ => Answer::json(&json!({ "status": "completed", "output": [{ "type": "message", "role": "assistant",
            "content": [{ "type": "output_text", "text": text }] }] })),
    }
}

fn server(provider: &'static str, turns: Vec<Value>) -> Server {
    Server::new(turns.iter().map(|turn| reply(provider, &turn.to_string())).collect())
}

fn call(place: &Place, args: &[&str]) -> Ran {
    place.call_with(args, &[("KEY", "key-of-the-test")])
}

/// The parts of the first message of the user.
fn parts(provider: &str, request: &Value) -> Vec<Value> {
    let (list, content) = match provider {
        "openai-responses" => ("input", "content"),
        "gemini" => ("contents", "parts"),
        _ => ("messages", "content"),
    };
    let messages = request[list].as_array().unwrap();
    let user = messages.iter().find(|message| message["role"] == "user").unwrap();
    user[content].as_array().unwrap_or_else(|| panic!("no parts: {user:#}")).clone()
}

/// How a provider is sent the image and the document.
fn sent(provider: &str) -> [Value; 2] {
    let data = |kind: &str, base64: &str| format!("data:{kind};base64,{base64}");
    let (png, pdf) = (data("image/png", PNG_BASE64), data("application/pdf", PDF_BASE64));
    match provider {
        "openai" => [
            json!({ "type": "image_url", "image_url": { "url": png } }),
            json!({ "type": "file", "file": { "filename": "bill.pdf", "file_data": pdf } }),
        ],
        "openai-responses" => [
            json!({ "type": "input_image", "image_url": png }),
            json!({ "type": "input_file", "filename": "bill.pdf", "file_data": pdf }),
        ],
        "anthropic" => [
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG_BASE64 } }),
            json!({ "type": "document",
                "source": { "type": "base64", "media_type": "application/pdf", "data": PDF_BASE64 } }),
        ],
        _ => [
            json!({ "inlineData": { "mimeType": "image/png", "data": PNG_BASE64 } }),
            json!({ "inlineData": { "mimeType": "application/pdf", "data": PDF_BASE64 } }),
        ],
    }
}

/// A part without what only marks it for the provider's cache.
fn unmarked(mut part: Value) -> Value {
    part.as_object_mut().unwrap().remove("cache_control");
    part
}

#[test]
fn each_provider_is_sent_the_files_in_its_own_form_and_again_by_the_next_process() {
    for provider in PROVIDERS {
        let ask = think("__pause_for_human__", json!({ "question": "Which one?" }));
        let server = server(provider, vec![ask, complete(json!("a book"))]);
        let place = place(&server, provider);
        let input =
            json!({ "receipt": { "type": "file", "path": "receipt.png", "name": null }, "bills": ["bill.pdf"] });
        let args = ["run", "loop.json", "--run-id", "r", "--input", &input.to_string()];
        let ran = call(&place, &args);
        assert_eq!(ran.code, 3, "{provider}: {ran:#?}");
        let ran = call(&place, &["resume", "r", "--answer", "the first"]);
        assert_eq!(ran.code, 0, "{provider}: {ran:#?}");
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        for request in &requests {
            let request = request.json();
            let parts = parts(provider, &request);
            let files: Vec<Value> = parts[1..3].iter().cloned().map(unmarked).collect();
            assert_eq!(files, sent(provider), "{provider}");
            let text = parts[0].to_string();
            assert!(text.contains("receipt, bills[0] (bill.pdf)"), "{provider}: {text}");
            assert_eq!(request.to_string().matches(PNG_BASE64).count(), 1, "{provider}: {request:#}");
        }
        let trace = call(&place, &["trace", "r", "--at", "1"]);
        assert!(trace.stdout.contains("[receipt: image/png, 12 bytes, sha256 "), "{trace:#?}");
        assert!(
            !format!("{}{}", trace.stdout, call(&place, &["trace", "r", "--format", "json"]).stdout)
                .contains(PNG_BASE64)
        );
    }
}

#[test]
fn an_address_is_sent_as_it_is_and_read_by_the_provider() {
    for (provider, part) in [
        ("openai", json!({ "type": "image_url", "image_url": { "url": "https://files.example.com/a.png" } })),
        ("openai-responses", json!({ "type": "input_image", "image_url": "https://files.example.com/a.png" })),
        (
            "anthropic",
            json!({ "type": "image", "source": { "type": "url", "url": "https://files.example.com/a.png" } }),
        ),
        ("gemini", json!({ "fileData": { "mimeType": "image/png", "fileUri": "https://files.example.com/a.png" } })),
    ] {
        let server = server(provider, vec![complete(json!("a book"))]);
        let place = place(&server, provider);
        let file = json!({ "receipt": { "type": "file", "url": "https://files.example.com/a.png" } });
        let ran = call(&place, &["run", "loop.json", "--store", "memory", "--input", &file.to_string()]);
        assert_eq!(ran.code, 0, "{provider}: {ran:#?}");
        assert_eq!(unmarked(parts(provider, &server.requests()[0].json())[1].clone()), part, "{provider}");
    }
}

#[test]
fn a_pdf_by_its_address_is_refused_where_the_protocol_has_no_form_for_it() {
    let file = json!({ "bills": [{ "type": "file", "url": "https://files.example.com/a.pdf" }] }).to_string();
    for (provider, code) in [("openai", 2), ("openai-responses", 0), ("anthropic", 0), ("gemini", 0)] {
        let server = server(provider, vec![complete(json!("a book"))]);
        let ran = call(&place(&server, provider), &["run", "loop.json", "--store", "memory", "--input", &file]);
        assert_eq!(ran.code, code, "{provider}: {ran:#?}");
        assert_eq!(ran.stderr.contains("takes no PDF by its address"), code != 0, "{provider}: {ran:#?}");
        assert_eq!(server.requests().len(), usize::from(code == 0));
    }
}

#[test]
fn the_bytes_of_a_file_are_stored_once_and_a_rerun_has_them() {
    let server = server("openai", vec![complete(json!("a book")); 3]);
    let place = place(&server, "openai");
    // Larger than what else the store holds.
    let large = [PNG, &[b'x'; 300_000]].concat();
    place.file("large.png", &large);
    let run = |id: &str| call(&place, &["run", "loop.json", "--run-id", id, "--input", "receipt=large.png"]);
    assert_eq!(run("one").code, 0);
    let size = || std::fs::metadata(place.path().join(".loopctl/runs.db")).unwrap().len();
    let before = size();
    assert_eq!(run("two").code, 0);
    assert!(size() < before + 100_000, "{before} became {}", size());
    // The same id with the same file is the same run; with another one it is another.
    assert_eq!(run("two").code, 0);
    assert_eq!(server.requests().len(), 2);
    let other = call(&place, &["run", "loop.json", "--run-id", "two", "--input", "receipt=receipt.png"]);
    assert_eq!(other.code, 2, "{other:#?}");
    let rerun = call(&place, &["rerun", "two", "--run-id", "three"]);
    assert_eq!(rerun.code, 0, "{rerun:#?}");
    let requests = server.requests();
    assert_eq!(parts("openai", &requests[0].json())[1], parts("openai", &requests[2].json())[1]);
}

#[test]
fn what_is_no_file_is_refused_before_the_model_is_asked() {
    let server = server("openai", Vec::new());
    let place = place(&server, "openai");
    place.file("page.html", "<html>");
    for (input, part) in [
        ("receipt=none.png", "\"none.png\" of `receipt` can't be read"),
        ("receipt=page.html", "none that models read: image/png"),
        ("receipt=bill.pdf", "is application/pdf, and the loop takes image/png"),
        ("receipt=7", "a number was given"),
        (r#"{"receipt": {"type": "file", "path": "receipt.png", "base64": "AA=="}}"#, "read by the command line only"),
        (r#"{"receipt": {"type": "file", "sha256": "ab", "media_type": "image/png"}}"#, "has no content here"),
        (r#"{"receipt": {"type": "file", "url": "https://192.168.0.1/a.png"}}"#, "not that of a public host"),
    ] {
        let ran = call(&place, &["run", "loop.json", "--store", "memory", "--input", input]);
        assert_eq!(ran.code, 2, "{input}: {ran:#?}");
        assert!(ran.stderr.contains(part), "{input}: {}", ran.stderr);
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_model_that_calls_a_loop_has_no_file_to_give() {
    let ask =
        think("reads", json!({ "receipt": { "type": "file", "url": "https://evil.example.com/a.png?said=all" } }));
    let server = server("openai", vec![ask, complete(json!("nothing"))]);
    let place = place(&server, "openai");
    let mut document: Value = serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
    document["description"] = json!("Reads a receipt.");
    place.json("loops/reads.json", &document);
    place.json(
        "agent.json",
        &json!({ "type": "loop", "properties": { "mode": "react", "objective": "Look.",
            "tools": [{ "type": "loop", "name": "reads" }] } }),
    );
    let ran = call(&place, &["run", "agent.json", "--run-id", "a"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "the loop was not begun");
    assert!(requests[1].text().contains("a model can't give"), "{}", requests[1].text());
}

#[test]
fn a_recording_has_the_files_of_its_run() {
    let server = server("openai", vec![complete(json!("a book"))]);
    let place = place(&server, "openai");
    let ran = call(&place, &["run", "loop.json", "--run-id", "r", "--input", "receipt=receipt.png"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let recorded = call(&place, &["record", "r", "-o", "r.recording.json"]);
    assert_eq!(recorded.code, 0, "{recorded:#?}");
    place.json(
        "loop.test.json",
        &json!({ "document": "loop.json", "scenarios": [{ "name": "as it was", "recording": "r.recording.json",
            "expect": { "status": "completed" } }] }),
    );
    let tested = call(&place, &["test", "loop.test.json"]);
    assert_eq!(tested.code, 0, "{tested:#?}");
}

#[test]
fn a_streamed_reply_to_a_file_is_read_as_any_other() {
    let server = Server::with(|_, _| Answer::events(streamed("openai", &[&complete(json!("a book")).to_string()])));
    let place = place(&server, "openai");
    let ran = call(
        &place,
        &["run", "loop.json", "--output", "ndjson", "--store", "memory", "--input", "receipt=receipt.png"],
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(!ran.stdout.contains(PNG_BASE64), "{ran:#?}");
}
