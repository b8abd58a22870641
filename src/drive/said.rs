//! Cleans and limits a model's reply before it is kept: no secrets of the project, and no more than can be
//! read.

use super::secret::Vault;
use crate::engine::event::{Finish, Reasoning, Reply};
use crate::policy::reasoning::MAX_SEALED;

/// The longest reply that is kept, in bytes; longer replies can't be read anyway.
const LONGEST: usize = 4 * 1024 * 1024 + 1024;
/// The size of a native call besides its texts, in bytes.
const CALL: usize = 64;

/// Removes the project's secrets from a reply, and cuts one that is too long, which then counts as cut off.
pub(super) fn bound(vault: &Vault, reply: &mut Reply) {
    let scrub = |text: &mut String| *text = vault.scrub(std::mem::take(text));
    scrub(&mut reply.text);
    if let Some(reasoning) = &mut reply.reasoning {
        scrub(&mut reasoning.text);
        bound_sealed(vault, reasoning);
    }
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

/// Drops what can't be kept whole: what is sent back is sent byte for byte, or not at all.
fn bound_sealed(vault: &Vault, reasoning: &mut Reasoning) {
    let sealed = &mut reasoning.sealed;
    if sealed.len() > MAX_SEALED || vault.scrub(sealed.clone()) != *sealed {
        sealed.clear();
    }
}
