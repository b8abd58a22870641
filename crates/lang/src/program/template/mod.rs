//! Templates: Handlebars, strict, rendered once a field.
//!
//! The `handlebars` crate reads the text: its grammar, its escapes, its whitespace rules. There is one walk of its tree, in
//! `lower`, which settles every name once; the rendering goes over what came of it. So every value goes through one place
//! that prints and escapes, a name is a name and never a helper, and what values hold is never read as a template again.
//!
//! The crate's own renderer (6.4) is not used. Of 45 texts of the tests in this folder, 12 come out otherwise with it, in its
//! strict mode and without its escapes:
//!
//! - It prints a list as `[1, [object]]` and an object as `[object]`; prompts and bodies need their JSON.
//! - Its context is one JSON value, made anew for each rendering. A [`Scope`] has parts: the arguments of a call, the input, the
//!   context of a workflow, files. Long lists and the values of files stay text until a path leads into them, and a path leads
//!   into a text that is JSON too, and to its `length`.
//! - It takes `1E400` and `1e-400` for false: it compares numbers of 64 bits.
//! - It renders what is a fault of the author here: `{{log}}`, other helpers, `{{../x}}` outside of a block, `{{this}}` at the
//!   top, options of `if`, and a `~` in a comment, which it ignores.
//! - It has no limit for the rounds of nested loops and for the length of a text, its error of a missing value names no near
//!   name, and it does not say which parts of an address were values (`render` refuses `..` in one).
//!
//! Its tree lacks places: an element has the line and column of its beginning, a path in it has none, and an `{{else if}}` has
//! none at all. Its parser recurses without a limit, and says of a text that it can't read where, but not why. So the tags are
//! found before it runs (`tag`, `locate`). With the crate's renderer, those would stay, and so would `lower`, which the
//! rules of `check` need for the variables, `print` and `secret`. What would go are `node` and most of `render`, some 300
//! of 1,740 lines; five helpers, an escape function, and an output with limits would come.

mod conditions;
mod locate;
mod lower;
mod node;
mod plain;
mod print;
mod render;
mod secret;
mod tag;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_bounds;
#[cfg(test)]
mod tests_comments;

use std::ops::Range;

pub use conditions::JudgedCondition;

use super::scope::{PathStep, Scope, Unresolved};
use super::written_path::spelled_path;
use crate::diagnostic::codes;
use node::TemplateNode;

/// The longest template with tags, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 256 * 1024;
/// The longest text that a template may render to, in bytes.
pub const MAX_RENDERED_BYTES: usize = 16 * 1024 * 1024;

/// What a value is escaped for when it lands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueEscape {
    /// Not at all: prompts, arguments, headers.
    Plain,
    /// For a URL's path or query: all but RFC 3986's unreserved characters.
    Url,
    /// For the inside of a JSON string.
    Json,
    /// For the inside of a JSON string where the text has opened one, and not at all elsewhere: a list, a number or JSON is a value
    /// of its own there.
    JsonStrings,
}

impl ValueEscape {
    /// How values land in a text whose type nothing declares: in one that is written as JSON, as inside a JSON body.
    pub fn of_text(text: &str) -> Self {
        let (trimmed, mut inside) = (text.trim(), text.trim_start().chars());
        let (first, second) = (inside.next(), inside.find(|c| !c.is_whitespace()));
        let is_object = first == Some('{') && matches!(second, Some('"' | '}')) && trimmed.ends_with('}');
        // What is no JSON may begin with a bracket, too: `[INFO] ...`.
        let begins_entry = |c: char| matches!(c, '"' | '{' | '[' | ']' | '-') || c.is_ascii_digit();
        let is_list = first == Some('[') && second.is_some_and(begins_entry) && trimmed.ends_with(']');
        if is_object || is_list { Self::JsonStrings } else { Self::Plain }
    }
}

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    source: String,
    escape: ValueEscape,
    nodes: Vec<TemplateNode>,
    variables: Vec<Variable>,
    uses: Vec<ValueUse>,
    secrets: Vec<String>,
}

/// Something that a template takes from its scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The names from the scope's top on; never empty.
    pub path: Vec<String>,
    /// Its place in the template, in bytes.
    pub range: Range<usize>,
    /// Whether the template does without it: it is the condition of a block, or comes after one.
    pub optional: bool,
}

/// A value that a template uses, in the body of a block too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueUse {
    /// The way from the scope's top on; never empty.
    pub path: Vec<PathStep>,
    /// Its place in the template, in bytes.
    pub range: Range<usize>,
    /// The number of steps of the way that need not be there, or are known to be: a condition asked for them.
    pub guarded: usize,
    /// Whether the value itself becomes a part of the text: it is no condition, no list that is gone through.
    pub is_printed: bool,
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// One of those for templates, L050 to L053.
    pub code: &'static str,
    /// What is wrong, in a sentence without a final stop.
    pub message: String,
    /// Where, in bytes of the template; `None` when the place is not known.
    pub range: Option<Range<usize>>,
    /// How to fix it.
    pub help: Option<String>,
}

impl TemplateFault {
    fn new(code: &'static str, message: impl Into<String>, range: Range<usize>) -> Self {
        Self { code, message: message.into(), range: Some(range), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Template {
    /// Compiles a template. Its values will be escaped by `escape`; its own text stays as written.
    ///
    /// # Errors
    /// When it can't be read, or uses what is not offered. The first fault is reported.
    pub fn compile(text: &str, escape: ValueEscape) -> Result<Self, TemplateFault> {
        let mut template = Self {
            source: text.to_owned(),
            escape,
            nodes: Vec::new(),
            variables: Vec::new(),
            uses: Vec::new(),
            secrets: Vec::new(),
        };
        if !text.contains('{') || !text.contains("{{") {
            let mut keys = secret::SecretKeys::default();
            secret::split(text, &mut template.nodes, &mut keys);
            template.secrets = keys.all;
            return Ok(template);
        }
        if text.len() > MAX_TEMPLATE_BYTES {
            let message = format!("the template is longer than {} KiB", MAX_TEMPLATE_BYTES / 1024);
            return Err(TemplateFault::new(codes::TEMPLATE_SIZE, message, 0..text.len())
                .help("give what is long as a value of the input, and name it: {{input.text}}"));
        }
        let tags = tag::scan(text)?;
        let mut lower = lower::Lower::new(text, &tags);
        template.nodes = match plain::is_plain(text, &tags) {
            true => lower.values(&tags)?,
            false => parsed(text, &tags, &mut lower)?,
        };
        template.variables = lower.variables;
        template.uses = lower.uses;
        template.secrets = lower.secrets.all;
        Ok(template)
    }

    /// The text as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it takes from its scope, in the order of the text; one entry each time it is named.
    /// What an `each` or `with` gives to its inside is not among them.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The values that it uses, as far as their way from the scope's top is known: its variables, and what it names
    /// of the items of an `each` or the value of a `with`.
    pub fn uses(&self) -> &[ValueUse] {
        &self.uses
    }

    /// The keys of the secrets that it names, each once.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Whether it is text and nothing else.
    pub fn is_literal(&self) -> bool {
        self.nodes.iter().all(|node| matches!(node, TemplateNode::Text(_)))
    }

    /// Renders. What the values hold lands in the text as it is, escaped; it is never read as a
    /// template, a path or a secret.
    ///
    /// # Errors
    /// When a value or secret that it needs was not given, when a text of over 16 MiB would come of
    /// it, or when a value would lead an address elsewhere (a path segment `..`, or an empty one).
    pub fn render(&self, scope: &Scope<'_>) -> Result<String, Unresolved> {
        render::render(&self.nodes, self.escape, scope)
    }
}

/// Whether a text is more than itself: it has tags, or names a secret.
pub(crate) fn is_template(text: &str) -> bool {
    // A character is found sooner than a text.
    (text.contains('{') && text.contains("{{")) || secret::is_named(text)
}

/// What the parser makes of a text.
fn parsed(
    text: &str,
    tags: &[tag::TemplateTag],
    lower: &mut lower::Lower<'_>,
) -> Result<Vec<TemplateNode>, TemplateFault> {
    let parsed = handlebars::Template::compile(text).map_err(|error| unread(text, tags, &error))?;
    lower.nodes(&parsed)
}

/// The fault of a tag that prints a path with words behind it: most often a name with a space in it.
fn spaced(text: &str, tag: &tag::TemplateTag) -> Option<TemplateFault> {
    let word = |at: usize| tag.words.get(at).and_then(|word| text.get(word.clone()));
    let (path, next) = (word(0)?, word(1)?);
    if tag.kind != tag::TagKind::Print || !path.contains('.') {
        return None;
    }
    let (head, last) = path.rsplit_once('.')?;
    let message = format!("`{path}` takes no arguments, and `{next}` follows it");
    let fault = TemplateFault::new(codes::TEMPLATE, message, tag.range.clone());
    Some(fault.help(format!("a name with a space in it is written {{{{{head}.[{last} {next}]}}}}")))
}

/// Why a tag of another template language can't be read, and how it is written here.
fn other_language(tag: &str) -> Option<(&'static str, String)> {
    let inner = tag.trim_matches(['{', '}', ' ']);
    let name = inner.split(['|', '[', ' ', '?', '=', '(', '!', '+']).next().unwrap_or_default();
    let name = name.trim_start_matches(['$', '.', '=']).trim_end_matches('.');
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    let instead = if plain { format!("{{{{{name}}}}}") } else { "{{name}}".to_owned() };
    if inner.contains('|') {
        let help = format!("write {instead}, and say in words, or let the caller send, what it shall be");
        return Some(("a template has no filters", help));
    }
    if let Some(instead) = bracketed(inner) {
        return Some(("an index in brackets can't be read here", format!("an index stands between dots: {instead}")));
    }
    if inner.starts_with("$(") || inner.starts_with("$node[") || inner.starts_with("$item(") {
        let help =
            "this is n8n's: the output of an earlier step is written {{its_key.name}}, the run's input {{input.name}}";
        return Some(("a name in a template can't begin so", help.to_owned()));
    }
    if inner == "." {
        let help = "the item that a block goes through is written {{this}}";
        return Some(("a name in a template can't begin so", help.to_owned()));
    }
    if inner.starts_with('$') || inner.starts_with('.') {
        let help = format!("a name begins with a letter: {instead}; the run's input is {{{{input.name}}}}");
        return Some(("a name in a template can't begin so", help));
    }
    let compares = ["==", "!=", ">", "<", "?", "&&", "+"].iter().any(|sign| inner.contains(sign));
    compares.then(|| ("a template has no comparisons and no expressions", tag::NO_COMPARISONS.to_owned()))
}

/// How a path with its indexes in brackets, `a[0].b`, is written here.
fn bracketed(inner: &str) -> Option<String> {
    let name = inner.split('[').next()?;
    let begins = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.')) && !name.ends_with('.');
    let path = spelled_path(inner).filter(|_| begins && !name.is_empty() && inner.contains('['))?;
    Some(format!("{{{{{path}}}}}"))
}

/// A fault that the parser found and the scan before it did not.
fn unread(text: &str, tags: &[tag::TemplateTag], error: &handlebars::TemplateError) -> TemplateFault {
    let places = locate::Locator::new(text, tags);
    let tag = error.pos().and_then(|(line, column)| tags.get(places.at(line, column)?));
    let range = tag.map(|tag| tag.range.clone());
    let other = range.clone().and_then(|range| other_language(text.get(range)?));
    let named_else = range.clone().and_then(|range| text.get(range)).is_some_and(|tag| tag.contains("{else"));
    if let Some(fault) = tag.and_then(|tag| spaced(text, tag)).filter(|_| other.is_none()) {
        return fault;
    }
    let (message, help) = match other {
        Some(reason) => reason,
        None if named_else => (
            "the template can't be read here",
            "a name that begins like `else` is written {{this.else_name}}; a second condition {{else if name}}"
                .to_owned(),
        ),
        None => (
            "the template can't be read here",
            "write {{name}}, {{a.b}}, {{#if a}}...{{/if}}; \\{{ for two braces that are text".to_owned(),
        ),
    };
    TemplateFault { code: codes::TEMPLATE, message: message.to_owned(), range, help: Some(help) }
}
