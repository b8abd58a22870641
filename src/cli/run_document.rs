//! The document of a run, and its flags: shared by `run` and `prompt`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::failure::CommandError;
use super::input::{InputArgs, name_of, read_text};
use super::named_document;
use crate::diagnostic::{Source, nearest};
use crate::language::Script;
use crate::policy::json_text;
use crate::program::bind::run_input::RunInput;
use crate::program::{Program, ToolKind};
use crate::project::load::{Loaded, load};
use crate::syntax;
use crate::syntax::document;
use crate::syntax::document::DocumentKind;

/// The document of a run and what is put in.
#[derive(Debug, Args)]
pub struct WhatArgs {
    /// The loop document, or its name: `triage` is triage.json, here or in `loops`; `-` reads stdin
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub input: InputArgs,
    /// The model: a name from the project's `models`, or the provider's id of a model
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    #[command(flatten)]
    pub files: ScriptArgs,
    /// An earlier run that has ended; the model reads its result, and the new run inherits its memory
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub previous_run: Option<String>,
}

/// The files beside a document. They are not stored with a run: the next command names them again.
#[derive(Debug, Args)]
pub struct ScriptArgs {
    /// A script of model replies; it replaces every model, and the tools that it names
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// A file of registered actions, in addition to the files found automatically; repeatable
    #[arg(long, value_name = "FILE")]
    pub actions: Vec<PathBuf>,
}

impl ScriptArgs {
    /// Reads the script, if one is given.
    ///
    /// # Errors
    /// When it can't be read, or is no script.
    pub fn read(&self) -> Result<Option<Script>, CommandError> {
        self.script.as_deref().map(read_script).transpose()
    }
}

impl WhatArgs {
    /// The file of the document.
    ///
    /// # Errors
    /// When none is named, or there is none of that name.
    pub fn document(&self) -> Result<PathBuf, CommandError> {
        named_document::of(self.file.as_deref())
    }

    /// Reads the document from its file.
    ///
    /// # Errors
    /// When it can't be read, or can't be run.
    pub fn load(&self, file: &Path) -> Result<Loaded, CommandError> {
        if self.input.reads_stdin() && file == Path::new("-") {
            return Err(CommandError::usage("the document and the input can't both be read from stdin"));
        }
        Ok(load(file, &self.files.actions)?)
    }

    /// Reads the run's input (`Null` leaves the document's own) and the script that replaces the models.
    ///
    /// # Errors
    /// When one can't be read, or is not valid.
    pub fn read(&self, program: &Program) -> Result<(RunInput, Option<Script>), CommandError> {
        let input = self.input.read(program)?;
        Ok((input, self.files.read()?))
    }
}

/// Reads a script.
///
/// # Errors
/// When it can't be read, or is no script.
pub fn read_script(file: &Path) -> Result<Script, CommandError> {
    let source = Source::new(name_of(file), read_text(file)?);
    json_text::read(&source.text).map_err(|error| {
        // Reported as `check` does if it is a script; in another kind of document everything would be an error.
        let document = document::read(&source);
        let faults = match document.kind {
            Some(DocumentKind::Script) => document.faults,
            _ => syntax::parse(&source).1,
        };
        if !faults.is_empty() {
            return CommandError::text(source, faults);
        }
        CommandError::usage_help(
            format!("{} is not a script: {error}", source.name),
            "a script is {\"replies\": [...], \"tools\": {...}}; `loopctl schema script` prints its schema",
        )
    })
}

/// The names in a script that are close to a tool of the loop, or of the loops that it calls, but match none:
/// with a misspelt name the real tool would be called.
pub fn misspelt(program: &Program, script: &Script) -> Vec<String> {
    let mut tools = BTreeSet::new();
    gather(program, &mut tools);
    let open = || tools.iter().copied().filter(|tool| !script.tools.contains_key(*tool));
    let unknown = script.tools.keys().filter(|name| !tools.contains(name.as_str()));
    let warning = |(name, near)| {
        format!("the script answers for `{name}`, which is not a tool here; the tool `{near}` is really called")
    };
    unknown.filter_map(|name| Some((name, nearest(name, open())?))).map(warning).collect()
}

fn gather<'p>(program: &'p Program, tools: &mut BTreeSet<&'p str>) {
    for called in program.step_loops() {
        gather(called, tools);
    }
    for tool in program.all_tools() {
        let is_new = !matches!(tool.kind, ToolKind::Builtin(_)) && tools.insert(&tool.name);
        // A loop that several loops call is checked once.
        if let (true, ToolKind::Loop(called) | ToolKind::Launch(called)) = (is_new, &tool.kind) {
            gather(called, tools);
        }
    }
}
