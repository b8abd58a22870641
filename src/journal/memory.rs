//! The journal in memory: for runs that need not outlive the process.
