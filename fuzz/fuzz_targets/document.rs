//! A document of any text is judged: compiled, checked, and each fault made a report of.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopctl::compile::Texts;
use loopctl::diagnostic::Source;

fuzz_target!(|text: &str| {
    let texts = Texts::new(Source::new("loop.json", text));
    match loopctl::load_texts(&texts, ".".into()) {
        Ok(loaded) => drop(loaded),
        Err(unsound) => assert!(unsound.diagnostics.iter().any(loopctl::Diagnostic::is_error)),
    }
});
