//! About how much memory a value takes. A text of a few megabytes may be a value of a gigabyte: it is counted before it is
//! made.

use serde_json::Value;

use super::FileFault;

/// The most memory that the values of the files of a run take, in bytes.
pub const MAX_WEIGHT: usize = 80 << 20;

/// What the allocator takes for a short text, in bytes.
const ALLOCATION_BYTES: usize = 32;

/// A value in its list or object, without what it points to.
pub(super) fn of_value() -> usize {
    size_of::<Value>().saturating_add(ALLOCATION_BYTES)
}

/// A member of an object, without its value: its name, and its place in the table of names.
pub(super) fn of_member(name: &str) -> usize {
    size_of::<String>()
        .saturating_add(ALLOCATION_BYTES)
        .saturating_add(2 * size_of::<usize>())
        .saturating_add(name.len())
}

/// The fault of a file whose value takes more.
pub(super) fn too_heavy(line: u64) -> FileFault {
    let message = format!("its value takes more than {} MiB of memory from here on; split the file", MAX_WEIGHT >> 20);
    FileFault { message, line }
}
