//! The form that is made of the requests of a server: each property of what it wants is a field.

use serde_json::{Map, Value};

use super::AskingServer;
use loopctl_lang::language::form::FieldType;
use loopctl_lang::policy::characters::is_hidden;
use loopctl_lang::policy::json_text;
use loopctl_lang::policy::secret_names::{Secrecy, secrecy};
use loopctl_lang::program::form::{AskedField, AskedForm, JSON_HELP, MAX_FIELDS, MAX_TEXT_CHARS};
use loopctl_lang::program::mcp::ServedTool;
use loopctl_lang::program::schema::{self, Schema};

/// The most characters of what a server says to a human, and of a note beside a field.
const MAX_MESSAGE_CHARS: usize = 4_000;
const MAX_NOTE_CHARS: usize = 500;

/// A request of a server.
pub(super) struct ReadRequest<'r> {
    /// The key that the server has for it.
    pub key: &'r str,
    /// The fields of what it wants.
    pub fields: Vec<RequestedField<'r>>,
    message: String,
    /// The address that it wants a human to visit.
    url: Option<&'r str>,
    schema: Option<&'r Value>,
    /// What precedes the names of its fields, where there are other requests.
    prefix: String,
}

/// A property of what a server wants.
pub(super) struct RequestedField<'r> {
    /// Its name in the form.
    pub name: String,
    /// Its name in the answer.
    pub own_name: &'r str,
    schema: &'r Value,
    is_required: bool,
}

/// The requests of a server.
///
/// # Errors
/// Why they are put to no human, in a sentence without a final stop.
pub(super) fn read_all(requests: &Map<String, Value>) -> Result<Vec<ReadRequest<'_>>, String> {
    let are_several = requests.len() > 1;
    requests.iter().map(|(key, request)| ReadRequest::read(key, request, are_several)).collect()
}

/// The form that a human fills in.
///
/// # Errors
/// Why there is none, in a sentence without a final stop.
pub(super) fn form(by: &AskingServer, requests: &[ReadRequest<'_>]) -> Result<AskedForm, String> {
    let (mut fields, mut show, mut messages): (Vec<AskedField>, _, _) = (Vec::new(), Map::new(), Vec::new());
    for request in requests {
        messages.push(request.message.as_str());
        if let Some(url) = request.url {
            show.insert(format!("{}url", request.prefix), Value::from(shown(url, MAX_MESSAGE_CHARS)));
        }
        request.can_be_answered()?;
        fields.extend(request.consent_field());
        fields.extend(request.fields.iter().map(RequestedField::asked));
        if fields.len() > MAX_FIELDS {
            return Err(format!("it asks for more than {MAX_FIELDS} values"));
        }
    }
    if requests.is_empty() {
        return Err("it asks for nothing".to_owned());
    }
    let mut names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
        return Err("two of the values that it asks for have one name".to_owned());
    }
    let AskingServer { mcp_server, tool } = by;
    let said = messages.join("\n");
    let question = format!("The MCP server `{mcp_server}` asks, before it continues with `{tool}`: {said}");
    Ok(AskedForm { question, show, fields })
}

impl RequestedField<'_> {
    /// Whether it wants a password or a key, by its name or form. A choice is none.
    fn is_secret(&self) -> bool {
        let kind = self.schema.get("type").and_then(Value::as_str);
        let is_choice = ["enum", "oneOf"].iter().any(|word| self.schema.get(word).is_some());
        let is_named = match secrecy(self.own_name) {
            Secrecy::None => false,
            Secrecy::Texts => kind.is_none_or(|kind| kind == "string"),
            Secrecy::All => kind != Some("boolean"),
        };
        let has_form = self.schema.get("format").and_then(Value::as_str) == Some("password");
        (is_named || has_form) && !is_choice
    }
}

impl<'r> ReadRequest<'r> {
    fn read(key: &'r str, request: &'r Value, are_several: bool) -> Result<Self, String> {
        let text = |of: &'r Value, name: &str| of.get(name).and_then(Value::as_str);
        let method = text(request, "method").unwrap_or_default();
        if method != "elicitation/create" {
            return Err(format!("it asks for {:?}, which is not given here", shown(method, MAX_NOTE_CHARS)));
        }
        let Some(params) = request.get("params") else { return Err("its request says nothing".to_owned()) };
        let prefix = if are_several { format!("{key}.") } else { String::new() };
        let message = shown(text(params, "message").unwrap_or_default(), MAX_MESSAGE_CHARS);
        if text(params, "mode") == Some("url") {
            let url = text(params, "url").ok_or("it wants an address to be visited, and gives none")?;
            return Ok(Self { key, fields: Vec::new(), message, url: Some(url), schema: None, prefix });
        }
        let schema = params.get("requestedSchema");
        let required: Vec<&str> = schema
            .and_then(|schema| schema.get("required")?.as_array())
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
        let field = |(own_name, schema): (&'r String, &'r Value)| RequestedField {
            name: format!("{prefix}{own_name}"),
            own_name,
            schema,
            is_required: required.contains(&own_name.as_str()),
        };
        let fields = properties.into_iter().flatten().map(field).collect();
        Ok(Self { key, fields, message, url: None, schema, prefix })
    }

    /// # Errors
    /// Why no human can answer it as it is asked: a run would wait for nothing.
    fn can_be_answered(&self) -> Result<(), String> {
        let is_odd = |name: &str| name.chars().any(|c| is_hidden(c) || c.is_control());
        if is_odd(&self.prefix) || self.fields.iter().any(|field| is_odd(&field.name)) {
            return Err("a value that it asks for has a hidden character in its name".to_owned());
        }
        let required = self.schema.and_then(|schema| schema.get("required")?.as_array()).into_iter().flatten();
        let is_unknown = |name: &&str| !self.fields.iter().any(|field| field.own_name == *name);
        if let Some(name) = required.filter_map(Value::as_str).find(is_unknown) {
            return Err(format!("it asks for `{}`, and does not say what that is", line(name, MAX_NOTE_CHARS)));
        }
        if let Some(field) = self.fields.iter().find(|field| field.is_secret()) {
            let name = line(&field.name, MAX_NOTE_CHARS);
            return Err(format!(
                "it asks for a secret, `{name}`, and what is answered goes into the journal: its `env` or `headers` can have one of \
                 the project"
            ));
        }
        match self.fields.iter().find(|field| field.is_required && field.has_no_value()) {
            Some(field) => Err(format!("no value fits `{}` that it asks for", line(&field.name, MAX_NOTE_CHARS))),
            None => Ok(()),
        }
    }

    /// Whether it wants values, and no visit to an address.
    pub(super) fn is_form(&self) -> bool {
        self.url.is_none()
    }

    /// The name of the field in which a human says yes to a request that wants no values.
    pub(super) fn consent(&self) -> Option<String> {
        let word = match (self.url, self.fields.as_slice()) {
            (Some(_), _) => "done",
            (None, []) => "accept",
            _ => return None,
        };
        Some(format!("{}{word}", self.prefix))
    }

    fn consent_field(&self) -> Option<AskedField> {
        let label = match self.url {
            Some(_) => "Did you visit the address, and finish there?",
            None => "Do you accept?",
        };
        let help = match self.url {
            Some(_) => "The address is the server's: nothing here opens it. No declines.",
            None => "No declines.",
        };
        Some(AskedField { label: Some(label.to_owned()), ..plain(self.consent()?, FieldType::YesNo, help) })
    }

    /// Whether values fit what it wants. A schema that can't be read refuses nothing: the server judges.
    pub(super) fn fits(&self, content: &Value) -> Result<(), String> {
        let compiled = self.schema.and_then(|schema| Schema::compile(ServedTool::plain_schema(schema)).ok());
        let faults = compiled.map(|schema| schema.faults(content)).unwrap_or_default();
        if faults.is_empty() {
            return Ok(());
        }
        Err(format!("the answer does not fit what the server asks for:{}", schema::list(&faults)))
    }
}

impl RequestedField<'_> {
    /// The field as a human is asked for it.
    fn asked(&self) -> AskedField {
        let schema = self.schema;
        let note = |name: &str| schema.get(name).and_then(Value::as_str).map(|text| line(text, MAX_NOTE_CHARS));
        let kind = self.kind();
        let mut help: Vec<String> = note("description").into_iter().collect();
        help.extend(self.titles());
        if self.is_json() {
            help.extend(self.listed_values());
            help.push(JSON_HELP.to_owned());
        }
        let bound = |name: &str| schema.get(name).filter(|bound| kind.has_order() && bound.is_number()).cloned();
        let field = AskedField {
            label: note("title"),
            required: self.is_required,
            min: bound("minimum"),
            max: bound("maximum"),
            choices: self.choice_texts(),
            ..plain(self.name.clone(), kind, &help.join("; "))
        };
        let written = schema.get("default").map(|default| match default {
            Value::Array(_) | Value::Object(_) => Value::from(default.to_string()),
            other if kind == FieldType::Choice => Value::from(choice(other)),
            other => other.clone(),
        });
        // A default that is none is the server's mistake.
        let default = written.filter(|written| !written.is_null()).and_then(|written| field.read(Some(&written)).ok());
        AskedField { required: field.required && default.is_none(), default, ..field }
    }

    /// The type of its schema, without null.
    fn word(&self) -> Option<&str> {
        match self.schema.get("type")? {
            Value::String(word) => Some(word),
            Value::Array(words) => words.iter().filter_map(Value::as_str).find(|word| *word != "null"),
            _ => None,
        }
    }

    fn kind(&self) -> FieldType {
        if !self.choices().is_empty() {
            return FieldType::Choice;
        }
        let format = self.schema.get("format").and_then(Value::as_str);
        let is_long = self.schema.get("maxLength").and_then(Value::as_u64);
        let is_long = is_long.and_then(|most| usize::try_from(most).ok()).is_some_and(|most| most > MAX_TEXT_CHARS);
        match self.word() {
            Some("boolean") => FieldType::YesNo,
            Some("integer") => FieldType::Integer,
            Some("number") => FieldType::Number,
            Some("string") if format == Some("date") => FieldType::Date,
            Some("string") if !is_long => FieldType::Text,
            _ => FieldType::LongText,
        }
    }

    /// Whether its value is written as JSON: a list, or what no field of a form is.
    fn is_json(&self) -> bool {
        self.choices().is_empty() && !matches!(self.word(), Some("boolean" | "integer" | "number" | "string"))
    }

    /// Whether its bounds leave no value.
    fn has_no_value(&self) -> bool {
        let bound = |name: &str| self.schema.get(name).and_then(Value::as_f64);
        let above = |low: &str, high: &str| bound(low).zip(bound(high)).is_some_and(|(low, high)| low > high);
        above("minimum", "maximum") || above("minLength", "maxLength") || above("minItems", "maxItems")
    }

    /// What a list may have, and how much of it.
    fn listed_values(&self) -> Vec<String> {
        let Some(items) = self.schema.get("items").filter(|_| self.word() == Some("array")) else { return Vec::new() };
        let list = |name: &str| items.get(name).and_then(Value::as_array).into_iter().flatten();
        let named = |one: &Value| {
            let value = one.get("const")?;
            let title = one.get("title").and_then(Value::as_str).map(|title| line(title, MAX_NOTE_CHARS));
            Some(title.map_or_else(|| value.to_string(), |title| format!("{value} is {title}")))
        };
        let values: Vec<String> = list("enum")
            .map(Value::to_string)
            .chain(list("oneOf").chain(list("anyOf")).filter_map(named))
            .map(|value| line(&value, MAX_NOTE_CHARS))
            .collect();
        let count = |name: &str, how: &str| Some(format!("{how} {}", self.schema.get(name)?.as_u64()?));
        let listed = (!values.is_empty()).then(|| format!("of {}", values.join(", ")));
        listed.into_iter().chain(count("minItems", "at least")).chain(count("maxItems", "at most")).collect()
    }

    /// The choices as a human reads them. Two that read alike are one.
    fn choice_texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for (text, _) in self.choices() {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }

    /// The values of which one is chosen, as texts and as they are.
    fn choices(&self) -> Vec<(String, &Value)> {
        if self.word() == Some("array") {
            return Vec::new();
        }
        let list = |name: &str| self.schema.get(name).and_then(Value::as_array).into_iter().flatten();
        let titled = list("oneOf").chain(list("anyOf")).filter_map(|one| one.get("const"));
        // Lists and objects are written as JSON.
        let only = self.schema.get("const").filter(|only| !only.is_array() && !only.is_object());
        list("enum").chain(titled).chain(only).map(|value| (choice(value), value)).collect()
    }

    /// What the choices are called, where they have titles.
    fn titles(&self) -> Option<String> {
        let list = |name: &str| self.schema.get(name).and_then(Value::as_array).into_iter().flatten();
        let named = list("enum").zip(list("enumNames"));
        let titled = list("oneOf").chain(list("anyOf")).filter_map(|one| Some((one.get("const")?, one.get("title")?)));
        let titles = named.chain(titled).filter_map(|(value, title)| {
            Some(format!("{} is {}", choice(value), line(title.as_str()?, MAX_NOTE_CHARS)))
        });
        let titles: Vec<String> = titles.collect();
        (!titles.is_empty()).then(|| titles.join(", "))
    }

    /// What the server is given for a value of the field.
    pub(super) fn value(&self, given: &Value) -> Result<Value, String> {
        let Value::String(text) = given else { return Ok(given.clone()) };
        if let Some((_, value)) = self.choices().into_iter().find(|(choice, _)| choice == text) {
            return Ok(value.clone());
        }
        if !self.is_json() {
            return Ok(given.clone());
        }
        json_text::read(text).map_err(|_| format!("`{}` is no JSON: write a list like [\"a\", \"b\"]", self.name))
    }
}

/// A choice as a text.
fn choice(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| line(text, MAX_NOTE_CHARS))
}

fn plain(name: String, kind: FieldType, help: &str) -> AskedField {
    AskedField {
        name,
        kind,
        label: None,
        help: Some(help.to_owned()).filter(|help| !help.is_empty()),
        required: true,
        default: None,
        min: None,
        max: None,
        choices: Vec::new(),
    }
}

/// A text of a server for a human: what is hidden is shown by its number, and the end of a long one is cut and said to be.
fn shown(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for c in text.chars().take(most) {
        match c {
            '\n' => shown.push(c),
            _ if is_hidden(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            _ => shown.push(c),
        }
    }
    if text.chars().nth(most).is_some() {
        shown.push_str(" ... (cut)");
    }
    shown
}

/// The same in one line.
fn line(text: &str, most: usize) -> String {
    shown(text, most).replace('\n', " ")
}
