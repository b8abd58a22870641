//! `@paths` and `orgconfig:` secrets: compiles and resolves the references in a written value.

mod omitted_members;

use serde_json::{Map, Value};

use super::template::{Template, ValueEscape, ValueUse, Variable, is_template};
use super::written_path::written_range;
use crate::program::fault::LocalFault;

pub(crate) use super::scope::steps;
pub use super::scope::{PathStep, RESERVED, Scope, Secrets, Unresolved, UnresolvedKind};
pub use super::written_path::{as_any_path, as_optional_path, as_path, spelled_path};

/// A written value: a literal, a template, an `@path`, or JSON made of them.
#[derive(Debug)]
pub enum Field {
    /// Taken as written.
    Literal(Value),
    /// A string with `{{ }}` or `orgconfig:` in it.
    Template(Template),
    /// A whole string `@a.b`: keeps the type of its value.
    Path(Vec<String>),
    /// A whole string `@a.b?`: the same, and left out of the object or the list around it where it has no value.
    Optional(Vec<String>),
    /// An array of fields.
    Array(Vec<Field>),
    /// An object of fields.
    Object(Vec<(String, Field)>),
}

/// A variable that a field takes from its scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldVariable {
    /// The JSON pointer of the string that names it, relative to the field.
    pub pointer: String,
    /// The variable, and its position in that string.
    pub variable: Variable,
}

impl Field {
    /// Compiles a written value.
    ///
    /// # Errors
    /// Every fault of its templates, each at its pointer relative to the value.
    pub fn compile(value: &Value) -> Result<Self, Vec<LocalFault>> {
        match value {
            Value::String(text) => match as_path(text) {
                Some(path) => Ok(Self::Path(path)),
                None if let Some(path) = as_optional_path(text) => Ok(Self::Optional(path)),
                None if is_template(text) => Template::compile(text, ValueEscape::Plain)
                    .map(Self::Template)
                    .map_err(|fault| vec![LocalFault::template(fault, "")]),
                None => Ok(Self::Literal(value.clone())),
            },
            Value::Array(items) => {
                let parts = items.iter().enumerate().map(|(at, item)| (at.to_string(), item));
                let fields = gather(parts)?.into_iter().map(|(_, field)| field).collect();
                Ok(Self::Array(fields).or_literal(value))
            }
            Value::Object(members) => {
                let parts = members.iter().map(|(key, member)| (key.clone(), member));
                Ok(Self::Object(gather(parts)?).or_literal(value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(Self::Literal(value.clone())),
        }
    }

    /// Its value. A path into a text that is JSON reads the JSON. A member that a call leaves out is left out. The values of the scope are data: they are
    /// never read as a template, a path or a secret.
    ///
    /// # Errors
    /// When a name that it needs has no value.
    pub fn resolve(&self, scope: &Scope<'_>) -> Result<Value, Unresolved> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Template(template) => template.render(scope).map(Value::String),
            Self::Path(path) | Self::Optional(path) => scope.copied(path),
            Self::Array(items) => items
                .iter()
                .filter_map(|item| item.resolve_entry(scope).transpose())
                .collect::<Result<_, _>>()
                .map(Value::Array),
            Self::Object(members) => members
                .iter()
                .filter_map(|(key, member)| {
                    Some(member.resolve_member(scope).transpose()?.map(|value| (key.clone(), value)))
                })
                .collect::<Result<Map<_, _>, _>>()
                .map(Value::Object),
        }
    }

    /// The variables that it takes from its scope, in the order of the text.
    pub fn variables(&self) -> Vec<FieldVariable> {
        let mut found = Vec::new();
        self.each_variable(&mut |pointer, variable| {
            found.push(FieldVariable { pointer: pointer.to_owned(), variable: variable.clone() });
        });
        found
    }

    /// Visits these variables, with the JSON pointer of the string that names each.
    pub(crate) fn each_variable(&self, visit: &mut dyn FnMut(&str, &Variable)) {
        self.each_named(&mut |pointer, variable, _| visit(pointer, variable));
    }

    /// The same; whether the string as a whole is the path of the variable comes with it.
    pub(crate) fn each_named(&self, visit: &mut dyn FnMut(&str, &Variable, bool)) {
        self.each_string(&mut String::new(), &mut |pointer, part| match part {
            Self::Path(path) => {
                let range = 0..written_range(path).end;
                visit(pointer, &Variable { path: path.clone(), range, optional: false }, true);
            }
            Self::Optional(path) => {
                let range = 0..written_range(path).end;
                visit(pointer, &Variable { path: path.clone(), range, optional: true }, true);
            }
            Self::Template(template) => {
                template.variables().iter().for_each(|variable| visit(pointer, variable, false))
            }
            _ => {}
        });
    }

    /// Visits the values that it uses, those in the bodies of blocks too, with the JSON pointer of the string.
    pub(crate) fn each_use(&self, visit: &mut dyn FnMut(&str, &ValueUse)) {
        self.each_string(&mut String::new(), &mut |pointer, part| match part {
            Self::Path(path) => {
                let range = written_range(path);
                visit(pointer, &ValueUse { path: steps(path), range, guarded: 0, is_printed: true });
            }
            Self::Optional(path) => {
                let range = written_range(path);
                visit(pointer, &ValueUse { path: steps(path), range, guarded: path.len(), is_printed: true });
            }
            Self::Template(template) => template.uses().iter().for_each(|used| visit(pointer, used)),
            _ => {}
        });
    }

    /// Its templates, in the order of the text.
    pub fn templates(&self) -> Vec<&Template> {
        let mut found = Vec::new();
        self.each_string(&mut String::new(), &mut |_, part| {
            if let Self::Template(template) = part {
                found.push(template);
            }
        });
        found
    }

    /// The keys of the secrets that it names.
    pub fn secrets(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        self.each_string(&mut String::new(), &mut |_, part| {
            if let Self::Template(template) = part {
                found.extend(template.secrets().iter().cloned());
            }
        });
        found
    }

    /// Whether it names a secret.
    pub fn names_secret(&self) -> bool {
        match self {
            Self::Template(template) => !template.secrets().is_empty(),
            Self::Array(items) => items.iter().any(Self::names_secret),
            Self::Object(members) => members.iter().any(|(_, member)| member.names_secret()),
            Self::Literal(_) | Self::Path(_) | Self::Optional(_) => false,
        }
    }

    fn each_string<'f>(&'f self, pointer: &mut String, visit: &mut dyn FnMut(&str, &'f Self)) {
        let length = pointer.len();
        match self {
            Self::Literal(_) => {}
            Self::Path(_) | Self::Optional(_) | Self::Template(_) => visit(pointer, self),
            Self::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{at}"));
                    item.each_string(pointer, visit);
                    pointer.truncate(length);
                }
            }
            Self::Object(members) => {
                for (key, member) in members {
                    push_name(pointer, key);
                    member.each_string(pointer, visit);
                    pointer.truncate(length);
                }
            }
        }
    }

    /// A list or object with only literal parts is a literal itself.
    fn or_literal(self, value: &Value) -> Self {
        let is_literal = match &self {
            Self::Array(items) => items.iter().all(|item| matches!(item, Self::Literal(_))),
            Self::Object(members) => members.iter().all(|(_, member)| matches!(member, Self::Literal(_))),
            _ => false,
        };
        if is_literal { Self::Literal(value.clone()) } else { self }
    }
}

/// Compiles the parts of a list or object, with all their faults.
fn gather<'v>(parts: impl Iterator<Item = (String, &'v Value)>) -> Result<Vec<(String, Field)>, Vec<LocalFault>> {
    let (mut fields, mut faults) = (Vec::new(), Vec::new());
    for (key, part) in parts {
        match Field::compile(part) {
            Ok(field) => fields.push((key, field)),
            Err(found) => {
                faults.extend(found.into_iter().map(|fault| fault.under(&format!("/{}", escape_pointer(&key)))))
            }
        }
    }
    if faults.is_empty() { Ok(fields) } else { Err(faults) }
}

/// Visits each text in a value, with its JSON pointer; `pointer` is that of the value.
pub(crate) fn each_text<'v>(value: &'v Value, pointer: &mut String, visit: &mut dyn FnMut(&str, &'v str)) {
    let length = pointer.len();
    match value {
        Value::String(text) => visit(pointer, text),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{at}"));
                each_text(item, pointer, visit);
                pointer.truncate(length);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                push_name(pointer, key);
                each_text(member, pointer, visit);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

/// Adds a name to a JSON pointer. Few names need an escape.
fn push_name(pointer: &mut String, name: &str) {
    pointer.push('/');
    match name.contains(['~', '/']) {
        true => pointer.push_str(&escape_pointer(name)),
        false => pointer.push_str(name),
    }
}

/// Escapes a name for a JSON pointer.
pub(crate) fn escape_pointer(name: &str) -> String {
    crate::syntax::token(name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::program::json_texts::JsonRule;

    fn resolve(field: &Value, arguments: &Value) -> Result<Value, String> {
        let input: Value =
            serde_json::from_str(r#"{"n":12345678901234567890123,"items":[{"name":"A"}],"x":null}"#).unwrap();
        let scope = Scope {
            arguments,
            now: "NOW",
            run_id: "RUN",
            extra: &[("today", "Friday")],
            ..Scope::of_input(&input, JsonRule::Plain.into())
        };
        let field = Field::compile(field).unwrap_or_else(|faults| panic!("{faults:?}"));
        field.resolve(&scope).map_err(|unresolved| unresolved.why)
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn a_whole_path_keeps_the_type() {
        let arguments =
            json!({"ticket_id": 7, "list": [1, 2], "deep": {"a": {"b": true}}, "text": "{\"a\":[1.50]}", "grüße": "ö"});
        for (path, expected) in [
            ("@ticket_id", "7"),
            ("@list", "[1,2]"),
            ("@list.length", "2"),
            ("@list.1", "2"),
            ("@deep.a", r#"{"b":true}"#),
            ("@deep.a.b", "true"),
            ("@text.a.0", "1.50"),
            ("@text", r#""{\"a\":[1.50]}""#),
            ("@text.length", "null"),
            ("@input.n", "12345678901234567890123"),
            ("@input.items.0.name", r#""A""#),
            ("@input.items.length", "1"),
            ("@input.x", "null"),
            ("@now", r#""NOW""#),
            ("@__run_id", r#""RUN""#),
            ("@today", r#""Friday""#),
            ("@grüße", r#""ö""#),
        ] {
            let found = resolve(&json!(path), &arguments);
            match path {
                "@text.length" => assert_eq!(found, Err("`text` is a text and has no `length`".to_owned())),
                _ => assert_eq!(found.map(|value| value.to_string()).as_deref(), Ok(expected), "{path}"),
            }
        }
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn the_digits_of_numbers_pass_unchanged() {
        for digits in
            ["12345678901234567890123", "9007199254740993", "0.1", "1E400", "-0", "1.0", "1e2", "100", "-1.50e-3"]
        {
            let arguments: Value = serde_json::from_str(&format!("{{\"n\":{digits}}}")).unwrap();
            let field =
                serde_json::from_str(&format!("{{\"a\":\"@n\",\"b\":[\"{{{{n}}}}\"],\"c\":{digits}}}")).unwrap();
            let resolved = resolve(&field, &arguments).unwrap().to_string();
            let shown = serde_json::from_str::<Value>(digits).unwrap().to_string();
            assert_eq!(resolved, format!("{{\"a\":{shown},\"b\":[\"{shown}\"],\"c\":{shown}}}"));
        }
    }

    #[test]
    fn what_is_no_path_stays_literal() {
        for text in [
            "@@x",
            "@ me",
            "@",
            "@.",
            "@a.",
            "@a..b",
            "@a b",
            "a@b.example",
            "@a/b",
            "@1",
            "@-a",
            "@a@b",
            "@a,",
            " @a",
            "@é!",
        ] {
            assert_eq!(as_path(text), None, "{text}");
            assert_eq!(resolve(&json!(text), &json!({"a": 1, "x": 1})), Ok(json!(text)));
        }
        assert!(as_path("@a-b_c.d.0").is_some());
    }

    #[test]
    fn the_engines_names_win_over_arguments() {
        let arguments = json!({"input": "mine", "now": "mine", "__run_id": "mine", "today": "mine", "other": "mine"});
        let field = json!(["@now", "@__run_id", "@today", "@other", "{{now}}"]);
        assert_eq!(resolve(&field, &arguments), Ok(json!(["NOW", "RUN", "Friday", "mine", "NOW"])));
    }

    #[test]
    fn what_values_hold_is_never_read_again() {
        for hostile in ["{{input.n}}", "@input.n", "orgconfig:k", "@@a", "${n}"] {
            let arguments = json!({"x": hostile, "o": {"deep": [hostile]}, "text": json!({"a": hostile}).to_string()});
            let field = json!({"a": "@x", "b": "{{x}}", "c": "@o.deep", "d": ["@o"], "e": "@text.a", "@x": 1});
            let expected =
                json!({"a": hostile, "b": hostile, "c": [hostile], "d": [{"deep": [hostile]}], "e": hostile, "@x": 1});
            assert_eq!(resolve(&field, &arguments), Ok(expected));
        }
    }

    #[test]
    fn all_faults_of_a_value_are_reported_with_their_pointers() {
        let field = json!({"a": ["{{x", "ok"], "b/c": {"d~": "{{log y}}"}, "e": 1});
        let faults = Field::compile(&field).unwrap_err();
        let places: Vec<(&str, Option<std::ops::Range<usize>>)> =
            faults.iter().map(|fault| (fault.pointer.as_str(), fault.inside.clone())).collect();
        assert_eq!(places, [("/a/0", Some(0..3)), ("/b~1c/d~0", Some(2..5))]);
    }

    #[test]
    fn variables_are_reported_with_their_pointers() {
        let field = json!({"a": ["@input.x", "{{y}} {{z}}", "plain", "orgconfig:k"], "b": "@w"});
        let field = Field::compile(&field).unwrap();
        let found: Vec<String> = field
            .variables()
            .iter()
            .map(|found| format!("{} {} {:?}", found.pointer, found.variable.path.join("."), found.variable.range))
            .collect();
        assert_eq!(found, ["/a/0 input.x 0..8", "/a/1 y 2..3", "/a/1 z 8..9", "/b w 0..2"]);
        assert_eq!(field.secrets(), ["k"]);
        assert!(matches!(Field::compile(&json!({"a": [1, "x"]})).unwrap(), Field::Literal(_)));
    }

    #[test]
    fn a_secret_needs_leave_to_be_used() {
        assert_eq!(resolve(&json!("orgconfig:k"), &Value::Null), Err("the secret `k` may not be used here".to_owned()));
    }
}
