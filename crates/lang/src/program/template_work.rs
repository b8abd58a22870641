//! What it costs to make the texts and values of a step, a call or a prompt: one bound for all that are made together, no matter
//! how many templates they are written as. The work is counted and not timed, so a run that is read again comes out the same.

use std::cell::Cell;
use std::rc::Rc;

use serde_json::Value;

use crate::policy::json_text;
use crate::program::scope::Unresolved;

/// From here on it is long work: in parts of templates, and in bytes that are read.
const LONG_PARTS: usize = 20_000;
const LONG_READ_BYTES: usize = 1 << 20;

/// How much work may be done. What began when a bound is passed is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkBound {
    /// The parts of templates, those of each round of a loop.
    parts: usize,
    /// The bytes that are read: of texts as JSON, and of values that are copied.
    read_bytes: usize,
    /// The bytes of the rendered texts together.
    text_bytes: usize,
    /// What it is the bound of, in messages.
    of: &'static str,
}

impl WorkBound {
    /// That of one step, one call or one prompt.
    pub const ONE: Self = Self { parts: 5_000_000, read_bytes: 128 << 20, text_bytes: 16 << 20, of: "the templates" };
    /// That of all steps that begin at the same event of a run.
    pub const TOGETHER: Self = Self {
        parts: 40_000_000,
        read_bytes: 1 << 30,
        text_bytes: 256 << 20,
        of: "the templates of all steps that begin together",
    };
    /// That of a label, which is for people: there may be one for each of thousands of items.
    pub const LABEL: Self = Self { parts: 2_000, read_bytes: 256 << 10, text_bytes: 64 << 10, of: "the label" };
}

/// The work that was done, and its bound.
#[derive(Debug)]
pub struct TemplateWork {
    parts: Cell<usize>,
    read_bytes: Cell<usize>,
    text_bytes: Cell<usize>,
    most: WorkBound,
    around: Option<Rc<TemplateWork>>,
}

impl TemplateWork {
    /// No work yet, within a bound.
    pub fn new(most: WorkBound) -> Self {
        Self { parts: Cell::new(0), read_bytes: Cell::new(0), text_bytes: Cell::new(0), most, around: None }
    }

    /// That of one step of all that begin together.
    pub fn of_step(around: &Rc<Self>) -> Self {
        Self { around: Some(Rc::clone(around)), ..Self::new(WorkBound::ONE) }
    }

    /// Whether others should not wait for what comes next.
    pub(super) fn is_long(&self) -> bool {
        self.parts.get() > LONG_PARTS || self.read_bytes.get() > LONG_READ_BYTES
    }

    /// Adds parts of templates.
    pub(super) fn add_parts(&self, parts: usize) {
        self.each(&|work| add(&work.parts, parts));
    }

    /// Adds what is read; the next part finds whether it was too much.
    pub(super) fn add_read(&self, bytes: usize) {
        self.each(&|work| add(&work.read_bytes, bytes));
    }

    /// Adds a text that was rendered.
    pub(super) fn add_text(&self, bytes: usize) {
        self.each(&|work| add(&work.text_bytes, bytes));
    }

    /// Whether the work is within its bounds.
    pub(super) fn is_within(&self) -> Result<(), Unresolved> {
        let WorkBound { parts, read_bytes, text_bytes, of } = self.most;
        if self.parts.get() > parts {
            return Err(Unresolved::refused(format!("the loops of {of} go round too often")));
        }
        if self.read_bytes.get() > read_bytes {
            let most = read_bytes >> 10;
            return Err(Unresolved::refused(format!("{of} read more than {} of texts and values", size(most))));
        }
        if self.text_bytes.get() > text_bytes {
            return Err(Unresolved::refused(format!("the texts of {of} are longer than {}", size(text_bytes >> 10))));
        }
        self.around.as_ref().map_or(Ok(()), |around| around.is_within())
    }

    fn each(&self, change: &dyn Fn(&Self)) {
        change(self);
        if let Some(around) = &self.around {
            around.each(change);
        }
    }
}

fn add(count: &Cell<usize>, more: usize) {
    count.set(count.get().saturating_add(more));
}

fn size(kibibytes: usize) -> String {
    if kibibytes >= 1024 { format!("{} MiB", kibibytes >> 10) } else { format!("{kibibytes} KiB") }
}

/// About how many bytes a value has, which is what a copy of it costs.
pub(super) fn value_bytes(value: &Value) -> usize {
    const NODE: usize = 16;
    match value {
        Value::Null | Value::Bool(_) => NODE,
        Value::Number(number) => NODE.saturating_add(json_text::digits(number).len()),
        Value::String(text) => NODE.saturating_add(text.len()),
        Value::Array(items) => items.iter().map(value_bytes).fold(NODE, usize::saturating_add),
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| key.len().saturating_add(value_bytes(member)))
            .fold(NODE, usize::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_a_step_is_bounded_and_so_is_that_of_all_steps_that_begin_together() {
        let together = Rc::new(TemplateWork::new(WorkBound::TOGETHER));
        let step = |bytes: usize| {
            let work = TemplateWork::of_step(&together);
            work.add_read(bytes);
            work.is_within().map_err(|refused| refused.why)
        };
        assert_eq!(step((128 << 20) + 1), Err("the templates read more than 128 MiB of texts and values".to_owned()));
        for _ in 0..6 {
            assert_eq!(step(128 << 20), Ok(()));
        }
        assert_eq!(step((128 << 20) - 1), Ok(()));
        let refused = "the templates of all steps that begin together read more than 1024 MiB of texts and values";
        assert_eq!(step(1), Err(refused.to_owned()));
        let label = TemplateWork::new(WorkBound::LABEL);
        label.add_parts(2_000);
        assert!(label.is_within().is_ok());
        label.add_parts(1);
        assert!(label.is_within().is_err());
        let text = TemplateWork::new(WorkBound::ONE);
        text.add_text((16 << 20) + 1);
        assert!(text.is_within().unwrap_err().why.contains("16 MiB"));
    }
}
