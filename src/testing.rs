//! Scenarios in the tests of a program: a file of scenarios is played with the tools of the program's engine.
//!
//! ```no_run
//! # use std::error::Error;
//! # use std::path::Path;
//! # use std::sync::Arc;
//! use loopctl::Engine;
//! use loopctl::testing::Scenarios;
//!
//! # fn engine() -> Engine { Engine::builder(Arc::default(), Path::new(".")).build() }
//! #[tokio::test]
//! # async fn unused() {}
//! async fn the_scenarios_hold_also_after_a_crash_anywhere() -> Result<(), Box<dyn Error>> {
//!     Ok(Scenarios::of("loops/restock.test.json", &engine()).crash().hold()?)
//! }
//! ```
//!
//! A scenario plays the models. A tool that has no entry under `tools` in the scenario is called, if it is one of the engine: on a
//! simulated clock, and in a runtime without sockets. Nothing else outside is called.

use std::fmt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use crate::drive::engine::Engine;
use crate::project::load::DocumentError;
use crate::project::{self, ScenarioDocument};
use crate::scenario::{ScenarioVerdict, StagedScenario, TestOptions};
use crate::syntax::document::{self, DocumentKind};

/// A file of scenarios, to be played with the tools of an engine.
pub struct Scenarios<'e> {
    file: PathBuf,
    engine: &'e Engine,
    options: TestOptions,
}

/// A scenario that was played.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlayedScenario {
    /// Its name.
    pub name: String,
    /// What does not hold: each a sentence that begins with a JSON pointer to the expectation.
    pub failures: Vec<String>,
    /// What else is worth knowing, as how many crashes were played.
    pub notes: Vec<String>,
}

/// Why scenarios do not hold. Its text has a line for each failure.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ScenariosError {
    /// The file, or the document that it tests, has errors.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Scenarios were played, and do not hold.
    #[error("{}", listed(.0))]
    Failed(Vec<PlayedScenario>),
}

impl fmt::Debug for ScenariosError {
    // A test that returns it shows this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'e> Scenarios<'e> {
    /// The scenarios of the file at a path.
    pub fn of(file: impl AsRef<Path>, engine: &'e Engine) -> Self {
        Self { file: file.as_ref().to_owned(), engine, options: TestOptions::default() }
    }

    /// Plays each scenario also with a crash before and after each of its events: each must end alike, and no finished call may be
    /// made again.
    #[must_use]
    pub fn crash(mut self) -> Self {
        self.options.crash = true;
        self
    }

    /// Plays them.
    ///
    /// # Errors
    /// When the file, or the document that it tests, has errors.
    pub fn play(&self) -> Result<Vec<PlayedScenario>, DocumentError> {
        let unread = |diagnostics, sources| DocumentError { diagnostics, sources };
        let source = project::read(&self.file).map_err(|fault| unread(vec![*fault], Vec::new()))?;
        let document = document::read_as(&source, Some(DocumentKind::Scenario));
        let ScenarioDocument { examined, .. } =
            project::scenario_file_with(document, &self.file, &self.engine.signatures());
        let Some(set) = &examined.set else { return Err(unread(examined.faults, vec![source])) };
        let play = |index| Some(StagedScenario::new(set, index)?.hosted(self.engine).test(&self.options).into());
        // A play has a runtime of its own, which can't be made on a thread that drives another one.
        let all = || (0..set.file.scenarios.len()).filter_map(play).collect();
        std::thread::scope(|threads| threads.spawn(all).join()).or_else(|panic| resume_unwind(panic))
    }

    /// Plays them, and says what does not hold.
    ///
    /// # Errors
    /// All that does not hold, and the errors of [`Scenarios::play`].
    pub fn hold(&self) -> Result<(), ScenariosError> {
        let mut played = self.play()?;
        played.retain(|scenario| !scenario.failures.is_empty());
        if played.is_empty() { Ok(()) } else { Err(ScenariosError::Failed(played)) }
    }
}

impl fmt::Debug for Scenarios<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenarios").field("file", &self.file).finish_non_exhaustive()
    }
}

impl From<ScenarioVerdict> for PlayedScenario {
    fn from(verdict: ScenarioVerdict) -> Self {
        let failures = verdict.failures.into_iter().map(|failure| format!("{}: {}", failure.pointer, failure.message));
        Self { name: verdict.name, failures: failures.collect(), notes: verdict.notes }
    }
}

fn listed(failed: &[PlayedScenario]) -> String {
    let lines = |scenario: &PlayedScenario| {
        scenario.failures.iter().map(|failure| format!("\n{}: {failure}", scenario.name)).collect::<String>()
    };
    format!("scenarios do not hold:{}", failed.iter().map(lines).collect::<String>())
}
