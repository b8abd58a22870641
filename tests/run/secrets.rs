//! Secrets
