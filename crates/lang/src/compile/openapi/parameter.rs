//! The parameters of an operation in its path, its query and its headers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::json_kinds::JsonKinds;
use super::page_files::{PageFiles, PagePart};
use super::page_text::plain;
use super::read_schema::SchemaReader;
use crate::compile::tool::is_connection_header;
use crate::language::action::ValueStyle;

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
    /// How a list or an object is written.
    pub style: ValueStyle,
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
            // Names of headers that differ in case are one header: that of the operation counts.
            if place == "header" {
                found.retain(|(place, known), _| place != "header" || !known.eq_ignore_ascii_case(name));
            }
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
    let Some(schema) = written.get("schema") else {
        return Err(format!("the parameter `{name}` is a document of its own type"));
    };
    let types = JsonKinds::of(files, schema);
    let explodes = written.get("explode").map_or(style == "form", |at| *at.value == json!(true));
    let style = match place {
        ParameterPlace::Query => value_style(files, schema, style, explodes),
        _ if style != usual => Err(format!("is written as `{style}`")),
        _ if types.is_scalar() => Ok(ValueStyle::Repeat),
        _ => Err("is a list or an object in one text".to_owned()),
    };
    let style = style.map_err(|why| format!("the parameter `{name}` {why}"))?;
    let is_repeated = place == ParameterPlace::Query;
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
    Ok(Some(Parameter { place, name: name.to_owned(), is_required: false, schema: made, style }))
}

/// How the value of a parameter of the query, or of a field of a form, is written.
///
/// # Errors
/// Why it has no form that an action writes, after the name of it.
pub(super) fn value_style<'p>(
    files: &'p PageFiles,
    schema: PagePart<'p>,
    style: &str,
    explodes: bool,
) -> Result<ValueStyle, String> {
    let types = JsonKinds::of(files, schema);
    if types.is_scalar() {
        return Ok(ValueStyle::Repeat);
    }
    if types.has_list() && !JsonKinds::of_items(files, schema).is_scalar() {
        return Err("is a list of lists or objects".to_owned());
    }
    match (style, explodes) {
        ("deepObject", _) if !types.has_list() && has_plain_members(files, schema) => Ok(ValueStyle::Brackets),
        ("deepObject", _) => Err("is an object with more in it than `deepObject` has a form for".to_owned()),
        _ if types.has_object() => Err("may be an object".to_owned()),
        ("form" | "spaceDelimited" | "pipeDelimited", true) => Ok(ValueStyle::Repeat),
        ("form", false) => Ok(ValueStyle::Comma),
        ("spaceDelimited", false) => Ok(ValueStyle::Space),
        ("pipeDelimited", false) => Ok(ValueStyle::Pipe),
        _ => Err(format!("is written as `{style}`")),
    }
}

/// Whether each member of an object is one text.
fn has_plain_members<'p>(files: &'p PageFiles, schema: PagePart<'p>) -> bool {
    let Ok(schema) = files.follow(schema) else { return false };
    let is_plain = |part: PagePart<'p>| {
        let part = files.follow(part);
        part.is_ok_and(|part| {
            let members = part.get("properties").into_iter().flat_map(PagePart::members).map(|(_, at)| at);
            let others = part.get("additionalProperties").filter(|at| at.object().is_some_and(|at| !at.is_empty()));
            members.chain(others).all(|at| JsonKinds::of(files, at).is_scalar())
        })
    };
    let choices = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|word| schema.get(word)).flat_map(PagePart::items);
    std::iter::once(schema).chain(choices).all(is_plain)
}
