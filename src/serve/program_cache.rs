//! A cache of the compiled documents of runs, limited by their size in bytes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::program::Program;

/// The maximum number of programs.
const MAX_PROGRAMS: usize = 512;
/// The approximate maximum size of all programs, in bytes.
const MAX_BYTES: usize = 256 << 20;

/// The compiled documents, by the digest of their texts.
#[derive(Debug, Default)]
pub struct ProgramCache {
    programs: HashMap<[u8; 32], Arc<Program>>,
    bytes: usize,
}

impl ProgramCache {
    /// The program with this digest, if it is in the cache.
    pub fn get(&self, key: &[u8; 32]) -> Option<Arc<Program>> {
        self.programs.get(key).cloned()
    }

    /// Keeps a program. A full cache is cleared first; a program that is larger than the cache is not kept.
    pub fn put(&mut self, key: [u8; 32], program: &Arc<Program>) {
        let weight = program.weight();
        if weight > MAX_BYTES {
            return;
        }
        if self.programs.len() >= MAX_PROGRAMS || self.bytes.saturating_add(weight) > MAX_BYTES {
            self.programs.clear();
            self.bytes = 0;
        }
        if let Some(old) = self.programs.insert(key, Arc::clone(program)) {
            self.bytes = self.bytes.saturating_sub(old.weight());
        }
        self.bytes = self.bytes.saturating_add(weight);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compile::{Texts, compile};
    use crate::diagnostic::Source;

    /// A loop whose patterns compile to large programs.
    fn program(patterns: usize) -> Arc<Program> {
        let parts: serde_json::Map<_, _> =
            (0..patterns).map(|at| (format!("p{at}"), json!({"pattern": format!("^\\p{{L}}{{10}}{at}$")}))).collect();
        let document = json!({
            "type": "loop",
            "input": {"type": "object", "properties": parts},
            "properties": {"mode": "react", "objective": "Say yes.", "tools": []}
        });
        let texts = Texts::new(Source::new("a.json", document.to_string()));
        compile(&texts).program.unwrap()
    }

    #[test]
    fn what_is_kept_takes_at_most_its_bytes_however_large_each_is() {
        let (large, small) = (program(12), program(0));
        assert!(large.weight() > 3 << 20 && large.weight() < 32 << 20, "{}", large.weight());
        assert!(small.weight() < 64 << 10, "{}", small.weight());
        let (mut cache, mut most) = (ProgramCache::default(), 0);
        for key in 0..200_u8 {
            cache.put([key; 32], &large);
            assert!(cache.bytes <= MAX_BYTES && cache.bytes == cache.programs.len() * large.weight());
            most = most.max(cache.programs.len());
        }
        assert!(most < 200 && most > 5, "{most}");
        cache.put([255; 32], &small);
        assert!(cache.get(&[255; 32]).is_some());
    }

    #[test]
    fn small_ones_are_kept_up_to_their_number_and_one_that_is_kept_again_counts_once() {
        let small = program(0);
        let mut cache = ProgramCache::default();
        for key in 0..2_000_u16 {
            let [high, low] = key.to_be_bytes();
            let mut digest = [high; 32];
            digest[0] = low;
            cache.put(digest, &small);
            cache.put(digest, &small);
            assert!(cache.programs.len() <= MAX_PROGRAMS && cache.bytes == cache.programs.len() * small.weight());
        }
    }
}
