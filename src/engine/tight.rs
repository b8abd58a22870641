//! Lists that stay small: a server holds many runs at rest.

/// Adds an entry to a list that grows by a quarter: a run at rest is small.
pub(crate) fn push_tight<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 4 + 2);
    }
    list.push(entry);
}
