//! Whether a value matches a part of a schema. What came out for a part and a value is remembered where
//! both can meet again, so that the work grows with the parts times the values and not with the ways
//! that lead from one to the other.

use std::collections::HashMap;

use serde_json::Value;

use super::evaluated_parts;
use super::pattern::{Match, Pattern};
use super::plan::{Asks, Choices, Demand, Id, Plan, PropertyRules, SchemaPart, SchemaRule, Sized};
use super::work::{StepBudget, TooMuch, count, parts_of};
use crate::policy::json_text;
use crate::program::canonical;
use crate::syntax::decimal::Decimal;

/// What came out, by part and address of the value. Nothing yet where the comparison is under way.
pub(super) type Verdicts = HashMap<(Id, usize), Option<bool>>;

/// Compares one value with a schema.
pub(super) struct Judge<'p> {
    pub plan: &'p Plan,
    pub work: StepBudget,
    known: Verdicts,
    /// Everything is remembered: faults are being looked for, and the same is asked again.
    pub thorough: bool,
}

impl<'p> Judge<'p> {
    pub(super) fn new(plan: &'p Plan, value: &Value) -> Self {
        Self { plan, work: StepBudget::new(value), known: Verdicts::new(), thorough: false }
    }

    /// Whether a value matches a part. The value lives as long as the judge is asked, at one address.
    ///
    /// # Errors
    /// When that would take more work than there is.
    pub(super) fn matches(&mut self, id: Id, value: &Value) -> Result<bool, TooMuch> {
        let plan = self.plan;
        let (mut id, mut part) = (id, plan.part(id));
        while let Some(SchemaPart { asks: Asks::Same(next), .. }) = part {
            (id, part) = (*next, plan.part(*next));
        }
        let Some(part) = part else { return Ok(true) };
        match &part.asks {
            Asks::Nothing | Asks::Same(_) => return Ok(true),
            Asks::Never => return Ok(false),
            Asks::Rules(_) => {}
        }
        if !part.shared && !self.thorough {
            return self.all_rules(part, value);
        }
        let key = (id, std::ptr::from_ref(value).addr());
        match self.known.get(&key) {
            Some(Some(known)) => {
                self.work.spend(1)?;
                return Ok(*known);
            }
            // A part that leads to itself on the same value adds nothing to itself.
            Some(None) => return Ok(true),
            None => {}
        }
        self.known.insert(key, None);
        let matches = self.all_rules(part, value)?;
        self.known.insert(key, Some(matches));
        Ok(matches)
    }

    fn all_rules(&mut self, part: &SchemaPart, value: &Value) -> Result<bool, TooMuch> {
        self.work.enter()?;
        let rules = part.rules();
        for ruled in rules {
            if !self.rule(part, &ruled.rule, value)? {
                self.work.leave();
                return Ok(false);
            }
        }
        self.work.leave();
        Ok(true)
    }

    /// Whether a value keeps a rule of a part.
    ///
    /// # Errors
    /// When that would take more work than there is.
    pub(super) fn rule(&mut self, part: &SchemaPart, rule: &SchemaRule, value: &Value) -> Result<bool, TooMuch> {
        match (rule, value) {
            (SchemaRule::Properties(properties), Value::Object(_)) => self.properties(properties, value),
            (
                SchemaRule::PatternProperties(_)
                | SchemaRule::AdditionalProperties { .. }
                | SchemaRule::PropertyNames(_),
                Value::Object(_),
            ) => self.members(rule, value),
            (SchemaRule::Items { from, part }, Value::Array(items)) => {
                for item in items.iter().skip(*from) {
                    if !self.matches(*part, item)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (SchemaRule::PrefixItems(parts), Value::Array(items)) => {
                for (part, item) in parts.iter().zip(items) {
                    if !self.matches(*part, item)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (SchemaRule::Contains { part, least, most }, Value::Array(items)) => {
                let mut found = 0;
                for item in items {
                    self.work.spend(1)?;
                    found += u64::from(self.matches(*part, item)?);
                }
                Ok(found >= *least && most.is_none_or(|most| found <= most))
            }
            (SchemaRule::UnevaluatedProperties(_) | SchemaRule::UnevaluatedItems(_), _) => {
                Ok(evaluated_parts::unevaluated(self, part, rule, value)?.is_empty())
            }
            (SchemaRule::AllOf(_) | SchemaRule::AnyOf(_) | SchemaRule::OneOf(_), _) => self.several(rule, value),
            (SchemaRule::Dependent(_) | SchemaRule::Not(_) | SchemaRule::If { .. } | SchemaRule::Ref(_), _) => {
                self.other(rule, value)
            }
            _ => self.leaf(rule, value),
        }
    }

    fn properties(&mut self, properties: &PropertyRules, value: &Value) -> Result<bool, TooMuch> {
        let Value::Object(members) = value else { return Ok(true) };
        if members.len() < properties.listed.len() {
            for (name, member) in members {
                self.work.spend(1)?;
                if let Some(part) = properties.named.get(name.as_str())
                    && !self.matches(*part, member)?
                {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        for (name, part) in &properties.listed {
            self.work.spend(1)?;
            if let Some(member) = members.get(&**name)
                && !self.matches(*part, member)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn members(&mut self, rule: &SchemaRule, value: &Value) -> Result<bool, TooMuch> {
        let Value::Object(members) = value else { return Ok(true) };
        for (name, member) in members {
            let matches = match rule {
                SchemaRule::PatternProperties(patterns) => {
                    let mut all = true;
                    for (pattern, part) in patterns {
                        all &= !self.is_named(pattern, name)? || self.matches(*part, member)?;
                        if !all {
                            break;
                        }
                    }
                    all
                }
                SchemaRule::AdditionalProperties { known, patterns, part } => {
                    self.is_described(known, patterns, name)? || self.matches(*part, member)?
                }
                SchemaRule::PropertyNames(part) => self.name_matches(*part, &Value::String(name.clone()))?,
                _ => true,
            };
            if !matches {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a name is one of these, or matches one of the patterns.
    pub(super) fn is_described(
        &mut self,
        known: &std::collections::HashSet<Box<str>>,
        patterns: &[std::sync::Arc<Pattern>],
        name: &str,
    ) -> Result<bool, TooMuch> {
        self.work.spend(1)?;
        if known.contains(name) {
            return Ok(true);
        }
        for pattern in patterns {
            if self.is_named(pattern, name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a member's name matches a pattern.
    pub(super) fn is_named(&mut self, pattern: &Pattern, name: &str) -> Result<bool, TooMuch> {
        match pattern.matches(name, &mut self.work)? {
            Match::Yes => Ok(true),
            Match::No => Ok(false),
            Match::Unknown => Err(TooMuch::Pattern(0)),
        }
    }

    /// Names live shorter than the judge is asked: nothing of them is remembered.
    pub(super) fn name_matches(&mut self, part: Id, name: &Value) -> Result<bool, TooMuch> {
        let kept = self.forget();
        let matches = self.matches(part, name);
        self.remember(kept);
        matches
    }

    /// Forgets what came out so far, for values that live shorter than others.
    pub(super) fn forget(&mut self) -> Verdicts {
        std::mem::take(&mut self.known)
    }

    /// What came out is known again.
    pub(super) fn remember(&mut self, known: Verdicts) {
        self.known = known;
    }

    fn several(&mut self, rule: &SchemaRule, value: &Value) -> Result<bool, TooMuch> {
        let mut found = 0;
        match rule {
            SchemaRule::AllOf(parts) => {
                for part in parts {
                    if !self.matches(*part, value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            SchemaRule::AnyOf(parts) => {
                for part in parts {
                    if self.matches(*part, value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            SchemaRule::OneOf(parts) => {
                for part in parts {
                    found += usize::from(self.matches(*part, value)?);
                    if found > 1 {
                        return Ok(false);
                    }
                }
                Ok(found == 1)
            }
            _ => Ok(true),
        }
    }

    fn other(&mut self, rule: &SchemaRule, value: &Value) -> Result<bool, TooMuch> {
        match rule {
            SchemaRule::Not(part) => Ok(!self.matches(*part, value)?),
            SchemaRule::Ref(part) => self.matches(*part, value),
            SchemaRule::If { condition, then, otherwise } => {
                if then.is_none() && otherwise.is_none() {
                    return Ok(true);
                }
                let next = if self.matches(*condition, value)? { then } else { otherwise };
                next.map_or(Ok(true), |part| self.matches(part, value))
            }
            SchemaRule::Dependent(parts) => {
                for (name, part) in parts {
                    self.work.spend(1)?;
                    if value.get(&**name).is_some() && !self.matches(*part, value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn leaf(&mut self, rule: &SchemaRule, value: &Value) -> Result<bool, TooMuch> {
        Ok(match (rule, value) {
            (SchemaRule::Type { types, written_integers }, _) => types & type_of(value, *written_integers) != 0,
            (SchemaRule::Choice(choices), _) => {
                self.work.spend(parts_of(value))?;
                is_choice(choices, value)
            }
            (SchemaRule::Bound { limit, below, exclusive }, Value::Number(number)) => {
                let digits = json_text::digits(number);
                self.work.spend_bytes(digits.len())?;
                let order = Decimal::read(&digits).map(|number| number.compare(limit));
                order.is_some_and(|order| if order.is_eq() { !*exclusive } else { order.is_lt() == *below })
            }
            (SchemaRule::MultipleOf(unit), Value::Number(number)) => {
                let digits = json_text::digits(number);
                let lengths = count(digits.len()).saturating_mul(count(unit.length()));
                self.work.spend(1 + lengths / 64)?;
                Decimal::read(&digits).is_some_and(|number| number.is_multiple_of(unit))
            }
            (SchemaRule::Size { of, limit, most }, _) => match size(value, *of, &mut self.work)? {
                Some(size) if *most => size <= *limit,
                Some(size) => size >= *limit,
                None => true,
            },
            (SchemaRule::Required(names), Value::Object(members)) => {
                self.work.spend(count(names.len()))?;
                names.iter().all(|name| members.contains_key(&**name))
            }
            (SchemaRule::DependentRequired(lists), Value::Object(members)) => {
                self.work.spend(count(lists.len()))?;
                for Demand { name, names: list } in lists {
                    if members.contains_key(&**name) {
                        self.work.spend(count(list.len()))?;
                        if !list.iter().all(|name| members.contains_key(&**name)) {
                            return Ok(false);
                        }
                    }
                }
                true
            }
            (SchemaRule::Pattern(pattern), Value::String(text)) => match pattern.matches(text, &mut self.work)? {
                Match::Yes => true,
                Match::No => false,
                // Neither answer would be safe: a `not` around it turns it round.
                Match::Unknown => return Err(TooMuch::Pattern(std::ptr::from_ref(value).addr())),
            },
            (SchemaRule::Judged(validator), Value::String(text)) => {
                self.work.spend(1 + count(text.len()))?;
                validator.is_valid(value)
            }
            (SchemaRule::UniqueItems, Value::Array(items)) => {
                self.work.spend(parts_of(value).saturating_mul(4))?;
                all_differ(items)
            }
            _ => true,
        })
    }
}

fn type_of(value: &Value, written_integers: bool) -> u8 {
    const INTEGER: u8 = 1 << 2;
    const NUMBER: u8 = 1 << 4;
    match value {
        Value::Array(_) => 1,
        Value::Bool(_) => 1 << 1,
        Value::Null => 1 << 3,
        Value::Object(_) => 1 << 5,
        Value::String(_) => 1 << 6,
        Value::Number(number) => {
            let digits = json_text::digits(number);
            let whole = !digits.contains(['.', 'e', 'E'])
                || (!written_integers && Decimal::read(&digits).is_some_and(|number| number.is_whole()));
            if whole { INTEGER | NUMBER } else { NUMBER }
        }
    }
}

fn is_choice(choices: &Choices, value: &Value) -> bool {
    match value {
        Value::String(text) => choices.texts.contains(text.as_str()),
        _ if choices.others.is_empty() => false,
        other => choices.others.contains(canonical::spelling(other).as_str()),
    }
}

fn size(value: &Value, of: Sized, work: &mut StepBudget) -> Result<Option<u64>, TooMuch> {
    Ok(match (of, value) {
        (Sized::Text, Value::String(text)) => {
            work.spend_bytes(text.len())?;
            Some(count(text.chars().count()))
        }
        (Sized::Items, Value::Array(items)) => Some(count(items.len())),
        (Sized::Members, Value::Object(members)) => Some(count(members.len())),
        _ => None,
    })
}

fn all_differ(items: &[Value]) -> bool {
    let mut spellings = std::collections::HashSet::with_capacity(items.len());
    items.iter().all(|item| spellings.insert(canonical::spelling(item)))
}
