//! The arguments of a call, as servers write them: the text of the model in a string, or the object that the server has read.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use loopctl_lang::policy::json_text;

/// The text of the arguments.
pub(super) fn text(arguments: Option<&RawValue>) -> String {
    match arguments.map_or("null", RawValue::get) {
        "null" => String::new(),
        text if text.starts_with('"') => json_text::read(text).unwrap_or_default(),
        text => text.to_owned(),
    }
}

/// A member that holds arguments.
pub(super) fn member<'de, D: Deserializer<'de>>(member: D) -> Result<Option<String>, D::Error> {
    let arguments: Option<&'de RawValue> = Option::deserialize(member)?;
    Ok(arguments.map(|arguments| text(Some(arguments))))
}
