//! Which members and items of a value a part of a schema speaks of: what `unevaluatedProperties` and
//! `unevaluatedItems` leave alone.

use std::collections::HashSet;

use serde_json::Value;

use super::comparison::Judge;
use super::plan::{Asks, Id, SchemaPart, SchemaRule};
use super::work::{TooMuch, count};

/// The members or items, by their places.
struct Marks {
    marked: Vec<bool>,
    /// Parts that have been gone through for this value: they mark nothing more.
    gone: HashSet<Id>,
}

/// The places of the members or items that a rule of `part` does not take: those that nothing else in it
/// speaks of, and that do not match.
///
/// # Errors
/// When that would take more work than there is.
pub(super) fn unevaluated(
    judge: &mut Judge<'_>,
    part: &SchemaPart,
    rule: &SchemaRule,
    value: &Value,
) -> Result<Vec<usize>, TooMuch> {
    let (length, own) = match (rule, value) {
        (SchemaRule::UnevaluatedProperties(own), Value::Object(members)) => (members.len(), *own),
        (SchemaRule::UnevaluatedItems(own), Value::Array(items)) => (items.len(), *own),
        _ => return Ok(Vec::new()),
    };
    let mut marks = Marks { marked: vec![false; length], gone: HashSet::new() };
    judge.work.spend(count(length))?;
    for ruled in part.rules() {
        if !matches!(ruled.rule, SchemaRule::UnevaluatedProperties(_) | SchemaRule::UnevaluatedItems(_)) {
            marks.rule(judge, &ruled.rule, value)?;
        }
    }
    let mut left = Vec::new();
    let children: &mut dyn Iterator<Item = &Value> = match value {
        Value::Object(members) => &mut members.values(),
        Value::Array(items) => &mut items.iter(),
        _ => return Ok(left),
    };
    for (place, (child, marked)) in children.zip(marks.marked).enumerate() {
        if !marked && !judge.matches(own, child)? {
            left.push(place);
        }
    }
    Ok(left)
}

impl Marks {
    fn mark(&mut self, place: usize) {
        self.marked.get_mut(place).into_iter().for_each(|marked| *marked = true);
    }

    /// Marks what a part speaks of, if the value matches it.
    fn valid(&mut self, judge: &mut Judge<'_>, id: Id, value: &Value) -> Result<bool, TooMuch> {
        let matches = judge.matches(id, value)?;
        if matches {
            self.part(judge, id, value)?;
        }
        Ok(matches)
    }

    fn part(&mut self, judge: &mut Judge<'_>, id: Id, value: &Value) -> Result<(), TooMuch> {
        if !self.gone.insert(id) {
            return Ok(());
        }
        judge.work.enter()?;
        let plan = judge.plan;
        match plan.part(id).map(|part| &part.asks) {
            Some(Asks::Same(next)) => self.part(judge, *next, value)?,
            Some(Asks::Rules(rules)) => {
                for ruled in rules {
                    self.rule(judge, &ruled.rule, value)?;
                }
            }
            _ => {}
        }
        judge.work.leave();
        Ok(())
    }

    fn rule(&mut self, judge: &mut Judge<'_>, rule: &SchemaRule, value: &Value) -> Result<(), TooMuch> {
        match rule {
            SchemaRule::Ref(part) => self.part(judge, *part, value),
            SchemaRule::AllOf(parts) | SchemaRule::AnyOf(parts) | SchemaRule::OneOf(parts) => {
                for part in parts {
                    self.valid(judge, *part, value)?;
                }
                Ok(())
            }
            SchemaRule::If { condition, then, otherwise } => {
                let next = if self.valid(judge, *condition, value)? { then } else { otherwise };
                next.map_or(Ok(()), |part| self.valid(judge, part, value).map(|_| ()))
            }
            SchemaRule::Dependent(parts) => {
                for (name, part) in parts {
                    if value.get(&**name).is_some() {
                        self.valid(judge, *part, value)?;
                    }
                }
                Ok(())
            }
            _ => match value {
                Value::Object(_) => self.members(judge, rule, value),
                Value::Array(_) => self.items(judge, rule, value),
                _ => Ok(()),
            },
        }
    }

    fn members(&mut self, judge: &mut Judge<'_>, rule: &SchemaRule, value: &Value) -> Result<(), TooMuch> {
        let Value::Object(members) = value else { return Ok(()) };
        judge.work.spend(count(members.len()))?;
        for (place, (name, member)) in members.iter().enumerate() {
            let speaks = match rule {
                SchemaRule::Properties(properties) => properties.named.contains_key(name.as_str()),
                SchemaRule::PatternProperties(patterns) => {
                    let mut found = false;
                    for (pattern, _) in patterns {
                        found = found || judge.is_named(pattern, name)?;
                    }
                    found
                }
                // What is not described is what this speaks of, and the rest is described beside it.
                SchemaRule::AdditionalProperties { .. } => true,
                SchemaRule::UnevaluatedProperties(part) => judge.matches(*part, member)?,
                _ => return Ok(()),
            };
            if speaks {
                self.mark(place);
            }
        }
        Ok(())
    }

    fn items(&mut self, judge: &mut Judge<'_>, rule: &SchemaRule, value: &Value) -> Result<(), TooMuch> {
        let Value::Array(items) = value else { return Ok(()) };
        judge.work.spend(count(items.len()))?;
        for (place, item) in items.iter().enumerate() {
            let speaks = match rule {
                SchemaRule::Items { from, .. } => place >= *from,
                SchemaRule::PrefixItems(parts) => place < parts.len(),
                SchemaRule::Contains { part, .. } | SchemaRule::UnevaluatedItems(part) => judge.matches(*part, item)?,
                _ => return Ok(()),
            };
            if speaks {
                self.mark(place);
            }
        }
        Ok(())
    }
}
