//! `http` actions: the address, the headers, the query, the body, and where secrets may be sent.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::{ActionDraft, NamedVariable, NamingForm, is_at, is_value};
use crate::diagnostic::{codes, nearest};
use crate::language::action::HttpAction;
use crate::program::fault::LocalFault;
use crate::program::reference::{Field, as_any_path, escape_pointer, steps};
use crate::program::schema::Alphabet;
use crate::program::template::{Template, ValueEscape, Variable};
use crate::program::{BareValues, Body, HttpTool};

/// Formats of which no text has a sign that a body of any type gives a meaning; others allow one, as `uri` and `email` do.
const PLAIN_FORMATS: [&str; 8] = ["date", "time", "date-time", "duration", "uuid", "hostname", "ipv4", "ipv6"];

/// Headers that belong to the connection: a value for them could split a request in two.
const OURS: [&str; 6] = ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te"];

/// Headers that the client sets as well, and refuses from a document.
const OF_CLIENT: [&str; 6] =
    ["keep-alive", "proxy-connection", "proxy-authorization", "trailer", "expect", "accept-encoding"];

/// Whether a header is the connection's own: no action sends it.
pub(in crate::compile) fn is_connection_header(name: &str) -> bool {
    OURS.iter().chain(&OF_CLIENT).any(|own| own.eq_ignore_ascii_case(name))
}

pub(super) fn compile(action: &HttpAction, work: &mut ActionDraft<'_>) -> Option<HttpTool> {
    let url = work.template(&action.url, ValueEscape::Url, "/url");
    let parts = address(&action.url, work);
    let mut headers = Vec::with_capacity(action.headers.len());
    let mut twins = HashMap::with_capacity(action.headers.len());
    for (name, value) in &action.headers {
        let first = *twins.entry(name.to_ascii_lowercase()).or_insert(name);
        headers.extend(header(name, value, Some(first).filter(|first| *first != name), work));
    }
    let mut query = Vec::with_capacity(action.query.len());
    for (name, value) in &action.query {
        let pointer = format!("/query/{}", escape_pointer(name));
        query.extend(work.field(value, &pointer).map(|field| (name.clone(), field)));
    }
    let (mut used, mut known) = (Vec::new(), HashSet::new());
    for pointer in ["/url", "/headers", "/query"] {
        used.extend(work.arguments_at(pointer).into_iter().filter(|name| known.insert(name.clone())));
    }
    let body = action.body.as_ref().and_then(|body| self::body(body, &ContentType::of_text(action), work));
    let bare = content(action, body.as_ref(), work);
    styles(action, work);
    let url = url?;
    if let Some(parts) = parts {
        secrets(&url, parts, work);
    }
    Some(HttpTool { action: action.clone(), url, headers, query, body, used, bare })
}

/// Reports the styles that nothing is written in.
fn styles(action: &HttpAction, work: &mut ActionDraft<'_>) {
    let described = action.parameters.as_ref().and_then(|parameters| parameters.get("properties")?.as_object());
    // What no template names goes to the query, or to the body.
    let takes_inputs = action.body.is_none();
    let inputs = || described.into_iter().flatten().map(|(name, _)| name.as_str());
    let in_query: Vec<&str> =
        action.query.keys().map(String::as_str).chain(inputs().filter(|_| takes_inputs)).collect();
    let is_any = takes_inputs && described.is_none();
    for name in action.query_style.keys().filter(|name| !is_any && !in_query.contains(&name.as_str())) {
        let message = format!("the query has no parameter `{}`: nothing is written in this style", name.escape_debug());
        let fault =
            LocalFault::error(codes::IDLE_STYLE, format!("/query_style/{}", escape_pointer(name)), message).at_key();
        work.push(match nearest(name, in_query.iter().copied()) {
            Some(near) => fault.help(format!("the nearest name is `{near}`")).rename(name, near),
            None => fault.help("name a parameter of `query`"),
        });
    }
    let is_form = ContentType::of(action).media == "application/x-www-form-urlencoded";
    let fields = action.body.as_ref().and_then(Value::as_object);
    for name in action.form_style.keys() {
        let pointer = format!("/form_style/{}", escape_pointer(name));
        let fault = |message: String| LocalFault::error(codes::IDLE_STYLE, pointer.clone(), message).at_key();
        if !is_form {
            let message = "the body is no form: nothing is written in this style".to_owned();
            work.push(fault(message).help("\"content_type\": \"application/x-www-form-urlencoded\""));
        } else if let Some(fields) = fields.filter(|fields| !fields.contains_key(name)) {
            let message = format!("the body has no field `{}`: nothing is written in this style", name.escape_debug());
            work.push(match nearest(name, fields.keys().map(String::as_str)) {
                Some(near) => fault(message).help(format!("the nearest name is `{near}`")).rename(name, near),
                None => fault(message).help("name a field of `body`"),
            });
        }
    }
}

/// Where the host of an address begins and ends.
#[derive(Clone, Copy)]
struct AddressParts {
    secure: bool,
    host: usize,
    end: usize,
}

/// Checks the literal parts of an address.
fn address(url: &str, work: &mut ActionDraft<'_>) -> Option<AddressParts> {
    // The shape reports an empty one.
    if url.is_empty() {
        return None;
    }
    let scheme = |name: &str| url.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    let (secure, host) = if scheme("https://") {
        (true, 8)
    } else if scheme("http://") {
        (false, 7)
    } else {
        work.push(
            LocalFault::error(codes::BAD_URL, "/url", "the address does not begin with https:// or http://")
                .help("write the scheme out; values may fill the rest: https://api.example.com/tickets/{{ticket_id}}"),
        );
        return None;
    };
    let end = host_end(url, host);
    if end == host {
        work.push(
            LocalFault::error(codes::BAD_URL, "/url", "the address names no host")
                .inside(0..end)
                .help("write it out: https://api.example.com/tickets"),
        );
    }
    if let Some((at, _)) = outside_of_tags(url).find(|(at, c)| (host..end).contains(at) && *c == '@') {
        work.push(
            LocalFault::error(codes::CREDENTIALS, "/url", "the address holds a user name or password")
                .inside(host..at + 1)
                .help("send them in a header, from a secret: \"Authorization\": \"Basic orgconfig:KEY\""),
        );
    }
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if let Some((at, c)) = outside_of_tags(url).find(|(_, c)| is_odd(*c)) {
        let what = if c == ' ' { "a space".to_owned() } else { format!("`{}`", c.escape_debug()) };
        work.push(
            LocalFault::error(codes::BAD_URL, "/url", format!("the address holds {what}"))
                .inside(at..at + c.len_utf8())
                .help(format!("write it percent-encoded: {}", encoded(c))),
        );
    }
    Some(AddressParts { secure, host, end })
}

/// The end of the host of an address that begins at `host`. The content of a block may be left out, so it ends
/// nothing: in `https://{{#if a}}x/{{/if}}{{b}}/` the value of `b` may be the host.
fn host_end(url: &str, host: usize) -> usize {
    let (mut depth, mut last) = (0_usize, 0);
    for (at, c) in outside_of_tags(url) {
        let tags = url.get(last..at).filter(|tags| !tags.is_empty());
        let tags = tags.into_iter().flat_map(|tags| tags.split("{{").skip(1));
        for tag in tags.map(|tag| tag.trim_start_matches(['{', '~'])) {
            let opens = tag.starts_with('#') || tag.strip_prefix('^').is_some_and(|rest| !rest.starts_with(['}', '~']));
            depth = if opens { depth + 1 } else { depth.saturating_sub(usize::from(tag.starts_with('/'))) };
        }
        last = at + c.len_utf8();
        if at >= host && depth == 0 && matches!(c, '/' | '?' | '#' | '\\') {
            return at;
        }
    }
    url.len()
}

/// The values that name the host of an address, or a part of it.
fn values_in_host(url: &Template) -> impl Iterator<Item = &Variable> {
    let source = url.source();
    let host = source.find("://").map_or(0, |at| at + 3);
    let end = host_end(source, host);
    url.variables().iter().filter(move |variable| variable.range.start < end && is_value(variable))
}

/// The first value in a field that also names a secret.
fn value_beside_secret(field: &Field) -> Option<Variable> {
    let values = || field.variables().into_iter().map(|found| found.variable);
    values().find(is_value).filter(|_| field.names_secret())
}

/// Why a secret of this action must not be sent: a value decides the receiver, or is beside it in a header. The
/// compiler refuses such an address and header; the driver checks nevertheless.
pub fn strays(tool: &HttpTool) -> Option<String> {
    if let Some((name, value)) = tool.headers.iter().find_map(|(name, field)| Some((name, value_beside_secret(field)?)))
    {
        return Some(format!("the header `{name}` takes a secret, and the value of `{}`", value.path.join(".")));
    }
    let fields = || tool.headers.iter().chain(&tool.query).map(|(_, field)| field);
    let in_body = match &tool.body {
        Some(Body::Json(field)) => field.names_secret(),
        Some(Body::Text(template)) => !template.secrets().is_empty(),
        Some(Body::Notice(_)) | None => false,
    };
    let sends = in_body || !tool.url.secrets().is_empty() || fields().any(Field::names_secret);
    let value = values_in_host(&tool.url).next().filter(|_| sends)?;
    Some(format!("a secret would go to whatever host `{}` names", value.path.join(".")))
}

/// A character in the encoding of an address: `%20`.
fn encoded(c: char) -> String {
    c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The characters of a template outside of its tags, with their places.
fn outside_of_tags(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut inside, mut before) = (false, None);
    text.char_indices().filter(move |(at, c)| {
        let follows = |mark: &str| text.get(*at..).is_some_and(|rest| rest.starts_with(mark));
        inside |= *c == '{' && follows("{{");
        let is_outside = !inside;
        // The last brace of a tag: no other one follows.
        if inside && *c == '}' && before == Some('}') && !follows("}}") {
            inside = false;
        }
        before = Some(*c);
        is_outside
    })
}

/// `twin` is an earlier header with the same name, ignoring case.
fn header(
    name: &str,
    value: &str,
    twin: Option<&String>,
    work: &mut ActionDraft<'_>,
) -> Option<(String, crate::program::reference::Field)> {
    let pointer = format!("/headers/{}", escape_pointer(name));
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let bad = |message: String| LocalFault::error(codes::BAD_HEADER, &pointer, message).at_key();
    if name.is_empty() {
        work.push(bad("a header has no name".to_owned()).help("letters, digits and `-`"));
    } else if !name.chars().all(token) {
        let message = format!("`{}` is no name of a header", name.escape_debug());
        work.push(bad(message).help("letters, digits and `-`"));
    } else if OURS.iter().any(|ours| ours.eq_ignore_ascii_case(name)) {
        let message = format!("the header `{name}` is set by the connection itself");
        work.push(bad(message).help("take it out"));
    } else if let Some(twin) = twin {
        let message = format!("the header `{name}` is there twice: the other one is `{twin}`");
        work.push(bad(message).help("keep one of them"));
    }
    if let Some((at, c)) = value.char_indices().find(|(_, c)| c.is_control() && *c != '\t') {
        let message = format!("the header `{}` holds a control character", name.escape_debug());
        let fault = LocalFault::error(codes::BAD_HEADER, &pointer, message).inside(at..at + c.len_utf8());
        work.push(fault.help("a header is one line"));
    }
    let field = work.field(&Value::from(value), &pointer)?;
    if let Some(variable) = value_beside_secret(&field) {
        let named = NamedVariable { pointer: pointer.clone(), variable, form: NamingForm::default() };
        let (code, who) =
            if named.is_argument() { (codes::MIXED_HEADER, "the model") } else { (codes::FILLED_HEADER, "the caller") };
        let path = named.variable.path.join(".");
        let message = format!("the header `{name}` takes a secret, and `{path}`, which {who} writes");
        work.push(
            LocalFault::error(code, &pointer, message)
                .inside(named.variable.range)
                .help(format!("send what {who} writes in a header of its own, in the query or in the body")),
        );
    }
    Some((name.to_owned(), field))
}

fn body(body: &Value, content_type: &ContentType<'_>, work: &mut ActionDraft<'_>) -> Option<Body> {
    let media = content_type.media.as_str();
    let is_json = media == "application/json" || media.ends_with("+json");
    let Value::String(text) = body else { return work.field(body, "/body").map(Body::Json) };
    if as_any_path(text).is_some() {
        return work.field(body, "/body").map(Body::Json);
    }
    let escape = match media {
        _ if is_json => ValueEscape::Json,
        "application/x-www-form-urlencoded" => ValueEscape::Url,
        _ => ValueEscape::Plain,
    };
    let template = work.template(text, escape, "/body")?;
    if is_json && !work.unknown.holds(&content_type.pointer) {
        let help = "write the body as an object: {\"body\": {\"amount\": \"@amount\"}} keeps the value's type";
        unquoted(&template, "/body", help, work, |_| false);
    }
    Some(Body::Text(template))
}

/// Where an action says of which type its body is, and what it says.
struct ContentType<'a> {
    pointer: String,
    written: &'a str,
    /// In lower case, without its parameters.
    media: String,
}

impl<'a> ContentType<'a> {
    /// A header of the action takes the place of the field.
    fn of(action: &'a HttpAction) -> Self {
        let header = action.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        header.map_or_else(
            || Self::of_field(action),
            |(name, value)| Self::new(format!("/headers/{}", escape_pointer(name)), value),
        )
    }

    /// By which type the values in the text of a body are escaped. Where a value chooses the type, the field says it.
    fn of_text(action: &'a HttpAction) -> Self {
        let sent = Self::of(action);
        if sent.written.contains("{{") { Self::of_field(action) } else { sent }
    }

    fn of_field(action: &'a HttpAction) -> Self {
        Self::new("/content_type".to_owned(), &action.content_type)
    }

    fn new(pointer: String, written: &'a str) -> Self {
        let media = written.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Self { pointer, written, media }
    }

    /// The boundary that a type of several parts names.
    fn boundary(&self) -> Option<&'a str> {
        let named = |part: &'a str| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
        };
        self.written.split(';').skip(1).find_map(named).filter(|boundary| !boundary.is_empty())
    }

    /// Whether a text has the boundary that the type names, so that its author wrote the parts.
    fn has_parts(&self, text: &str) -> bool {
        self.boundary().is_some_and(|boundary| text.contains(&format!("--{boundary}")))
    }

    /// The signs that the type gives a meaning; in several parts, a boundary has one as well.
    fn signs(&self) -> &'static str {
        match self.media.as_str() {
            "text/csv" | "application/csv" => ",\"\r\n",
            "text/tab-separated-values" => "\t\r\n",
            media if is_json_lines(media) => "\"\\\r\n",
            media if is_yaml(media) => YAML_SIGNS,
            media if media.starts_with("multipart/") => "\r\n",
            "application/graphql" => "\"\\{}\r\n",
            "application/sql" => "'\"`\\;",
            "application/toml" => "\"'\\\r\n",
            _ => "<&",
        }
    }

    /// Whether a text of these characters may have a sign that the type gives a meaning.
    fn gives_meaning(&self, alphabet: &Alphabet) -> bool {
        let mut boundary = self.boundary().unwrap_or_default().chars();
        let has_boundary =
            self.media.starts_with("multipart/") && alphabet.has('-') && boundary.all(|sign| alphabet.has(sign));
        has_boundary || self.signs().chars().any(|sign| alphabet.has(sign))
    }
}

/// What can't be sent as the type of the body says, and what is not escaped in it. Returns the values that go into it as they
/// are.
fn content(action: &HttpAction, body: Option<&Body>, work: &mut ActionDraft<'_>) -> Option<BareValues> {
    let sends = action.body.is_some() || action.http_method.has_body();
    let content_type = ContentType::of(action);
    if !sends || work.unknown.holds(&content_type.pointer) {
        return None;
    }
    let text = match body {
        Some(Body::Text(template)) => Some(template),
        _ => None,
    };
    unmade(action, text, &content_type, work);
    let media = content_type.media.as_str();
    let marks = match media {
        "application/xml" | "text/xml" => "`<` or `&` adds elements",
        _ if media.ends_with("+xml") => "`<` or `&` adds elements",
        "text/html" => "`<` or `&` adds elements",
        "text/csv" | "application/csv" => "a comma, a quote or a line end adds cells and rows",
        "text/tab-separated-values" => "a tab or a line end adds cells and rows",
        _ if is_json_lines(media) => "a quote or a line end adds members and lines",
        _ if is_yaml(media) => "a line end or a colon adds members",
        _ if media.starts_with("multipart/") => "a boundary adds parts",
        "application/graphql" => "a quote or a brace adds fields",
        "application/sql" => "a quote or a semicolon adds to the statement",
        "application/toml" => "a quote or a line end adds keys",
        _ => return None,
    };
    let template = text?;
    let values = template.variables().iter().filter(|variable| is_value(variable) && is_printed(template, variable));
    let (bare, variables): (Vec<_>, Vec<_>) = values.partition(|variable| is_plain(action, variable, &content_type));
    let faults: Vec<LocalFault> = variables
        .into_iter()
        .map(|variable| {
            let path = variable.path.join(".");
            let message = format!("the value of `{path}` is not escaped in a body of type `{media}`: one with {marks}");
            let fault = LocalFault::warning(codes::UNESCAPED, "/body", message).inside(variable.range.clone());
            fault.help(
                "bound it in `parameters`: a string with a `pattern` from `^` to `$` that lets no such sign through, an `enum`, or \
                 a number; or send JSON",
            )
        })
        .collect();
    faults.into_iter().for_each(|fault| work.push(fault));
    let formats: BTreeMap<String, String> =
        bare.into_iter().filter_map(|variable| plain_format(action, variable)).collect();
    let formats: Vec<_> = formats.into_iter().collect();
    // A date has a sign that YAML may give a meaning, and is sent as it always was.
    let is_held = !formats.is_empty() && !is_json_lines(media) && !is_yaml(media);
    is_held.then(|| BareValues { formats, signs: content_type.signs() })
}

/// Reports a body that would be sent as something else than what its type says.
fn unmade(action: &HttpAction, text: Option<&Template>, content_type: &ContentType<'_>, work: &mut ActionDraft<'_>) {
    let media = content_type.media.as_str();
    // Without a body, the arguments are sent as JSON.
    let is_json = !matches!(action.body, Some(Value::String(_) | Value::Null));
    let (message, help) = if media.starts_with("multipart/") {
        if text.is_some_and(|template| content_type.has_parts(template.source())) {
            return;
        }
        let help = "send JSON, or `application/x-www-form-urlencoded`; or write the parts out, as a text with the boundary \
                    that the type names";
        (format!("no body of type `{media}` is made here: it would be sent without its parts"), help)
    } else if is_json && is_no_json(media) {
        let help =
            "write the body as a text of that type; or take the type out, and JSON is sent as `application/json`";
        (format!("no body of type `{media}` is made here: JSON would be sent under that type"), help)
    } else {
        return;
    };
    if !work.unknown.holds("/body") {
        work.push(LocalFault::error(codes::UNMADE_BODY, &content_type.pointer, message).help(help));
    }
}

/// Whether JSON is no text of a type. It is one of YAML, and a plain text.
fn is_no_json(media: &str) -> bool {
    let of_text = ["application/csv", "application/graphql", "application/sql", "application/toml", "application/xml"];
    let of_lines = ["text/csv", "text/html", "text/tab-separated-values", "text/xml"];
    media.ends_with("+xml") || of_text.contains(&media) || of_lines.contains(&media)
}

/// Whether a template prints a value, or a part of it, and does not only ask for it.
fn is_printed(template: &Template, variable: &Variable) -> bool {
    let path = steps(&variable.path);
    template.uses().iter().any(|used| used.is_printed && used.path.starts_with(&path))
}

/// What has a meaning in YAML.
const YAML_SIGNS: &str = "\r\n:#\"'\\{}[]&*!|>%@`,";

fn is_json_lines(media: &str) -> bool {
    matches!(media, "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/x-jsonlines")
}

fn is_yaml(media: &str) -> bool {
    matches!(media, "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml") || media.ends_with("+yaml")
}

/// The name of an argument, and its format when that keeps all signs with a meaning out.
fn plain_format(action: &HttpAction, variable: &Variable) -> Option<(String, String)> {
    let [name] = variable.path.as_slice() else { return None };
    let schema = action.parameters.as_ref()?.get("properties")?.get(name)?;
    let format = schema.get("format")?.as_str().filter(|format| PLAIN_FORMATS.contains(format))?;
    Some((name.clone(), format.to_owned()))
}

/// Whether no value that the schema of an argument allows has a sign with a meaning in the body.
fn is_plain(action: &HttpAction, variable: &Variable, content_type: &ContentType<'_>) -> bool {
    let Some([name]) = variable.path.get(..1) else { return true };
    let schema = action.parameters.as_ref().and_then(|parameters| parameters.get("properties")?.get(name));
    let Some(schema) = schema.filter(|_| variable.path.len() == 1) else {
        return ["now", "__run_id"].contains(&name.as_str());
    };
    let is_typed = |plain: &[&str]| match schema.get("type") {
        Some(Value::Array(kinds)) => {
            !kinds.is_empty() && kinds.iter().all(|kind| plain.iter().any(|name| kind == name))
        }
        Some(kind) => plain.iter().any(|name| kind == name),
        None => false,
    };
    if is_typed(&["integer", "number", "boolean", "null"])
        || ["enum", "const"].iter().any(|keyword| schema.get(keyword).is_some())
    {
        return true;
    }
    // A pattern and a format say nothing of a value that is no text, and such a value is printed as JSON.
    if !is_typed(&["string", "integer", "number", "boolean", "null"]) {
        return false;
    }
    if plain_format(action, variable).is_some() {
        return true;
    }
    let pattern = schema.get("pattern").and_then(Value::as_str);
    pattern.and_then(Alphabet::of).is_some_and(|alphabet| !content_type.gives_meaning(&alphabet))
}

/// Warns about a value in a JSON text outside of quotes: a text would break the JSON there, and a value could
/// contain several members.
pub(super) fn unquoted(
    template: &Template,
    pointer: &str,
    help: &str,
    work: &mut ActionDraft<'_>,
    is_safe: impl Fn(&Variable) -> bool,
) {
    let mut marks = outside_of_tags(template.source()).peekable();
    // The variables are in the order of the text.
    let (mut quoted, mut escaped) = (false, false);
    for variable in template.variables() {
        while let Some((_, c)) = marks.next_if(|(at, _)| *at < variable.range.start) {
            quoted ^= c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
        }
        if !quoted && !variable.optional && !is_safe(variable) {
            let message = format!("`{}` is outside of quotes in a JSON text", variable.path.join("."));
            work.push(LocalFault::warning(codes::UNQUOTED, pointer, message).inside(variable.range.clone()).help(help));
        }
    }
}

/// A secret is sent to the host that the action names, and to no other.
fn secrets(address: &Template, parts: AddressParts, work: &mut ActionDraft<'_>) {
    let url = address.source();
    let Some(pointer) = ["/url", "/headers", "/query", "/body"]
        .into_iter()
        .find_map(|top| work.secrets.iter().find(|pointer| is_at(pointer, top)).cloned())
    else {
        return;
    };
    let mut faults = Vec::new();
    for variable in values_in_host(address) {
        let message = format!("a secret would go to whatever host `{}` names", variable.path.join("."));
        let place = pointer.trim_start_matches('/').replace('/', ".");
        faults.push(
            LocalFault::error(codes::WANDERING_SECRET, "/url", message)
                .inside(variable.range.clone())
                .help(format!("write the host out; the secret is the one at {place}")),
        );
    }
    let host = url.get(parts.host..parts.end).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let loopback = matches!(name, "localhost" | "[::1]") || name.starts_with("127.");
    if !parts.secure && !loopback {
        faults.push(
            LocalFault::warning(codes::CLEAR_SECRET, "/url", "a secret would go over the network in the clear")
                .inside(0..parts.host)
                .help("write https://"),
        );
    }
    faults.into_iter().for_each(|fault| work.push(fault));
}
