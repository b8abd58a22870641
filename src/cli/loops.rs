//! `loopctl loops`.

use clap::{Args, Subcommand};
use serde_json::json;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::{ListOutput, json_line};
use super::process::acting_user;
use super::store::StoreArgs;
use super::surface::Surface;
use crate::drive::clock;
use crate::journal::{LoopSwitch, RunFilter};
use crate::trace::escape;
use crate::trace::units::rfc3339;

/// Switch a loop or workflow off without a deployment, and on again
///
/// The servers of the store refuse to start it, and its schedule starts no run. Runs that are under way continue, a
/// loop that another loop calls is called, and `loopctl run` runs it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl loops disable refunds --reason \"the bank is away\"
  loopctl loops list
  loopctl loops enable refunds")]
pub struct LoopsCommand {
    #[command(subcommand)]
    task: LoopsTask,
}

#[derive(Debug, Subcommand)]
enum LoopsTask {
    List(ListSwitched),
    Disable(DisableTask),
    Enable(EnableTask),
}

/// List the loops that are switched off
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl loops list --output json | jq -r '.[].name'")]
struct ListSwitched {
    #[command(flatten)]
    store: StoreArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    output: ListOutput,
}

/// Switch a loop off: servers start it no more within a second
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl loops disable refunds --reason \"the bank is away\"")]
struct DisableTask {
    /// The name of the loop or workflow
    name: String,
    /// The reason; who starts the loop reads it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
}

/// Switch a loop on again: its schedule continues with its next time
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl loops enable refunds")]
struct EnableTask {
    /// The name of the loop or workflow
    name: String,
    #[command(flatten)]
    store: StoreArgs,
}

impl LoopsCommand {
    /// Performs the task.
    ///
    /// # Errors
    /// When there is no store, it fails, or the loop is not switched off.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        match self.task {
            LoopsTask::List(task) => task.perform(surface).await,
            LoopsTask::Disable(task) => task.perform(surface).await,
            LoopsTask::Enable(task) => task.perform(surface).await,
        }
    }
}

impl ListSwitched {
    async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let mut off = journal.loop_switches().await?;
        off.retain(|switch| switch.is_off);
        let row = |switch: &LoopSwitch| json!({ "name": switch.name, "since": rfc3339(switch.at_ms), "by": switch.actor, "reason": switch.reason });
        match self.output {
            ListOutput::Json => surface.print(&json_line(&off.iter().map(row).collect::<Vec<_>>())?)?,
            ListOutput::Human if off.is_empty() => {
                surface.say(&format!("no loop is switched off in {}\n", escape::line(&place.shown())));
            }
            ListOutput::Human => {
                for switch in &off {
                    let by = switch.actor.as_deref().map_or_else(String::new, |by| format!(" by {by}"));
                    let why = switch.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
                    let line = format!("{}  off since {}{by}{why}", switch.name, rfc3339(switch.at_ms));
                    surface.print(&(escape::line(&line).into_owned() + "\n"))?;
                }
            }
        }
        Ok(Exit::Completed)
    }
}

impl DisableTask {
    async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let Self { name, reason, store } = self;
        let (journal, place) = store.open()?;
        let of_loop = RunFilter { loop_name: Some(name.clone()), limit: 1, called: true, ..RunFilter::default() };
        let is_known = !journal.list(of_loop).await?.is_empty();
        let (at_ms, actor) = (clock::wall_ms(), acting_user());
        journal.switch_loop(LoopSwitch { name: name.clone(), is_off: true, at_ms, actor, reason }).await?;
        let said = format!("{name} is switched off: no server of {} starts it any more", place.shown());
        surface.say(&(escape::line(&said).into_owned() + "\n"));
        if !is_known {
            surface.say("no run of the store is of a loop with this name: is it written as the server lists it?\n");
        }
        Ok(Exit::Completed)
    }
}

impl EnableTask {
    async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let Self { name, store } = self;
        let (journal, _) = store.open()?;
        let switches = journal.loop_switches().await?;
        if !switches.iter().any(|switch| switch.name == name && switch.is_off) {
            let message = format!("`{name}` is not switched off");
            return Err(CommandError::usage_help(message, "`loopctl loops list` lists the loops that are"));
        }
        let (at_ms, actor) = (clock::wall_ms(), acting_user());
        journal.switch_loop(LoopSwitch { name: name.clone(), is_off: false, at_ms, actor, reason: None }).await?;
        surface.say(&(escape::line(&format!("{name} is switched on again")).into_owned() + "\n"));
        Ok(Exit::Completed)
    }
}
