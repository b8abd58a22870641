//! `loopctl fork`.

use clap::Args;
use serde_json::Value;

use super::earlier_run::EarlierRunArgs;
use super::exit::Exit;
use super::failure::CommandError;
use super::output::Output;
use super::replay::run_verdict;
use super::run_drive::{DriveAction, RunToDrive};
use super::surface::Surface;
use super::watch::WatchArgs;
use crate::drive::model::{reply_of, result_of};
use crate::drive::rerun;
use crate::program::Program;
use crate::program::file_value::written_json;
use crate::replay::fork::{ForkEdit, ForkFault, forked};
use crate::trace::escape;

/// Start a new run with the first steps of an earlier one, and continue from there for real
///
/// The steps before the iteration are copied: what they called is not called again, and what they spent counts. From that
/// iteration on, the model is asked and tools are called. A --script is read by the position of the whole run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl fork triage-7k2m9q4x --at 3 --document triage.json
  loopctl fork last --at 2 --observation '{\"status\":\"late\"}'
  loopctl fork last --at 4 --reply '{\"action\":\"lookup\",\"action_input\":{\"id\":7}}'")]
pub struct ForkCommand {
    /// The iteration that the new run begins with, from 1; those before it are copied
    #[arg(long, value_name = "ITERATION", value_parser = clap::value_parser!(u32).range(1..))]
    pub at: u32,
    /// What the model replies in this iteration, as in a script; the model is asked from the next one on
    #[arg(long, value_name = "JSON", conflicts_with = "observation")]
    pub reply: Option<String>,
    /// What the call of this iteration gives; its reply is copied. Of several calls, a JSON list. `{"error": TEXT}` is a failure
    #[arg(long, value_name = "JSON")]
    pub observation: Option<String>,
    /// The input of the new run, a JSON object
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    #[command(flatten)]
    pub earlier: EarlierRunArgs,
    #[command(flatten)]
    pub watch: WatchArgs,
}

impl ForkCommand {
    /// Starts the new run, and drives it until it ends or waits for a human.
    ///
    /// # Errors
    /// When the earlier run can't be forked, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        self.watch.judge(surface)?;
        let earlier = self.earlier.read().await?;
        let recorded = earlier.program()?;
        let document = self.earlier.document(&earlier)?;
        let edit = self.edit(&document.program)?;
        let begins = forked(&recorded, &document.program, &earlier.events, &edit);
        let begins = begins.map_err(|fault| refused(&earlier.id, fault))?;
        let mut start = rerun::start(&earlier.id, &earlier.events, Some(&recorded))?;
        start.rerun_of = None;
        start.previous_run_id = None;
        start.input = Value::Null;
        (start.run_id, start.org) = (self.earlier.run_id, earlier.org);
        start.fork = Some(Box::new(begins));
        if self.watch.output == Output::Human {
            surface.say(&format!("fork of {} at iteration {}\n", escape::line(&earlier.id), self.at));
        }
        let script = self.earlier.files.read()?;
        let action = DriveAction::Start(Box::new(start));
        let (place, journal, files, watch) = (earlier.place, earlier.journal, self.earlier.files, self.watch);
        RunToDrive { document, place, journal, action, script, files, watch }.perform(surface).await
    }

    /// What the new run has otherwise.
    fn edit(&self, program: &Program) -> Result<ForkEdit, CommandError> {
        let reply = self.reply.as_deref().map(|text| json("--reply", text)).transpose()?;
        // A workflow has no replies, and no forks.
        let reply = reply.zip(program.as_loop()).map(|(entry, program)| reply_of(program, entry)).transpose();
        let reply = reply.map_err(|why| CommandError::usage(format!("--reply is no reply: {why}")))?;
        let observation = self.observation.as_deref().map(|text| json("--observation", text)).transpose()?;
        let results = match observation {
            None => Vec::new(),
            Some(Value::Array(each)) if each.len() > 1 => each.into_iter().map(result_of).collect(),
            Some(one) => vec![result_of(one)],
        };
        let input = self.input.as_deref().map(|text| json("--input", text)).transpose()?;
        Ok(ForkEdit { iteration: self.at, reply, results, input, new_document: self.earlier.document.is_some() })
    }
}

fn json(flag: &str, text: &str) -> Result<Value, CommandError> {
    written_json(text).map_err(|why| {
        let message = format!("{flag}: {why}");
        CommandError::usage_help(message, format!("a text is written in quotes: {flag} '\"text\"'"))
    })
}

fn refused(run: &str, fault: ForkFault) -> CommandError {
    match fault {
        ForkFault::Refused(why) => CommandError::usage(format!("{run} can't be forked: {why}")),
        ForkFault::Differs(verdict) => CommandError::usage_help(
            format!(
                "{run} can't be forked there: the document decides otherwise before, at {}",
                run_verdict::sentence(&verdict)
            ),
            "fork at that iteration or an earlier one",
        ),
    }
}
