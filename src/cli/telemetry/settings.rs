//! Whether the settings of OpenTelemetry in the environment can be followed: one that can't is reported, and nothing is sent.

use reqwest::Url;

use super::{ENDPOINT, METRICS_ENDPOINT, SPANS_ENDPOINT, variable};

/// The protocols of OTLP: one is spoken here.
const PROTOCOLS: [&str; 3] =
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"];
const PROTOCOL: &str = "http/protobuf";
const EXPORTERS: [&str; 2] = ["OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"];
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];
/// Times in milliseconds that must not be 0: something would be done without a pause.
const INTERVALS: [&str; 2] = ["OTEL_METRIC_EXPORT_INTERVAL", "OTEL_BSP_SCHEDULE_DELAY"];
/// The ends of names of variables that this build can't follow: the certificates of the system are used.
const UNSUPPORTED: [&str; 3] = ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"];
const OF_SIGNALS: [&str; 3] = ["OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_METRICS_"];

/// # Errors
/// What can't be followed, in a sentence.
pub fn judge() -> Result<(), String> {
    for name in [ENDPOINT, SPANS_ENDPOINT, METRICS_ENDPOINT] {
        let is_address = |text: &String| {
            Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        };
        if variable(name).is_some_and(|text| !is_address(&text)) {
            return Err(format!("{name} is no address like http://localhost:4318"));
        }
    }
    let shown = |text: &str| text.chars().take(40).collect::<String>().escape_debug().to_string();
    for name in PROTOCOLS {
        if let Some(other) = variable(name).filter(|protocol| protocol != PROTOCOL) {
            return Err(format!("{name} is `{}`: loopctl sends {PROTOCOL} only", shown(&other)));
        }
    }
    for name in EXPORTERS {
        let is_known = |exporter: &String| ["otlp", "none"].iter().any(|known| exporter.eq_ignore_ascii_case(known));
        if let Some(other) = variable(name).filter(|exporter| !is_known(exporter)) {
            return Err(format!("{name} is `{}`: write `otlp` or `none`", shown(&other)));
        }
    }
    let sampler = variable("OTEL_TRACES_SAMPLER");
    if let Some(other) = sampler.as_deref().filter(|sampler| !SAMPLERS.contains(sampler)) {
        return Err(format!("OTEL_TRACES_SAMPLER is `{}`: write one of {}", shown(other), SAMPLERS.join(", ")));
    }
    let is_ratio = |text: &String| text.parse::<f64>().is_ok_and(|ratio| (0.0..=1.0).contains(&ratio));
    if sampler.is_some_and(|sampler| sampler.ends_with("ratio"))
        && let Some(other) = variable("OTEL_TRACES_SAMPLER_ARG").filter(|text| !is_ratio(text))
    {
        return Err(format!("OTEL_TRACES_SAMPLER_ARG is `{}`: write a number from 0 to 1", shown(&other)));
    }
    for name in INTERVALS {
        if variable(name).is_some_and(|text| text.trim().parse::<u64>().is_ok_and(|interval| interval == 0)) {
            return Err(format!("{name} is 0: write milliseconds from 1"));
        }
    }
    let names = OF_SIGNALS.iter().flat_map(|signal| UNSUPPORTED.iter().map(move |end| format!("{signal}{end}")));
    match names.into_iter().find(|name| variable(name).is_some()) {
        Some(name) => Err(format!("{name} is not supported: add the certificate to those of the system")),
        None => Ok(()),
    }
}
