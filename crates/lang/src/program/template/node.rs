//! The parts of a compiled template.

use serde_json::Value;

/// A part of a template.
#[derive(Debug)]
pub(super) enum TemplateNode {
    /// Literal text.
    Text(String),
    /// The secret of this key.
    Secret(String),
    /// A value.
    Print(Expr),
    /// A condition with two branches.
    If {
        /// The condition.
        test: Expr,
        /// If it is true.
        then: Vec<TemplateNode>,
        /// If it is false.
        other: Vec<TemplateNode>,
    },
    /// A loop over items or members.
    Each {
        /// The list or object.
        over: Expr,
        /// The body of the loop.
        body: Vec<TemplateNode>,
        /// If there are no items.
        other: Option<Vec<TemplateNode>>,
    },
    /// A block with another value as its context.
    With {
        value: Expr,
        body: Vec<TemplateNode>,
        /// If there is no value.
        other: Option<Vec<TemplateNode>>,
    },
}

/// Where a value comes from.
#[derive(Debug)]
pub(super) enum Expr {
    /// A name or path.
    Path(Route),
    /// A literal value.
    Literal(Value),
    /// A member whose name is itself a value.
    Lookup(Box<Expr>, Box<Expr>),
}

/// A path and its base.
#[derive(Debug)]
pub(super) struct Route {
    /// As written, for messages.
    pub raw: String,
    pub base: Base,
    /// The names of the path.
    pub segments: Vec<String>,
}

/// The base of a path. Blocks are counted from the outermost, 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The names of the scope.
    Root,
    /// The item or value of this block.
    Item(usize),
    /// The key or index of this block.
    Key(usize),
    /// The index in this block.
    Index(usize),
    /// Whether this is the first item of this block.
    First(usize),
    /// Whether it is the last one.
    Last(usize),
}

/// The names of a path; one in brackets may hold anything.
pub(super) fn names(path: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((name, after)) => (name, after),
            None => rest.split_at(rest.find(['.', '/']).unwrap_or(rest.len())),
        };
        names.push(name.to_owned());
        rest = after.strip_prefix(['.', '/']).unwrap_or(after);
    }
    names
}
