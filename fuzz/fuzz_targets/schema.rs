//! A schema, a zero byte, and what is held against it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopctl::program::schema::Schema;

fuzz_target!(|text: &str| {
    let Some((schema, instance)) = text.split_once('\0') else { return };
    let (Ok(schema), Ok(instance)) = (serde_json::from_str(schema), serde_json::from_str(instance)) else { return };
    if let Ok(schema) = Schema::compile(schema) {
        assert_eq!(schema.faults(&instance), schema.faults(&instance));
    }
});
