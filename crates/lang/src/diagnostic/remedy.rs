//! What helps against a fault. A remedy is named where the fault is found, and each surface says it in its own words: the
//! command line has flags, HTTP has the members of a body, a program has functions.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

use super::shown;

/// What helps against a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// A member of the run's input is given, by its name.
    GiveInput(String),
    /// The input is given by its names.
    GiveInputByName,
    /// The run names a model.
    NameModel,
    /// The document is left without a model, and the run names one.
    ChooseModel,
    /// The run is played with a script.
    GiveScript,
    /// The run is resumed with the script that it began with.
    GiveScriptAgain,
    /// A loop is run, and the document is one of its files of actions.
    RunLoopWithActions,
    /// A loop is run, and the document is its script.
    RunLoopWithScript,
    /// The scenarios of the document are played.
    PlayScenarios,
    /// A play of the scenarios writes their snapshots.
    WriteSnapshots,
    /// Another file of actions or loops is named.
    NameActions,
    /// A file is moved into a folder `actions`, or named.
    MoveOrNameActions,
    /// Only the files of actions that are needed are named.
    NameNeededActions,
    /// A file that is not read by itself is named.
    NameFile,
    /// A run whose document has changed continues with the new text, or with the recorded one.
    ChooseDocument,
    /// What waits is looked at under the new document before it is decided.
    LookAtNewDocument,
    /// A run whose steps of `on_failure` have run continues all the same.
    ContinueAfterFailureSteps,
}

impl Remedy {
    /// One of each.
    pub fn all() -> Vec<Self> {
        vec![
            Self::GiveInput("order_id".to_owned()),
            Self::GiveInputByName,
            Self::NameModel,
            Self::ChooseModel,
            Self::GiveScript,
            Self::GiveScriptAgain,
            Self::RunLoopWithActions,
            Self::RunLoopWithScript,
            Self::PlayScenarios,
            Self::WriteSnapshots,
            Self::NameActions,
            Self::MoveOrNameActions,
            Self::NameNeededActions,
            Self::NameFile,
            Self::ChooseDocument,
            Self::LookAtNewDocument,
            Self::ContinueAfterFailureSteps,
        ]
    }
}

/// The words of a program that embeds loopctl. They name no flag and no member of a body.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GiveInput(name) => return write!(f, "`input.{name}`"),
            Self::GiveInputByName => "give an object of its names and values",
            Self::NameModel => "name a model in the document, in the project or for the run",
            Self::ChooseModel => " and choose it for each run",
            Self::GiveScript => "the model runs with a script only",
            Self::GiveScriptAgain => "give the script again",
            Self::RunLoopWithActions => "load the loop, and this one as a file of its actions",
            Self::RunLoopWithScript => "load the loop, and play it with this one",
            Self::PlayScenarios => "its scenarios are played, and it is not run",
            Self::WriteSnapshots => "a play that updates snapshots makes it, and replaces only a snapshot",
            Self::NameActions => "another file can be given",
            Self::MoveOrNameActions => "move it into a folder `actions`, or give it",
            Self::NameNeededActions => "give those that are needed",
            Self::NameFile => "give it by its name",
            Self::ChooseDocument => "continue with the new text, or with the recorded one",
            Self::LookAtNewDocument => {
                "resume the run with the new document and no decision, look at it, then decide with its hash"
            }
            Self::ContinueAfterFailureSteps => "a resumption that says so has it continue all the same",
        })
    }
}

/// The help of a fault: a text, and the remedy that ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Help {
    /// The text, with the remedy in the words of an embedder.
    text: String,
    /// The length of the text before the remedy, in bytes.
    before: usize,
    remedy: Option<Remedy>,
}

impl Help {
    /// A text that a remedy ends.
    pub fn ending(before: impl Into<String>, remedy: Remedy) -> Self {
        let before = shown(&before.into());
        Self { text: shown(&format!("{before}{remedy}")), before: before.len(), remedy: Some(remedy) }
    }

    /// The same after another text.
    #[must_use]
    pub fn after(self, before: &str) -> Self {
        let before = shown(before);
        Self { text: format!("{before}{}", self.text), before: before.len() + self.before, remedy: self.remedy }
    }

    /// The text, with the remedy in the words of a surface.
    pub fn said(&self, words: fn(&Remedy) -> String) -> Cow<'_, str> {
        let Some(remedy) = &self.remedy else { return Cow::Borrowed(&self.text) };
        let before = self.text.get(..self.before).unwrap_or_default();
        Cow::Owned(shown(&format!("{before}{}", words(remedy))))
    }
}

impl Deref for Help {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Help {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl From<String> for Help {
    fn from(text: String) -> Self {
        Self { text: shown(&text), before: 0, remedy: None }
    }
}

impl From<&str> for Help {
    fn from(text: &str) -> Self {
        Self { text: shown(text), before: 0, remedy: None }
    }
}

impl From<Remedy> for Help {
    fn from(remedy: Remedy) -> Self {
        Self::ending("", remedy)
    }
}
