//! Members that a call may leave out: an `@x` as a whole, where the call does not give `x`.

use std::collections::HashSet;

use serde_json::Value;

use super::{Field, Scope, Unresolved, escape_pointer};

impl Scope<'_> {
    /// Whether a call leaves out the argument that is this whole path. Its input met its schema: it may.
    fn leaves_out(&self, path: &[String]) -> bool {
        matches!(path, [name] if self.arguments.is_object() && self.name(name).is_none())
    }
}

impl Field {
    /// Its value as a member of an object; none for an `@x` that the call leaves out.
    ///
    /// # Errors
    /// When another name that it needs has no value.
    pub fn resolve_member(&self, scope: &Scope<'_>) -> Result<Option<Value>, Unresolved> {
        match self {
            Self::Path(path) if scope.leaves_out(path) => Ok(None),
            _ => self.resolve_entry(scope),
        }
    }

    /// Its value as an entry of a list, or a property of a step; none for an `@x.y?` without a value.
    ///
    /// # Errors
    /// When another name that it needs has no value.
    pub fn resolve_entry(&self, scope: &Scope<'_>) -> Result<Option<Value>, Unresolved> {
        match self {
            Self::Optional(path) => scope.optional_copied(path),
            _ => self.resolve(scope).map(Some),
        }
    }

    /// The JSON pointers of the members in it that are an `@x` as a whole, relative to the field.
    pub(crate) fn left_out_members(&self) -> HashSet<String> {
        let mut found = HashSet::new();
        self.add_members(&mut String::new(), &mut found);
        found
    }

    fn add_members(&self, pointer: &mut String, found: &mut HashSet<String>) {
        let length = pointer.len();
        match self {
            Self::Literal(_) | Self::Template(_) | Self::Path(_) | Self::Optional(_) => {}
            Self::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{at}"));
                    item.add_members(pointer, found);
                    pointer.truncate(length);
                }
            }
            Self::Object(members) => {
                for (key, member) in members {
                    pointer.push_str(&format!("/{}", escape_pointer(key)));
                    let is_lone = matches!(member, Self::Path(path) if path.len() == 1);
                    if is_lone || matches!(member, Self::Optional(_)) {
                        found.insert(pointer.clone());
                    }
                    member.add_members(pointer, found);
                    pointer.truncate(length);
                }
            }
        }
    }
}
