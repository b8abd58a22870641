//! `loopctl init`.

mod answers;
mod document_project;
mod endings;
mod names;
mod new_project;
mod templates;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::new_files::{self, WrittenFiles};
use super::next_commands::{program, quoted, quoted_path};
use super::surface::Surface;
use crate::trace::layout::TextBlock;
use crate::trace::{Tone, escape};
use answers::{Answers, ProjectOrigin};
use new_project::{FileNote, NewProject, OpenPart};

/// Make a project: a loop with its tool, a script, scenarios, and settings for the editor, git and CI
///
/// `check`, `test` and `run` work at once in the new project, without a key or a network. On a terminal it asks what
/// the flags leave open. No file is written over: if one of the project's exists already, nothing is written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl init                                # in this folder
  loopctl init support --looks-up order       # an agent that looks orders up with SQL, in a new folder
  loopctl init api --from http                # an agent that reads an HTTP API
  loopctl init reader --from mcp              # an agent with the tools of an MCP server
  loopctl init review --from workflow         # steps: a decision about each row of a table
  loopctl init mine --from hyphen agent.json  # a project around a document of yours")]
pub struct InitCommand {
    /// The folder of the project: one that does not exist is made. Default: the current folder
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// What to begin with: `triage` (an agent with SQL), `http` (an agent with an API), `mcp` (an agent with an
    /// MCP server), `workflow` (steps), or `hyphen
    /// FILE`, a loop or workflow of yours. Default: triage
    #[arg(long, value_name = "KIND", num_args = 1..=2)]
    pub from: Vec<OsString>,
    /// What the agent looks up, in one word: it names the action and its input. Default: ticket, order or invoice
    #[arg(long, value_name = "NOUN")]
    pub looks_up: Option<String>,
    /// The model that is asked in place of the script: a provider's id. Default: gpt-4o-mini
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Ask nothing, also on a terminal
    #[arg(long)]
    pub yes: bool,
}

impl InitCommand {
    /// Makes the project.
    ///
    /// # Errors
    /// When a name is none, a file exists, or one can't be written.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let (origin, folder) = origin(&self.from, self.folder.clone())?;
        let folder = folder.unwrap_or_else(|| PathBuf::from("."));
        // Before anything is asked.
        new_files::judge(&folder, &[])?;
        let mut answers = Answers::new(origin, self.looks_up.clone(), self.model.clone())?;
        if !self.yes && Answers::may_ask(surface) {
            answers.ask(surface)?;
        }
        let model = answers.model();
        let project = match answers.origin() {
            ProjectOrigin::Document(file) => document_project::project(&file, &folder, &model)?,
            ProjectOrigin::Template(template) => template.project(&answers.noun(template), &model)?,
        };
        let done = new_files::write(&folder, &project.files)?;
        surface.say(&text(surface, &folder, &project, &done));
        Ok(Exit::Completed)
    }
}

/// What `--from` says. Its second value is the file of `hyphen`, and else the folder.
fn origin(
    from: &[OsString],
    folder: Option<PathBuf>,
) -> Result<(Option<ProjectOrigin>, Option<PathBuf>), CommandError> {
    let Some(kind) = from.first() else { return Ok((None, folder)) };
    let second = from.get(1).map(PathBuf::from);
    let shown = kind.to_string_lossy();
    if shown == "hyphen" {
        let Some(file) = second else {
            return Err(CommandError::usage_help(
                "--from hyphen names no document",
                "name its file: loopctl init DIR --from hyphen agent.json",
            ));
        };
        return Ok((Some(ProjectOrigin::Document(file)), folder));
    }
    let Some(template) = templates::named(&shown) else {
        let known = templates::ALL.map(|template| template.name);
        let near = crate::diagnostic::nearest(&shown, known.into_iter().chain(["hyphen"]));
        let help = match near {
            Some(near) => format!("the nearest kind is {near}"),
            None => format!("it is {}, or hyphen FILE for a document of yours", known.join(", ")),
        };
        return Err(CommandError::usage_help(format!("--from {shown} is no kind of project"), help));
    };
    match (folder, second) {
        (Some(_), Some(more)) => Err(CommandError::usage_help(
            format!("--from {shown} takes no file: {}", more.display()),
            "name one folder",
        )),
        (folder, second) => Ok((Some(ProjectOrigin::Template(template)), folder.or(second))),
    }
}

/// What was written, and what comes next.
fn text(surface: &Surface, folder: &Path, project: &NewProject, done: &WrittenFiles) -> String {
    let look = &surface.err;
    let is_here = folder == Path::new(".");
    let place =
        if is_here { "this folder".to_owned() } else { escape::line(&folder.display().to_string()).into_owned() };
    let mut text = format!("wrote {} files into {place}\n", done.written.len());
    let noted = || project.about.iter().filter(|note| done.written.contains(&note.path));
    let width = noted().map(|note| note.path.chars().count()).max().unwrap_or_default();
    for FileNote { path, about } in noted() {
        let lead = format!("  {:<width$}  ", escape::line(path));
        text.push_str(
            &look.block(about, &TextBlock { lead: (&lead, width + 4), tone: Some(Tone::Dim), tail: "", lines: 10 }),
        );
    }
    text.push_str(&others(folder, done));
    text.push_str("\nnext\n");
    let program = quoted(&program());
    let go = (!is_here).then(|| format!("cd {}", quoted_path(folder)));
    let commands = project.next.iter().map(|rest| format!("{program} {rest}"));
    for command in go.into_iter().chain(commands) {
        text.push_str(&format!("  {}\n", escape::line(&command)));
    }
    let block = TextBlock { lead: ("  ", 2), tone: None, tail: "", lines: 10 };
    if let Some(OpenPart { sentence, command }) = &project.open {
        text.push_str(&format!("\nopen\n{}", look.block(&escape::line(sentence), &block)));
        let commands = command.iter().map(|rest| escape::line(&format!("{program} {rest}")).into_owned());
        commands.for_each(|command| text.push_str(&format!("  {command}\n")));
    }
    text.push_str(&format!("\nreal\n{}", look.block(&escape::line(&project.real), &block)));
    text
}

/// The files of other tools, and those that were there.
fn others(folder: &Path, done: &WrittenFiles) -> String {
    let mut text = String::new();
    let beside = |folder: &str| done.written.iter().any(|path| path.starts_with(folder));
    let tools =
        [(".vscode/", "the editor (.vscode)"), (".github/", "CI (.github)"), (".gitignore", "git (.gitignore)")];
    let made: Vec<&str> = tools.into_iter().filter(|(folder, _)| beside(folder)).map(|(_, name)| name).collect();
    if !made.is_empty() {
        text.push_str(&format!("  files for {}\n", made.join(", ")));
    }
    if !done.kept.is_empty() {
        text.push_str(&format!("  left as they are: {}\n", done.kept.join(", ")));
    }
    let is_below_a_repository = !folder.join(".git").exists() && repository_above(folder).is_some();
    if beside(".github/") && is_below_a_repository {
        text.push_str("  move .github to the root of the repository: GitHub reads no other\n");
    }
    let ignored = || std::fs::read_to_string(folder.join(".gitignore")).unwrap_or_default();
    let is_ignored = |line: &str| line.trim().trim_matches('/') == ".loopctl";
    if done.kept.iter().any(|path| path == ".gitignore") && !ignored().lines().any(is_ignored) {
        text.push_str("  add `.loopctl/` to .gitignore: the runs and the databases are there\n");
    }
    text
}

/// The repository that a folder is a part of.
fn repository_above(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().skip(1).find(|above| above.join(".git").exists()).map(Path::to_owned)
}
