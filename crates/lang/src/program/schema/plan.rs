//! A schema made ready for comparing: its parts, each with the rules that it sets, in the order in which
//! their faults are reported.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::pattern::Pattern;
use crate::syntax::decimal::Decimal;

/// The types, in the order in which a message names them; in a rule, the bit of each is its place.
pub(super) const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// A part by its number.
pub(super) type Id = usize;

/// All parts of a schema. The first is the whole.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub parts: Vec<SchemaPart>,
    /// The bytes that its patterns compile to, at most.
    pub pattern_bytes: usize,
}

#[derive(Debug)]
pub(super) struct SchemaPart {
    /// Its JSON pointer in the schema; nothing when it is elsewhere.
    pub at: Option<Box<str>>,
    /// The part itself, when it is in a built-in meta-schema.
    pub foreign: Option<Box<Value>>,
    /// It can be reached in several ways, so that what came out for a value is remembered.
    pub shared: bool,
    pub asks: Asks,
}

/// What a part asks for.
#[derive(Debug)]
pub(super) enum Asks {
    /// Everything matches.
    Nothing,
    /// Nothing matches.
    Never,
    /// What that part asks for, and nothing else.
    Same(Id),
    /// All of these.
    Rules(Box<[Ruled]>),
}

/// A rule, and the keyword that sets it.
#[derive(Debug)]
pub(super) struct Ruled {
    pub keyword: &'static str,
    pub rule: SchemaRule,
}

/// What a keyword asks for.
#[derive(Debug)]
pub(super) enum SchemaRule {
    /// One of these types; in draft 4, `1.0` is no integer.
    Type {
        types: u8,
        written_integers: bool,
    },
    /// One of these values, for `enum` and `const`.
    Choice(Choices),
    /// On the right side of a limit.
    Bound {
        limit: Decimal,
        below: bool,
        exclusive: bool,
    },
    MultipleOf(Decimal),
    /// At least or at most a number.
    Size {
        of: Sized,
        limit: u64,
        most: bool,
    },
    /// These members are there.
    Required(Box<[Box<str>]>),
    /// These members are there, if that one is.
    DependentRequired(Box<[Demand]>),
    /// The text matches.
    Pattern(Arc<Pattern>),
    /// The text is of a format, or encodes what it should. The library of schemas judges that.
    Judged(Box<jsonschema::Validator>),
    /// No item is there twice.
    UniqueItems,
    /// The named members match.
    Properties(PropertyRules),
    /// The members whose names match do.
    PatternProperties(Box<[(Arc<Pattern>, Id)]>),
    /// The other members match.
    AdditionalProperties {
        known: HashSet<Box<str>>,
        patterns: Box<[Arc<Pattern>]>,
        part: Id,
    },
    /// The names of members match.
    PropertyNames(Id),
    /// The items from a place on match.
    Items {
        from: usize,
        part: Id,
    },
    /// The first items match, each its own part.
    PrefixItems(Box<[Id]>),
    /// A number of items match.
    Contains {
        part: Id,
        least: u64,
        most: Option<u64>,
    },
    /// The value matches, if it has that member.
    Dependent(Box<[(Box<str>, Id)]>),
    AllOf(Box<[Id]>),
    AnyOf(Box<[Id]>),
    OneOf(Box<[Id]>),
    Not(Id),
    If {
        condition: Id,
        then: Option<Id>,
        otherwise: Option<Id>,
    },
    /// The members that nothing else spoke of match.
    UnevaluatedProperties(Id),
    /// The items that nothing else spoke of match.
    UnevaluatedItems(Id),
    Ref(Id),
}

/// The members that must be there when another one is.
#[derive(Debug)]
pub(super) struct Demand {
    pub name: Box<str>,
    pub names: Box<[Box<str>]>,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sized {
    Text,
    Items,
    Members,
}

/// The members that a part describes, in their order.
#[derive(Debug)]
pub(super) struct PropertyRules {
    pub listed: Box<[(Box<str>, Id)]>,
    /// Their faults are reported in the order of the value's members.
    pub by_value: bool,
    pub named: HashMap<Box<str>, Id>,
}

/// Values by their spelling.
#[derive(Debug, Default)]
pub(super) struct Choices {
    /// The texts among them.
    pub texts: HashSet<Box<str>>,
    /// The spellings of the others.
    pub others: HashSet<Box<str>>,
}

impl SchemaRule {
    /// The parts that it leads to; `true` for those that are compared with the same value.
    pub(super) fn each_part(&self, visit: &mut dyn FnMut(Id, bool)) {
        match self {
            Self::Properties(members) => members.listed.iter().for_each(|(_, part)| visit(*part, false)),
            Self::PatternProperties(members) => members.iter().for_each(|(_, part)| visit(*part, false)),
            Self::AdditionalProperties { part, .. }
            | Self::PropertyNames(part)
            | Self::Items { part, .. }
            | Self::Contains { part, .. }
            | Self::UnevaluatedProperties(part)
            | Self::UnevaluatedItems(part) => visit(*part, false),
            Self::PrefixItems(parts) => parts.iter().for_each(|part| visit(*part, false)),
            Self::Dependent(parts) => parts.iter().for_each(|(_, part)| visit(*part, true)),
            Self::AllOf(parts) | Self::AnyOf(parts) | Self::OneOf(parts) => {
                parts.iter().for_each(|part| visit(*part, true));
            }
            Self::Not(part) | Self::Ref(part) => visit(*part, true),
            Self::If { condition, then, otherwise } => {
                [Some(condition), then.as_ref(), otherwise.as_ref()]
                    .into_iter()
                    .flatten()
                    .for_each(|part| visit(*part, true));
            }
            _ => {}
        }
    }
}

impl Plan {
    /// The rules of a part, from all of its places.
    pub(super) fn part(&self, id: Id) -> Option<&SchemaPart> {
        self.parts.get(id)
    }

    /// Follows parts that ask for what another part asks, so that a chain of them costs nothing later, and
    /// marks the parts that can be reached in several ways.
    pub(super) fn finish(&mut self) {
        self.shorten();
        let mut ways = vec![0_usize; self.parts.len()];
        ways.first_mut().into_iter().for_each(|ways| *ways = 1);
        let mut again = false;
        for ruled in self.parts.iter().flat_map(SchemaPart::rules) {
            // Its own question is asked a second time of what others said.
            again |= matches!(ruled.rule, SchemaRule::UnevaluatedProperties(_) | SchemaRule::UnevaluatedItems(_));
            ruled.rule.each_part(&mut |part, _| ways.get_mut(part).into_iter().for_each(|ways| *ways += 1));
        }
        for id in 0..self.parts.len() {
            if let Some(Asks::Same(next)) = self.parts.get(id).map(|part| &part.asks) {
                let more = ways.get(id).copied().unwrap_or_default();
                ways.get_mut(*next).into_iter().for_each(|ways| *ways += more);
            }
        }
        for (part, ways) in self.parts.iter_mut().zip(ways) {
            let mut leads_on = false;
            part.rules().iter().for_each(|ruled| ruled.rule.each_part(&mut |_, _| leads_on = true));
            part.shared = leads_on && (again || ways > 1);
        }
    }

    fn shorten(&mut self) {
        let mut met = vec![usize::MAX; self.parts.len()];
        for id in 0..self.parts.len() {
            let (mut at, mut passed) = (id, Vec::new());
            while let Some(Asks::Same(next)) = self.parts.get(at).map(|part| &part.asks) {
                let next = *next;
                passed.push(at);
                met.get_mut(at).into_iter().for_each(|met| *met = id);
                if met.get(next) == Some(&id) {
                    // Parts that ask for nothing but each other ask for nothing.
                    passed.drain(..).for_each(|part| self.ask(part, Asks::Nothing));
                    break;
                }
                at = next;
            }
            passed.into_iter().for_each(|part| self.ask(part, Asks::Same(at)));
        }
    }

    fn ask(&mut self, id: Id, asks: Asks) {
        if let Some(part) = self.parts.get_mut(id) {
            part.asks = asks;
        }
    }
}

impl SchemaPart {
    pub(super) fn rules(&self) -> &[Ruled] {
        match &self.asks {
            Asks::Rules(rules) => rules,
            _ => &[],
        }
    }
}
