//! What responses show of faults: paths start at the served folder, and what is recommended is in the words of HTTP.

use std::path::Path;
use std::sync::Arc;

use super::problem::ProblemDetails;
use crate::diagnostic::{Diagnostic, Remedy};

/// The folders whose paths no caller sees.
#[derive(Debug, Default)]
pub struct HiddenPaths(Vec<String>);

impl HiddenPaths {
    /// These folders, as written and with their links resolved.
    pub fn new<'p>(folders: impl Iterator<Item = &'p Path>) -> Self {
        let real = |folder: &Path| folder.canonicalize().ok().map(|real| real.display().to_string());
        let mut all: Vec<String> = folders
            .flat_map(|folder| [Some(folder.display().to_string()), real(folder)])
            .flatten()
            .filter(|folder| Path::new(folder).is_absolute() && folder.len() > 1)
            .collect();
        // The longest first, so that nothing is left of a folder in another one.
        all.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        Self(all)
    }

    /// A text in which paths start at the served folder.
    pub fn text(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        for folder in &self.0 {
            if shown.contains(folder.as_str()) {
                shown = shown.replace(&format!("{}/", folder.trim_end_matches('/')), "").replace(folder.as_str(), ".");
            }
        }
        shown
    }

    /// The same for all texts of a diagnostic.
    pub fn fault(&self, fault: &mut Diagnostic) {
        fault.message = self.text(&fault.message);
        fault.help = fault.help.take().map(|help| self.text(&help.said(words)).into());
        fault.place.file = Arc::from(self.text(&fault.place.file));
        for related in &mut fault.related {
            related.file = self.text(&related.file);
            related.message = self.text(&related.message);
        }
    }

    /// The same for all texts of a problem.
    pub fn problem(&self, mut problem: ProblemDetails) -> ProblemDetails {
        problem.detail = self.text(&problem.detail);
        problem.diagnostics.iter_mut().for_each(|fault| self.fault(fault));
        problem
    }
}

/// A remedy in the words of HTTP.
pub fn words(remedy: &Remedy) -> String {
    match remedy {
        Remedy::GiveInput(name) => return format!("`\"input\": {{\"{name}\": ...}}` in the body"),
        Remedy::GiveInputByName => "write it as an object: `\"input\": {\"name\": ...}`",
        Remedy::NameModel => "name one in the document, or in the project of the server",
        Remedy::ChooseModel => ": the project of the server names one",
        Remedy::GiveScript => "the model does not answer",
        Remedy::GiveScriptAgain => "a server plays no script: resume it where it was started",
        Remedy::RunLoopWithActions => "send the loop, and serve this one in the folder `actions`",
        Remedy::RunLoopWithScript => "send the loop",
        Remedy::PlayScenarios => "send the loop: a server plays no scenarios",
        Remedy::WriteSnapshots => "a server writes none",
        Remedy::NameActions => "the server reads the actions of the folder that it serves",
        Remedy::MoveOrNameActions | Remedy::NameFile => "move it into a folder `actions`",
        Remedy::NameNeededActions => "leave those that are needed in the folder `actions`",
        Remedy::ChooseDocument => {
            "`\"new_document\": true` takes the new text, and `\"new_document\": false` the recorded one"
        }
        Remedy::LookAtNewDocument => {
            "send `{\"resume\": true, \"new_document\": true}`, look at it, then decide with its `hash`"
        }
        Remedy::ContinueAfterFailureSteps => "`\"after_on_failure\": true` has it continue all the same",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use super::HiddenPaths;

    #[test]
    fn paths_begin_at_the_folder_and_others_stay() {
        let hidden =
            HiddenPaths::new([Path::new("/srv/app"), Path::new("/srv/app/loops/"), Path::new(".")].into_iter());
        for (text, shown) in [
            ("looked in /srv/app/actions/a.json and /srv/app/b.json", "looked in actions/a.json and b.json"),
            ("/srv/app/loops/x.json", "x.json"),
            ("in /srv/app: no", "in .: no"),
            ("request.json, /srv/other and ./x", "request.json, /srv/other and ./x"),
        ] {
            assert_eq!(hidden.text(text), shown);
        }
    }

    #[test]
    fn no_remedy_names_a_flag_or_a_command() {
        for remedy in Remedy::all() {
            for text in [words(&remedy), remedy.to_string()] {
                assert!(!text.contains("--") && !text.contains("loopctl"), "{remedy:?}: {text}");
            }
        }
        assert_eq!(words(&Remedy::GiveInput("a".to_owned())), "`\"input\": {\"a\": ...}` in the body");
    }
}
