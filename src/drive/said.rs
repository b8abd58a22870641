//! What is kept of a model's reply: no secret of the project, and not more than can be read.

use super::secret::Vault;
use crate::engine::event::{Finish, Reply};

/// The longest reply that is kept, in bytes; what is longer can't be read anyway.
const LONGEST: usize = 4 * 1024 * 1024 + 1024;
/// What a native call counts beside its texts, in bytes.
const CALL: usize = 64;

/// Takes the project's secrets out of a reply, and cuts one that is too long: it counts as cut off then.
pub(super) fn bound(vault: &Vault, reply: &mut Reply) {
    let scrub = |text: &mut String| *text = vault.scrub(std::mem::take(text));
    scrub(&mut reply.text);
    let mut size = 0_usize;
    for call in &mut reply.calls {
        scrub(&mut call.id);
        scrub(&mut call.name);
        scrub(&mut call.arguments);
        size = size.saturating_add(call.size()).saturating_add(CALL);
    }
    if size > LONGEST {
        reply.calls.clear();
        reply.finish = Finish::Length;
    }
    if reply.text.len() > LONGEST {
        reply.text.truncate(reply.text.floor_char_boundary(LONGEST));
        reply.finish = Finish::Length;
    }
}
