//! `--fix`: applies suggestions until none is left that can be applied, then writes each changed file once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::survey::{Findings, Survey};
use crate::check::fix;
use crate::cli::report::Fixed;
use crate::diagnostic::{Diagnostic, Source};
use crate::project;

/// How often the files are checked again: a fix may uncover errors that the old text hid.
const MAX_ROUNDS: usize = 10;

/// What was fixed.
#[derive(Debug, Default)]
pub struct AppliedFixes {
    /// Each suggestion that was taken.
    pub fixes: Vec<Fixed>,
    /// How many files were written.
    pub files: usize,
    /// Whether a file could not be written.
    pub failed: bool,
}

/// A file that changes.
struct Change {
    path: PathBuf,
    before: Source,
    now: Source,
    fixes: Vec<Fixed>,
}

/// Fixes the files, and returns what remains to report.
pub fn apply(survey: &mut Survey) -> (Findings, AppliedFixes) {
    let mut changes: BTreeMap<PathBuf, Change> = BTreeMap::new();
    let mut given_up: BTreeSet<PathBuf> = BTreeSet::new();
    let mut found = survey.look();
    for _ in 0..MAX_ROUNDS {
        if !round(survey, &found, &mut changes, &mut given_up) {
            break;
        }
        found = survey.look();
    }
    let mut applied = AppliedFixes::default();
    let mut refused = Vec::new();
    for (real, change) in changes {
        match project::replace(&change.path, &change.before.text, &change.now.text) {
            Ok(()) => {
                applied.fixes.extend(change.fixes);
                applied.files += 1;
            }
            Err(fault) => {
                refused.push(*fault);
                survey.put(&real, None);
            }
        }
    }
    if !refused.is_empty() {
        applied.failed = true;
        found = survey.look();
        found.diagnostics.extend(refused);
    }
    (found, applied)
}

/// Applies the suggestions that can be applied; returns whether there were any.
fn round(
    survey: &mut Survey,
    found: &Findings,
    changes: &mut BTreeMap<PathBuf, Change>,
    given_up: &mut BTreeSet<PathBuf>,
) -> bool {
    let sources: BTreeMap<&str, &Source> = found.sources.iter().map(|source| (&*source.name, source)).collect();
    let by_file = found.diagnostics.chunk_by(|one, other| one.place.file == other.place.file);
    let faults: BTreeMap<&str, &[Diagnostic]> =
        by_file.filter_map(|faults| Some((&*faults.first()?.place.file, faults))).collect();
    let mut texts: Vec<(PathBuf, Source)> = Vec::new();
    for (path, real) in survey.files() {
        let name = project::name_of(path);
        // A name with a replacement character may be the name of two files.
        let sure = !name.contains(char::REPLACEMENT_CHARACTER) && !given_up.contains(real);
        let (Some(before), Some(faults), true) = (sources.get(&*name), faults.get(&*name), sure) else { continue };
        let taken = fix::taken(faults, before);
        if taken.is_empty() {
            continue;
        }
        let now = Source::new(before.name.clone(), fix::apply(&before.text, &taken));
        if fix::is_worse(before, &now) {
            given_up.insert(real.to_owned());
            continue;
        }
        let fixes = taken.iter().map(|(fault, suggestion)| Fixed {
            fault: Diagnostic::clone(fault),
            before: before.text.get(suggestion.start..suggestion.end).unwrap_or_default().to_owned(),
            after: suggestion.replacement.clone(),
        });
        let change = changes.entry(real.to_owned()).or_insert_with(|| Change {
            path: path.to_owned(),
            before: Source::clone(before),
            now: now.clone(),
            fixes: Vec::new(),
        });
        change.fixes.extend(fixes);
        change.now = now.clone();
        texts.push((real.to_owned(), now));
    }
    let any = !texts.is_empty();
    for (real, text) in texts {
        survey.put(&real, Some(text));
    }
    any
}
