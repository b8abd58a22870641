//! Actions of kind `command`.

use std::collections::BTreeMap;

use super::{ActionKind, ActionText, CallSpeed, TextKind};

super::action! {
    /// A program on this machine. Never a shell.
    CommandAction {
        /// The program, one of the project's `allow.commands`.
        #[schemars(length(min = 1))]
        program: String,
        /// Its arguments. Templates, each one argument.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        /// What it reads. A template.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdin: Option<String>,
        /// Its environment, whole. Templates; `orgconfig:KEY` is a secret.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// Its working folder, relative to the project file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// Whether an argument that a value fills may begin with `-`.
        #[serde(default)]
        allow_leading_dash: bool,
    }
}

impl ActionKind for CommandAction {
    fn texts(&self) -> &'static [ActionText] {
        const {
            &[
                ActionText::plain("args", TextKind::Argument),
                ActionText::secret("stdin", TextKind::Stdin),
                ActionText::secret("env", TextKind::Variable),
            ]
        }
    }

    fn describe(&self) -> String {
        format!("Runs the program {}.", self.program)
    }

    fn repeated(&self) -> Option<String> {
        Some(format!("the program `{}`", self.program))
    }

    fn is_idempotent(&self) -> bool {
        false
    }

    fn only_reads(&self, _: bool) -> bool {
        false
    }

    fn speed(&self) -> CallSpeed {
        CallSpeed::Local
    }
}
