//! A template, a zero byte, and the input that it is rendered with, for each place that a template may be in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopctl::program::reference::Scope;
use loopctl::program::template::{Template, ValueEscape};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let (template, input) = text.split_once('\0').unwrap_or((text, "{}"));
    let Ok(input) = serde_json::from_str::<Value>(input) else { return };
    let scope = Scope {
        arguments: &input,
        input: &input,
        now: "2026-01-01T00:00:00Z",
        run_id: "r",
        context: &[],
        extra: &[],
        lists: None,
        secrets: None,
    };
    for escape in [ValueEscape::Plain, ValueEscape::Url, ValueEscape::Json] {
        if let Ok(template) = Template::compile(template, escape) {
            drop(template.render(&scope));
        }
    }
});
