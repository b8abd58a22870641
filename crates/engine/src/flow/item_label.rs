//! What an item of a loop is called where it is shown, by the template of the loop.

use serde_json::{Map, Value};

use super::scope::scope;
use crate::header::RunHeader;
use crate::timestamp::rfc3339;
use loopctl_lang::program::flow::Foreach;
use loopctl_lang::program::template_work::{TemplateWork, WorkBound};

/// The most characters of a label; a longer one ends with a mark.
const MAX_LABEL_CHARACTERS: usize = 80;

/// The label of an item, on one line; none without a template, and where a value is missing that it needs or it takes much
/// work: a label is for people, and decides nothing. `names`: those of the item, and those around it, the nearest first.
pub(super) fn item_label(
    foreach: &Foreach,
    names: &[&Map<String, Value>],
    header: &RunHeader,
    now_ms: i64,
) -> Option<String> {
    let field = foreach.label.as_ref()?;
    let now = rfc3339(now_ms);
    let text = match field.resolve(&scope(header, names, &now, TemplateWork::new(WorkBound::LABEL))).ok()? {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let mut label = String::new();
    for word in text.split_whitespace() {
        if !label.is_empty() {
            label.push(' ');
        }
        label.push_str(word);
        if label.chars().count() > MAX_LABEL_CHARACTERS {
            break;
        }
    }
    if label.chars().count() > MAX_LABEL_CHARACTERS {
        label = label.chars().take(MAX_LABEL_CHARACTERS.saturating_sub(1)).collect();
        label.truncate(label.trim_end().len());
        label.push('…');
    }
    (!label.is_empty()).then_some(label)
}

/// The names that an item gives to its steps.
pub(super) fn names_of_item(foreach: &Foreach, item: Value, index: u32, count: u32) -> Map<String, Value> {
    let mut given = Map::new();
    given.insert(foreach.item_name.clone(), item.clone());
    given.insert("item".to_owned(), item);
    given.insert("__index".to_owned(), index.into());
    given.insert("__count".to_owned(), count.into());
    given
}

/// An address with the label of the item that it leads to, or into.
pub(crate) fn labelled(at: &str, label: Option<&str>) -> String {
    label.map_or_else(|| at.to_owned(), |label| format!("{at} ({label})"))
}
