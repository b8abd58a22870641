//! Models: who is asked, and how. A provider a file.

use std::path::Path;
use std::sync::Arc;

use crate::engine::conversation::Conversation;
use crate::engine::event::{ModelFacts, ModelFault, Reply};
use crate::language::Project;
use crate::language::react::Retry;

use super::secret::Vault;

/// What a model is asked.
pub struct Ask<'a> {
    /// The conversation.
    pub conversation: &'a Conversation,
    /// The most tokens of the reply.
    pub max_tokens: u32,
    /// The temperature.
    pub temperature: f64,
    /// Texts at which the model stops.
    pub stop: &'a [&'a str],
    /// Is given the reply in pieces; then the model is asked to stream.
    pub deltas: Option<&'a (dyn Fn(&str) + Send + Sync)>,
}

/// The grown bytes of a run's conversation in the provider's form, so that a request costs what it
/// adds. Kept by the driver of one run; keyed by the conversation's generation and the model.
#[derive(Default)]
pub struct Wire {
    // the helper who owns this room decides
}

/// A model that can be asked.
pub struct Model {
    /// What the engine needs to know of it.
    pub facts: ModelFacts,
}

/// The models of a project, by name.
pub struct Models {}

/// A failed attempt that is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Which one failed, from 1.
    pub number: u32,
    /// Why, in a sentence without secrets.
    pub reason: String,
    /// The wait before the next one, in milliseconds.
    pub delay_ms: u64,
}

impl Models {
    /// The models of a project. `script` takes the place of all of them.
    pub fn new(_project: &Project, _root: &Path, _vault: &Arc<Vault>, _script: Option<Arc<Script>>) -> Self {
        Self {}
    }

    /// The model of this name, or the project's default; a name that the project does not have is a
    /// provider's own id at `OPENAI_BASE_URL`.
    ///
    /// # Errors
    /// A sentence that says what is missing and how to give it.
    pub fn get(&self, _name: Option<&str>) -> Result<Arc<Model>, String> {
        Err("not written yet".to_owned())
    }
}

impl Model {
    /// The request's bytes, as they would be sent: `loopctl prompt`.
    pub fn request(&self, _ask: &Ask<'_>, _wire: &mut Wire) -> bytes::Bytes {
        bytes::Bytes::new()
    }
}

/// Asks the first model, with retries, then the next ones.
///
/// # Errors
/// The last fault, when all attempts of all models are spent.
pub async fn ask(
    _models: &[Arc<Model>],
    _ask: &Ask<'_>,
    _wire: &mut Wire,
    _retry: &Retry,
    _failed: &(dyn Fn(Attempt) + Send + Sync),
) -> Result<Reply, ModelFault> {
    Err(ModelFault {
        code: crate::engine::event::ModelFaultCode::ModelUnreachable,
        message: "not written yet".to_owned(),
        retryable: false,
        attempts: 0,
        duration_ms: 0,
    })
}

/// A script under way: shared by the model that it plays and the tools that it answers for.
pub struct Script {}

impl Script {
    /// A script from its document. `replies_used` and the calls made before are those of a run that
    /// is resumed: its replies go on where the run stopped.
    pub fn new(_document: crate::language::Script) -> Self {
        Self {}
    }

    /// What the script answers for the call of a tool, from 0.
    pub fn tool(&self, _name: &str, _nth: usize) -> Option<crate::engine::event::ToolResult> {
        None
    }

    /// Whether the script answers for a tool.
    pub fn names_tool(&self, _name: &str) -> bool {
        false
    }
}
