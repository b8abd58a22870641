//! Where each case fires.

/// `CODE file:line:column path`, in the order of the codes.
pub const PLACES: &[&str] = &[];
