//! The start of a run: gathers everything that it needs from its surroundings before the first call, so that
//! what is missing is reported before anything happens.

use std::sync::Arc;

use serde_json::Value;

use super::clock;
use super::fault::Fault;
use super::input_files;
use super::missing_requirement::Missing;
use super::run_id;
use super::run_meter::TraceContext;
use super::texts::SharedTexts;
use crate::journal::ScheduledRun;
use loopctl_engine::blob::Blob;
use loopctl_engine::digest::{Digest, Sha256};
use loopctl_engine::event::{
    Allowance, DecisionRights, EDITION, InputFile, InputList, ModelFacts, RunDocument, Started, WebhookDelivery,
    documents_sha256, spell_input,
};
use loopctl_engine::machine::Machine;
use loopctl_engine::prompt::{self, Facts};
use loopctl_engine::storable;
use loopctl_lang::diagnostic::{Diagnostic, Source, codes};
use loopctl_lang::program::bind::run_input::{LongLists, RunInput};
use loopctl_lang::program::json_texts::JsonRule;
use loopctl_lang::program::{Program, bind};

/// How many digits an identity of an older version has: see [`is_same_as_older`].
const OLDER_DIGITS: usize = 32;

/// How to start a run.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The run's input. `Null` is the input that the document brings, or none.
    pub input: Value,
    /// Long lists of the input, which has `null` in their places: their text, so that they need not be parsed.
    pub lists: LongLists,
    /// The files of the run whose input it is: their accounts stand in `input`.
    pub files: Vec<InputFile>,
    /// The run's id; without it a new one. The same id again continues or returns that run.
    pub run_id: Option<String>,
    /// The key of the start, with its owner in it: no other run of the store has it.
    pub key: Option<String>,
    /// The session whose memory it shares.
    pub session: Option<String>,
    /// The model, in place of the document's.
    pub model: Option<String>,
    /// The active time that it may take in milliseconds, in place of the document's.
    pub timeout_ms: Option<u64>,
    /// The organisation that it belongs to. Everyone with access to the store sees all runs; a server shows each organisation its own.
    pub org: Option<String>,
    /// The name of the token that starts it: the runs of a token have turns of their own in a server's queue.
    pub token: Option<String>,
    /// The user of the machine who starts it, where no token does: for the record.
    pub by: Option<String>,
    /// Where a server posts its pauses and its result.
    pub callback_url: Option<String>,
    /// What the receiver of these posts may decide about: a pause is then posted with tokens that answer it.
    pub callback_rights: Option<DecisionRights>,
    /// The previous run that it names, instead of the document's: a run of the same organisation that has
    /// ended.
    pub previous_run_id: Option<String>,
    /// The run whose input it has, when it is a rerun: for the record.
    pub rerun_of: Option<String>,
    /// For which time its schedule starts it.
    pub scheduled: Option<ScheduledRun>,
    /// The delivery that starts it, when a webhook does.
    pub delivery: Option<WebhookDelivery>,
    /// What it begins with, when it is a fork: all but its id and its model.
    pub fork: Option<Box<Started>>,
    /// What is asked for, where that is no document: the same request under the same id is the same run, whatever the files
    /// say by now. Otherwise the documents must be the same too.
    pub request: Option<String>,
    /// The trace that the request for it belongs to.
    pub within: Option<TraceContext>,
    /// The identity of such a request; [`Start::identify`] computes it while the input is there as it was given.
    pub identity: Option<String>,
}

impl Start {
    /// The id of the run: the caller's, or else a new one. `taken`: how many new ids were other runs' already.
    pub(super) fn id(&self, program: &Program, taken: u32) -> String {
        self.run_id.clone().unwrap_or_else(|| run_id::new(&program.name, clock::wall_ms(), taken))
    }

    /// The identity of what is asked for, if it is asked for otherwise than by a document.
    pub fn identify(&mut self) -> Option<&str> {
        if self.identity.is_none()
            && let Some(request) = &self.request
        {
            let given = RunInput { value: std::mem::take(&mut self.input), lists: std::mem::take(&mut self.lists) };
            let session = self.session.as_deref().unwrap_or_default();
            let identity = Sha256::of_parts(|part| {
                // With their lengths: other parts never give the same bytes.
                for text in [request.as_str(), session] {
                    part(&format!("{}:", text.len()));
                    part(text);
                }
                // An input that is absent is an empty one.
                if given.value.as_object().is_some_and(serde_json::Map::is_empty) {
                    spell_input(&RunInput::default(), &mut |piece: &str| part(piece));
                } else {
                    spell_input(&given, &mut |piece: &str| part(piece));
                }
                self.spell_overrides(part);
            });
            self.identity = Some(identity.to_string());
            (self.input, self.lists) = (given.value, given.lists);
        }
        self.identity.as_deref()
    }

    /// The overrides of the caller.
    fn spell_overrides(&self, part: &mut dyn FnMut(&str)) {
        let timeout_ms = self.timeout_ms.map(|timeout_ms| timeout_ms.to_string());
        let overrides = [
            ("model", &self.model),
            ("timeout_ms", &timeout_ms),
            ("callback_url", &self.callback_url),
            ("previous_run_id", &self.previous_run_id),
            ("rerun_of", &self.rerun_of),
        ];
        for (name, value) in overrides {
            if let Some(value) = value {
                [name, "\0", value.as_str(), "\0"].into_iter().for_each(&mut *part);
            }
        }
    }

    /// The first event, without the memory of the session and of the previous run. `model` is none where only
    /// the identity of the start is needed. The input, which may be large, moves into it.
    pub(super) fn event(
        &mut self,
        program: &Program,
        run_id: String,
        model: Option<ModelFacts>,
        texts: &SharedTexts,
    ) -> Result<Started, Fault> {
        if let Some(fork) = &self.fork {
            let forked = Started::clone(fork);
            // The price of what was spent is that of the copied steps, unless another model continues.
            let model = model.filter(|model| model.name != forked.model.name).unwrap_or(forked.model);
            return Ok(Started { run_id, model, timeout_ms: self.timeout_ms, ..Started::clone(fork) });
        }
        let now = clock::rfc3339(clock::wall_ms());
        let today = now.get(..10).unwrap_or_default();
        let given = RunInput { value: std::mem::take(&mut self.input), lists: std::mem::take(&mut self.lists) };
        let mut given = if program.is_flow() { given } else { RunInput::from(given.into_whole()) };
        let files = input_files::take(program, &mut given.value, &self.files, texts)?;
        // A second attempt has the input with the accounts.
        self.files.clone_from(&files);
        let bound = bind(program, given, &now, &run_id).map_err(Fault::Diagnostics)?;
        let mut input = bound.input;
        // What can't be stored is refused as it is.
        if program.is_flow() && storable::fault_of(&input.value).is_none() {
            let RunInput { value, lists } = input;
            input = RunInput::of(value);
            input.lists.extend(lists);
        }
        let facts = Facts {
            objective: &bound.objective,
            input: &input.value,
            today,
            now: &now,
            run_id: &run_id,
            json: JsonRule::PRESENT.into(),
        };
        let system = match program {
            // No model is asked by the workflow itself.
            Program::Flow(_) => String::new(),
            Program::Loop(of_loop) => {
                prompt::system(of_loop, &facts).map_err(|missing| unresolved(program, &missing.why))?
            }
        };
        let documents = documents(program, texts);
        let may_post = !program.project.notify.is_empty();
        let machine = if program.is_flow() { Machine::Flow } else { Machine::Loop };
        Ok(Started {
            machine,
            loop_name: program.name.clone(),
            session: self.session.clone(),
            objective: bound.objective,
            system: texts.share(system),
            model: model.unwrap_or_default(),
            memory: std::collections::BTreeMap::new(),
            previous: None,
            rerun_of: self.rerun_of.clone(),
            delivery: self.delivery.clone(),
            fork: None,
            // Only what is posted has links.
            callback_rights: self.callback_rights.filter(|_| self.callback_url.is_some() || may_post),
            timeout_ms: self.timeout_ms,
            caller: None,
            started_by: None,
            bound: Allowance::default(),
            order: program.order(),
            in_line: false,
            scripted: false,
            edition: EDITION,
            documents_sha256: Some(documents_sha256(&documents).to_string()),
            documents,
            read: Vec::new(),
            files,
            run_id,
            input: input.value,
            lists: InputList::of(input.lists),
        })
    }
}

/// The price of each model that a budget in US dollars counts must be known: without it nothing would be counted.
pub(super) fn priced(facts: &ModelFacts, called: Option<&str>) -> Result<(), Fault> {
    if facts.price.is_some() {
        return Ok(());
    }
    let of = called.map(|called| format!(" of the called loop {called}")).unwrap_or_default();
    let why = format!(
        "the budget is in US dollars, but model {}{of} has no price: give it one in the project file's models",
        facts.name
    );
    Err(Fault::missing(Missing::Model { name: facts.name.clone() }, why))
}

fn unresolved(program: &Program, why: &str) -> Fault {
    let place = program.sources.first().map(Source::whole);
    match place {
        Some(place) => {
            Fault::Diagnostics(vec![Diagnostic::error(codes::MISSING_INPUT, why, "/properties/system_prompt", place)])
        }
        None => Fault::refused(why),
    }
}

/// The documents of a program, as a journal keeps them.
pub(super) fn documents(program: &Program, texts: &SharedTexts) -> Vec<RunDocument> {
    let document = |source: &Source| RunDocument {
        file: source.name.to_string(),
        text: texts.share_document(Arc::clone(&source.text)),
    };
    program.sources.iter().map(document).collect()
}

/// What two starts must have in common to be the same: the request, or else the texts of the documents; the input as a JSON
/// value (the order of its keys does not matter), the session, and the overrides of the caller. The digest is the same on
/// every machine and in every version.
pub(super) fn identity(started: &Started, start: &Start) -> String {
    if let Some(identity) = &start.identity {
        return identity.clone();
    }
    let of_documents = |part: &mut dyn FnMut(&str)| {
        spell(started, start, part, &|text: &Blob| text.sha256().to_string());
    };
    Sha256::of_parts(of_documents).to_string()
}

/// Whether a run of an older version, which used another digest, is the same.
pub(super) fn is_same_as_older(identity: &str, started: &Started, start: &Start) -> bool {
    if identity.len() != OLDER_DIGITS {
        return false;
    }
    let mut digest = Digest::new();
    spell(started, start, &mut |part: &str| digest.extend(part), &|text: &Blob| Digest::of(text).to_string());
    identity == digest.to_string()
}

fn spell(started: &Started, start: &Start, part: &mut dyn FnMut(&str), name: &dyn Fn(&Blob) -> String) {
    for document in &started.documents {
        part(&name(&document.text));
        part("\0");
    }
    started.spell_input(&mut |piece: &str| part(piece));
    part("\0");
    part(started.session.as_deref().unwrap_or_default());
    part("\0");
    start.spell_overrides(part);
    if let Some(fork) = &started.fork {
        let (iteration, events) = (fork.iteration.to_string(), name(&fork.events));
        ["fork", "\0", fork.run_id.as_str(), "\0", iteration.as_str(), "\0", events.as_str(), "\0"]
            .into_iter()
            .for_each(part);
    }
}
