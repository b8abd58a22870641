//! `loopctl test`.

mod coverage;
mod github;
mod human;
mod json;
mod junit;
mod live;
mod probe;
mod tap;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::found_documents::is_scenarios_by_name;
use super::output_file;
use super::surface::Surface;
use super::worker_threads::each_of;
use crate::check::file_kind;
use crate::diagnostic::{Diagnostic, Source, codes};
use crate::project::{self, ScenarioDocument};
use crate::scenario::{CoverageMap, CoverageReport, ScenarioVerdict, SnapshotMode, StagedScenario, TestOptions};
use crate::syntax::document::{self, Document, DocumentKind};
use coverage::TestCoverage;
use live::LiveArgs;

/// Play the scenarios of loops and workflows, and judge what comes of them
///
/// Each scenario of a `NAME.test.json` plays one run: without a model, a key, a network or a wait, unless --live is given.
/// In a folder, plays every file of scenarios.
/// Exit codes: 0 all scenarios hold, 1 one does not or the coverage is too low, 2 wrong arguments, no scenario, or a file
/// with errors.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl test                                      # this folder and all folders below it
  loopctl test triage.test.json --filter refund
  loopctl test --probe loop.json                    # needs no scenario
  loopctl test --update                             # writes the snapshots
  loopctl test --coverage 80                        # fails under 80 percent
  loopctl test --live --repeat 5 --max-cost 0.50    # asks the models of the documents
  loopctl test --report junit=report.xml --report github")]
pub struct TestCommand {
    /// Files of scenarios, and folders. Default: the current folder
    pub paths: Vec<PathBuf>,
    /// Play only scenarios whose name, or whose file's name, contains this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Stop at the first scenario that does not hold
    #[arg(long)]
    pub fail_fast: bool,
    /// The number of scenarios that are played at the same time. Default: one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Also stop each scenario before and after each event, and resume it: each must end alike
    #[arg(long)]
    pub crash: bool,
    /// Report what of the documents no scenario comes to, and fail if the coverage is under MIN percent. Write it behind
    /// the paths, or with a `=`
    #[arg(long, value_name = "MIN", num_args = 0..=1, default_missing_value = "0",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    pub coverage: Option<u8>,
    /// Play no scenarios, but the shortest script for each ending, stuck pattern, retry and limit of the loops, and show what
    /// happens
    #[arg(long, conflicts_with_all = ["filter", "coverage", "crash", "update", "report", "by_position"])]
    pub probe: bool,
    /// Write the probes as a file of scenarios, to begin with
    #[arg(long, value_name = "FILE", requires = "probe")]
    pub write: Option<PathBuf>,
    /// Play recordings although the models are asked otherwise than recorded
    #[arg(long)]
    pub by_position: bool,
    #[command(flatten)]
    pub live: LiveArgs,
    /// Write snapshots, and what is asked in recordings, instead of comparing them. Refused where CI is set
    #[arg(long)]
    pub update: bool,
    /// Write a report: junit=FILE, tap=FILE, json=FILE, or github (on stdout); repeatable. `-` is stdout
    #[arg(long, value_name = "KIND=FILE", value_parser = ReportTarget::parse)]
    pub report: Vec<ReportTarget>,
}

/// A report to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportTarget {
    kind: TestReport,
    /// The file; stdout without one.
    file: Option<PathBuf>,
}

/// The kind of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestReport {
    Junit,
    Tap,
    Json,
    Github,
}

impl ReportTarget {
    fn parse(text: &str) -> Result<Self, String> {
        let (kind, file) = match text.split_once('=') {
            Some((kind, file)) => (kind, Some(file)),
            None => (text, None),
        };
        let kind = match kind {
            "junit" => TestReport::Junit,
            "tap" => TestReport::Tap,
            "json" => TestReport::Json,
            "github" => TestReport::Github,
            _ => return Err("it is junit=FILE, tap=FILE, json=FILE or github".to_owned()),
        };
        match file {
            Some("") => Err("the file has no name".to_owned()),
            None | Some("-") => Ok(Self { kind, file: None }),
            Some(file) => Ok(Self { kind, file: Some(PathBuf::from(file)) }),
        }
    }
}

/// A file of scenarios, and what came of it.
pub struct TestedFile {
    /// Its name, as it is shown.
    name: String,
    source: Source,
    /// Its errors and warnings, or the reason why it can't be read.
    diagnostics: Vec<Diagnostic>,
    verdicts: Vec<ScenarioVerdict>,
    /// What does not hold, as diagnostics, by the place of the verdict.
    failures: Vec<Vec<Diagnostic>>,
}

impl TestedFile {
    fn is_broken(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// The verdicts, each with what does not hold.
    fn each(&self) -> impl Iterator<Item = (&ScenarioVerdict, &[Diagnostic])> {
        self.verdicts.iter().zip(self.failures.iter().map(Vec::as_slice))
    }
}

/// How many of what there were.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct TestCounts {
    files: usize,
    broken: usize,
    hold: usize,
    fail: usize,
}

impl TestCounts {
    fn of(files: &[TestedFile]) -> Self {
        let verdicts = || files.iter().flat_map(|file| &file.verdicts);
        Self {
            files: files.len(),
            broken: files.iter().filter(|file| file.is_broken()).count(),
            hold: verdicts().filter(|verdict| verdict.holds()).count(),
            fail: verdicts().filter(|verdict| !verdict.holds()).count(),
        }
    }
}

impl TestCommand {
    /// Plays the scenarios.
    ///
    /// # Errors
    /// When the arguments make no sense, there is nothing to play, or a report can't be written.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        if self.update && in_ci() {
            return Err(CommandError::usage_help(
                "--update writes nothing where the variable CI is set",
                "update them on your machine, look at the difference, and commit it",
            ));
        }
        if self.probe {
            return self.probe(surface);
        }
        let FoundFiles { files, documents } = self.files()?;
        let (files, coverage) = self.played(files, &documents, surface)?;
        let counts = TestCounts::of(&files);
        if counts.hold + counts.fail + counts.broken == 0 {
            return Err(self.nothing());
        }
        for target in &self.report {
            write(target, &Tested { files: &files, coverage: coverage.as_ref() }, surface)?;
        }
        surface.say(&human::report(&files, counts, coverage.as_ref(), &surface.err));
        Ok(match counts {
            TestCounts { broken: 1.., .. } => Exit::NoRun,
            TestCounts { fail: 1.., .. } => Exit::Failed,
            _ if coverage.is_some_and(|coverage| !coverage.is_enough()) => Exit::Failed,
            _ => Exit::Completed,
        })
    }

    /// Where to look.
    fn places(&self) -> &[PathBuf] {
        static HERE: LazyLock<[PathBuf; 1]> = LazyLock::new(|| [PathBuf::from(".")]);
        if self.paths.is_empty() { &*HERE } else { &self.paths }
    }

    /// Reads the files.
    fn files(&self) -> Result<FoundFiles, CommandError> {
        let targets = project::targets(self.places()).map_err(|fault| CommandError::usage(fault.message))?;
        let mut read: Vec<TargetFile> =
            targets.faults.into_iter().map(|fault| TargetFile::Unreadable(Box::new(fault))).collect();
        let mut documents = Vec::new();
        for target in targets.files {
            // A file of this name that is broken must not look like one that is not there.
            let is_expected = target.named || is_scenarios_by_name(&target.path);
            let source = match project::read(&target.path) {
                Ok(source) => source,
                Err(fault) if is_expected => {
                    read.push(TargetFile::Unreadable(fault));
                    continue;
                }
                // `check` reports files that are no documents.
                Err(_) => continue,
            };
            if !is_expected && !file_kind::may_be_ours(&source.text) {
                continue;
            }
            let document = document::read(&source);
            if document.kind == Some(DocumentKind::Scenario) && (is_expected || file_kind::is_ours(&document)) {
                read.push(TargetFile::Scenarios(Box::new(project::scenario_file(document, &target.path))));
            } else if !is_expected && is_run(document.kind) && file_kind::is_ours(&document) {
                documents.push(target.path);
            } else if is_expected || file_kind::is_nearly_scenarios(&document) {
                read.push(TargetFile::Other(source, no_scenarios(document)));
            }
        }
        Ok(FoundFiles { files: read, documents })
    }

    /// Plays the scenarios of all files.
    ///
    /// # Errors
    /// When what a live play needs is missing.
    fn played(
        &self,
        read: Vec<TargetFile>,
        documents: &[PathBuf],
        surface: &Surface,
    ) -> Result<(Vec<TestedFile>, Option<TestCoverage>), CommandError> {
        let (mut jobs, mut maps) = (Vec::new(), Vec::new());
        for (file, read) in read.iter().enumerate() {
            let TargetFile::Scenarios(scenarios) = read else { continue };
            let Some(set) = &scenarios.examined.set else { continue };
            let name = &scenarios.document.tree.source.name;
            let map = self.coverage.map(|_| Arc::new(CoverageMap::of(&set.loaded.program)));
            let before = jobs.len();
            for (index, scenario) in set.file.scenarios.iter().enumerate() {
                let is_meant = |text: &String| scenario.name.contains(text.as_str()) || name.contains(text.as_str());
                if self.filter.as_ref().is_none_or(is_meant)
                    && let Some(staged) = StagedScenario::new(set, index)
                    && self.live.can_play(&staged, &scenario.name, surface)?
                {
                    jobs.push((file, staged.measured(map.clone())));
                }
            }
            maps.extend(map.filter(|_| jobs.len() > before));
        }
        let snapshots = if self.update { SnapshotMode::Write } else { SnapshotMode::Compare };
        let options = TestOptions { snapshots, crash: self.crash, by_position: self.by_position };
        let budget = self.live.budget();
        let test = |staged: &StagedScenario<'_>| match self.live.repeats() {
            Some(repeat) => staged.test_live(repeat, &budget),
            None => staged.test(&options),
        };
        let mut verdicts: Vec<(usize, ScenarioVerdict)> = Vec::new();
        if self.fail_fast {
            for (file, staged) in jobs {
                let verdict = test(&staged);
                let fails = !verdict.holds();
                verdicts.push((file, verdict));
                if fails {
                    break;
                }
            }
        } else {
            let threads = self.jobs.map_or_else(|| self.live.jobs(), usize::from);
            verdicts = each_of(threads, jobs, |(file, staged)| (file, test(&staged)));
        }
        let coverage = self.coverage.map(|minimum| {
            let reached: BTreeSet<_> =
                verdicts.iter().flat_map(|(_, verdict)| verdict.reached.iter().cloned()).collect();
            let mut report = CoverageReport::new(maps.iter().map(|map| &**map), &reached);
            // What is left out by hand is not asked for.
            if self.filter.is_none() {
                coverage::untested(&mut report, documents);
            }
            TestCoverage { report, minimum }
        });
        let mut tested: Vec<TestedFile> = read.into_iter().map(TargetFile::tested).collect();
        for (file, verdict) in verdicts {
            if let Some(tested) = tested.get_mut(file) {
                tested.verdicts.push(verdict);
            }
        }
        tested.iter_mut().for_each(TestedFile::place);
        Ok((tested, coverage))
    }

    fn nothing(&self) -> CommandError {
        let of = self.filter.as_ref().map_or_else(String::new, |text| format!(" whose name contains {text:?}"));
        let shown: Vec<String> = self.paths.iter().map(|path| path.display().to_string()).collect();
        let places = if shown.is_empty() { ".".to_owned() } else { shown.join(", ") };
        CommandError::usage_help(
            format!("there is no scenario{of} in {places}"),
            "a file of scenarios is {\"document\": \"loop.json\", \"scenarios\": [...]}; `loopctl schema scenario` prints \
             its schema",
        )
    }
}

/// What was found in the places.
struct FoundFiles {
    /// The files of scenarios, and those that can't be read.
    files: Vec<TargetFile>,
    /// The loops and workflows in folders.
    documents: Vec<PathBuf>,
}

/// Why a document is no file of scenarios: as `check` says it, unless it is a document of another kind.
fn no_scenarios(document: Document) -> Vec<Diagnostic> {
    if document.kind.is_none() && document.is_broken() {
        return document.faults;
    }
    let what = document.kind.map_or("no document of loopctl", DocumentKind::called);
    let message = format!("a file of scenarios was expected; this is {what}");
    let first = document.tree.root.span;
    let place = document.tree.source.place(first.start, (first.start + 1).min(first.end));
    let fault = Diagnostic::error(codes::NO_LOOP, message, "", place);
    vec![fault.help("a file of scenarios has `document` and `scenarios`")]
}

/// Whether a document of this kind is run.
fn is_run(kind: Option<DocumentKind>) -> bool {
    matches!(kind, Some(DocumentKind::Loop | DocumentKind::Workflow | DocumentKind::AgentRequest))
}

/// A file that was read.
enum TargetFile {
    Scenarios(Box<ScenarioDocument>),
    /// One that can't be read.
    Unreadable(Box<Diagnostic>),
    /// One that is something else, and why.
    Other(Source, Vec<Diagnostic>),
}

impl TargetFile {
    fn tested(self) -> TestedFile {
        match self {
            Self::Scenarios(scenarios) => {
                let ScenarioDocument { document, examined } = *scenarios;
                let source = document.tree.source;
                TestedFile {
                    name: source.name.to_string(),
                    source,
                    diagnostics: examined.faults,
                    verdicts: Vec::new(),
                    failures: Vec::new(),
                }
            }
            Self::Other(source, diagnostics) => TestedFile {
                name: source.name.to_string(),
                source,
                diagnostics,
                verdicts: Vec::new(),
                failures: Vec::new(),
            },
            Self::Unreadable(fault) => TestedFile {
                name: fault.place.file.to_string(),
                source: Source::new(fault.place.file.as_ref(), ""),
                diagnostics: vec![*fault],
                verdicts: Vec::new(),
                failures: Vec::new(),
            },
        }
    }
}

impl TestedFile {
    /// Finds the places of what does not hold.
    fn place(&mut self) {
        let (tree, _) = crate::syntax::parse(&self.source);
        for verdict in &mut self.verdicts {
            // In the order of the text.
            verdict.failures.sort_by_cached_key(|failure| tree.place(&failure.pointer).start);
        }
        let placed = |verdict: &ScenarioVerdict| {
            let failures = verdict.failures.iter();
            failures
                .map(|failure| {
                    let place = tree.place(&failure.pointer);
                    // What is shown in lines is one line in reports for programs.
                    let message = failure.message.replace("\n  ", "; ");
                    Diagnostic::error(failure.key, message, failure.pointer.as_str(), place)
                })
                .collect()
        };
        self.failures = self.verdicts.iter().map(placed).collect();
    }
}

/// What was tested.
#[derive(Clone, Copy)]
struct Tested<'a> {
    files: &'a [TestedFile],
    coverage: Option<&'a TestCoverage>,
}

/// Writes a report.
fn write(target: &ReportTarget, tested: &Tested<'_>, surface: &Surface) -> Result<(), CommandError> {
    let text = match target.kind {
        TestReport::Junit => junit::report(tested),
        TestReport::Tap => tap::report(tested.files),
        TestReport::Json => json::report(tested),
        TestReport::Github => github::report(tested),
    };
    match &target.file {
        Some(file) => output_file::write(Path::new(file), &text),
        None => Ok(surface.print(&text)?),
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment says that nobody looks at what is written")]
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}
