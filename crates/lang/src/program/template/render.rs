//! Renders a compiled template with a scope.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Number, Value};

use super::ValueEscape;
use super::node::{Base, Expr, Route, TemplateNode};
use super::print::Text;
use crate::policy::json_text;
use crate::program::long_work;
use crate::program::scope::{Scope, Unresolved, absent_bytes};
use crate::program::template_work::{TemplateWork, value_bytes};
use crate::program::value_kind::value_kind;

/// The most parts of one rendering in a run of an older edition, which bounds nothing else.
const MAX_PARTS: usize = 5_000_000;

/// The key and the item of each round of a loop.
type Rounds<'s> = Vec<(Value, Cow<'s, Value>)>;

pub(super) fn render(nodes: &[TemplateNode], escape: ValueEscape, scope: &Scope<'_>) -> Result<String, Unresolved> {
    if let [TemplateNode::Text(text)] = nodes {
        return Ok(text.clone());
    }
    let mut render = Render::new(escape, scope);
    render.nodes(nodes)?;
    if escape == ValueEscape::Url {
        render.stays_in_place()?;
    }
    let text = render.text.into_string();
    render.work.add_text(text.len());
    if render.is_bounded {
        render.work.is_within()?;
    }
    Ok(text)
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
    /// The work of all that is made together, and whether it is bounded.
    work: &'s TemplateWork,
    is_bounded: bool,
    /// The parts of this rendering.
    parts: usize,
    /// Whether the work has left the thread that others wait for.
    is_away: bool,
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
        Self {
            scope,
            text,
            frames: Vec::new(),
            work: scope.json.work(),
            is_bounded: scope.json.bounds_work(),
            parts: 0,
            is_away: false,
            printed: Vec::new(),
            names: Vec::new(),
            judged: None,
        }
    }

    fn nodes(&mut self, nodes: &'n [TemplateNode]) -> Result<(), Unresolved> {
        for node in nodes {
            self.count(1)?;
            self.node(node)?;
        }
        Ok(())
    }

    /// Counts parts.
    fn count(&mut self, parts: usize) -> Result<(), Unresolved> {
        self.parts = self.parts.saturating_add(parts);
        self.work.add_parts(parts);
        if self.is_bounded {
            return self.work.is_within();
        }
        if self.parts > MAX_PARTS {
            Err(Unresolved::refused("the template's loops go round too often"))
        } else {
            Ok(())
        }
    }

    fn node(&mut self, node: &'n TemplateNode) -> Result<(), Unresolved> {
        match node {
            TemplateNode::Text(text) => self.text.authored(text),
            TemplateNode::Secret(key) => {
                let Some(secrets) = self.scope.secrets else {
                    return Err(Unresolved::missing(format!("the secret `{key}` may not be used here")));
                };
                let secret = secrets.secret(key).map_err(Unresolved::missing)?;
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
                let holds = match self.value(test) {
                    Ok(value) => is_truthy(&value),
                    Err(why) if self.scope.is_fault(&why) => return Err(why),
                    Err(_) => false,
                };
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
            (Err(why), Some(other)) if !self.scope.is_fault(&why) => return self.nodes(other),
            (Err(why), _) => return Err(why),
        };
        // A path, a loop and a matcher read such a text, too.
        let of_text = match list.as_ref() {
            Value::String(text) if self.scope.json.rule().reads_fences() => {
                self.work.add_read(text.len());
                self.scope.json_of(text)
            }
            _ => None,
        };
        let list = of_text.map_or(list, Cow::Owned);
        // The parts of a round count, and an empty body has none.
        let rounds = match list.as_ref() {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        if body.is_empty() && rounds > 0 {
            return if self.is_bounded { self.count(rounds) } else { Ok(()) };
        }
        let rounds: Rounds<'s> = match list {
            Cow::Borrowed(Value::Array(items)) => numbered(items.iter().map(Cow::Borrowed)),
            Cow::Borrowed(Value::Object(members)) => {
                members.iter().map(|(key, value)| (Value::from(key.as_str()), Cow::Borrowed(value))).collect()
            }
            Cow::Owned(Value::Array(items)) => numbered(items.into_iter().map(Cow::Owned)),
            Cow::Owned(Value::Object(members)) => {
                members.into_iter().map(|(key, value)| (Value::from(key), Cow::Owned(value))).collect()
            }
            Cow::Borrowed(Value::Null) | Cow::Owned(Value::Null) => Vec::new(),
            scalar if let Some(broken) = self.scope.broken_list(over.name(), &scalar) => return Err(broken),
            scalar => {
                let message = format!("`{}` is {} and no list to go through", over.name(), value_kind(&scalar));
                return other.map_or(Err(Unresolved::missing(message)), |other| self.nodes(other));
            }
        };
        if rounds.is_empty() {
            return other.map_or(Ok(()), |other| self.nodes(other));
        }
        let last = rounds.len() - 1;
        self.rounds(&mut rounds.into_iter().enumerate(), last, body)
    }

    /// Renders the body once for each round. Long work leaves the thread.
    fn rounds(
        &mut self,
        rounds: &mut dyn Iterator<Item = (usize, (Value, Cow<'s, Value>))>,
        last: usize,
        body: &'n [TemplateNode],
    ) -> Result<(), Unresolved> {
        loop {
            if !self.is_away && self.work.is_long() {
                self.is_away = true;
                let mut done = None;
                long_work::away(&mut || done = Some(self.rounds(rounds, last, body)));
                if let Some(done) = done {
                    self.is_away = false;
                    return done;
                }
            }
            let Some((index, (key, item))) = rounds.next() else { return Ok(()) };
            self.frames.push(Frame { item, key, index, last: index == last });
            let done = self.nodes(body);
            self.frames.pop();
            done?;
        }
    }

    fn with(
        &mut self,
        value: &'n Expr,
        body: &'n [TemplateNode],
        other: Option<&'n [TemplateNode]>,
    ) -> Result<(), Unresolved> {
        let item = match (self.value(value), other) {
            (Ok(item), _) if is_truthy(&item) => item,
            (Err(why), _) if self.scope.is_fault(&why) => return Err(why),
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
        let value = self.value_of(expr)?;
        self.work.add_read(match &value {
            Cow::Owned(copy) => value_bytes(copy),
            // All its digits may be looked at.
            Cow::Borrowed(Value::Number(number)) => json_text::digits(number).len(),
            Cow::Borrowed(_) => 0,
        });
        Ok(value)
    }

    fn value_of(&self, expr: &'n Expr) -> Result<Cow<'s, Value>, Unresolved> {
        match expr {
            Expr::Literal(value) => Ok(Cow::Owned(value.clone())),
            Expr::Path(route) => self.route(route),
            Expr::Lookup(object, key) => {
                let key = match self.value(key)?.as_ref() {
                    Value::String(text) => text.clone(),
                    Value::Number(number) => number.to_string(),
                    other => {
                        return Err(Unresolved::missing(format!(
                            "`{}` is {} and no name",
                            key.name(),
                            value_kind(other)
                        )));
                    }
                };
                self.work.add_read(key.len());
                let object_name = object.name();
                self.step_into(self.value(object)?, &key)
                    .map_err(|rest| self.scope.absent(object_name, &key, rest.as_ref()))
            }
        }
    }

    fn route(&self, route: &'n Route) -> Result<Cow<'s, Value>, Unresolved> {
        let frame = |at: usize| {
            self.frames.get(at).ok_or_else(|| Unresolved::missing(format!("`{}` is outside of its block", route.raw)))
        };
        let value = match route.base {
            Base::Root => {
                let (value, read) = self.scope.lookup_counted(&route.segments);
                self.work.add_read(read);
                return value;
            }
            Base::Item(at) => match &frame(at)?.item {
                Cow::Borrowed(item) => Cow::Borrowed(*item),
                // What the path leads to is copied, and not all of the item.
                Cow::Owned(item) => {
                    return self.below(Cow::Borrowed(item), route).map(|value| Cow::Owned(value.into_owned()));
                }
            },
            Base::Key(at) => Cow::Owned(frame(at)?.key.clone()),
            Base::Index(at) => Cow::Owned(Value::Number(Number::from(frame(at)?.index))),
            Base::First(at) => Cow::Owned(Value::Bool(frame(at)?.index == 0)),
            Base::Last(at) => Cow::Owned(Value::Bool(frame(at)?.last)),
        };
        self.below(value, route)
    }

    /// What the names of a path inside of a block lead to.
    fn below<'v>(&self, mut value: Cow<'v, Value>, route: &Route) -> Result<Cow<'v, Value>, Unresolved> {
        for segment in &route.segments {
            value = self.step_into(value, segment).map_err(|rest| {
                let absent = self.scope.absent(&route.raw, segment, rest.as_ref());
                if self.scope.is_fault(&absent) {
                    return absent;
                }
                let why = format!("{absent}; inside of a block names begin at its item, and at the top with `@root.`");
                Unresolved { why, ..absent }
            })?;
        }
        Ok(value)
    }

    /// A step down from a value; counts what it reads.
    fn step_into<'v>(&self, value: Cow<'v, Value>, segment: &str) -> Result<Cow<'v, Value>, Cow<'v, Value>> {
        self.work.add_read(value.as_str().map_or(0, str::len));
        self.scope.step_into(value, segment).inspect_err(|rest| self.work.add_read(absent_bytes(rest)))
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
                return Err(Unresolved::missing(format!("`{name}` is empty, and the address needs it")));
            }
            if matches!(segment, "." | "..") {
                return Err(Unresolved::refused(format!(
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

fn numbered<'s>(items: impl Iterator<Item = Cow<'s, Value>>) -> Rounds<'s> {
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
