//! Lists without spare capacity: a server keeps many idle runs in memory.

/// Adds an entry to a list that grows by a quarter, so that an idle run stays small.
pub(crate) fn push_tight<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 4 + 2);
    }
    list.push(entry);
}
