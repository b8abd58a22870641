//! Renders a compiled template with a scope.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Number, Value};

use super::ValueEscape;
use super::node::{Base, Expr, Route, TemplateNode};
use super::print::Text;
use crate::policy::json_text;
use crate::program::scope::{Scope, Unresolved, absent};
use crate::program::value_kind::value_kind;

/// The most parts that one rendering may process: a limit for nested loops over long lists.
const MAX_PARTS: usize = 5_000_000;

pub(super) fn render(nodes: &[TemplateNode], escape: ValueEscape, scope: &Scope<'_>) -> Result<String, Unresolved> {
    if let [TemplateNode::Text(text)] = nodes {
        return Ok(text.clone());
    }
    let mut render = Render::new(escape, scope);
    render.nodes(nodes)?;
    if escape == ValueEscape::Url {
        render.stays_in_place()?;
    }
    Ok(render.text.into_string())
}

/// The conditions that a rendering comes to, each with its outcome, as far as it comes.
pub(super) fn conditions<'n>(nodes: &'n [TemplateNode], scope: &Scope<'_>) -> Vec<(&'n TemplateNode, bool)> {
    let mut render = Render { judged: Some(Vec::new()), ..Render::new(ValueEscape::Plain, scope) };
    // What can't be rendered ends the text, and was reported where it was rendered.
    drop(render.nodes(nodes));
    render.judged.unwrap_or_default()
}

struct Render<'n, 's> {
    scope: &'s Scope<'s>,
    text: Text,
    frames: Vec<Frame<'s>>,
    parts: usize,
    /// The positions of values in an address.
    printed: Vec<Range<usize>>,
    /// Their names, parallel to `printed`.
    names: Vec<&'n str>,
    /// The conditions so far, when somebody asks for them.
    judged: Option<Vec<(&'n TemplateNode, bool)>>,
}

/// The current iteration of a block.
struct Frame<'s> {
    item: Cow<'s, Value>,
    key: Value,
    index: usize,
    last: bool,
}

impl<'n, 's> Render<'n, 's> {
    fn new(escape: ValueEscape, scope: &'s Scope<'s>) -> Self {
        let text = Text::new(escape);
        Self { scope, text, frames: Vec::new(), parts: 0, printed: Vec::new(), names: Vec::new(), judged: None }
    }

    fn nodes(&mut self, nodes: &'n [TemplateNode]) -> Result<(), Unresolved> {
        for node in nodes {
            self.parts += 1;
            if self.parts > MAX_PARTS {
                return Err(Unresolved("the template's loops go round too often".to_owned()));
            }
            self.node(node)?;
        }
        Ok(())
    }

    fn node(&mut self, node: &'n TemplateNode) -> Result<(), Unresolved> {
        match node {
            TemplateNode::Text(text) => self.text.authored(text),
            TemplateNode::Secret(key) => {
                let Some(secrets) = self.scope.secrets else {
                    return Err(Unresolved(format!("the secret `{key}` may not be used here")));
                };
                let secret = secrets.secret(key).map_err(Unresolved)?;
                self.text.escaped(&secret)
            }
            TemplateNode::Print(expr) => {
                let begin = self.text.as_str().len();
                let value = self.value(expr)?;
                self.text.value(&value)?;
                self.printed.push(begin..self.text.as_str().len());
                self.names.push(expr.name());
                Ok(())
            }
            TemplateNode::If { test, then, other } => {
                // A missing name counts as false, because it may be an optional input.
                let holds = self.value(test).is_ok_and(|value| is_truthy(&value));
                if let Some(judged) = &mut self.judged {
                    judged.push((node, holds));
                }
                self.nodes(if holds { then } else { other })
            }
            TemplateNode::Each { over, body, other } => self.each(over, body, other.as_deref()),
            TemplateNode::With { value, body, other } => self.with(value, body, other.as_deref()),
        }
    }

    fn each(
        &mut self,
        over: &'n Expr,
        body: &'n [TemplateNode],
        other: Option<&'n [TemplateNode]>,
    ) -> Result<(), Unresolved> {
        let list = match (self.value(over), other) {
            (Ok(list), _) => list,
            (Err(_), Some(other)) => return self.nodes(other),
            (Err(missing), None) => return Err(missing),
        };
        // A path, a loop and a matcher read such a text, too.
        let of_text = match list.as_ref() {
            Value::String(text) if self.scope.reads_fences => self.scope.json_of(text),
            _ => None,
        };
        let rounds: Vec<(Value, Cow<'s, Value>)> = match of_text.map_or(list, Cow::Owned) {
            Cow::Borrowed(Value::Array(items)) => numbered(items.iter().map(Cow::Borrowed)),
            Cow::Borrowed(Value::Object(members)) => {
                members.iter().map(|(key, value)| (Value::from(key.as_str()), Cow::Borrowed(value))).collect()
            }
            Cow::Owned(Value::Array(items)) => numbered(items.into_iter().map(Cow::Owned)),
            Cow::Owned(Value::Object(members)) => {
                members.into_iter().map(|(key, value)| (Value::from(key), Cow::Owned(value))).collect()
            }
            Cow::Borrowed(Value::Null) | Cow::Owned(Value::Null) => Vec::new(),
            scalar => {
                let message = format!("`{}` is {} and no list to go through", over.name(), value_kind(&scalar));
                return other.map_or(Err(Unresolved(message)), |other| self.nodes(other));
            }
        };
        if rounds.is_empty() {
            return other.map_or(Ok(()), |other| self.nodes(other));
        }
        let last = rounds.len() - 1;
        for (index, (key, item)) in rounds.into_iter().enumerate() {
            self.frames.push(Frame { item, key, index, last: index == last });
            let done = self.nodes(body);
            self.frames.pop();
            done?;
        }
        Ok(())
    }

    fn with(
        &mut self,
        value: &'n Expr,
        body: &'n [TemplateNode],
        other: Option<&'n [TemplateNode]>,
    ) -> Result<(), Unresolved> {
        let item = match (self.value(value), other) {
            (Ok(item), _) if is_truthy(&item) => item,
            (_, Some(other)) => return self.nodes(other),
            (Ok(_), None) => return Ok(()),
            (Err(missing), None) => return Err(missing),
        };
        self.frames.push(Frame { item, key: Value::Null, index: 0, last: true });
        let done = self.nodes(body);
        self.frames.pop();
        done
    }

    fn value(&self, expr: &'n Expr) -> Result<Cow<'s, Value>, Unresolved> {
        match expr {
            Expr::Literal(value) => Ok(Cow::Owned(value.clone())),
            Expr::Path(route) => self.route(route),
            Expr::Lookup(object, key) => {
                let key = match self.value(key)?.as_ref() {
                    Value::String(text) => text.clone(),
                    Value::Number(number) => number.to_string(),
                    other => return Err(Unresolved(format!("`{}` is {} and no name", key.name(), value_kind(other)))),
                };
                let object_name = object.name();
                let found = self.scope.step_into(self.value(object)?, &key);
                found.map_err(|rest| absent(object_name, &key, rest.as_ref()))
            }
        }
    }

    fn route(&self, route: &'n Route) -> Result<Cow<'s, Value>, Unresolved> {
        let frame = |at: usize| {
            self.frames.get(at).ok_or_else(|| Unresolved(format!("`{}` is outside of its block", route.raw)))
        };
        let mut value = match route.base {
            Base::Root => return self.scope.lookup(&route.segments),
            Base::Item(at) => frame(at)?.item.clone(),
            Base::Key(at) => Cow::Owned(frame(at)?.key.clone()),
            Base::Index(at) => Cow::Owned(Value::Number(Number::from(frame(at)?.index))),
            Base::First(at) => Cow::Owned(Value::Bool(frame(at)?.index == 0)),
            Base::Last(at) => Cow::Owned(Value::Bool(frame(at)?.last)),
        };
        for segment in &route.segments {
            value = self.scope.step_into(value, segment).map_err(|rest| {
                let Unresolved(message) = absent(&route.raw, segment, rest.as_ref());
                Unresolved(format!(
                    "{message}; inside of a block names begin at its item, and at the top with `@root.`"
                ))
            })?;
        }
        Ok(value)
    }

    /// Refuses an address whose values would change its path: every client resolves a segment `.` or `..` away,
    /// and an empty one turns `/tickets/7` into `/tickets/`.
    fn stays_in_place(&self) -> Result<(), Unresolved> {
        let text = self.text.as_str();
        let Some(authority) = text.find("://").map(|at| at + 3) else { return Ok(()) };
        let ends = |text: &str, marks: &[char]| text.find(marks);
        let path = authority
            + ends(text.get(authority..).unwrap_or_default(), &['/', '?', '#']).unwrap_or(text.len() - authority);
        let path_end = path + ends(text.get(path..).unwrap_or_default(), &['?', '#']).unwrap_or(text.len() - path);
        // The end of the last checked segment: a list may put thousands of values into one.
        let mut judged = 0;
        for (printed, name) in self.printed.iter().zip(&self.names) {
            if printed.start <= path || printed.end > path_end || printed.start <= judged {
                continue;
            }
            let begin = text.get(..printed.start).and_then(|before| before.rfind('/')).map_or(0, |at| at + 1);
            let rest = text.get(begin..path_end).unwrap_or_default();
            let segment = rest.split('/').next().unwrap_or_default();
            judged = begin + segment.len();
            if segment.is_empty() {
                return Err(Unresolved(format!("`{name}` is empty, and the address needs it")));
            }
            if matches!(segment, "." | "..") {
                return Err(Unresolved(format!(
                    "`{name}` would lead the address elsewhere: it makes a path segment `{segment}`"
                )));
            }
        }
        Ok(())
    }
}

impl Expr {
    /// Its name in messages.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Path(route) => &route.raw,
            Self::Literal(_) => "the literal",
            Self::Lookup(object, _) => object.name(),
        }
    }
}

fn numbered<'s>(items: impl Iterator<Item = Cow<'s, Value>>) -> Vec<(Value, Cow<'s, Value>)> {
    items.enumerate().map(|(index, item)| (Value::from(index), item)).collect()
}

/// Whether a value counts as true: not `false`, `null`, 0, an empty text, list or object.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        // A digit other than 0 before the exponent, however large or small the number is.
        Value::Number(number) => json_text::digits(number)
            .bytes()
            .take_while(|byte| !matches!(byte, b'e' | b'E'))
            .any(|byte| matches!(byte, b'1'..=b'9')),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}
