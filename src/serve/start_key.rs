//! `Idempotency-Key`: the same key with the same request is the same run, whatever the files of the folder say by now. The run
//! itself is the record that the key was used, and the store lets one run have it: a key goes with its run.

use axum::http::{HeaderMap, HeaderValue};
use ring::digest;
use serde_json::{Map, Value};

use super::app::App;
use super::authorizer::Caller;
use super::folder::REQUEST;
use super::problem::ProblemDetails;
use super::quotas::Owner;
use super::view::{is_session, session_in_store};
use crate::drive::clock;
use crate::drive::fault::Fault;
use crate::drive::run_id;
use crate::drive::start::Start;
use crate::engine::canonical;
use crate::engine::digest::Sha256;
use crate::engine::event::{Event, EventKind, Started, spell_input};
use crate::journal::RunSummary;
use crate::policy::json_text;
use crate::program::bind;
use crate::program::bind::run_input::RunInput;

/// What the ids of agent requests begin with: their documents have any name, or none. In older versions, all ids of runs with
/// a key.
const OF_REQUESTS: &str = "agent";
/// How many digits an identity of an older version has: a digest of documents too.
const OLDER_DIGITS: usize = 32;

/// What is asked for, in place of the documents.
pub enum StartRequest {
    /// A loop or workflow of the folder.
    Named(String),
    /// An agent request: its document.
    Composed(String),
    /// A rerun of a run: the name of its loop, and which document it has.
    Rerun { name: String, document: &'static str },
}

impl StartRequest {
    /// The text that identifies it.
    pub fn spelled(&self) -> String {
        match self {
            Self::Named(name) => format!("run {name}"),
            Self::Composed(document) => format!("request {}", spelled_request(document)),
            Self::Rerun { document, .. } => format!("rerun with the {document} document"),
        }
    }

    /// The name that ids begin with.
    fn name(&self) -> &str {
        match self {
            Self::Named(name) | Self::Rerun { name, .. } => name,
            Self::Composed(_) => OF_REQUESTS,
        }
    }
}

/// An agent request as a JSON value: the order of its keys does not matter, and an input that is absent is an empty one.
fn spelled_request(document: &str) -> String {
    let Ok(Value::Object(mut members)) = json_text::read(document) else { return document.to_owned() };
    if members.get("input").is_some_and(|input| input.as_object().is_some_and(Map::is_empty)) {
        members.remove("input");
    }
    let mut text = String::new();
    canonical::spell(&Value::Object(members), &mut |piece: &str| text.push_str(piece));
    text
}

/// The key of a start, bound to the organisation.
pub struct StartKey(String);

impl StartKey {
    /// The key of a request, if it has one. `org`: that of the run that it starts.
    ///
    /// # Errors
    /// 400 for a key that is empty, too long or no plain text.
    pub fn of(headers: &HeaderMap, org: Option<&str>) -> Result<Option<Self>, ProblemDetails> {
        let mut keys = headers.get_all("idempotency-key").iter();
        let Some(key) = keys.next() else { return Ok(None) };
        let plain = |key: &HeaderValue| {
            let text = key.to_str().ok()?.trim();
            let is_plain = (1..=255).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            is_plain.then(|| text.to_owned())
        };
        let (Some(key), None) = (plain(key), keys.next()) else {
            return Err(ProblemDetails::bad_request(
                "`Idempotency-Key` comes once, with 1 to 255 letters, digits and signs from ! to ~, and blanks between them",
            ));
        };
        Ok(Some(Self::of_text(org, &key)))
    }

    /// The key with this text. `org`: that of the run that it starts.
    pub fn of_text(org: Option<&str>, key: &str) -> Self {
        Self::of_parts(&["loopctl idempotency key", org.unwrap_or_default(), key])
    }

    /// Has a start name this key, as the key of a request for a loop or workflow of the folder.
    pub fn name(self, name: &str, start: &mut Start) {
        (start.run_id, start.key) = (Some(run_id::of_key(name, &self.0)), Some(self.0));
    }

    /// The key of the run of a workflow that a delivery starts: the same delivery is the same run, whatever the mapping of its
    /// input says by now.
    pub fn of_delivery(org: Option<&str>, webhook: &str, workflow: &str, delivery: &str) -> Self {
        Self::of_parts(&["loopctl webhook delivery", org.unwrap_or_default(), webhook, workflow, delivery])
    }

    fn of_parts(parts: &[&str]) -> Self {
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in parts {
            hash.update(&part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(hash.finish().as_ref()).for_each(|(to, from)| *to = *from);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string())
    }

    /// The key as the store has it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The start of a workflow of the folder for a delivery.
    pub fn start_of(self, workflow: &str) -> Start {
        let request = StartRequest::Named(workflow.to_owned()).spelled();
        let identity =
            Sha256::of_parts(|part| [request.as_str(), "\0", &self.0].into_iter().for_each(part)).to_string();
        Start {
            run_id: Some(run_id::of_key(workflow, &self.0)),
            request: Some(request),
            identity: Some(identity),
            key: Some(self.0),
            ..Start::default()
        }
    }

    /// Completes a start by what its request says, and finds the run that exists for its key.
    ///
    /// # Errors
    /// 400 for a session with other signs, 409 when the key was used for another request.
    pub async fn applied(
        key: Option<Self>,
        app: &App,
        caller: &Caller,
        request: &StartRequest,
        start: &mut Start,
    ) -> Result<Option<String>, ProblemDetails> {
        if let Some(session) = &start.session {
            if !is_session(session) {
                return Err(ProblemDetails::bad_request("`session` takes 1 to 128 letters, digits and _-.~@+="));
            }
            start.session = Some(session_in_store(caller.org.as_deref(), session));
        }
        start.request = Some(request.spelled());
        let Some(key) = key else { return Ok(None) };
        let id = run_id::of_key(request.name(), &key.0);
        let there = match app.runs.journal.find_by_key(&key.0).await? {
            Some(run) => Some(run),
            // A worker of an older version, of the same store, may have started it.
            None => app.runs.journal.find(&id).await?,
        };
        (start.run_id, start.key) = (Some(id), Some(key.0));
        let identity = start.identify().map(str::to_owned);
        let Some(known) = there else { return Ok(None) };
        let is_same =
            Some(&known.identity) == identity.as_ref() || is_same_as_older(app, &known, request, start).await?;
        if !is_same {
            return Err(Fault::Conflict(known.run_id).into());
        }
        // A start that is repeated takes from the shares of its caller as well.
        app.scheduler.admit(Owner::from(caller))?;
        Ok(Some(known.run_id))
    }
}

/// Whether a run was started by an older version with the same request. Its identity is of its documents too, which may
/// have changed: its start says what was asked for.
async fn is_same_as_older(
    app: &App,
    run: &RunSummary,
    request: &StartRequest,
    start: &Start,
) -> Result<bool, ProblemDetails> {
    if run.identity.len() != OLDER_DIGITS {
        return Ok(false);
    }
    let events = app.runs.events(&run.run_id).await?;
    let Some(Event { kind: EventKind::Started(started), .. }) = events.first() else { return Ok(false) };
    let previous = started.previous.as_ref().map(|previous| previous.run_id.as_str());
    let is_same = started.session == start.session
        && started.timeout_ms == start.timeout_ms
        && started.rerun_of == start.rerun_of
        && run.callback.as_ref().map(|callback| &callback.url) == start.callback_url.as_ref()
        && start.previous_run_id.as_deref().is_none_or(|named| previous == Some(named));
    let main = started.documents.first();
    Ok(match request {
        StartRequest::Named(name) => is_same && started.loop_name == *name && has_input(app, name, started, start),
        StartRequest::Composed(text) => {
            is_same && main.is_some_and(|main| main.file == REQUEST && *main.text == **text)
        }
        // Its session and limits are those of the earlier run.
        StartRequest::Rerun { .. } => started.rerun_of == start.rerun_of,
    })
}

/// Whether the input of a run is the given one: as it is, or as the present document completes it.
fn has_input(app: &App, name: &str, started: &Started, start: &Start) -> bool {
    let spelled = |input: &RunInput| Sha256::of_parts(|part| spell_input(input, &mut |piece: &str| part(piece)));
    let (own, given) = (spelled(&started.run_input()), RunInput::from(start.input.clone()));
    if spelled(&given) == own {
        return true;
    }
    let folder = app.folder();
    let Some(offered) = folder.loops.get(name) else { return false };
    let now = clock::rfc3339(clock::wall_ms());
    bind(&offered.program, given, &now, &started.run_id).is_ok_and(|bound| spelled(&bound.input) == own)
}
