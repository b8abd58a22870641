//! The texts of documents that take values, by what they become.

/// What a text becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// The objective or the system prompt of a loop.
    Prompt,
    /// The hint for an agent that is stuck. It is no template.
    Hint,
    /// The question of an `llm` action.
    Question,
    /// An address.
    Url,
    /// The value of a header.
    Header,
    /// A value of the query.
    Query,
    /// A body, or a text in it.
    Body,
    /// The value of a placeholder in SQL.
    SqlValue,
    /// An argument of a program.
    Argument,
    /// An argument that a shell runs.
    Script,
    /// What a program reads.
    Stdin,
    /// A variable of a program's environment.
    Variable,
    /// A value that a step is given, or an operand of its condition.
    Step,
}

impl TextKind {
    /// Whether people and models read it: a text about placeholders is sound there.
    pub fn is_prose(self) -> bool {
        matches!(self, Self::Prompt | Self::Hint | Self::Question)
    }

    /// Whether a whole text may be an `@path`.
    pub fn takes_path(self) -> bool {
        matches!(self, Self::Header | Self::Query | Self::Body | Self::SqlValue | Self::Step)
    }
}

/// A field of an action whose texts take values.
#[derive(Debug, Clone, Copy)]
pub struct ActionText {
    /// The name of the field: a text, or a list or an object of texts.
    pub field: &'static str,
    /// What they become.
    pub kind: TextKind,
    /// Whether they may name a secret.
    pub takes_secrets: bool,
}

impl ActionText {
    /// A field that may name secrets.
    pub const fn secret(field: &'static str, kind: TextKind) -> Self {
        Self { field, kind, takes_secrets: true }
    }

    /// A field that may not.
    pub const fn plain(field: &'static str, kind: TextKind) -> Self {
        Self { field, kind, takes_secrets: false }
    }
}

/// A text of an action that is a template.
#[derive(Debug)]
pub struct WrittenText<'a> {
    /// Its pointer in the action: a field, or a place in one.
    pub pointer: String,
    /// The text.
    pub text: &'a str,
}

impl<'a> WrittenText<'a> {
    /// The text of a field.
    pub fn of_field(field: &str, text: &'a str) -> Self {
        Self { pointer: format!("/{field}"), text }
    }
}
