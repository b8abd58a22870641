//! A step that chooses between lists of steps.

use serde_json::Value;

use super::Walk;
use crate::compile::context::Context;
use crate::compile::steps::case_lists;

impl<'a> Walk<'_, 'a, '_> {
    /// A choice. Each case begins with the names that are known before it, and may write those that are known after it.
    pub(super) fn choose(&mut self, at: &str, step: &'a Value, context: &mut Context) {
        let before = context.clone();
        for case in case_lists(step) {
            if let (Some(pointer), Some(when)) = (&case.when, case.when.as_ref().and_then(|when| step.pointer(when))) {
                let pointer = format!("{at}{pointer}");
                self.values(&pointer, when, &before);
                self.condition(&pointer, when, &before);
            }
            let mut inside = before.clone();
            self.list(&format!("{at}{}", case.pointer), Some(case.steps), &mut inside);
            context.join(&inside, &[]);
        }
    }
}
