//! Actions of kind `http`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionKind, ActionText, CallSpeed, TextKind};
use crate::language::retry::CallRetry;

super::action! {
    /// A request to an HTTP server.
    HttpAction {
        /// The address. A template whose values are URL-encoded: `https://api.example.com/tickets/{{ticket_id}}`.
        #[schemars(length(min = 1))]
        url: String,
        /// The method.
        http_method: Method,
        /// Headers. Templates; `orgconfig:KEY` is a secret.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        /// The body's content type.
        #[serde(default = "json")]
        content_type: String,
        /// Query parameters. Templates, or `@paths`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        query: BTreeMap<String, Value>,
        /// How the list, or the object, of a parameter of the query is written, by its name. Default: `repeat`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        query_style: BTreeMap<String, ValueStyle>,
        /// The same for the fields of a body that is a form.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        form_style: BTreeMap<String, ValueStyle>,
        /// The body: JSON whose strings are templates, or one template. Default: for a method with
        /// a body, the input that the URL did not use, as JSON; else that input goes to the query.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
        /// The statuses that count as success. Default: 200 to 299, without 206.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ok_status: Option<Vec<u16>>,
        /// Whether the model reads the body of every answer that is no success. Without it, the model reads that of a
        /// status from 400 to 499 when it is JSON of at most 2000 bytes.
        #[serde(default)]
        error_body: bool,
        /// How a failed call is made again, inside one iteration. Only for an action that may be repeated without harm.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<CallRetry>,
    }
}

/// How a list or an object is written in a query or a form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueStyle {
    /// A list once for each entry: `a=1&a=2`.
    #[default]
    Repeat,
    /// A list in one text, with commas: `a=1,2`.
    Comma,
    /// A list in one text, with spaces: `a=1%202`.
    Space,
    /// A list in one text, with `|`: `a=1%7C2`.
    Pipe,
    /// An object once for each member, and a list once for each entry: `a[x]=1`, `a[]=1`.
    Brackets,
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    Get,
    /// Reads the head only.
    Head,
    /// Does something.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The method as it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether HTTP itself says that a repeated request does no harm (RFC 9110, 9.2.2).
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Self::Post | Self::Patch)
    }

    /// Whether HTTP itself says that a request only reads (RFC 9110, 9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    /// Whether a request of this method carries a body.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

fn json() -> String {
    "application/json".to_owned()
}

impl ActionKind for HttpAction {
    fn texts(&self) -> &'static [ActionText] {
        const {
            &[
                ActionText::secret("url", TextKind::Url),
                ActionText::secret("headers", TextKind::Header),
                ActionText::secret("query", TextKind::Query),
                ActionText::secret("body", TextKind::Body),
            ]
        }
    }

    fn describe(&self) -> String {
        // Without the query, which may contain keys.
        let address = self.url.split(['?', '#']).next().unwrap_or_default();
        let address = address.replace("{{", "{").replace("}}", "}");
        format!("Sends a {} request to {address}.", self.http_method.as_str())
    }

    fn repeated(&self) -> Option<String> {
        Some(format!("a {} request", self.http_method.as_str()))
    }

    fn is_idempotent(&self) -> bool {
        self.http_method.is_idempotent()
    }

    fn only_reads(&self, idempotent: bool) -> bool {
        idempotent && self.http_method.is_safe()
    }

    fn speed(&self) -> CallSpeed {
        CallSpeed::Server
    }

    fn retry(&self) -> Option<&CallRetry> {
        self.retry.as_ref()
    }
}
