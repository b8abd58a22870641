//! The types of a server that are not built in: domains, arrays and enums, each looked up once, and a chain of them to a
//! bounded depth. The driver would follow a chain by recursion, as long as the server gives it another type.

use std::collections::{BTreeSet, HashMap};

use tokio_postgres::types::{Oid, Type};
use tokio_postgres::{Error, Transaction};

use super::forms::TypeForm;

/// How many types may follow each other, each made of the next.
const MAX_DEPTH: usize = 32;
/// The most types that are known of one connection.
const MAX_KNOWN: usize = 10_000;
/// What is asked of some types.
const LOOK_UP: &str = "SELECT oid, typname::text, typtype::text, typbasetype, \
    CASE WHEN typlen = -1 THEN typelem ELSE 0::oid END FROM pg_catalog.pg_type WHERE oid = ANY($1)";

/// What is known of a type.
#[derive(Debug)]
struct ServerType {
    name: String,
    kind: ServerTypeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerTypeKind {
    Enum,
    /// A type with a check, made of another one.
    Domain(Oid),
    Array(Oid),
    /// None of these: a composite type, a range, the base type of an extension.
    Other,
}

impl ServerTypeKind {
    /// The type that it is made of.
    fn of(self) -> Option<Oid> {
        match self {
            Self::Domain(of) | Self::Array(of) => Some(of),
            Self::Enum | Self::Other => None,
        }
    }
}

/// The types that are known of a connection.
#[derive(Debug, Default)]
pub(super) struct ServerTypes(HashMap<Oid, ServerType>);

impl ServerTypes {
    /// Asks the server for the types that are not known, and for those that they are made of.
    ///
    /// # Errors
    /// That of the server.
    pub(super) async fn look_up(&mut self, transaction: &Transaction<'_>, types: &[Oid]) -> Result<(), Error> {
        if self.0.len() > MAX_KNOWN {
            self.0.clear();
        }
        let mut asked = BTreeSet::new();
        for _ in 0..MAX_DEPTH {
            let missing: BTreeSet<Oid> = types.iter().filter_map(|of| self.missing(*of)).collect();
            let missing: Vec<Oid> = missing.into_iter().filter(|of| asked.insert(*of)).collect();
            if missing.is_empty() {
                break;
            }
            for row in transaction.query(LOOK_UP, &[&missing]).await? {
                let of: Oid = row.try_get(0)?;
                let (name, letter): (String, String) = (row.try_get(1)?, row.try_get(2)?);
                let (base, element): (Oid, Oid) = (row.try_get(3)?, row.try_get(4)?);
                let kind = match letter.as_str() {
                    "e" => ServerTypeKind::Enum,
                    "d" => ServerTypeKind::Domain(base),
                    "b" if element != 0 => ServerTypeKind::Array(element),
                    _ => ServerTypeKind::Other,
                };
                // What was not asked for is not kept.
                if missing.contains(&of) {
                    self.0.insert(of, ServerType { name, kind });
                }
            }
        }
        Ok(())
    }

    /// The first type that is not known, of those that a type is made of.
    fn missing(&self, mut of: Oid) -> Option<Oid> {
        for _ in 0..MAX_DEPTH {
            if Type::from_oid(of).is_some() {
                return None;
            }
            match self.0.get(&of) {
                Some(known) => of = known.kind.of()?,
                None => return Some(of),
            }
        }
        None
    }

    /// The name of a type.
    pub(super) fn name(&self, of: Oid) -> String {
        let built_in = Type::from_oid(of).map(|built_in| built_in.name().to_owned());
        let known = || self.0.get(&of).map(|known| known.name.clone());
        built_in.or_else(known).unwrap_or_else(|| format!("with the number {of}"))
    }

    /// The form of a type. A domain has that of its base.
    ///
    /// # Errors
    /// What is said of a type without one.
    pub(super) fn form(&self, of: Oid) -> Result<TypeForm, String> {
        let (mut arrays, mut at) = (0_usize, of);
        for _ in 0..=MAX_DEPTH {
            let form = match Type::from_oid(at) {
                Some(built_in) => TypeForm::of(&built_in)?,
                None => match self.0.get(&at) {
                    Some(ServerType { kind: ServerTypeKind::Enum, .. }) => TypeForm::Text,
                    // An extension's: its form is a text.
                    Some(ServerType { kind: ServerTypeKind::Other, name }) if name == "citext" => TypeForm::Text,
                    Some(ServerType { kind: ServerTypeKind::Other, name }) => {
                        return Err(format!("the type `{name}` has no form in JSON without loss"));
                    }
                    Some(ServerType { kind: ServerTypeKind::Domain(base), .. }) => {
                        at = *base;
                        continue;
                    }
                    Some(ServerType { kind: ServerTypeKind::Array(element), .. }) => {
                        (arrays, at) = (arrays.saturating_add(1), *element);
                        continue;
                    }
                    None => break,
                },
            };
            return Ok((0..arrays).fold(form, |form, _| TypeForm::Array(Box::new(form))));
        }
        let name = self.name(of);
        Err(if self.missing(of).is_some_and(|missing| missing == of) {
            format!("the database does not know its type, {name}")
        } else {
            format!("the type `{name}` is a chain of more than {MAX_DEPTH} domains and arrays, each made of the next")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(known: &[(Oid, ServerTypeKind)]) -> ServerTypes {
        let known = known.iter().map(|(of, kind)| (*of, ServerType { name: format!("t{of}"), kind: *kind }));
        ServerTypes(known.collect())
    }

    #[test]
    fn a_chain_of_types_has_the_form_of_its_end_up_to_a_bounded_depth() {
        let chain = |length: u32| -> Vec<(Oid, ServerTypeKind)> {
            (0..length)
                .map(|at| (100_000 + at, ServerTypeKind::Domain(if at == 0 { 23 } else { 100_000 + at - 1 })))
                .collect()
        };
        let long = types(&chain(40));
        assert_eq!(long.form(100_000 + 31), Ok(TypeForm::Integer));
        assert!(long.form(100_000 + 32).unwrap_err().contains("more than 32"));
        let own_base = types(&[(100_000, ServerTypeKind::Domain(100_000)), (100_001, ServerTypeKind::Array(100_001))]);
        for of in [100_000, 100_001] {
            assert_eq!(own_base.missing(of), None);
            assert!(own_base.form(of).unwrap_err().contains("more than 32"));
        }
        assert!(long.form(7_000_000).unwrap_err().contains("does not know"));
    }
}
