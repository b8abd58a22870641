//! Lists without spare capacity, and texts that are kept once: a server keeps many idle runs in memory.

use std::sync::Arc;

/// Adds an entry to a list that grows by a quarter, so that an idle run stays small.
pub fn push_tight<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 4 + 2);
    }
    list.push(entry);
}

/// A text that is kept: the one before, if it is the same.
pub(crate) fn shared(before: Option<&Arc<str>>, text: &str) -> Arc<str> {
    before.filter(|before| ***before == *text).cloned().unwrap_or_else(|| text.into())
}
