//! What the tokens that a run was started with may decide about now: the rights of its answers end with theirs.

use super::authorizer::{Authorizer, HeldRights};
use super::quotas::Owner;
use crate::drive::clock;
use crate::engine::event::DecisionRights;
use crate::journal::RunSummary;

/// What these tokens may decide about in this run; none when no such token is left. Where there are no tokens, everybody who
/// reaches the server may decide about everything.
pub fn starter_rights(authorizer: &Authorizer, run: &RunSummary) -> Option<HeldRights> {
    match &run.token {
        // Of whom the program around the server knows, what was recorded at the start holds.
        Some(name) if !authorizer.is_open() && authorizer.host().is_none() => {
            let owner = Owner { org: run.org.clone(), token: Some(name.to_string()) };
            authorizer.rights_of(&owner, &run.loop_name, clock::wall_ms())
        }
        _ => Some(HeldRights { rights: DecisionRights::All, until_ms: None }),
    }
}
