//! Which types a value of a page's schema may have, as far as it says so.

use serde_json::Value;

use super::page_files::{PageFiles, PagePart};

/// How deep schemas are looked into.
const MAX_DEPTH: usize = 12;

/// Types of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JsonKinds(u8);

impl JsonKinds {
    const NONE: Self = Self(0);
    const ALL: Self = Self(0b1111);
    const SCALAR: Self = Self(0b0001);
    const LIST: Self = Self(0b0010);
    const OBJECT: Self = Self(0b0100);
    const NULL: Self = Self(0b1000);

    /// Those of a schema; all when it does not say.
    pub fn of<'p>(files: &'p PageFiles, schema: PagePart<'p>) -> Self {
        Self::within(files, schema, MAX_DEPTH)
    }

    /// Those of the items of a list.
    pub fn of_items<'p>(files: &'p PageFiles, schema: PagePart<'p>) -> Self {
        items(files, schema, MAX_DEPTH)
    }

    pub fn is_unknown(self) -> bool {
        self == Self::ALL
    }

    pub fn has_object(self) -> bool {
        !self.is_unknown() && self.0 & Self::OBJECT.0 != 0
    }

    pub fn has_list(self) -> bool {
        !self.is_unknown() && self.0 & Self::LIST.0 != 0
    }

    /// Whether a value is one text, as far as the schema says.
    pub fn is_scalar(self) -> bool {
        self.is_unknown() || self.0 & (Self::OBJECT.0 | Self::LIST.0) == 0
    }

    /// Whether only objects match.
    pub fn is_object(self) -> bool {
        self.0 & !Self::NULL.0 == Self::OBJECT.0
    }

    fn word(word: &str) -> Self {
        match word {
            "object" => Self::OBJECT,
            "array" => Self::LIST,
            "null" => Self::NULL,
            _ => Self::SCALAR,
        }
    }

    fn value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Array(_) => Self::LIST,
            Value::Object(_) => Self::OBJECT,
            _ => Self::SCALAR,
        }
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn within<'p>(files: &'p PageFiles, schema: PagePart<'p>, depth: usize) -> Self {
        let Some(depth) = depth.checked_sub(1) else { return Self::ALL };
        let Ok(schema) = files.follow(schema) else { return Self::ALL };
        let Some(members) = schema.object() else { return Self::ALL };
        let any =
            |parts: PagePart<'p>| parts.items().fold(Self::NONE, |all, one| all.or(Self::within(files, one, depth)));
        let mut types = match members.get("type") {
            Some(Value::String(word)) => Self::word(word),
            Some(Value::Array(words)) => {
                words.iter().filter_map(Value::as_str).fold(Self::NONE, |all, word| all.or(Self::word(word)))
            }
            _ => Self::ALL,
        };
        if let Some(Value::Array(values)) = members.get("enum") {
            types = types.and(values.iter().fold(Self::NONE, |all, value| all.or(Self::value(value))));
        }
        types = members.get("const").map_or(types, |value| types.and(Self::value(value)));
        for word in ["oneOf", "anyOf"] {
            types = schema.get(word).map_or(types, |parts| types.and(any(parts)));
        }
        for part in schema.get("allOf").into_iter().flat_map(PagePart::items) {
            types = types.and(Self::within(files, part, depth));
        }
        if types == Self::ALL && members.contains_key("properties") {
            types = Self::OBJECT;
        }
        if schema.is("nullable") { types.or(Self::NULL) } else { types }
    }
}

fn items<'p>(files: &'p PageFiles, schema: PagePart<'p>, depth: usize) -> JsonKinds {
    let Some(depth) = depth.checked_sub(1) else { return JsonKinds::ALL };
    let Ok(schema) = files.follow(schema) else { return JsonKinds::ALL };
    let mut types = schema.get("items").map(|at| JsonKinds::of(files, at));
    for word in ["oneOf", "anyOf", "allOf"] {
        for part in schema.get(word).into_iter().flat_map(PagePart::items) {
            if JsonKinds::of(files, part).has_list() {
                let inner = items(files, part, depth);
                types = Some(types.map_or(inner, |known| known.or(inner)));
            }
        }
    }
    types.unwrap_or(JsonKinds::ALL)
}
