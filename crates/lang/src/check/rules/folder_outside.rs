//! A working folder outside of the project's.

use std::path::Path;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;

pub const RULE: Rule = Rule { code: codes::FOLDER_OUTSIDE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions() {
        let Action::Command(command) = &*used.action else { continue };
        let Some(cwd) = command.cwd.as_deref().filter(|cwd| !cwd.contains("{{")) else { continue };
        let help = "`cwd` is relative to the project file; name a folder beside it or below";
        if cwd.starts_with('/') {
            // The project may be in another place where it runs.
            let roots = &subject.texts.outside.roots;
            if !roots.is_empty() && !roots.iter().any(|root| Path::new(cwd).starts_with(root)) {
                let message = format!("the folder `{cwd}` is not in the project's here: then each call is refused");
                let fault = used.at("/cwd").report(&RULE, message).help(help);
                found.push(Diagnostic { severity: Severity::Warning, ..fault });
            }
        } else if leaves(cwd) {
            let message = format!("the folder `{cwd}` lies outside of the project's: each call is refused");
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
