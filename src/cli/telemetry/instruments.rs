//! Metrics by OpenTelemetry's conventions for generative AI.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, MeterProvider as _};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use super::spans::TracedModel;
use crate::engine::event::Tokens;

/// The borders that the conventions give for tokens.
const TOKEN_BORDERS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Those for durations, in seconds.
const DURATION_BORDERS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// What is measured. Attributes are names of the project: neither a model nor a caller adds a series.
#[derive(Debug)]
pub struct Instruments {
    tokens: Histogram<u64>,
    duration: Histogram<f64>,
}

impl Instruments {
    /// Those of a process.
    pub fn new(provider: &SdkMeterProvider) -> Self {
        let meter = provider.meter("loopctl");
        let tokens = meter.u64_histogram("gen_ai.client.token.usage").with_unit("{token}");
        let tokens = tokens.with_description("Number of input and output tokens used.");
        let duration = meter.f64_histogram("gen_ai.client.operation.duration").with_unit("s");
        let duration = duration.with_description("GenAI operation duration.");
        Self {
            tokens: tokens.with_boundaries(TOKEN_BORDERS.to_vec()).build(),
            duration: duration.with_boundaries(DURATION_BORDERS.to_vec()).build(),
        }
    }

    /// A model used tokens.
    pub fn spent(&self, model: &TracedModel, tokens: Tokens) {
        for (kind, count) in [("input", tokens.input), ("output", tokens.output)] {
            if count > 0 {
                let mut attributes = attributes(model);
                attributes.push(KeyValue::new("gen_ai.token.type", kind));
                self.tokens.record(count, &attributes);
            }
        }
    }

    /// A model replied, or failed, after this time in seconds.
    pub fn asked(&self, model: &TracedModel, seconds: f64, error: Option<String>) {
        let mut attributes = attributes(model);
        attributes.extend(error.map(|error| KeyValue::new("error.type", error)));
        self.duration.record(seconds, &attributes);
    }
}

fn attributes(model: &TracedModel) -> Vec<KeyValue> {
    vec![
        KeyValue::new("gen_ai.operation.name", "chat"),
        KeyValue::new("gen_ai.provider.name", model.provider),
        KeyValue::new("gen_ai.request.model", model.id.clone()),
    ]
}
