//! What a template is made of, once it is understood.

use serde_json::Value;

/// A part of a template.
#[derive(Debug)]
pub(super) enum TemplateNode {
    /// Text as it is written.
    Text(String),
    /// The secret of this key.
    Secret(String),
    /// A value.
    Print(Expr),
    /// One of two, by a condition.
    If {
        /// The condition.
        test: Expr,
        /// When it holds.
        then: Vec<TemplateNode>,
        /// When it does not.
        other: Vec<TemplateNode>,
    },
    /// Once for each item or member.
    Each {
        /// The list or object.
        over: Expr,
        /// What is repeated.
        body: Vec<TemplateNode>,
        /// When there is none.
        other: Option<Vec<TemplateNode>>,
    },
    /// With a value in the middle.
    With {
        /// The value.
        value: Expr,
        /// What is done with it.
        body: Vec<TemplateNode>,
        /// When there is none.
        other: Option<Vec<TemplateNode>>,
    },
}

/// What a value is taken from.
#[derive(Debug)]
pub(super) enum Expr {
    /// A name or path.
    Path(Route),
    /// A value that the author wrote.
    Literal(Value),
    /// A member whose name is a value itself.
    Lookup(Box<Expr>, Box<Expr>),
}

/// A path and where it begins.
#[derive(Debug)]
pub(super) struct Route {
    /// As written, for messages.
    pub raw: String,
    /// Where it begins.
    pub base: Base,
    /// The names on the way.
    pub segments: Vec<String>,
}

/// Where a path begins. Blocks count from the outermost, 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The names that the scope gives.
    Root,
    /// The item or value of this block.
    Item(usize),
    /// The key or index of this block.
    Key(usize),
    /// The index in this block.
    Index(usize),
    /// Whether this is the first round of this block.
    First(usize),
    /// Whether it is the last one.
    Last(usize),
}
