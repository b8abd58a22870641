//! The models of a project, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use secrecy::SecretString;
use url::Url;

use super::constraint::ReplyConstraint;
use super::credentials::{Credentials, ModelKey, RequestSigner};
use super::failure::Peer;
use super::first_contact::FirstContact;
use super::http::{Endpoint, HttpClients};
use super::identity::AwsIdentity;
use super::refused_fields::{RefusedFields, RequestField};
use super::script::ScriptPlayer;
use super::settings::ModelSettings;
use super::window::LearnedWindow;
use super::wire::RequestForm;
use super::{DynModel, ModelBackend, ModelClient, TRACK, protocol_of};
use crate::drive::gate::{CallGate, CallGates};
use crate::drive::http_client::{IS_BUILT_IN, NOT_BUILT_IN};
use crate::drive::secret::Vault;
use crate::journal::WaitedFor;
use crate::project::guarded_read;
use crate::project::paths::in_project;
use loopctl_engine::event::ModelFacts;
use loopctl_lang::diagnostic::nearest;
use loopctl_lang::language::project::{self, Provider};
use loopctl_lang::language::{ModelAuth, Project, SecretSource};
use loopctl_lang::policy::aws_host::{BEDROCK, BedrockHost};
use loopctl_lang::policy::json_text;
use loopctl_lang::policy::provider::{ProviderServer, wants_signatures};

/// The maximum number of models that are kept to be asked again.
const KEPT: usize = 512;
/// The largest file of a script, in bytes.
const MAX_SCRIPT: usize = 64 << 20;

/// The models of a project, by name.
pub struct Models {
    project: Project,
    root: PathBuf,
    vault: Arc<Vault>,
    script: Option<Arc<ScriptPlayer>>,
    http: Arc<HttpClients>,
    first_contact: Arc<FirstContact>,
    gates: Arc<CallGates>,
    /// The machine's credentials of AWS.
    identity: OnceLock<Arc<AwsIdentity>>,
    /// The embedder's models by name.
    embedded: BTreeMap<String, Arc<dyn DynModel>>,
    /// The embedder's key, in place of those of the environment.
    key: Option<SecretString>,
    /// The environment, for addresses; keys go through the vault.
    variable: fn(&str) -> Option<String>,
    made: Mutex<BTreeMap<String, Arc<ModelClient>>>,
    /// What was learned of the models of servers, by address and id.
    learned: Mutex<BTreeMap<String, LearnedModel>>,
}

/// What was learned of a model of a server.
#[derive(Clone)]
struct LearnedModel {
    refused: Arc<RefusedFields>,
    window: Arc<LearnedWindow>,
}

impl Models {
    /// The models of a project. `script` takes the place of all of them. Files that the project names
    /// are relative to `root`.
    pub fn new(project: &Project, root: &Path, vault: &Arc<Vault>, script: Option<Arc<ScriptPlayer>>) -> Self {
        Self {
            project: project.clone(),
            root: root.to_owned(),
            vault: Arc::clone(vault),
            script,
            http: Arc::default(),
            first_contact: Arc::default(),
            gates: Arc::default(),
            identity: OnceLock::new(),
            embedded: BTreeMap::new(),
            key: None,
            variable,
            made: Mutex::default(),
            learned: Mutex::default(),
        }
    }

    /// The same with models of the embedder: they take the place of those that the project has by these names.
    pub(in crate::drive) fn with_embedded(mut self, models: BTreeMap<String, Arc<dyn DynModel>>) -> Self {
        self.embedded = models;
        self
    }

    /// The same with gates that other projects have, too.
    pub(in crate::drive) fn with_gates(self, gates: Arc<CallGates>) -> Self {
        gates.read(&self.project, &self.root);
        Self { gates, ..self }
    }

    /// The same with this key in place of those of the environment.
    pub fn with_key(mut self, key: SecretString) -> Self {
        self.key = Some(key);
        self
    }

    /// The same in another environment.
    #[cfg(test)]
    pub(super) fn in_environment(mut self, variable: fn(&str) -> Option<String>) -> Self {
        self.variable = variable;
        self
    }

    /// A run begins, and whoever started it waits for it: until a server of a model answers, one that refuses each connection
    /// is asked for seconds only, and the failure asks whether it runs.
    pub fn await_first_contact(&self) {
        self.first_contact.is_awaited();
    }

    /// Whether there is a model to ask: one of this name, or one that is asked where none is named.
    pub fn are_named(&self, name: Option<&str>) -> bool {
        self.chosen(name).is_some()
    }

    fn chosen<'m>(&'m self, name: Option<&'m str>) -> Option<&'m str> {
        let name = name.or(self.project.model.as_deref()).filter(|name| !name.is_empty());
        let only = || self.embedded.keys().next().filter(|_| self.embedded.len() == 1);
        name.or_else(|| only().map(String::as_str)).or(self.script.as_ref().map(|_| "script"))
    }

    /// The model of this name, or the project's default; a name that the project does not have is a
    /// provider's own id at `OPENAI_BASE_URL`.
    ///
    /// # Errors
    /// A sentence that says what is missing and how to give it.
    pub fn get(&self, name: Option<&str>) -> Result<Arc<ModelClient>, String> {
        let Some(name) = self.chosen(name) else {
            return Err("no model is named: give \"model\" in the loop or in loopctl.json".to_owned());
        };
        let made = self.made().get(name).cloned();
        if let Some(model) = made {
            model.readable()?;
            return Ok(model);
        }
        let model = Arc::new(self.make(name)?);
        model.readable()?;
        let mut made = self.made();
        if made.len() >= KEPT {
            // Requests may name what they like: those that are asked are made again.
            made.clear();
        }
        made.insert(name.to_owned(), Arc::clone(&model));
        Ok(model)
    }

    /// The model of this name, played by a script of its own.
    pub(in crate::drive) fn played(&self, name: &str, player: &Arc<ScriptPlayer>) -> Arc<ModelClient> {
        Arc::new(scripted(self.facts(name), TRACK, Arc::clone(player)))
    }

    fn facts(&self, name: &str) -> ModelFacts {
        let declared = self.project.models.get(name);
        ModelFacts {
            name: name.to_owned(),
            context_tokens: declared.and_then(|model| model.context_tokens),
            learned_tokens: None,
            price: declared.and_then(|model| model.price),
        }
    }

    fn made(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<ModelClient>>> {
        // The map is whole at any moment: a panic elsewhere leaves nothing half done in it.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, name: &str) -> Result<ModelClient, String> {
        let declared = self.project.models.get(name);
        let facts = self.facts(name);
        if let Some(script) = &self.script {
            return Ok(scripted(facts, TRACK, Arc::clone(script)));
        }
        if let Some(model) = self.embedded.get(name) {
            let peer = Peer { name: name.to_owned(), vault: Arc::clone(&self.vault) };
            let backend = ModelBackend::Embedded(Arc::clone(model), peer);
            let gate = Some(self.gate(name));
            return Ok(ModelClient { form: without_server(name, "embedded"), facts, backend, gate });
        }
        let provider = declared.map_or_else(|| self.provider_of(name), |model| model.provider);
        let Some(server) = &provider.facts().server else {
            return Ok(scripted(facts, name, self.script_of(name, declared)?));
        };
        if !IS_BUILT_IN {
            return Err(format!("the model {name:?} is one of a server, and {NOT_BUILT_IN}"));
        }
        let (form, endpoint) = self.server(name, declared, provider, server)?;
        let gate = Some(self.gate(name));
        Ok(ModelClient { facts, form, backend: ModelBackend::Server(Box::new(endpoint)), gate })
    }

    /// The gate of a model. Those of names that the project does not have are kept with their models: requests may name what they like.
    fn gate(&self, name: &str) -> Arc<CallGate> {
        match self.project.models.contains_key(name) {
            true => self.gates.of(&self.root, WaitedFor::Model, name),
            false => Arc::default(),
        }
    }

    /// Whose id a name is that the project does not have.
    pub(super) fn provider_of(&self, name: &str) -> Provider {
        if self.key.is_some() {
            return Provider::of_model(name).unwrap_or(Provider::DEFAULT);
        }
        let given = |variable| self.variable(variable).is_some();
        let is_set_up = |server: &ProviderServer| given(server.key_variable) || given(server.base_url_variable);
        if Provider::DEFAULT.facts().server.as_ref().is_some_and(is_set_up) {
            return Provider::DEFAULT;
        }
        let has_key = |server: &ProviderServer| given(server.key_variable);
        let own = Provider::of_model(name).filter(|own| own.facts().server.as_ref().is_some_and(has_key));
        own.unwrap_or(Provider::DEFAULT)
    }

    fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }

    fn server(
        &self,
        name: &str,
        declared: Option<&project::Model>,
        provider: Provider,
        home: &ProviderServer,
    ) -> Result<(RequestForm, Endpoint), String> {
        let base_url = declared.and_then(|model| model.base_url.clone());
        let from_project = base_url.is_some();
        let held = base_url.as_deref().and_then(|base| base.strip_prefix("env:"));
        let is_shown = from_project && held.is_none();
        let (base, origin) = match (&base_url, held, self.variable(home.base_url_variable)) {
            (_, Some(held), _) => {
                let base = self.variable(held).ok_or_else(|| {
                    format!(
                        "the base_url of the model {name:?} can't be read: the environment variable `{held}` is not set"
                    )
                })?;
                (base, held.to_owned())
            }
            (Some(base), None, _) => (base.clone(), format!("base_url of the model {name:?}")),
            (None, None, Some(base)) => (base, home.base_url_variable.to_owned()),
            (None, None, None) => (home.base_url.to_owned(), String::new()),
        };
        let id = declared.and_then(|model| model.model.as_deref()).unwrap_or(name).to_owned();
        let path = provider.path_of(&id).ok_or_else(|| project::SettingFault::of_id(&id).message)?;
        // What a variable holds is not shown: it may be another one's.
        let url = address(&base, &path, is_shown).map_err(|wrong| format!("{origin} {wrong}"))?;
        let official = url.host_str() == Some(home.host);
        let protocol = protocol_of(provider);
        let auth = declared.and_then(|model| model.auth);
        let signs = auth == Some(ModelAuth::Sigv4);
        let key_header = auth.map_or(Some(home.key_header), ModelAuth::header);
        let is_given = |header: &str| {
            declared.is_some_and(|model| model.headers.keys().any(|name| name.eq_ignore_ascii_case(header)))
        };
        let key = match declared.and_then(|model| model.api_key.as_ref()) {
            _ if signs => None,
            // The project gives the header itself, or wants none.
            None if key_header.is_none_or(is_given) => None,
            Some(source) => Some(ModelKey::Source(source.clone())),
            // A key of the environment goes to the provider, or to the server that the environment
            // names: never to an address that only a project file names.
            None if official || !from_project => self.key(name, home, official)?,
            None => None,
        };
        let settings = match declared {
            Some(model) => ModelSettings::new(name, model, &protocol.settings(model))?,
            None => ModelSettings::default(),
        };
        let LearnedModel { refused, window } =
            self.learned_of(&url, &id, (provider.facts().refuses_temperature)(&id, official));
        if wants_signatures(provider, &id, url.host_str().unwrap_or_default()) {
            refused.set(RequestField::MissingSignature, true);
        }
        let identity = format!("{name}\n{id}\n{url}").into();
        let origin = format!("{} {} {id}", provider.facts().name, url.host_str().unwrap_or_default()).into();
        let mode = declared.map(|model| model.constrain).unwrap_or_default();
        let constraint = ReplyConstraint::new(mode, protocol.turn_means(&id, &url), &refused);
        let mut credentials = Credentials::new(protocol, &self.vault);
        if let Some(key) = key {
            credentials.add_key(name, home, auth, key);
        }
        if signs {
            // An address that only a project file names is sent nothing of the machine's.
            let is_named_here = held.is_some() || (!from_project && !official);
            credentials.sign_with(self.signer(name, &url, is_named_here)?);
        }
        if let Some(model) = declared {
            credentials.add_headers(name, model)?;
        }
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let peer = Peer { name: format!("{host}:{port}"), vault: Arc::clone(&self.vault) };
        let limits = provider.facts().limits;
        let form = RequestForm { protocol, limits, id, refused, window, settings, origin, identity, constraint };
        let stream_url = protocol.stream_url(&url);
        let (http, first_contact) = (Arc::clone(&self.http), Arc::clone(&self.first_contact));
        Ok((form, Endpoint { url, stream_url, credentials, peer, http, first_contact }))
    }

    /// What signs requests to an address. `is_named_here`: the environment names it.
    fn signer(&self, name: &str, url: &Url, is_named_here: bool) -> Result<RequestSigner, String> {
        let host = url.host_str().unwrap_or_default();
        let bedrock = BedrockHost::of(host);
        if bedrock.is_none() && !is_named_here {
            return Err(format!(
                "the model {name:?} has \"auth\": \"sigv4\", and {host} is no host of Amazon Bedrock: give it a \
                 base_url such as \"https://bedrock-runtime.REGION.amazonaws.com/openai/v1\", or \"env:VAR\" for an \
                 address of your own"
            ));
        }
        let identity = self.identity.get_or_init(|| Arc::new(AwsIdentity::new(&self.vault, &self.http, self.variable)));
        let region = bedrock.and_then(|bedrock| bedrock.region).map(str::to_owned).or_else(|| identity.region());
        let region = region.ok_or_else(|| {
            format!("the requests of the model {name:?} can't be signed: set AWS_REGION, as {host} names no region")
        })?;
        let service = bedrock.map_or(BEDROCK, |bedrock| bedrock.service);
        Ok(RequestSigner { identity: Arc::clone(identity), region, service })
    }

    /// What was learned of a model of a server: the same for all names of that model.
    fn learned_of(&self, url: &Url, id: &str, fixed_temperature: bool) -> LearnedModel {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.len() >= KEPT {
            learned.clear();
        }
        let refused =
            || if fixed_temperature { RefusedFields::of_fixed_temperature() } else { RefusedFields::default() };
        let new = || LearnedModel { refused: Arc::new(refused().with_those_of(id)), window: Arc::default() };
        learned.entry(format!("{url}\n{id}")).or_insert_with(new).clone()
    }

    /// The key of the environment. Only the provider's own server needs one.
    fn key(&self, name: &str, home: &ProviderServer, official: bool) -> Result<Option<ModelKey>, String> {
        if let Some(key) = &self.key {
            self.vault.keep("the API key", key)?;
            return Ok(Some(ModelKey::Given(key.clone())));
        }
        let variable = home.key_variable;
        if self.variable(variable).is_some() {
            return Ok(Some(ModelKey::Source(SecretSource::Written(format!("env:{variable}")))));
        }
        if !official {
            return Ok(None);
        }
        let near = nearest(name, self.project.models.keys().map(String::as_str))
            .filter(|near| *near != name)
            .map_or_else(String::new, |near| format!("; a model of the project is named {near:?}"));
        Err(format!(
            "the model {name:?} needs a key: set {variable} (or {} for a server that needs none), or say under \
             \"models\" in loopctl.json where {name:?} is asked{near}",
            home.base_url_variable
        ))
    }

    /// The script of a model that the project declares as scripted.
    fn script_of(&self, name: &str, declared: Option<&project::Model>) -> Result<Arc<ScriptPlayer>, String> {
        let file = declared.and_then(|model| model.script.as_deref());
        let file = file.ok_or_else(|| format!("the model {name:?} of provider script needs \"script\": its file"))?;
        let wrong = |why: String| format!("the script {file:?} of the model {name:?} can't be used: {why}");
        let path = in_project(&self.root, file).map_err(|why| wrong(why.to_owned()))?;
        let text = guarded_read::text(&path, MAX_SCRIPT).map_err(|unread| wrong(unread.reason(MAX_SCRIPT)))?;
        let document = json_text::read(&text).map_err(|error| wrong(error.to_string()))?;
        Ok(Arc::new(ScriptPlayer::new(document)))
    }
}

/// A model that a script plays. Models of one `track` go through their script together.
fn scripted(facts: ModelFacts, track: &str, script: Arc<ScriptPlayer>) -> ModelClient {
    let form = without_server(&facts.name, "script");
    ModelClient { facts, form, backend: ModelBackend::Script(script, track.into()), gate: None }
}

/// The form of requests to a model that has no server: OpenAI's.
fn without_server(name: &str, kind: &str) -> RequestForm {
    RequestForm {
        protocol: protocol_of(Provider::Script),
        limits: Provider::Script.facts().limits,
        id: name.to_owned(),
        refused: Arc::default(),
        window: Arc::default(),
        settings: ModelSettings::default(),
        origin: format!("{kind} {name}").into(),
        identity: format!("{name}\n{kind}").into(),
        constraint: ReplyConstraint::none(),
    }
}

/// The address of a server's method: `base` with or without a slash at its end, a query kept.
fn address(base: &str, path: &str, is_shown: bool) -> Result<Url, String> {
    let base = base.trim();
    // What may hold a password is not shown.
    let shown = if base.contains('@') || !is_shown { String::new() } else { format!(" {base:?}") };
    let wrong = |why: &str| format!("is not an address{shown}: {why}");
    let mut url = Url::parse(base).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds a user or a password; give the key as api_key"));
    }
    let begin = url.path().trim_end_matches('/');
    let whole = format!("{}{path}", begin.strip_suffix(path).unwrap_or(begin));
    url.set_path(&whole);
    url.set_fragment(None);
    Ok(url)
}

#[expect(clippy::disallowed_methods, reason = "the environment names a model's server, which is no secret")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
