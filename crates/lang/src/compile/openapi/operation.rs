//! One operation of a page as an action of kind `http`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::credentials::{OperationCredentials, credentials};
use super::page_files::{PageFiles, PagePart};
use super::page_text::{name_of, plain};
use super::parameter::{Parameter, ParameterPlace, Parameters, parameters};
use super::read_schema::{LEAST_DEPTH, SchemaReader};
use super::request_body::{RequestBody, body};
use super::server_address::address;
use super::sound_schema::sound;
use super::{MadeAction, PinSettings};
use crate::language::action::{Method, ValueStyle};
use crate::policy::server_text::{suspicions, texts_of};
use crate::program::reference::RESERVED;

/// The most characters of a description.
const MAX_TEXT_CHARACTERS: usize = 1_000;
/// The most bytes of the schema of an input, and how deep one is described until it is not longer.
const MAX_SCHEMA_BYTES: usize = 48 << 10;
const DEPTHS: [usize; 8] = [24, 12, 8, 6, 4, 3, 2, LEAST_DEPTH];
/// The most levels of a schema as it is written.
const MAX_WRITTEN_DEPTH: usize = 80;

/// Names of parameters by which operations give one page of many.
const PAGES: [&str; 16] = [
    "page",
    "per_page",
    "page_size",
    "pageSize",
    "page_token",
    "pageToken",
    "cursor",
    "next_cursor",
    "limit",
    "offset",
    "starting_after",
    "ending_before",
    "after",
    "before",
    "continue",
    "Page",
];

/// An operation as it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenOperation<'p> {
    pub method: Method,
    pub path: &'p str,
    pub path_item: PagePart<'p>,
    pub operation: PagePart<'p>,
}

/// What a call takes.
struct CallInput {
    schema: Value,
    parameters: Vec<Parameter>,
    /// The input of each parameter, by its place and name.
    names: BTreeMap<(ParameterPlace, String), String>,
    /// The content type of the body, and the input that is the body.
    body: Option<(String, String)>,
    /// How the fields of a form are written.
    form_styles: BTreeMap<String, ValueStyle>,
    notes: Vec<String>,
    /// Whether there were more parts than are read.
    is_cut: bool,
}

impl CallInput {
    /// Makes the schema one that `check` takes.
    fn make_sound(&mut self) -> Result<(), String> {
        let schema = std::mem::take(&mut self.schema);
        let (schema, taken_out) = sound(schema).ok_or("its input can't be described so that `check` takes it")?;
        self.schema = schema;
        self.notes.extend(taken_out);
        for ((place, _), input) in &self.names {
            if *place == ParameterPlace::Path {
                never_empty(&mut self.schema, input);
            }
        }
        Ok(())
    }
}

impl WrittenOperation<'_> {
    /// Its method and path.
    pub fn place(&self) -> String {
        format!("{} {}", self.method.as_str(), self.path)
    }

    /// The action that makes calls of it, under a name. `keys`: those of the secrets, by security scheme.
    ///
    /// # Errors
    /// Why no action can, in a sentence without a final stop.
    pub fn action(
        &self,
        files: &PageFiles,
        name: &str,
        settings: &PinSettings,
        keys: &BTreeMap<String, String>,
    ) -> Result<MadeAction, String> {
        let accepted = accepted(files, self.operation)?;
        let base = address([files.page(), self.path_item, self.operation], settings.host.as_deref())?;
        let mut credentials = credentials(files, self.operation, keys, settings.bearer.as_deref())?;
        credentials.headers.extend(accepted.map(|media| ("Accept".to_owned(), media)));
        let mut last = None;
        for depth in DEPTHS {
            let made = self.call(files, depth, &credentials)?;
            let is_fit = !made.is_cut
                && made.schema.to_string().len() <= MAX_SCHEMA_BYTES
                && levels(&made.schema) <= MAX_WRITTEN_DEPTH;
            last = Some(made);
            if is_fit {
                break;
            }
        }
        let mut input = last.ok_or("its input can't be described")?;
        input.make_sound()?;
        let url = self.url(&base, &input)?;
        let action = self.document(name, &url, &input, &credentials);
        Ok(MadeAction {
            name: name.to_owned(),
            place: self.place(),
            suspicions: self.suspicions(&action),
            action,
            output: Vec::new(),
            notes: input.notes,
            secrets: credentials.secrets,
            server: base,
        })
    }

    /// What a call takes, described to a depth.
    fn call(&self, files: &PageFiles, depth: usize, credentials: &OperationCredentials) -> Result<CallInput, String> {
        let mut reader = SchemaReader::new(files, depth);
        let mut parameters = parameters(files, [self.path_item, self.operation], &mut reader)?;
        // What says who sends a request is no matter of the model.
        parameters.all.retain(|parameter| !credentials.send(parameter));
        let body = body(files, self.operation, &mut reader);
        let body = match body {
            Ok(Some(body)) if !self.method.has_body() && self.method != Method::Delete => {
                if body.is_required {
                    return Err(format!("a {} request with a body", self.method.as_str()));
                }
                None
            }
            other => other?,
        };
        input(parameters, body, reader)
    }

    /// The address, with the parameters of the path in their places.
    fn url(&self, base: &str, input: &CallInput) -> Result<String, String> {
        let is_written = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%/?".contains(c);
        let mut url = base.to_owned();
        if !self.path.starts_with('/') {
            return Err("its path does not begin with `/`".to_owned());
        }
        let mut rest = self.path;
        while !rest.is_empty() {
            let (text, after) = rest.split_once('{').unwrap_or((rest, ""));
            if let Some(odd) = text.chars().find(|c| !is_written(*c)) {
                return Err(format!("its path has `{}` in it", odd.escape_debug()));
            }
            if text.contains("orgconfig:") {
                return Err("its path would be read as more than a path".to_owned());
            }
            url.push_str(text);
            if rest.len() == text.len() {
                break;
            }
            let (name, after) = after.split_once('}').ok_or("its path has a `{` without its `}`")?;
            let known = input.names.get(&(ParameterPlace::Path, name.to_owned()));
            let known = known.ok_or_else(|| format!("its path names `{{{name}}}`, which is no parameter"))?;
            url.push_str(&format!("{{{{{known}}}}}"));
            rest = after;
        }
        // A run refuses such an address: it would be another one once it is sent.
        let is_dots = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
        if self.path.split(['/', '\\']).any(is_dots) {
            return Err("its path has a `.` or `..` part".to_owned());
        }
        Ok(url)
    }

    fn document(&self, name: &str, url: &str, input: &CallInput, credentials: &OperationCredentials) -> Value {
        let sent = |place| {
            let of_place = move |parameter: &&Parameter| parameter.place == place;
            let named = |parameter: &Parameter| {
                let input = input.names.get(&(place, parameter.name.clone())).cloned().unwrap_or_default();
                (parameter.name.clone(), Value::from(format!("@{input}")))
            };
            input.parameters.iter().filter(of_place).map(named).collect::<BTreeMap<_, _>>()
        };
        let (mut headers, mut query) = (sent(ParameterPlace::Header), sent(ParameterPlace::Query));
        headers.extend(credentials.headers.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str()))));
        query.extend(credentials.query.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str()))));
        let mut made = Map::new();
        let mut put = |name: &str, value: Value| made.insert(name.to_owned(), value);
        put("action_name", name.into());
        put("kind", "http".into());
        put("description", self.description(&input.parameters).into());
        put("url", url.into());
        put("http_method", self.method.as_str().into());
        if !headers.is_empty() {
            put("headers", headers.into_iter().collect());
        }
        if !query.is_empty() {
            put("query", query.into_iter().collect());
        }
        let of_query = |parameter: &&Parameter| parameter.place == ParameterPlace::Query;
        let styled = input.parameters.iter().filter(of_query).map(|parameter| (&parameter.name, parameter.style));
        let query_styles: BTreeMap<_, _> = styled.filter(|(_, style)| *style != ValueStyle::Repeat).collect();
        if !query_styles.is_empty() {
            put("query_style", json!(query_styles));
        }
        if !input.form_styles.is_empty() {
            put("form_style", json!(input.form_styles));
        }
        if let Some((content_type, name)) = &input.body {
            if content_type != "application/json" {
                put("content_type", content_type.as_str().into());
            }
            put("body", format!("@{name}").into());
        } else if self.method.has_body() {
            // Nothing is sent where the page describes no body.
            put("body", "".into());
        }
        put("idempotent", self.method.is_idempotent().into());
        put("parameters", input.schema.clone());
        Value::Object(made)
    }

    fn description(&self, parameters: &[Parameter]) -> String {
        let [summary, text] =
            ["summary", "description"].map(|name| self.operation.text(name).unwrap_or_default().trim());
        let both = match text.starts_with(summary) {
            true => text.to_owned(),
            false if text.is_empty() => summary.to_owned(),
            false => format!("{}. {text}", summary.trim_end_matches('.')),
        };
        let mut text = plain(&both, MAX_TEXT_CHARACTERS);
        if text.is_empty() {
            text = format!("{} {}", self.method.as_str(), plain(self.path, 200));
        }
        if self.operation.is("deprecated") {
            text = format!("Deprecated. {text}");
        }
        let pages: Vec<String> = parameters
            .iter()
            .filter(|parameter| parameter.place == ParameterPlace::Query && PAGES.contains(&parameter.name.as_str()))
            .map(|parameter| format!("`{}`", parameter.name))
            .collect();
        if self.method == Method::Get && !pages.is_empty() {
            text = format!("{text} One call gives one page: see {}.", pages.join(", "));
        }
        text
    }

    /// What looks like an instruction to a model, or is hidden, in the texts that a model would read.
    fn suspicions(&self, action: &Value) -> Vec<String> {
        let written =
            ["summary", "description", "operationId"].map(|name| self.operation.text(name).unwrap_or_default());
        let texts = written.into_iter().chain(texts_of(action));
        let found: BTreeSet<String> = texts.flat_map(|text| suspicions(text, [])).collect();
        found.into_iter().collect()
    }
}

/// The type of content that an operation answers with, where that is not JSON as it is asked for by itself.
///
/// # Errors
/// When no model could read any of the types.
fn accepted(files: &PageFiles, operation: PagePart<'_>) -> Result<Option<String>, String> {
    let answers = operation.get("responses").into_iter().flat_map(PagePart::members);
    let contents = answers
        .filter(|(status, _)| status.starts_with('2'))
        .filter_map(|(_, at)| files.follow(at).ok()?.get("content"));
    let mut types: Vec<String> = contents
        .flat_map(PagePart::members)
        .map(|(media, _)| media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
        .collect();
    types.sort_unstable();
    let is_own = |media: &String| matches!(media.as_str(), "application/json" | "*/*" | "application/*" | "");
    if types.is_empty() || types.iter().any(is_own) {
        return Ok(None);
    }
    let is_written = |media: &&String| {
        media.contains('/') && media.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-/*".contains(c))
    };
    let is_json = |media: &&String| media.ends_with("+json") || media.ends_with("/json");
    let is_text = |media: &&String| {
        let ends = ["xml", "yaml", "graphql", "jsonl", "ndjson", "json-seq", "javascript", "x-www-form-urlencoded"];
        media.starts_with("text/") || ends.iter().any(|end| media.ends_with(end))
    };
    let written = || types.iter().filter(is_written);
    match written().find(is_json).or_else(|| written().find(is_text)) {
        Some(media) => Ok(Some(media.clone())),
        None => Err(format!("it answers with {}, which is no text", types.join(", "))),
    }
}

/// The input of a call: a name for each parameter, and one for the body.
fn input(parameters: Parameters, body: Option<RequestBody>, reader: SchemaReader<'_>) -> Result<CallInput, String> {
    let mut taken: BTreeSet<String> = RESERVED.iter().map(|name| (*name).to_owned()).collect();
    let mut given = |wanted: &str| {
        let base: String = name_of(wanted, &[]).chars().take(60).collect();
        let base = if base.is_empty() { "value".to_owned() } else { base };
        let mut name = base.clone();
        let mut number = 2_u32;
        while !taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number = number.saturating_add(1);
        }
        name
    };
    let Parameters { all, mut notes } = parameters;
    let (mut properties, mut required, mut names) = (Map::new(), Vec::new(), BTreeMap::new());
    for Parameter { place, name, is_required, schema, .. } in &all {
        let input = given(name);
        if *is_required {
            required.push(Value::from(input.as_str()));
        }
        properties.insert(input.clone(), renamed(schema.clone(), name, &input));
        names.insert((*place, name.clone()), input);
    }
    let mut form_styles = BTreeMap::new();
    let body = body.map(|body| {
        let input = given("body");
        if body.is_required {
            required.push(Value::from(input.as_str()));
        }
        properties.insert(input.clone(), body.schema);
        notes.extend(body.notes);
        form_styles = body.styles;
        (body.content_type, input)
    });
    let mut root =
        Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), Value::Object(properties))]);
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
    root.insert("additionalProperties".to_owned(), Value::Bool(false));
    notes.extend(reader.notes.iter().cloned());
    let is_cut = reader.is_cut();
    let schema = reader.whole(&Value::Object(root)).unwrap_or_default();
    Ok(CallInput { schema, parameters: all, names, body, form_styles, notes, is_cut })
}

/// A schema that says by which name an input is sent, where that is another one.
fn renamed(mut schema: Value, name: &str, input: &str) -> Value {
    if name == input {
        return schema;
    }
    let said = plain(name, 100);
    if let Some(members) = schema.as_object_mut() {
        let text = members.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = format!("Sent as `{said}`. {text}");
        members.insert("description".to_owned(), text.trim_end().into());
    }
    schema
}

/// An empty text in a path would be the address of something else, and null is none.
fn never_empty(schema: &mut Value, input: &str) {
    let Some(Value::Object(members)) = schema.pointer_mut(&format!("/properties/{input}")) else { return };
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
    }
    let kind = members.get("type");
    let is_text = kind
        .is_some_and(|kind| kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("string"))));
    let least = members.get("minLength").and_then(Value::as_u64).unwrap_or_default();
    if is_text && least == 0 && !members.contains_key("enum") {
        members.insert("minLength".to_owned(), json!(1));
        if members.get("default").is_some_and(|value| value == "") {
            members.shift_remove("default");
        }
    }
}

/// How many levels a value has.
fn levels(value: &Value) -> usize {
    let (mut most, mut todo) = (0, vec![(value, 1_usize)]);
    while let Some((value, level)) = todo.pop() {
        most = most.max(level);
        let below = level.saturating_add(1);
        match value {
            Value::Array(items) => todo.extend(items.iter().map(|item| (item, below))),
            Value::Object(members) => todo.extend(members.values().map(|member| (member, below))),
            _ => {}
        }
    }
    most
}
