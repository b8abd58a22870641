//! Consent: what an approval is bound to. A waiting call is shown from its own data, with a hash of the shown
//! bytes: an approval with this hash is valid for these bytes only.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::event::{RunDocument, documents_sha256};
use crate::header::RunHeader;

/// How many bytes of the digest are shown: enough to distinguish the calls of a run, and few enough to compare
/// by eye.
const SHOWN: usize = 8;

/// The hash of what is called or asked at a place of the run, and what is shown of it: 16 hexadecimal digits.
pub(crate) fn hash_of(header: &RunHeader, place: &str, action: &str, shown: &str) -> String {
    let mut context = Sha256::new();
    for part in [b"call 1", header.run_id.as_bytes(), place.as_bytes(), action.as_bytes(), shown.as_bytes()] {
        take(&mut context, part);
    }
    take(&mut context, &header.meaning);
    let mut hash = String::new();
    for byte in context.finalize().iter().take(SHOWN) {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

/// The digest of the documents that define a run.
pub(crate) fn meaning(documents: &[RunDocument]) -> [u8; 32] {
    *documents_sha256(documents).bytes()
}

/// Prefixes the length, so that different lists of parts never give the same bytes.
fn take(context: &mut Sha256, part: &[u8]) {
    let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
    context.update(length.to_be_bytes());
    context.update(part);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::CallId;
    use crate::operation::{AskedFor, Call, Progress};

    fn hash(header: &RunHeader, call: &Call) -> String {
        call.hash(header)
    }

    fn header(run_id: &str, meaning: [u8; 32]) -> RunHeader {
        RunHeader { run_id: run_id.to_owned(), meaning, ..RunHeader::default() }
    }

    fn call(index: u32, tool: &str, input: Value) -> Call {
        let id = CallId { iteration: 1, index };
        Call {
            progress: Progress::Asks(AskedFor::Approval(Box::default())),
            ..Call::new(id, tool.to_owned(), input, 0)
        }
    }

    #[test]
    fn each_part_of_a_call_and_the_text_of_the_document_is_in_its_hash() {
        let input = || json!({ "to": "a" });
        let own = hash(&header("run", [7; 32]), &call(0, "pay", input()));
        assert_eq!(own, hash(&header("run", [7; 32]), &call(0, "pay", input())));
        assert!(own.len() == 2 * SHOWN && own.bytes().all(|byte| byte.is_ascii_hexdigit()), "{own}");
        for (what, other) in [
            ("run", hash(&header("other", [7; 32]), &call(0, "pay", input()))),
            ("place", hash(&header("run", [7; 32]), &call(1, "pay", input()))),
            ("tool", hash(&header("run", [7; 32]), &call(0, "send", input()))),
            ("input", hash(&header("run", [7; 32]), &call(0, "pay", json!({ "to": "b" })))),
            ("document", hash(&header("run", [8; 32]), &call(0, "pay", input()))),
        ] {
            assert_ne!(own, other, "{what}");
        }
    }

    #[test]
    fn texts_that_are_parted_otherwise_mean_something_else() {
        let document = |text: &str| RunDocument { file: "loop.json".to_owned(), text: text.into() };
        let of = |texts: &[&str]| meaning(&texts.iter().map(|text| document(text)).collect::<Vec<_>>());
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["ab"]), of(&["ab", ""]));
        assert_ne!(of(&["ab"]), of(&["ac"]));
    }
}
