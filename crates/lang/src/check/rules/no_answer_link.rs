//! A token that starts runs and may not decide, where pauses are posted: nobody can answer by such a post.

use super::written_secret::is_source;
use crate::check::scenario::endings::asks;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ending::Termination;
use crate::language::serving::TokenScope;

pub const RULE: Rule = Rule { code: codes::NO_ANSWER_LINK, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let (Some(project), Some(program)) = (subject.project(), subject.program()) else { return };
    let serve = &project.serve;
    if !serve.callback_secret.as_deref().is_some_and(is_source) {
        return;
    }
    if ![Termination::Human, Termination::Approval].into_iter().any(|kind| asks(program, kind)) {
        return;
    }
    for (index, token) in serve.tokens.iter().enumerate() {
        let decides = |scope: &TokenScope| match scope {
            TokenScope::DecideLoop(name) => *name == program.name,
            // Of escalated approvals alone: the first post of a pause gives nobody the right to decide.
            other => *other == TokenScope::Decide,
        };
        let starts = |scope: &TokenScope| match scope {
            TokenScope::RunLoop(name) => *name == program.name,
            other => other.starts(),
        };
        if !token.scopes.iter().any(starts) || token.scopes.iter().any(decides) {
            continue;
        }
        let Some(cursor) = subject.in_project(&format!("/serve/tokens/{index}/scopes")) else { continue };
        let message = format!(
            "the token `{}` starts runs and may not decide: what its runs ask is posted without a link that answers it",
            token.name
        );
        let help = format!(
            "add \"decide\" or \"decide:{}\"; without it, only holders of another token that decides can answer",
            program.name
        );
        found.push(cursor.report(&RULE, message).help(help));
    }
}
