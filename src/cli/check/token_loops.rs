//! The loops that the scopes of tokens and spending limits name: a token for a loop that there is not may do nothing, and a limit for one
//! counts nothing.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize as _;

use crate::diagnostic::{Diagnostic, codes, nearest};
use crate::language::Project;
use crate::project::{self, Targets};
use crate::syntax::document::Document;

/// The scopes and limits of a project file that name none of the checked loops. Nothing where loops of its folder are not checked: they
/// may have these names.
pub fn unknown(document: &Document, names: &BTreeSet<String>, checked: &Targets) -> Vec<Diagnostic> {
    let Ok(project) = Project::deserialize(&document.value) else { return Vec::new() };
    let mut faults = Vec::new();
    for (token, entry) in project.serve.tokens.iter().enumerate() {
        for (at, scope) in entry.scopes.iter().enumerate() {
            let Some(name) = scope.loop_name().filter(|name| !names.contains(*name)) else { continue };
            let pointer = format!("/serve/tokens/{token}/scopes/{at}");
            let (holder, scope) = (&entry.name, scope.name());
            let message = format!("the token `{holder}` has the scope `{scope}`, and there is no such loop");
            let fault = Diagnostic::warning(codes::BAD_TOKEN, message, pointer.as_str(), document.tree.place(&pointer));
            faults.push(match nearest(name, names.iter().map(String::as_str)) {
                Some(near) => fault.help(format!("the nearest one is `{near}`")),
                None => fault.help(format!("the loops: {}", listed(names))),
            });
        }
    }
    for (number, limit) in project.limits.iter().enumerate() {
        let Some(name) = limit.loop_name.as_deref().filter(|name| !names.contains(*name)) else { continue };
        let pointer = format!("/limits/{number}/loop");
        let message = format!("the spending limit is for the loop `{name}`, and there is no such loop");
        let fault = Diagnostic::warning(codes::UNKNOWN_LIMIT, message, pointer.as_str(), document.tree.place(&pointer));
        faults.push(match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => fault.help(format!("the nearest one is `{near}`")),
            None => fault.help(format!("the loops: {}", listed(names))),
        });
    }
    if faults.is_empty() || !covers_folder_of(checked, document) { Vec::new() } else { faults }
}

/// Some of the names.
fn listed(names: &BTreeSet<String>) -> String {
    const MOST_NAMES: usize = 5;
    let mut shown: Vec<String> = names.iter().take(MOST_NAMES).map(|name| format!("`{name}`")).collect();
    if names.len() > MOST_NAMES {
        shown.push(format!("and {} more", names.len() - MOST_NAMES));
    }
    shown.join(", ")
}

/// Whether all files of the folder of a project file, and below it, are among those that are checked.
pub fn covers_folder_of(checked: &Targets, document: &Document) -> bool {
    let folder = project::folder_of(Path::new(&*document.tree.source.name));
    let Ok(all) = project::targets(&[folder]) else { return false };
    let known: BTreeSet<_> = checked.files.iter().filter_map(|target| target.real.as_ref()).collect();
    all.files.iter().all(|target| target.real.as_ref().is_some_and(|real| known.contains(real)))
}
