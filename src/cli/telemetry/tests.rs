//! Spans from notices, without a network.

use std::time::{Duration, SystemTime};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde_json::json;

use super::spans::Spans;
use crate::compile::{Texts, compile};
use crate::diagnostic::Source;
use crate::engine::notice::Notice;
use crate::engine::outcome::{Status, Termination};

#[test]
fn notices_that_come_without_a_beginning_or_twice_do_no_harm() {
    let document = json!({ "type": "loop", "properties": { "mode": "react", "objective": "x", "tools": [] } });
    let program = compile(&Texts::new(Source::new("loop.json", document.to_string()))).program.unwrap();
    let provider = SdkTracerProvider::builder().build();
    let mut spans = Spans::new(provider.tracer("test"), &program, true);
    let ended = Notice::RunEnded { status: Status::Failed, termination: Termination::Timeout };
    for notice in [ended.clone(), Notice::ModelAsked { iteration: 1 }, ended.clone(), ended] {
        spans.on(&notice, SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    }
}
