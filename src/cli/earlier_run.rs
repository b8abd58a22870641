//! A new run that takes its beginning from an earlier one: the flags of `rerun` and `fork`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::failure::CommandError;
use super::recorded_run;
use super::recorded_run::{reader, recorded};
use super::run_document::ScriptArgs;
use super::run_drive::CurrentDocument;
use super::store::{StoreArgs, StorePlace};
use crate::drive::fault::Fault;
use crate::drive::rerun::may_begin_with;
use crate::engine::event::Event;
use crate::journal::Journal;
use crate::program::Program;
use crate::project::load::load;

/// The earlier run, and what the new one has of its own.
#[derive(Debug, Args)]
pub struct EarlierRunArgs {
    /// The earlier run: its id, the beginning of its id, `last` or `last:LOOP`
    pub run: String,
    /// The document of the new run, in place of the recorded one
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
    /// The id of the new run. An id that already exists continues or returns that run
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub run_id: Option<String>,
    #[command(flatten)]
    pub files: ScriptArgs,
    /// The store of both runs: sqlite:PATH, postgres://..., env:VAR or file:PATH. Default: the project's, else .loopctl/runs.db
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

/// An earlier run, as its store has it.
pub struct EarlierRun {
    pub id: String,
    /// The organisation that it belongs to, and the new one with it.
    pub org: Option<String>,
    pub events: Vec<Event>,
    pub journal: Arc<dyn Journal>,
    pub place: StorePlace,
}

impl EarlierRunArgs {
    /// Reads the earlier run.
    ///
    /// # Errors
    /// When there is no such run, or the store failed.
    pub async fn read(&self) -> Result<EarlierRun, CommandError> {
        if self.document.is_none() && !self.files.actions.is_empty() {
            let help = "the recorded document has its actions with it: name the new one with --document FILE";
            return Err(CommandError::usage_help("--actions goes with --document", help));
        }
        let here = StoreArgs { store: self.store.clone(), document: None };
        // The store of the earlier run is that of this folder; or, if there is none, the one beside the new document.
        let store = match here.place()?.exists() {
            true => here,
            false => StoreArgs { document: self.document.clone(), ..here },
        };
        let (journal, place) = store.open()?;
        let id = recorded_run::resolve(&*journal, &self.run, &place.shown()).await?;
        let run = journal.find(&id).await?;
        run.iter().try_for_each(may_begin_with)?;
        let events = reader(Arc::clone(&journal))
            .events(&id)
            .await
            .map_err(|fault| CommandError::from(fault).in_store(&place.shown()))?;
        Ok(EarlierRun { id, org: run.and_then(|run| run.org), events, journal, place })
    }

    /// The document of the new run: the given one, else the recorded one.
    ///
    /// # Errors
    /// When it can't be read, or can't be run.
    pub fn document(&self, earlier: &EarlierRun) -> Result<CurrentDocument, CommandError> {
        match &self.document {
            Some(file) => Ok(load(file, &self.files.actions)?.into()),
            None => Ok(CurrentDocument::recorded(earlier.program()?, &earlier.place)),
        }
    }
}

impl EarlierRun {
    /// The program that it started with.
    ///
    /// # Errors
    /// When its journal has no document, or this version can't read it.
    pub fn program(&self) -> Result<Arc<Program>, Fault> {
        recorded(&self.id, &self.events, self.place.project.clone())
    }
}
