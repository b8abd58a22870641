//! What both stores promise.
