//! The body of an operation's requests, as JSON, as a form, or as a text.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::json_kinds::JsonKinds;
use super::page_files::{PageFiles, PagePart};
use super::page_text::plain;
use super::parameter::value_style;
use super::read_schema::SchemaReader;
use crate::language::action::ValueStyle;

/// The most characters of the description of a body.
const MAX_TEXT_CHARACTERS: usize = 300;
const FORM: &str = "application/x-www-form-urlencoded";

/// A body that an action can send.
#[derive(Debug)]
pub(super) struct RequestBody {
    pub content_type: String,
    pub is_required: bool,
    pub schema: Value,
    /// How the fields of a form are written, where not in the usual way.
    pub styles: BTreeMap<String, ValueStyle>,
    /// What of it is never sent, in sentences.
    pub notes: Vec<String>,
}

/// How well a type of content suits: lower is better. None for one that no action can send.
fn rank(media: &str) -> Option<u8> {
    match media {
        "application/json" => Some(0),
        "application/merge-patch+json" => Some(1),
        // A list of edits is described as an object by many pages.
        "application/json-patch+json" => Some(4),
        "*/*" | "application/*" => Some(3),
        FORM => Some(5),
        "text/plain" => Some(6),
        _ if media.starts_with("application/") && media.ends_with("+json") => Some(2),
        _ => None,
    }
}

/// Reads the body of an operation; none when it has none.
///
/// # Errors
/// Why no action can send it.
pub(super) fn body<'p>(
    files: &'p PageFiles,
    operation: PagePart<'p>,
    reader: &mut SchemaReader<'p>,
) -> Result<Option<RequestBody>, String> {
    let Some(written) = operation.get("requestBody") else { return Ok(None) };
    let written = files.follow(written)?;
    let Some(content) = written.get("content") else { return Err("its body has no content".to_owned()) };
    let mut types = BTreeMap::new();
    for (name, at) in content.members() {
        let media = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if let Some(rank) = rank(&media) {
            types.entry((rank, media)).or_insert(at);
        }
    }
    let Some(((_, media), chosen)) = types.into_iter().next() else {
        let names: Vec<&str> = content.members().map(|(name, _)| name.as_str()).take(3).collect();
        return Err(format!(
            "its body is sent as {}",
            if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
        ));
    };
    let mut body = RequestBody {
        is_required: written.is("required"),
        content_type: if media.contains('*') { "application/json".to_owned() } else { media },
        schema: json!({}),
        styles: BTreeMap::new(),
        notes: Vec::new(),
    };
    if let Some(schema) = chosen.get("schema") {
        let types = JsonKinds::of(files, schema);
        if body.content_type == FORM && !types.is_object() {
            return Err("its body is a form, and described as no object".to_owned());
        }
        if body.content_type == "text/plain" && !types.is_scalar() {
            return Err("its body is a text, and described as something else".to_owned());
        }
        match body.content_type.as_str() {
            FORM => form(files, schema, chosen.get("encoding"), reader, &mut body)?,
            "text/plain" => body.schema = json!({ "type": "string" }),
            _ => body.schema = reader.schema(schema, 0),
        }
    } else if body.content_type == FORM {
        return Err("its body is a form that is not described".to_owned());
    }
    let text = plain(written.text("description").unwrap_or_default(), MAX_TEXT_CHARACTERS);
    if let Some(members) = body.schema.as_object_mut().filter(|_| !text.is_empty()) {
        members.entry("description").or_insert_with(|| text.into());
    }
    Ok(Some(body))
}

/// The fields of a form: texts, numbers, booleans, and lists of them, each of which is sent once for each entry.
fn form<'p>(
    files: &'p PageFiles,
    schema: PagePart<'p>,
    encoding: Option<PagePart<'p>>,
    reader: &mut SchemaReader<'p>,
    body: &mut RequestBody,
) -> Result<(), String> {
    let schema = files.follow(schema)?;
    if ["allOf", "oneOf", "anyOf"].iter().any(|word| schema.get(word).is_some()) {
        return Err("its body is a form with alternatives".to_owned());
    }
    let required: Vec<&str> =
        schema.get("required").into_iter().flat_map(PagePart::items).filter_map(|at| at.value.as_str()).collect();
    let mut fields: Vec<(&String, PagePart<'p>)> =
        schema.get("properties").into_iter().flat_map(PagePart::members).collect();
    fields.sort_unstable_by_key(|(name, _)| *name);
    let mut properties = Map::new();
    for (name, field) in fields {
        if field.is("readOnly") || files.follow(field).is_ok_and(|target| target.is("readOnly")) {
            continue;
        }
        let encoding = encoding.and_then(|all| all.get(name));
        let style = encoding.and_then(|at| at.text("style")).unwrap_or("form");
        let explodes = encoding.and_then(|at| at.get("explode")).map_or(style == "form", |at| *at.value == json!(true));
        let is_json = encoding.and_then(|at| at.text("contentType")).is_some_and(|kind| kind.ends_with("json"));
        let style = match is_json {
            true => Err("is written as JSON in the form".to_owned()),
            false => value_style(files, field, style, explodes),
        };
        match style {
            Err(why) if required.contains(&name.as_str()) => return Err(format!("the field `{name}` {why}")),
            Err(why) => body.notes.push(format!("the field `{name}` {why}: it is never sent")),
            Ok(style) => {
                if style != ValueStyle::Repeat {
                    body.styles.insert(name.clone(), style);
                }
                properties.insert(name.clone(), reader.schema(field, 1));
            }
        }
    }
    // What is wanted and not described may be each value that a form has one text for.
    let described = |name: &str| schema.get("properties").is_some_and(|all| all.get(name).is_some());
    for name in required.iter().filter(|name| !described(name)) {
        properties.insert((*name).to_owned(), json!({ "type": ["string", "number", "boolean"] }));
    }
    let is_open = |at: PagePart<'_>| at.value.is_object() || *at.value == json!(true);
    if schema.get("additionalProperties").is_some_and(is_open) {
        body.notes.push("the fields that its form does not name are never sent".to_owned());
    }
    let named: Vec<&str> = required.into_iter().filter(|name| properties.contains_key(*name)).collect();
    let mut made = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if let Some(members) = made.as_object_mut().filter(|_| !named.is_empty()) {
        members.insert("required".to_owned(), json!(named));
    }
    body.schema = made;
    Ok(())
}
