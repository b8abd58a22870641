//! The stream of a model's reply, cut into pieces as the first byte says, for each protocol; and the same
//! as one answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((size, stream)) = bytes.split_first() else { return };
    loopctl::drive::model::fuzzing::stream(stream, usize::from(*size).max(1));
});
