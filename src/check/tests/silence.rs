//! When rules are silent.
