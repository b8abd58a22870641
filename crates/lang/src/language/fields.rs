//! Reads types from the members of a JSON object. Serde's own way to choose a type by a word keeps the members in a form of
//! its own meanwhile, which changes the spelling of numbers, and has every type compiled once more for that form.

use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde_json::Value;

/// Reads a type from members.
///
/// # Errors
/// When they do not have its shape.
pub(crate) fn read_fields<'v, T: Deserialize<'v>>(
    members: impl Iterator<Item = (&'v str, &'v Value)>,
) -> Result<T, serde_json::Error> {
    T::deserialize(MapDeserializer::new(members.collect::<Vec<_>>().into_iter()))
}

/// Reads a type from the members of an object, without the one whose word chose the type.
///
/// # Errors
/// When they do not have its shape.
pub(crate) fn read_without<'v, T: Deserialize<'v>>(value: &'v Value, word: &str) -> Result<T, serde_json::Error> {
    let members = value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value));
    read_fields(members.filter(|(name, _)| *name != word))
}

/// The word of an object that chooses its type.
///
/// # Errors
/// When it is no object, or the word is not there.
pub(crate) fn choice<'v>(value: &'v Value, word: &'static str) -> Result<&'v str, serde_json::Error> {
    let Some(members) = value.as_object() else { return Err(serde::de::Error::custom("an object is wanted")) };
    let chosen = members.get(word).ok_or_else(|| <serde_json::Error as serde::de::Error>::missing_field(word))?;
    <&str>::deserialize(chosen)
}
