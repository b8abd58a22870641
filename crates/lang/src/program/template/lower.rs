//! From the parsed template to what it means: every name is settled here, once; anything that is
//! not offered is a fault.

use std::ops::Range;

use handlebars::template::{BlockParam, HelperTemplate, Parameter, Template, TemplateElement};

use super::locate::Locator;
use super::node::{self, Base, Expr, Route, TemplateNode};
use super::tag::TemplateTag;
use super::{TemplateFault, ValueUse, Variable, secret};
use crate::diagnostic::{codes, nearest};
use crate::program::scope::{PathStep, steps};

const BLOCKS: [&str; 4] = ["if", "unless", "each", "with"];
const HELPERS: [&str; 5] = ["if", "unless", "each", "with", "lookup"];
/// Names that Handlebars keeps for its helpers: a bare `{{log}}` would call one there.
const KEPT: [&str; 7] = ["if", "unless", "each", "with", "lookup", "log", "raw"];

/// Walks a parsed template in the order of the text, and gives every name its meaning.
pub(super) struct Lower<'t> {
    text: &'t str,
    places: Locator<'t>,
    blocks: Vec<OpenBlock>,
    /// The paths that conditions around have asked for.
    asked: Vec<Vec<PathStep>>,
    /// What the template takes from its scope.
    pub variables: Vec<Variable>,
    /// The same, and what it takes from items.
    pub uses: Vec<ValueUse>,
    /// The secrets that it names.
    pub secrets: secret::SecretKeys,
}

/// The names that a block gives: `as |item key|`.
#[derive(Debug, Clone, Default)]
struct BlockNames {
    item: Option<String>,
    key: Option<String>,
}

/// A block around the element that is lowered now.
struct OpenBlock {
    names: BlockNames,
    each: bool,
    /// The way to its item, where it is known.
    item: Option<Vec<PathStep>>,
}

impl<'t> Lower<'t> {
    pub fn new(text: &'t str, tags: &'t [TemplateTag]) -> Self {
        Self {
            text,
            places: Locator::new(text, tags),
            blocks: Vec::new(),
            asked: Vec::new(),
            variables: Vec::new(),
            uses: Vec::new(),
            secrets: secret::SecretKeys::default(),
        }
    }

    /// Lowers what the parser made of a text, or of a part of a block.
    pub fn nodes(&mut self, template: &Template) -> Result<Vec<TemplateNode>, TemplateFault> {
        let mut nodes = Vec::with_capacity(template.elements.len());
        let mut open_key = false;
        for (at, element) in template.elements.iter().enumerate() {
            if let Some(place) = template.mapping.get(at) {
                self.places.go_to(place.0, place.1);
            }
            match element {
                TemplateElement::RawString(text) => {
                    open_key = secret::split(text, &mut nodes, &mut self.secrets);
                    continue;
                }
                TemplateElement::Comment(_) => {}
                TemplateElement::Expression(print) | TemplateElement::HtmlExpression(print) => {
                    self.no_open_key(open_key)?;
                    let before = self.uses.len();
                    let expr = self.print(print)?;
                    // What a `lookup` takes is not what it gives.
                    let is_printed = matches!(expr, Expr::Path(_));
                    self.uses.iter_mut().skip(before).for_each(|used| used.is_printed = is_printed);
                    nodes.push(TemplateNode::Print(expr));
                }
                TemplateElement::HelperBlock(block) => {
                    self.no_open_key(open_key)?;
                    nodes.push(self.block(block)?);
                }
                // Partials and decorators.
                _ => return Err(self.fault(codes::TEMPLATE_HELPER, "partials and decorators are not offered")),
            }
            open_key = false;
        }
        Ok(nodes)
    }

    /// Settles a template that has nothing but names in its tags: see [`super::plain`].
    pub fn values(&mut self, tags: &[TemplateTag]) -> Result<Vec<TemplateNode>, TemplateFault> {
        let mut nodes = Vec::with_capacity(tags.len() * 2 + 1);
        let mut from = 0;
        for (at, tag) in tags.iter().enumerate() {
            let before = self.text.get(from..tag.range.start).unwrap_or_default();
            let open_key = secret::split(before, &mut nodes, &mut self.secrets);
            self.places.enter(Some(at));
            self.no_open_key(open_key)?;
            let name = tag.words.first().and_then(|word| self.text.get(word.clone())).unwrap_or_default();
            nodes.push(TemplateNode::Print(self.route(name)?));
            from = tag.range.end;
        }
        secret::split(self.text.get(from..).unwrap_or_default(), &mut nodes, &mut self.secrets);
        self.uses.iter_mut().for_each(|used| used.is_printed = true);
        Ok(nodes)
    }

    fn no_open_key(&self, open_key: bool) -> Result<(), TemplateFault> {
        if !open_key {
            return Ok(());
        }
        Err(self
            .fault(codes::TEMPLATE_NAME, "the key of a secret can't be made by a template")
            .help("write the whole key after `orgconfig:`, and a space or another mark between it and the tag"))
    }

    fn fault(&self, code: &'static str, message: impl Into<String>) -> TemplateFault {
        TemplateFault::new(code, message, self.places.tag_range())
    }

    fn print(&mut self, print: &HelperTemplate) -> Result<Expr, TemplateFault> {
        if !print.params.is_empty() || !print.hash.is_empty() {
            return self.helper(print);
        }
        if let Some(name) = print.name.as_name().filter(|name| KEPT.contains(name)) {
            let message = format!("`{name}` is a helper's name, and it has no arguments here");
            return Err(self
                .fault(codes::TEMPLATE_HELPER, message)
                .help(format!("for a value of this name write {{{{this.{name}}}}}")));
        }
        self.expr(&print.name)
    }

    /// `lookup`, the only helper that gives a value.
    fn helper(&mut self, call: &HelperTemplate) -> Result<Expr, TemplateFault> {
        let name = call.name.as_name().unwrap_or_default();
        let place = self.places.word(name);
        if name != "lookup" {
            let fault = TemplateFault::new(codes::TEMPLATE_HELPER, format!("there is no helper `{name}`"), place);
            let index = call.params.first().and_then(Parameter::as_name).map(|word| word.trim_matches(['[', ']']));
            let index = index.filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()));
            return Err(fault.help(match nearest(name, HELPERS) {
                None if index.is_some() => {
                    format!("an index stands between dots: {{{{{name}.{}}}}}", index.unwrap_or_default())
                }
                _ if name.starts_with('$') => {
                    "this is n8n's: the run's input is written {{input.name}}, the output of an earlier step {{its_key.name}}"
                        .to_owned()
                }
                _ if matches!(name, "elif" | "elsif" | "elseif" | "else_if") => {
                    let condition = call.params.first().and_then(Parameter::as_name).unwrap_or("name");
                    format!("a second condition is written {{{{else if {condition}}}}}")
                }
                Some("lookup") => "did you mean `lookup`?".to_owned(),
                Some(block) => format!("did you mean the block {{{{#{block} ...}}}}?"),
                None => "a value can be named or looked up, and nothing else: {{lookup object name}}".to_owned(),
            }));
        }
        if !call.hash.is_empty() {
            return Err(self.fault(codes::TEMPLATE, "`lookup` takes no options"));
        }
        let [object, key] = call.params.as_slice() else {
            return Err(self
                .fault(codes::TEMPLATE, "`lookup` takes two values")
                .help("the object, then the name in it: {{lookup object name}}"));
        };
        Ok(Expr::Lookup(Box::new(self.expr(object)?), Box::new(self.expr(key)?)))
    }

    fn expr(&mut self, parameter: &Parameter) -> Result<Expr, TemplateFault> {
        match parameter {
            Parameter::Literal(value) => Ok(Expr::Literal(value.clone())),
            Parameter::Subexpression(inner) => match inner.as_element() {
                TemplateElement::Expression(call) => self.print(call),
                _ => Err(self.fault(codes::TEMPLATE, "the expression in parentheses gives no value")),
            },
            Parameter::Name(raw) => self.route(raw),
            _ => self.route(parameter.as_name().unwrap_or_default()),
        }
    }

    /// A block whose tag is the current one: `{{#if ...}}`, or `{{else if ...}}` that continues.
    fn block(&mut self, block: &HelperTemplate) -> Result<TemplateNode, TemplateFault> {
        let name = block.name.as_name().unwrap_or_default();
        let tag = self.places.current();
        let place = self.places.word(name);
        if !BLOCKS.contains(&name) {
            let fault = TemplateFault::new(codes::TEMPLATE_HELPER, format!("there is no block `{name}`"), place);
            return Err(fault.help(match nearest(name, BLOCKS) {
                Some(block) => format!("did you mean {{{{#{block} ...}}}}?"),
                None => "blocks are if, unless, each and with".to_owned(),
            }));
        }
        let ([parameter], true) = (block.params.as_slice(), block.hash.is_empty()) else {
            let message = format!("`{name}` takes one value, and no options");
            return Err(self.fault(codes::TEMPLATE, message).help(format!("write {{{{#{name} input.x}}}}")));
        };
        let (before, uses_before) = (self.variables.len(), self.uses.len());
        let value = self.expr(parameter)?;
        let names = self.names(block)?;
        let repeats = matches!(name, "each" | "with");
        let asked = self.asked.len();
        let is_optional = !repeats || block.inverse.is_some();
        self.variables.iter_mut().skip(before).for_each(|variable| variable.optional |= is_optional);
        for used in self.uses.iter_mut().skip(uses_before) {
            if is_optional {
                used.guarded = used.path.len();
            }
            self.asked.push(used.path.clone());
        }
        let item = self.item(&value, uses_before, name == "each");
        if repeats {
            self.blocks.push(OpenBlock { names, each: name == "each", item });
        } else if names.item.is_some() {
            let message = format!("`{name}` gives no names");
            return Err(self.fault(codes::TEMPLATE, message).help("take away `as |...|`"));
        }
        let body = match &block.template {
            Some(template) => self.nodes(template)?,
            None => Vec::new(),
        };
        if repeats {
            self.blocks.pop();
        }
        if name != "unless" {
            self.asked.truncate(asked);
        }
        let other = self.other(block, tag)?;
        self.asked.truncate(asked);
        Ok(match name {
            "if" => TemplateNode::If { test: value, then: body, other: other.unwrap_or_default() },
            "unless" => TemplateNode::If { test: value, then: other.unwrap_or_default(), other: body },
            "each" => TemplateNode::Each { over: value, body, other },
            _ => TemplateNode::With { value, body, other },
        })
    }

    /// The way to the item of a block over a value: the value itself, or each of its entries.
    fn item(&mut self, value: &Expr, uses_before: usize, each: bool) -> Option<Vec<PathStep>> {
        let used = self.uses.get(uses_before).filter(|_| matches!(value, Expr::Path(_)))?;
        let (mut path, range) = (used.path.clone(), used.range.clone());
        if each {
            path.push(PathStep::Entry);
            // What has no entries can't be gone through, even where nothing is named of them.
            self.uses.push(ValueUse { guarded: path.len(), path: path.clone(), range, is_printed: false });
        }
        Some(path)
    }

    /// The part after `{{else}}`. Where that tag has a condition, it opens a block of its own,
    /// which the same closing tag ends.
    fn other(
        &mut self,
        block: &HelperTemplate,
        tag: Option<usize>,
    ) -> Result<Option<Vec<TemplateNode>>, TemplateFault> {
        let Some(inverse) = &block.inverse else { return Ok(None) };
        let goes_on = self.places.go_to_else(tag);
        match inverse.elements.as_slice() {
            [TemplateElement::HelperBlock(inner)] if goes_on => Ok(Some(vec![self.block(inner)?])),
            _ => self.nodes(inverse).map(Some),
        }
    }

    fn names(&self, block: &HelperTemplate) -> Result<BlockNames, TemplateFault> {
        let name = |parameter: &Parameter| parameter.as_name().map(str::to_owned);
        let names = match &block.block_param {
            None => return Ok(BlockNames::default()),
            Some(BlockParam::Single(item)) => BlockNames { item: name(item), key: None },
            Some(BlockParam::Pair((item, key))) => BlockNames { item: name(item), key: name(key) },
            Some(_) => return Err(self.fault(codes::TEMPLATE, "a block gives one name, or two")),
        };
        if names.key.is_some() && block.name.as_name() != Some("each") {
            return Err(self.fault(codes::TEMPLATE, "only `each` gives a second name, the key"));
        }
        Ok(names)
    }

    /// Settles a path: `a.b`, `this.a`, `./a`, `../a`, `@root.a`, `@index`, `@../key`.
    fn route(&mut self, raw: &str) -> Result<Expr, TemplateFault> {
        let place = self.places.word(raw);
        let mut rest = raw;
        let mut explicit = false;
        for prefix in ["this.", "this/", "./"] {
            if let Some(after) = rest.strip_prefix(prefix) {
                rest = after;
                explicit = true;
                break;
            }
        }
        let from_root = rest.strip_prefix("@root.").or_else(|| rest.strip_prefix("@root/"));
        rest = from_root.unwrap_or(rest);
        let local = rest.strip_prefix('@');
        rest = local.unwrap_or(rest);
        let mut up = 0;
        while let Some(after) = rest.strip_prefix("../").or_else(|| rest.strip_prefix("...")) {
            rest = after;
            up += 1;
        }
        let mut segments = node::names(rest);
        if !explicit && segments.first().is_some_and(|first| first == "this") {
            explicit = true;
            segments.remove(0);
        }
        let depth = self.blocks.len();
        let base = if from_root.is_some() {
            Base::Root
        } else if local.is_some() {
            return self.local(raw, &segments, up, place);
        } else if up > depth {
            let message = format!("`{raw}` leads out of the template");
            return Err(TemplateFault::new(codes::TEMPLATE_NAME, message, place).help(match depth {
                0 => "there is no block around it".to_owned(),
                1 => "there is one block around it".to_owned(),
                depth => format!("there are {depth} blocks around it"),
            }));
        } else if let Some(named) = self.named(&segments).filter(|_| up == 0 && !explicit) {
            segments.remove(0);
            named
        } else {
            (depth - up).checked_sub(1).map_or(Base::Root, Base::Item)
        };
        if base == Base::Root && segments.is_empty() {
            let message = format!("`{raw}` names nothing outside of a block");
            return Err(TemplateFault::new(codes::TEMPLATE_NAME, message, place)
                .help("write the name of a value: {{input.name}}"));
        }
        let way = match base {
            Base::Root => Some(Vec::new()),
            Base::Item(at) => self.blocks.get(at).and_then(|block| block.item.clone()),
            _ => None,
        };
        if let Some(mut path) = way {
            path.extend(steps(&segments));
            let optional = self.asked.iter().any(|asked| path.starts_with(asked));
            if base == Base::Root {
                self.variables.push(Variable { path: segments.clone(), range: place.clone(), optional });
            }
            let common =
                |asked: &Vec<PathStep>| asked.iter().zip(&path).take_while(|(one, other)| one == other).count();
            let guarded = self.asked.iter().map(common).max().unwrap_or_default();
            self.uses.push(ValueUse { path, range: place, guarded, is_printed: false });
        }
        Ok(Expr::Path(Route { raw: raw.to_owned(), base, segments }))
    }

    /// A name that a block around gave with `as |...|`; the innermost wins.
    fn named(&self, segments: &[String]) -> Option<Base> {
        let first = segments.first()?;
        self.blocks.iter().enumerate().rev().find_map(|(at, block)| {
            if block.names.item.as_ref() == Some(first) {
                Some(Base::Item(at))
            } else if block.names.key.as_ref() == Some(first) {
                Some(Base::Key(at))
            } else {
                None
            }
        })
    }

    /// `@index` and its like: those of the innermost `each`, or of one further out.
    fn local(&self, raw: &str, segments: &[String], up: usize, place: Range<usize>) -> Result<Expr, TemplateFault> {
        let around = self.blocks.len().saturating_sub(up);
        let each = self.blocks.iter().take(around).rposition(|block| block.each);
        let known = ["index", "key", "first", "last"];
        let (Some(at), [name]) = (each, segments) else {
            let fault = TemplateFault::new(codes::TEMPLATE_NAME, format!("`{raw}` means nothing here"), place);
            return Err(fault.help(match segments {
                [name] if known.contains(&name.as_str()) => format!("`@{name}` belongs inside of {{{{#each ...}}}}"),
                _ => format!(
                    "inside of a template a value is named without `@`: {{{{{}}}}}",
                    raw.trim_start_matches('@')
                ),
            }));
        };
        let base = match name.as_str() {
            "index" => Base::Index(at),
            "key" => Base::Key(at),
            "first" => Base::First(at),
            "last" => Base::Last(at),
            other => {
                let fault = TemplateFault::new(codes::TEMPLATE_NAME, format!("`{raw}` means nothing here"), place);
                return Err(fault.help(match nearest(other, known) {
                    Some(name) => format!("did you mean `@{name}`?"),
                    None => format!("inside of a template a value is named without `@`: {{{{{other}}}}}"),
                }));
            }
        };
        Ok(Expr::Path(Route { raw: raw.to_owned(), base, segments: Vec::new() }))
    }
}
