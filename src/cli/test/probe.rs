//! `loopctl test --probe`: what a loop can come to, without a scenario.

use std::collections::BTreeMap;
use std::path::Path;

use super::TestCommand;
use crate::check::file_kind;
use crate::check::scenario::endings::unreachable;
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::output_file;
use crate::cli::report;
use crate::cli::surface::Surface;
use crate::language::ScenarioFile;
use crate::project::{self, load};
use crate::scenario::{Probe, probes};
use crate::syntax::document::{self, DocumentKind};
use crate::syntax::formatter::formatted_value;
use crate::trace::units::plural;
use crate::trace::{Look, Tone, escape};

impl TestCommand {
    /// Plays the probes of loops, and writes those that came to what they are about as scenarios.
    ///
    /// # Errors
    /// When there is no loop, one has errors, or the file can't be written.
    pub(super) fn probe(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let targets = project::targets(self.places()).map_err(|fault| CommandError::usage(fault.message))?;
        let (mut probed, mut exit) = (0, Exit::Completed);
        for target in targets.files {
            let Ok(source) = project::read(&target.path) else { continue };
            let document = document::read(&source);
            let is_loop = matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::AgentRequest));
            if !target.named && (!is_loop || !file_kind::is_ours(&document)) {
                continue;
            }
            let loaded = match load::load(&target.path, &[]) {
                Ok(loaded) => loaded,
                Err(unsound) => {
                    surface.say(&report::human(&unsound.diagnostics, &unsound.sources, &surface.err));
                    exit = Exit::NoRun;
                    continue;
                }
            };
            if loaded.program.is_flow() {
                if target.named {
                    return Err(CommandError::usage_help(
                        format!("{} is no loop of mode `react`", source.name),
                        "the steps of a workflow read each other's values: write scenarios, and see --coverage",
                    ));
                }
                continue;
            }
            probed += 1;
            let found = probes(&loaded.program, &loaded.root);
            surface.say(&text(&source.name, &found, &unreachable(&loaded.program), &surface.err));
            if let Some(file) = &self.write {
                if probed > 1 {
                    return Err(CommandError::usage_help("--write is for one loop", "name its document"));
                }
                write(file, &target.path, found)?;
            }
        }
        if probed == 0 && exit == Exit::Completed {
            return Err(CommandError::usage_help(
                "there is no loop to probe",
                "name a document: loopctl test --probe loop.json",
            ));
        }
        Ok(exit)
    }
}

/// A line for each probe, and one for each ending that the loop can't have.
fn text(file: &str, probes: &[Probe], unreachable: &[(String, &'static str)], look: &Look) -> String {
    let mut text = look.paint(Tone::Bold, &escape::line(file)) + "\n";
    for Probe { what, is_reached, outcome, scenario } in probes {
        let (mark, tone) = match (is_reached, scenario) {
            (true, _) => ("✓", Tone::Good),
            (false, Some(_)) => ("✗", Tone::Bad),
            (false, None) => ("?", Tone::Warn),
        };
        let line = format!("  {} {}: {}\n", look.paint(tone, mark), escape::line(what), escape::line(outcome));
        text.push_str(&line);
    }
    for (ending, why) in unreachable {
        text.push_str(&look.paint(Tone::Dim, &format!("  - no run ends or waits by `{ending}`: {why}")));
        text.push('\n');
    }
    let reached = probes.iter().filter(|probe| probe.is_reached).count();
    text.push_str(&format!("{}: {reached} come to what they are about\n", plural(probes.len(), "probe")));
    text
}

/// Writes the probes that came to what they are about.
fn write(file: &Path, document: &Path, probes: Vec<Probe>) -> Result<(), CommandError> {
    if file.symlink_metadata().is_ok() {
        return Err(CommandError::usage_help(
            format!("{} exists", file.display()),
            "name a new file: what is written is for a start",
        ));
    }
    let scenarios = probes.into_iter().filter(|probe| probe.is_reached).filter_map(|probe| probe.scenario).collect();
    let relative = pathdiff(document, file);
    let scenarios = ScenarioFile {
        schema: None,
        document: relative,
        tools: BTreeMap::new(),
        loops: BTreeMap::new(),
        models: BTreeMap::new(),
        scenarios,
    };
    let value = serde_json::to_value(scenarios).unwrap_or_default();
    output_file::write(file, &formatted_value(&value, DocumentKind::Scenario))
}

/// The path of a document for a file of scenarios: its name, if both are in one folder, else the whole path.
fn pathdiff(document: &Path, file: &Path) -> String {
    let folder = |path: &Path| project::folder_of(path).canonicalize().ok();
    let whole = || document.canonicalize().unwrap_or_else(|_| document.to_owned()).display().to_string();
    match document.file_name() {
        Some(name) if folder(document) == folder(file) => name.to_string_lossy().into_owned(),
        _ => whole(),
    }
}
