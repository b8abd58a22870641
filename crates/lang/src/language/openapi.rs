//! OpenAPI pages: what the lock file says of the actions that were made of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The lock file: which pages actions were made of, and which files hold them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenApiLock {
    /// The form of the file.
    pub version: u32,
    /// The pages by name.
    pub pages: BTreeMap<String, LockedPage>,
}

/// A page, as it was pinned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LockedPage {
    /// Its file: in the project's folder relative to that.
    pub spec: String,
    /// The title that it has.
    pub title: String,
    /// The version that it has.
    pub page_version: String,
    /// Which operations were pinned; all without a pattern.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// The host that was named in place of the page's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What the names of actions begin with.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The key of the token for operations whose security the page does not describe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<String>,
    /// The secrets that are sent, by key: the servers that get each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Vec<String>>,
    /// The keys of those by the security schemes of the page.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub schemes: BTreeMap<String, String>,
    /// The digests of the files that were written, by their paths in the project's folder.
    pub files: BTreeMap<String, String>,
    /// The actions by name.
    pub actions: BTreeMap<String, LockedOperation>,
    /// The actions that were pinned before and are gone, each with its method and path: none of them becomes another operation
    /// unasked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gone: BTreeMap<String, String>,
    /// The operations that no action can make calls of, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
}

/// An operation, as it was pinned: digests of what is compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LockedOperation {
    /// Its method and path.
    pub place: String,
    /// What a model reads about it.
    pub text: String,
    /// What a call takes, and how it is sent.
    pub input: String,
    /// What a call gives.
    pub output: String,
    /// What of it is left open or never sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl OpenApiLock {
    /// The name of the file, which is beside the project file.
    pub const FILE: &str = "openapi.lock.json";

    /// The form of the file that this version writes.
    pub const VERSION: u32 = 1;
}

impl Default for OpenApiLock {
    fn default() -> Self {
        Self { version: Self::VERSION, pages: BTreeMap::new() }
    }
}
