//! What an engine has of the program around it.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;

use super::handled_runs::HandledRuns;
use super::model::{DynModel, ScriptPlayer};
use super::tool::DynTool;

/// What an engine has of the program around it, whatever its project is.
#[derive(Clone, Default)]
pub(super) struct GivenParts {
    pub script: Option<Arc<ScriptPlayer>>,
    pub tools: BTreeMap<String, Arc<dyn DynTool>>,
    pub models: BTreeMap<String, Arc<dyn DynModel>>,
    pub api_key: Option<SecretString>,
    /// Secrets by their keys in `orgconfig`.
    pub secrets: BTreeMap<String, SecretString>,
    /// The runs that handles of the program drive.
    pub driven: Arc<HandledRuns>,
}
