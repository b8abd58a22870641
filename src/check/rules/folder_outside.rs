//! A working folder outside of the project's.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;

/// The rule.
pub const RULE: Rule = Rule { code: codes::FOLDER_OUTSIDE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions() {
        let Action::Command(command) = &*used.action else { continue };
        // A whole path may lead into the project's folder, which is not known here.
        let Some(cwd) = command.cwd.as_deref().filter(|cwd| !cwd.starts_with('/') && !cwd.contains("{{")) else {
            continue;
        };
        if leaves(cwd) {
            let message = format!("the folder `{cwd}` lies outside of the project's: each call is refused");
            let help = "`cwd` is relative to the project file; name a folder beside it or below";
            found.push(used.at("/cwd").report(&RULE, message).help(help));
        }
    }
}

/// Whether a relative path leads out of the folder that it begins in.
pub(super) fn leaves(path: &str) -> bool {
    let mut depth = 0_usize;
    path.split('/').any(|part| match part {
        "" | "." => false,
        ".." => depth.checked_sub(1).map(|less| depth = less).is_none(),
        _ => {
            depth += 1;
            false
        }
    })
}
