//! WHAT HAPPENED, pure.
