//! What is wrong with a value that does not match: by each rule that it breaks, and where none of several
//! forms matches, by the nearest form alone, when its words are asked for.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::comparison::Judge;
use super::evaluated_parts;
use super::plan::{Asks, Id, Plan, Ruled, SchemaPart, SchemaRule, Sized, TYPES};
use super::problem::{Forms, ProblemKind, ValueProblem, type_name};
use super::work::{TooMuch, count};
use crate::program::reference::escape_pointer;

/// Looks for what is wrong, until there is enough.
pub(super) struct Gather<'j, 'p, 'v> {
    pub judge: &'j mut Judge<'p>,
    pub source: &'j Value,
    /// What was found.
    pub found: Vec<ValueProblem<'v>>,
    /// So much is enough.
    pub enough: usize,
    path: String,
    /// Parts that were gone through for a value: their faults are known.
    gone: HashSet<(Id, usize)>,
}

impl<'j, 'p, 'v> Gather<'j, 'p, 'v> {
    /// For a value at this path.
    pub(super) fn new(judge: &'j mut Judge<'p>, source: &'j Value, path: &str, enough: usize) -> Self {
        judge.thorough = true;
        Self { judge, source, found: Vec::new(), enough, path: path.to_owned(), gone: HashSet::new() }
    }

    /// Adds what is wrong with a value by a part that it does not match.
    ///
    /// # Errors
    /// When that would take more work than there is. What was found stays.
    pub(super) fn part(&mut self, id: Id, value: &'v Value) -> Result<(), TooMuch> {
        if self.found.len() >= self.enough || self.judge.matches(id, value)? {
            return Ok(());
        }
        let plan: &'p Plan = self.judge.plan;
        let Some(part) = plan.part(id) else { return Ok(()) };
        match &part.asks {
            Asks::Same(next) => return self.part(*next, value),
            Asks::Never => self.add(part, value, ProblemKind::NotAllowed),
            Asks::Nothing | Asks::Rules(_) => {}
        }
        if part.shared && !self.gone.insert((id, std::ptr::from_ref(value).addr())) {
            return Ok(());
        }
        self.judge.work.enter()?;
        for ruled in part.rules() {
            if self.found.len() >= self.enough {
                break;
            }
            if !self.judge.rule(part, &ruled.rule, value)? {
                self.rule(part, ruled, value)?;
            }
        }
        self.judge.work.leave();
        Ok(())
    }

    fn rule(&mut self, part: &'p SchemaPart, ruled: &'p Ruled, value: &'v Value) -> Result<(), TooMuch> {
        match (&ruled.rule, value) {
            (SchemaRule::Properties(properties), Value::Object(members)) => {
                // In the order of the shorter list, as a reader would go through them.
                if properties.by_value || members.len() <= properties.listed.len() {
                    for (name, member) in members {
                        if let Some(part) = properties.named.get(name.as_str()) {
                            self.below(name, *part, member)?;
                        }
                    }
                } else {
                    for (name, part) in &properties.listed {
                        if let Some(member) = members.get(&**name) {
                            self.below(name, *part, member)?;
                        }
                    }
                }
                Ok(())
            }
            (
                SchemaRule::PatternProperties(_)
                | SchemaRule::AdditionalProperties { .. }
                | SchemaRule::PropertyNames(_)
                | SchemaRule::UnevaluatedProperties(_),
                _,
            ) => self.members(part, ruled, value),
            (SchemaRule::Items { .. } | SchemaRule::PrefixItems(_), Value::Array(items)) => {
                self.items(part, ruled, items, value)
            }
            (SchemaRule::AllOf(parts), _) => parts.iter().try_for_each(|part| self.part(*part, value)),
            (SchemaRule::Dependent(parts), _) => {
                let there = parts.iter().filter(|(name, _)| value.get(&**name).is_some());
                there.map(|(_, part)| *part).collect::<Vec<_>>().into_iter().try_for_each(|part| self.part(part, value))
            }
            (SchemaRule::If { condition, then, otherwise }, _) => {
                let next = if self.judge.matches(*condition, value)? { then } else { otherwise };
                next.map_or(Ok(()), |part| self.part(part, value))
            }
            (SchemaRule::Ref(part), _) => self.part(*part, value),
            (SchemaRule::AnyOf(parts), _) => {
                self.add(part, value, ProblemKind::Forms(Forms::Parts(parts.to_vec())));
                Ok(())
            }
            (SchemaRule::OneOf(parts), _) => {
                let mut some = false;
                for part in parts {
                    some = some || self.judge.matches(*part, value)?;
                }
                let kind = if some { ProblemKind::ManyForms } else { ProblemKind::Forms(Forms::Parts(parts.to_vec())) };
                self.add(part, value, kind);
                Ok(())
            }
            _ => {
                self.leaf(part, ruled, value);
                Ok(())
            }
        }
    }

    /// A fault one level further down.
    fn below(&mut self, name: &str, part: Id, value: &'v Value) -> Result<(), TooMuch> {
        if self.judge.matches(part, value)? {
            return Ok(());
        }
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(&escape_pointer(name));
        let result = self.part(part, value);
        self.path.truncate(length);
        result
    }

    fn items(
        &mut self,
        part: &'p SchemaPart,
        ruled: &'p Ruled,
        items: &'v [Value],
        value: &'v Value,
    ) -> Result<(), TooMuch> {
        match &ruled.rule {
            SchemaRule::Items { from, part: each } => {
                let never = matches!(self.judge.plan.part(*each).map(|part| &part.asks), Some(Asks::Never));
                if never && ruled.keyword == "additionalItems" {
                    self.add(part, value, ProblemKind::AdditionalItems(count(*from)));
                    return Ok(());
                }
                for (at, item) in items.iter().enumerate().skip(*from) {
                    self.below(&at.to_string(), *each, item)?;
                }
            }
            SchemaRule::PrefixItems(parts) => {
                for (at, (part, item)) in parts.iter().zip(items).enumerate() {
                    self.below(&at.to_string(), *part, item)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn members(&mut self, part: &'p SchemaPart, ruled: &'p Ruled, value: &'v Value) -> Result<(), TooMuch> {
        let Value::Object(members) = value else { return Ok(()) };
        let mut unknown = Vec::new();
        match &ruled.rule {
            SchemaRule::PatternProperties(patterns) => {
                for (name, member) in members {
                    for (pattern, part) in patterns {
                        if self.judge.is_named(pattern, name)? {
                            self.below(name, *part, member)?;
                        }
                    }
                }
            }
            SchemaRule::AdditionalProperties { known, patterns, part: other } => {
                let never = matches!(self.judge.plan.part(*other).map(|part| &part.asks), Some(Asks::Never));
                for (name, member) in members {
                    if self.judge.is_described(known, patterns, name)? {
                        continue;
                    }
                    if never {
                        unknown.push(name.clone());
                    } else {
                        self.below(name, *other, member)?;
                    }
                }
            }
            SchemaRule::PropertyNames(names) => {
                for name in members.keys() {
                    self.name(part, *names, &Value::String(name.clone()), value)?;
                }
            }
            rule => {
                let left = evaluated_parts::unevaluated(self.judge, part, rule, value)?;
                let left: HashSet<usize> = left.into_iter().collect();
                let names = members.keys().enumerate().filter(|(place, _)| left.contains(place));
                unknown.extend(names.map(|(_, name)| name.clone()));
            }
        }
        if !unknown.is_empty() {
            self.add(part, value, ProblemKind::Unknown(unknown));
        }
        Ok(())
    }

    /// What is wrong with a member's name.
    fn name(&mut self, part: &'p SchemaPart, names: Id, name: &Value, value: &'v Value) -> Result<(), TooMuch> {
        if self.judge.name_matches(names, name)? {
            return Ok(());
        }
        let known = self.judge.forget();
        let mut inner = Gather::new(self.judge, self.source, &self.path, 1);
        let result = inner.part(names, name);
        let first = inner.found.into_iter().next().map(ValueProblem::owned);
        self.judge.remember(known);
        result?;
        if let Some(first) = first {
            self.add(part, value, ProblemKind::PropertyName(Box::new(first)));
        }
        Ok(())
    }

    /// A rule that looks at one value alone.
    fn leaf(&mut self, part: &'p SchemaPart, ruled: &'p Ruled, value: &'v Value) {
        let written = || self.written(part, ruled.keyword);
        let kind = match &ruled.rule {
            SchemaRule::Type { types, .. } => {
                let named = TYPES.iter().enumerate().filter(|(bit, _)| types & (1 << bit) != 0);
                ProblemKind::Type(named.map(|(_, name)| type_name(name)).collect())
            }
            SchemaRule::Choice(_) if ruled.keyword == "const" => ProblemKind::Constant(written()),
            SchemaRule::Choice(_) => ProblemKind::Enum(written()),
            SchemaRule::Bound { below, exclusive, .. } => {
                let words = match (below, exclusive) {
                    (true, true) => "less than",
                    (true, false) => "at most",
                    (false, true) => "more than",
                    (false, false) => "at least",
                };
                ProblemKind::Limit(words, written())
            }
            SchemaRule::MultipleOf(_) => ProblemKind::MultipleOf(written()),
            SchemaRule::Size { of, limit, most } => {
                let noun = match of {
                    Sized::Text => "character",
                    Sized::Items => "item",
                    Sized::Members => "property",
                };
                ProblemKind::Size { most: *most, limit: *limit, noun }
            }
            SchemaRule::Required(names) => return self.required(part, names, value),
            SchemaRule::DependentRequired(lists) => {
                for demand in lists.iter().filter(|demand| value.get(&*demand.name).is_some()) {
                    self.required(part, &demand.names, value);
                }
                return;
            }
            SchemaRule::Pattern(_) => ProblemKind::Pattern(written().as_str().unwrap_or_default().to_owned()),
            SchemaRule::Judged(validator) => match validator.iter_errors(value).next() {
                Some(error) => ValueProblem::of(&error).kind,
                None => return,
            },
            SchemaRule::UniqueItems => ProblemKind::UniqueItems,
            SchemaRule::Contains { .. } => ProblemKind::Contains,
            SchemaRule::Not(_) => ProblemKind::Not(written()),
            SchemaRule::UnevaluatedItems(_) => ProblemKind::UnevaluatedItems,
            _ => ProblemKind::Other(ruled.keyword.to_owned()),
        };
        self.add(part, value, kind);
    }

    fn required(&mut self, part: &'p SchemaPart, names: &[Box<str>], value: &'v Value) {
        for name in names.iter().filter(|name| value.get(&***name).is_none()) {
            if self.found.len() >= self.enough {
                return;
            }
            self.add(part, value, ProblemKind::Required(name.to_string()));
        }
    }

    fn add(&mut self, part: &SchemaPart, value: &'v Value, kind: ProblemKind) {
        let beside = match kind {
            ProblemKind::Unknown(_) | ProblemKind::Required(_) => beside(part, self.source),
            _ => Vec::new(),
        };
        self.found.push(ValueProblem { path: self.path.clone(), given: Cow::Borrowed(value), kind, beside });
    }

    /// What a keyword of a part holds.
    fn written(&self, part: &SchemaPart, keyword: &str) -> Value {
        of(part, self.source).and_then(|part| part.get(keyword)).cloned().unwrap_or_default()
    }
}

/// A part as it is written.
fn of<'s>(part: &'s SchemaPart, source: &'s Value) -> Option<&'s Value> {
    match (&part.at, &part.foreign) {
        (Some(at), _) => source.pointer(at),
        (None, foreign) => foreign.as_deref(),
    }
}

/// The names that a part describes, or the part around it.
fn beside(part: &SchemaPart, source: &Value) -> Vec<String> {
    let names = |part: &Value| Some(part.get("properties")?.as_object()?.keys().cloned().collect::<Vec<_>>());
    let outer = || source.pointer(part.at.as_deref()?.rsplit_once('/')?.0).and_then(names);
    of(part, source).and_then(names).or_else(outer).unwrap_or_default()
}
