//! Each expectation holds, and does not.
