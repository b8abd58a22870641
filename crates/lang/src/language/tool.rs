//! Tool declarations: the entries of a loop's `tools`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::approval::{ApprovalSettings, RequiresApproval};
use super::fields::{choice, read_without};

/// One entry of `tools`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ToolDeclaration {
    /// The typed form.
    Typed(TypedTool),
    /// The old form, a bare name: a built-in's is ignored, another is an action's. Accepted with
    /// a warning.
    Legacy(String),
}

/// The typed form of a tool declaration.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TypedTool {
    /// A registered action.
    Action(ActionTool),
    /// A workflow document, offered under its name.
    Workflow(WorkflowTool),
    /// Another loop; its `input` schema is the tool's.
    Loop(LoopTool),
    /// Tools of an MCP server of the project.
    Mcp(McpTool),
}

impl<'de> Deserialize<'de> for ToolDeclaration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = match Value::deserialize(deserializer)? {
            Value::String(name) => Ok(Self::Legacy(name)),
            value => TypedTool::read(&value).map(Self::Typed),
        };
        read.map_err(D::Error::custom)
    }
}

impl TypedTool {
    fn read(value: &Value) -> Result<Self, serde_json::Error> {
        const TYPES: &[&str] = &["action", "workflow", "loop", "mcp"];
        match choice(value, "type")? {
            "action" => read_without(value, "type").map(Self::Action),
            "workflow" => read_without(value, "type").map(Self::Workflow),
            "loop" => read_without(value, "type").map(Self::Loop),
            "mcp" => read_without(value, "type").map(Self::Mcp),
            unknown => Err(serde_json::Error::unknown_variant(unknown, TYPES)),
        }
    }
}

macro_rules! tool_declaration {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
            /// The description that the model gets for the tool, in place of its own.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub description: Option<String>,
            /// Whether a human must approve each call, or the condition on the call's input when one must.
            #[serde(default)]
            pub requires_approval: RequiresApproval,
            /// How an approval is given: by how many, and within what time.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub approval: Option<ApprovalSettings>,
            /// How many times a run may call it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub max_calls: Option<u32>,
            /// The deadline of one call in milliseconds.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub timeout_ms: Option<u64>,
            /// Whether calling it again with the same input is expected: then the same call counts
            /// as stuck only when its observation is the same too.
            #[serde(default)]
            pub polling: bool,
            /// What is kept in memory of each observation: JSON pointers by the key to keep them under.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub remember: BTreeMap<String, String>,
        }
    };
}

tool_declaration! {
    /// A registered action as a tool.
    ActionTool {
        /// The action's `action_name`.
        name: String,
    }
}

tool_declaration! {
    /// A workflow document as a tool: by `id` or by `name`.
    WorkflowTool {
        /// The workflow's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The workflow's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Whether the call waits for the workflow's end.
        #[serde(default = "super::react::defaults::yes")]
        wait: bool,
    }
}

tool_declaration! {
    /// Another loop as a tool.
    LoopTool {
        /// The loop's name.
        name: String,
    }
}

tool_declaration! {
    /// Tools of an MCP server.
    McpTool {
        /// The server's name in the project.
        server: String,
        /// Which of its tools; without it all. In a name, `*` is any characters: `list_*`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
    }
}

impl WorkflowTool {
    /// The same as the declaration of a loop of this name: what both have in common.
    pub fn of(self, name: String) -> LoopTool {
        let Self { description, requires_approval, approval, max_calls, timeout_ms, polling, remember, .. } = self;
        LoopTool { name, description, requires_approval, approval, max_calls, timeout_ms, polling, remember }
    }
}

impl TypedTool {
    /// The name that it is declared by; none for a workflow that is declared by its id, and for the tools of a server.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Action(tool) => Some(&tool.name),
            Self::Workflow(tool) => tool.name.as_deref(),
            Self::Loop(tool) => Some(&tool.name),
            Self::Mcp(_) => None,
        }
    }

    /// Whether a human must approve its calls, and how.
    pub fn approval(&self) -> (&RequiresApproval, Option<&ApprovalSettings>) {
        match self {
            Self::Action(tool) => (&tool.requires_approval, tool.approval.as_ref()),
            Self::Workflow(tool) => (&tool.requires_approval, tool.approval.as_ref()),
            Self::Loop(tool) => (&tool.requires_approval, tool.approval.as_ref()),
            Self::Mcp(tool) => (&tool.requires_approval, tool.approval.as_ref()),
        }
    }
}
