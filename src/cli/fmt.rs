//! `loopctl fmt`.

mod changes;

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::found_documents::{ReadTarget, none_found, read_all};
use super::named_document;
use super::report;
use super::surface::Surface;
use super::worker_threads::each;
use crate::diagnostic::{Diagnostic, Source, codes};
use crate::project::{self, Target};
use crate::syntax::document::{Document, DocumentKind};
use crate::syntax::formatter::formatted;
use crate::trace::units::plural;
use crate::trace::{Tone, escape};

/// Format documents: fields in the order of the language, lines of at most 100 characters
///
/// In a folder, formats the files that `check` finds, except recordings, which `record` writes. Prints the names of
/// the files that change. The meaning of a document stays: numbers and strings keep their spelling, and the entries
/// of maps and schemas their order. A file that is no JSON is reported and left as it is.
/// Exit codes: 0 all files are formatted, 1 a file is no JSON, or with --check is not formatted, 2 wrong arguments,
/// nothing to format, or a path that can't be read or written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl fmt                          # this folder and all folders below it
  loopctl fmt triage.json
  loopctl fmt --check                  # in a pipeline: changes nothing
  loopctl fmt - < triage.json          # prints the formatted text")]
pub struct FmtCommand {
    /// Documents and folders; `-` formats stdin to stdout. Default: the current folder
    pub paths: Vec<PathBuf>,
    /// Change nothing; list the files that would change, and show what would
    #[arg(long)]
    pub check: bool,
    /// The output format of the report
    #[arg(long, value_enum, default_value_t)]
    pub format: FmtFormat,
}

/// The output format of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FmtFormat {
    /// The names of the files on stdout, all else on stderr
    #[default]
    Human,
    /// GitHub workflow commands on stdout, which annotate a pull request
    Github,
}

/// What became of a file.
enum FileFormat {
    /// It is formatted.
    Kept,
    /// It has another text now, or would have.
    Changed(ChangedFile),
    /// It is no JSON, or no document. None where the text itself can't be shown.
    Broken(Vec<Diagnostic>, Option<Source>),
    /// It can't be read or written.
    Failed(Box<Diagnostic>),
    /// It is left to others: no document, a recording, or a link.
    Skipped,
}

/// A file whose text is not the formatted one.
struct ChangedFile {
    before: Source,
    after: String,
}

impl FmtCommand {
    /// Formats.
    ///
    /// # Errors
    /// When the arguments make no sense, nothing was found to format, or stdout can't be written.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let stdin = self.paths.iter().any(|path| path == Path::new("-"));
        if stdin && self.paths.len() > 1 {
            return Err(CommandError::usage_help(
                "`-` prints the formatted text, and can't be given with other paths",
                "format the files with a command of their own",
            ));
        }
        if stdin && !self.check {
            return print_stdin(surface);
        }
        let here = [PathBuf::from(".")];
        // `triage` is triage.json, as for `check`.
        let named: Vec<PathBuf> = self.paths.iter().map(|path| named_document::resolved(path)).collect();
        let paths: &[PathBuf] = if named.is_empty() { &here } else { &named };
        let targets = project::targets(paths).map_err(|fault| super::check::refused(&fault))?;
        let work: Vec<(&Target, ReadTarget)> = targets.files.iter().zip(read_all(&targets.files, text)).collect();
        let mut files = each(work, |(target, read)| format_of(target, read));
        if files.iter().all(|file| matches!(file, FileFormat::Skipped)) && targets.faults.is_empty() {
            return Err(none_found("nothing to format", paths, files.len(), "name the folder with the loops"));
        }
        if !self.check {
            for (target, file) in targets.files.iter().zip(&mut files) {
                let FileFormat::Changed(changed) = file else { continue };
                if let Err(fault) = project::replace(&target.path, &changed.before.text, &changed.after) {
                    *file = FileFormat::Failed(fault);
                }
            }
        }
        files.extend(targets.faults.into_iter().map(|fault| FileFormat::Failed(Box::new(fault))));
        self.report(&files, surface)?;
        Ok(self.exit(&files))
    }

    fn report(&self, files: &[FileFormat], surface: &Surface) -> Result<(), CommandError> {
        let changed: Vec<&ChangedFile> = files.iter().filter_map(FileFormat::changed).collect();
        let faults: Vec<Diagnostic> = files.iter().flat_map(FileFormat::faults).cloned().collect();
        match self.format {
            FmtFormat::Human => {
                let names = changed.iter().map(|file| format!("{}\n", escape::line(&file.before.name)));
                surface.print(&names.collect::<String>())?;
                if self.check {
                    surface.say(&changes::shown(&changed, &surface.err));
                }
                let sources: Vec<Source> = files.iter().filter_map(FileFormat::broken).cloned().collect();
                surface.say(&report::each(&faults, &sources, &surface.err));
            }
            FmtFormat::Github => {
                let commands = changed.iter().map(|file| changes::github(file, self.check));
                surface.print(&(commands.collect::<String>() + &report::github(&faults)))?;
            }
        }
        surface.say(&self.tally(files, changed.len(), surface));
        Ok(())
    }

    /// `2 files formatted, 5 already were`.
    fn tally(&self, files: &[FileFormat], changed: usize, surface: &Surface) -> String {
        let count = |is: fn(&FileFormat) -> bool| files.iter().filter(|file| is(file)).count();
        let kept = count(|file| matches!(file, FileFormat::Kept));
        let faulty = count(|file| matches!(file, FileFormat::Broken(..) | FileFormat::Failed(_)));
        let paint = |tone, text: String| surface.err.paint(tone, &text);
        let mut parts = Vec::new();
        match (changed, self.check) {
            (0, _) => {}
            (changed, true) => parts.push(paint(Tone::Warn, format!("{} not formatted", plural(changed, "file")))),
            (changed, false) => parts.push(paint(Tone::Good, format!("{} formatted", plural(changed, "file")))),
        }
        if kept > 0 {
            parts.push(format!("{} already formatted", plural(kept, "file")));
        }
        if faulty > 0 {
            parts.push(paint(Tone::Bad, format!("{} left unchanged", plural(faulty, "faulty file"))));
        }
        let help = if changed > 0 && self.check { "; `loopctl fmt` formats" } else { "" };
        format!("{}{help}\n", parts.join(", "))
    }

    fn exit(&self, files: &[FileFormat]) -> Exit {
        if files.iter().any(|file| matches!(file, FileFormat::Failed(_))) {
            Exit::NoRun
        } else if files.iter().any(|file| match file {
            FileFormat::Broken(..) => true,
            FileFormat::Changed(_) => self.check,
            _ => false,
        }) {
            Exit::Failed
        } else {
            Exit::Completed
        }
    }
}

impl FileFormat {
    fn changed(&self) -> Option<&ChangedFile> {
        match self {
            Self::Changed(changed) => Some(changed),
            _ => None,
        }
    }

    fn faults(&self) -> &[Diagnostic] {
        match self {
            Self::Broken(faults, _) => faults,
            Self::Failed(fault) => std::slice::from_ref(fault),
            _ => &[],
        }
    }

    fn broken(&self) -> Option<&Source> {
        match self {
            Self::Broken(_, source) => source.as_ref(),
            _ => None,
        }
    }
}

/// The format of a file, as it would be.
fn format_of(target: &Target, read: ReadTarget) -> FileFormat {
    let document = match read {
        ReadTarget::Document(document) => document,
        ReadTarget::Fault(fault) if fault.code == codes::FILE => return FileFormat::Failed(fault),
        ReadTarget::Fault(fault) => return FileFormat::Broken(vec![*fault], None),
        ReadTarget::Skipped => return FileFormat::Skipped,
    };
    // A link in a folder leads to a file that somebody else may own. A link that the user named is refused when it is
    // written.
    let is_link = || std::fs::symlink_metadata(&target.path).is_ok_and(|found| found.is_symlink());
    if document.kind == Some(DocumentKind::Recording) || (!target.named && is_link()) {
        return FileFormat::Skipped;
    }
    let source = &document.tree.source;
    match text_of(&document) {
        Err(faults) => FileFormat::Broken(faults, Some(source.clone())),
        Ok(after) if *after == *source.text => FileFormat::Kept,
        Ok(after) => FileFormat::Changed(ChangedFile { before: source.clone(), after }),
    }
}

/// The formatted text of a document, or the faults of its text. A document without a kind has one.
fn text_of(document: &Document) -> Result<String, Vec<Diagnostic>> {
    match document.kind {
        Some(kind) => formatted(&document.tree.source, kind),
        None => Err(document.faults.clone()),
    }
}

fn text(target: &Target) -> Result<Source, Box<Diagnostic>> {
    if target.path == Path::new("-") { project::read_stdin() } else { project::read(&target.path) }
}

/// Formats standard input to standard output.
fn print_stdin(surface: &Surface) -> Result<Exit, CommandError> {
    let target = Target { path: PathBuf::from("-"), real: None, named: true };
    let (faults, sources) = match read_all(&[target], text).pop() {
        Some(ReadTarget::Document(document)) => match text_of(&document) {
            Ok(text) if surface.out_terminal => {
                surface.print(&escape::terminal(&text))?;
                return Ok(Exit::Completed);
            }
            Ok(text) => {
                surface.print_bytes(text.as_bytes())?;
                return Ok(Exit::Completed);
            }
            Err(faults) => (faults, vec![document.tree.source.clone()]),
        },
        Some(ReadTarget::Fault(fault)) => (vec![*fault], Vec::new()),
        Some(ReadTarget::Skipped) | None => (Vec::new(), Vec::new()),
    };
    surface.say(&report::human(&faults, &sources, &surface.err));
    Ok(if faults.iter().any(|fault| fault.code == codes::FILE) { Exit::NoRun } else { Exit::Failed })
}
