//! The words that a choice of a schema itself says of the property that distinguishes it from the others. They are read from the page:
//! what is made of a choice may have left them behind a reference, or have been left open.

use serde_json::Value;

use super::page_files::{PageFiles, PagePart};

/// How deep the parts of a choice are looked at.
const MAX_LEVELS: usize = 8;
/// How many parts of a choice are looked at: children may lead back to all of their base's.
const MAX_PARTS: usize = 1_000;

/// Looks at the parts of a choice.
pub(super) struct ChoiceWords<'p> {
    files: &'p PageFiles,
    property: &'p str,
    left: usize,
    /// The parts that are being looked at.
    path: Vec<*const Value>,
}

impl<'p> ChoiceWords<'p> {
    pub(super) fn new(files: &'p PageFiles, property: &'p str) -> Self {
        Self { files, property, left: MAX_PARTS, path: Vec::new() }
    }

    /// The values that a choice allows in the property; none when it does not say.
    pub(super) fn of_choice(&mut self, choice: PagePart<'p>) -> Option<Vec<Value>> {
        self.within(choice, |words, part| {
            let of_property = part.get("properties").and_then(|all| all.get(words.property));
            let own = of_property.and_then(|at| words.of_value(at));
            words.of_parts(part, own, Self::of_choice)
        })
    }

    /// The values that the schema of the property allows.
    fn of_value(&mut self, value: PagePart<'p>) -> Option<Vec<Value>> {
        self.within(value, |words, part| {
            let one = part.get("const").map(|at| vec![at.value.clone()]);
            let own = one.or_else(|| part.get("enum").and_then(|at| at.value.as_array().cloned()));
            // A choice that may be null as well names its words all the same.
            let own = own.or_else(|| (part.text("type") == Some("null")).then(|| vec![Value::Null]));
            words.of_parts(part, own, Self::of_value)
        })
    }

    /// What is allowed by all parts of an `allOf`, and by one of its choices.
    fn of_parts(
        &mut self,
        part: PagePart<'p>,
        own: Option<Vec<Value>>,
        of: fn(&mut Self, PagePart<'p>) -> Option<Vec<Value>>,
    ) -> Option<Vec<Value>> {
        let mut all = own;
        for below in part.get("allOf").into_iter().flat_map(PagePart::items) {
            all = both(all, of(self, below));
        }
        for choices in ["oneOf", "anyOf"].into_iter().filter_map(|word| part.get(word)) {
            let mut any = Vec::new();
            let says = choices.items().all(|choice| of(self, choice).map(|words| any.extend(words)).is_some());
            all = both(all, (says && !any.is_empty()).then_some(any));
        }
        all
    }

    /// Looks at a part, or at what it refers to. One that leads back to itself says nothing there.
    fn within(
        &mut self,
        part: PagePart<'p>,
        look: impl FnOnce(&mut Self, PagePart<'p>) -> Option<Vec<Value>>,
    ) -> Option<Vec<Value>> {
        self.left = self.left.checked_sub(1)?;
        let part = self.files.follow(part).ok()?;
        let this = std::ptr::from_ref(part.value);
        if self.path.len() >= MAX_LEVELS || self.path.contains(&this) {
            return None;
        }
        self.path.push(this);
        let found = look(self, part);
        self.path.pop();
        found
    }
}

/// What both allow. One that says nothing allows all.
fn both(one: Option<Vec<Value>>, other: Option<Vec<Value>>) -> Option<Vec<Value>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.into_iter().filter(|word| other.contains(word)).collect()),
        (one, other) => one.or(other),
    }
}
