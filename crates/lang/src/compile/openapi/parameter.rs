//! The parameters of an operation in its path, its query and its headers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::json_kinds::JsonKinds;
use super::page_files::{PageFiles, PagePart};
use super::page_text::plain;
use super::read_schema::SchemaReader;
use crate::compile::tool::is_connection_header;

/// The most characters of the description of a parameter.
const MAX_TEXT_CHARACTERS: usize = 300;

/// Where a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ParameterPlace {
    Path,
    Query,
    Header,
}

/// A parameter that an action can send.
#[derive(Debug)]
pub(super) struct Parameter {
    pub place: ParameterPlace,
    /// Its name on the wire.
    pub name: String,
    pub is_required: bool,
    pub schema: Value,
}

/// The parameters of an operation.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// In the order of their places and names.
    pub all: Vec<Parameter>,
    /// Those that no action can send and that a call may leave out: why, in sentences.
    pub notes: Vec<String>,
}

/// Reads the parameters of a path and of an operation of it: one of the operation takes the place of one of the path.
///
/// # Errors
/// Why a call can't be made without a parameter that no action can send.
pub(super) fn parameters<'p>(
    files: &'p PageFiles,
    holders: [PagePart<'p>; 2],
    reader: &mut SchemaReader<'p>,
) -> Result<Parameters, String> {
    let mut found: BTreeMap<(String, String), PagePart<'p>> = BTreeMap::new();
    for holder in holders {
        for written in holder.get("parameters").into_iter().flat_map(PagePart::items) {
            let parameter = files.follow(written)?;
            let (Some(place), Some(name)) = (parameter.text("in"), parameter.text("name")) else {
                return Err("a parameter has no name or no place".to_owned());
            };
            found.insert((place.to_owned(), name.to_owned()), parameter);
        }
    }
    let mut parameters = Parameters::default();
    for ((place, name), written) in found {
        let is_required = written.is("required") || place == "path";
        match parameter(files, written, &place, &name, reader) {
            Ok(Some(mut parameter)) => {
                parameter.is_required = is_required;
                parameters.all.push(parameter);
            }
            Ok(None) => {}
            Err(why) if is_required => return Err(why),
            Err(why) => parameters.notes.push(format!("{why}: it is never sent")),
        }
    }
    parameters.all.sort_by(|one, other| (one.place, &one.name).cmp(&(other.place, &other.name)));
    Ok(parameters)
}

/// A parameter; none for one that is no matter of the caller.
fn parameter<'p>(
    files: &'p PageFiles,
    written: PagePart<'p>,
    place: &str,
    name: &str,
    reader: &mut SchemaReader<'p>,
) -> Result<Option<Parameter>, String> {
    let (place, usual) = match place {
        "path" => (ParameterPlace::Path, "simple"),
        "query" => (ParameterPlace::Query, "form"),
        "header" => (ParameterPlace::Header, "simple"),
        "cookie" => return Err(format!("the parameter `{name}` is a cookie")),
        other => return Err(format!("the parameter `{name}` is in `{other}`")),
    };
    if place == ParameterPlace::Header {
        // They are said by the body, the answer and the security of an operation; the key is the engine's.
        if ["accept", "content-type", "authorization", "idempotency-key"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own))
        {
            return Ok(None);
        }
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) || is_connection_header(name) {
            return Err(format!("the parameter `{name}` is no header that an action may send"));
        }
    }
    let style = written.text("style").unwrap_or(usual);
    if style != usual {
        return Err(format!("the parameter `{name}` is written as `{style}`"));
    }
    let Some(schema) = written.get("schema") else {
        return Err(format!("the parameter `{name}` is a document of its own type"));
    };
    let types = JsonKinds::of(files, schema);
    if types.has_object() {
        return Err(format!("the parameter `{name}` may be an object"));
    }
    let is_repeated =
        place == ParameterPlace::Query && written.get("explode").is_none_or(|at| *at.value != json!(false));
    if types.has_list() && !is_repeated {
        return Err(format!("the parameter `{name}` is a list in one text"));
    }
    if types.has_list() && !JsonKinds::of_items(files, schema).is_scalar() {
        return Err(format!("the parameter `{name}` is a list of lists or objects"));
    }
    let mut made = reader.schema(schema, 0);
    let deprecated = if written.is("deprecated") { "Deprecated. " } else { "" };
    let text = format!("{deprecated}{}", written.text("description").unwrap_or_default());
    let text = plain(&text, MAX_TEXT_CHARACTERS);
    if let Value::Bool(_) = made {
        made = json!({});
    }
    if let Some(members) = made.as_object_mut() {
        if !text.is_empty() {
            members.insert("description".to_owned(), text.into());
        }
        if types.is_unknown() && !members.contains_key("$ref") {
            let kinds = if is_repeated {
                json!(["string", "number", "boolean", "array"])
            } else {
                json!(["string", "number", "boolean"])
            };
            members.insert("type".to_owned(), kinds);
        }
    }
    Ok(Some(Parameter { place, name: name.to_owned(), is_required: false, schema: made }))
}
