//! The egress guard: which addresses tools may reach.
