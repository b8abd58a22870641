//! The values that the texts of a workflow are made from.

use serde_json::{Map, Value};

use crate::header::RunHeader;
use loopctl_lang::program::json_texts::JsonTexts;
use loopctl_lang::program::reference::Scope;
use loopctl_lang::program::template_work::TemplateWork;

/// The scope of a run with these names, the nearest first; `now` is the moment of the event.
pub(super) fn scope<'s>(
    header: &'s RunHeader,
    names: &'s [&'s Map<String, Value>],
    now: &'s str,
    work: TemplateWork,
) -> Scope<'s> {
    Scope {
        context: names,
        lists: Some(&header.input.lists),
        files: Some(&header.files),
        now,
        run_id: &header.run_id,
        ..Scope::of_input(&header.input.value, JsonTexts::within(header.json_rule(), work))
    }
}
