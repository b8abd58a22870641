//! The address of a step, like `review.57.1`, in the text of its document.

use serde_json::Value;

use super::{case_lists, roots};
use crate::syntax::document::Document;

/// The JSON pointer of the properties of the step at an address.
pub(crate) fn properties_at(document: &Document, address: &str) -> Option<String> {
    let roots = roots(document);
    let mut rest = address;
    let mut list = match (roots.list, roots.foreach) {
        (Some(list), _) => list.to_owned(),
        // The document is the only step: its number and that of the item come first.
        (None, Some(properties)) => {
            let (_own, below) = rest.split_once('.')?;
            rest = below.split_once('.')?.1;
            format!("{properties}/actions_to_execute")
        }
        (None, None) => return None,
    };
    loop {
        if let Some(below) = rest.strip_prefix("on_failure.")
            && let Some((owner, _)) = list.rsplit_once('/')
            && document.value.pointer(&format!("{owner}/on_failure")).is_some()
        {
            (list, rest) = (format!("{owner}/on_failure"), below);
        }
        let (name, below) = rest.split_once('.').map_or((rest, None), |(name, below)| (name, Some(below)));
        let step = step_of(document, &list, name)?;
        let Some(below) = below else { return Some(format!("{step}/properties")) };
        // The number of the item, or the case.
        let (part, inner) = below.split_once('.')?;
        let case = case_lists(document.value.pointer(&step)?).into_iter().find(|case| case.name == part);
        list = match case {
            Some(case) => format!("{step}{}", case.pointer),
            None => format!("{step}/properties/actions_to_execute"),
        };
        rest = inner;
    }
}

/// The pointer of a step of a list: by its `id` or its number, with an `f` for each step whose place it takes.
fn step_of(document: &Document, list: &str, name: &str) -> Option<String> {
    let steps = document.value.pointer(list)?.as_array()?;
    steps.iter().enumerate().find_map(|(number, step)| {
        let mut at = format!("{list}/{number}");
        let mut step = Some(step);
        let mut own = number.to_string();
        while let Some(found) = step {
            if let Some(id) = found.get("id").and_then(Value::as_str) {
                id.clone_into(&mut own);
            }
            if own == name {
                return Some(at);
            }
            own.push('f');
            at.push_str("/onFalse");
            step = found.get("onFalse");
        }
        None
    })
}
