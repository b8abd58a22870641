//! `loopctl fork`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;

use super::exit::Exit;
use super::failure::CommandError;
use super::host::{self, Loaded};
use super::on_pause::OnPauseArgs;
use super::output::Output;
use super::replay::one;
use super::run::{RunToStart, deltas_need_ndjson};
use super::run_ref;
use super::store::StoreArgs;
use super::surface::Surface;
use super::what::read_script;
use crate::drive::model::{reply_of, result_of};
use crate::program::Program;
use crate::replay::fork::{ForkEdit, ForkFault, forked};
use crate::trace::escape;

/// Start a new run with the first steps of an earlier one, and go on from there for real
///
/// The steps before the iteration are copied: what they called is not called again, and what they spent counts. From that
/// iteration on, the model is asked and tools are called.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl fork triage-7k2m9q4x --at 3 --document triage.json
  loopctl fork last --at 2 --observation '{\"status\":\"late\"}'
  loopctl fork last --at 4 --reply '{\"action\":\"lookup\",\"action_input\":{\"id\":7}}'")]
pub struct ForkCommand {
    /// The earlier run: its id, the beginning of its id, `last` or `last:LOOP`
    pub run: String,
    /// The iteration that the new run begins with, from 1; those before it are copied
    #[arg(long, value_name = "ITERATION", value_parser = clap::value_parser!(u32).range(1..))]
    pub at: u32,
    /// The document of the new run, in place of the recorded one
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
    /// What the model replies in this iteration, as in a script; the model is asked from the next one on
    #[arg(long, value_name = "JSON", conflicts_with = "observation")]
    pub reply: Option<String>,
    /// What the call of this iteration gives; its reply is copied. Of several calls, a JSON list. `{"error": TEXT}` is a failure
    #[arg(long, value_name = "JSON")]
    pub observation: Option<String>,
    /// The input of the new run, a JSON object
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// The id of the new run. An id that already exists continues or returns that run
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub run_id: Option<String>,
    /// A script of model replies, by the position of the whole run; it replaces every model, and the tools that it names
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// A file of registered actions, in addition to the files found automatically; repeatable
    #[arg(long, value_name = "FILE", requires = "document")]
    pub actions: Vec<PathBuf>,
    /// The store of both runs: sqlite:PATH, postgres://..., env:VAR or file:PATH. Default: the project's, else .loopctl/runs.db
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// With --output ndjson: also print replies while they arrive, as `model_delta`
    #[arg(long)]
    pub deltas: bool,
}

impl ForkCommand {
    /// Starts the new run, and drives it until it ends or waits for a human.
    ///
    /// # Errors
    /// When the earlier run can't be forked, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        deltas_need_ndjson(self.deltas, self.output)?;
        let here = StoreArgs { store: self.store.clone(), document: None };
        // The store of the earlier run is that of this folder; or, if there is none, the one beside the new document.
        let store = match here.place()?.exists() {
            true => here,
            false => StoreArgs { document: self.document.clone(), ..here },
        };
        let (journal, place) = store.open()?;
        let run = run_ref::resolve(&*journal, &self.run, &place.shown()).await?;
        let reader = host::reader(Arc::clone(&journal));
        let events = reader.events(&run).await.map_err(|fault| CommandError::from(fault).in_store(&place.shown()))?;
        let recorded = host::recorded(&run, &events, place.project.clone())?;
        let (program, root, sources) = match &self.document {
            Some(file) => {
                let Loaded { program, root, sources, .. } = host::load(file, &self.actions)?;
                (program, root, sources)
            }
            None => {
                let root = place.home().unwrap_or_else(|| PathBuf::from("."));
                (Arc::clone(&recorded), root, recorded.sources.clone())
            }
        };
        let edit = self.edit(&program)?;
        let begins = forked(&recorded, &program, &events, &edit).map_err(|fault| refused(&run, fault))?;
        let mut start = host::rerun(&run, &events, Some(&recorded))?;
        start.rerun_of = None;
        start.previous_run_id = None;
        start.input = Value::Null;
        start.run_id.clone_from(&self.run_id);
        start.fork = Some(Box::new(begins));
        if self.output == Output::Human {
            surface.say(&format!("fork of {} at iteration {}\n", escape::line(&run), self.at));
        }
        let script = self.script.as_deref().map(read_script).transpose()?;
        let fork = RunToStart {
            program,
            root,
            sources,
            place,
            journal,
            start,
            script,
            script_file: self.script,
            actions: self.actions,
            output: self.output,
            deltas: self.deltas,
            interactive: false,
            on_pause: OnPauseArgs::default(),
        };
        fork.perform(surface).await
    }

    /// What the new run has otherwise.
    fn edit(&self, program: &Program) -> Result<ForkEdit, CommandError> {
        let reply = self.reply.as_deref().map(|text| json("--reply", text)).transpose()?;
        let reply = reply.map(|entry| reply_of(program, entry)).transpose();
        let reply = reply.map_err(|why| CommandError::usage(format!("--reply is no reply: {why}")))?;
        let observation = self.observation.as_deref().map(|text| json("--observation", text)).transpose()?;
        let results = match observation {
            None => Vec::new(),
            Some(Value::Array(each)) if each.len() > 1 => each.into_iter().map(result_of).collect(),
            Some(one) => vec![result_of(one)],
        };
        let input = self.input.as_deref().map(|text| json("--input", text)).transpose()?;
        Ok(ForkEdit { iteration: self.at, reply, results, input, new_document: self.document.is_some() })
    }
}

fn json(flag: &str, text: &str) -> Result<Value, CommandError> {
    serde_json::from_str(text).map_err(|error| {
        let message = format!("{flag} is no JSON: {error}");
        CommandError::usage_help(message, format!("a text is written in quotes: {flag} '\"text\"'"))
    })
}

fn refused(run: &str, fault: ForkFault) -> CommandError {
    match fault {
        ForkFault::Refused(why) => CommandError::usage(format!("{run} can't be forked: {why}")),
        ForkFault::Differs(verdict) => CommandError::usage_help(
            format!(
                "{run} can't be forked there: the document decides otherwise before, at {}",
                one::sentence(&verdict)
            ),
            "fork at that iteration or an earlier one",
        ),
    }
}
