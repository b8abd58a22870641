//! The schema of an action without `parameters`: the names in its templates, all required. What is printed into an address
//! or a header is one text there, and its type says so.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::language::action::ValueStyle;
use crate::program::reference::{Field, PathStep};
use crate::program::schema::Schema;
use crate::program::template::ValueUse;
use crate::program::{Body, HttpTool, ToolKind};

/// A schema of an object with these names, all required.
pub(super) fn schema(names: &[String], kind: Option<&ToolKind>) -> Schema {
    let uses = match kind {
        Some(ToolKind::Http(http)) => uses(http),
        _ => HashMap::new(),
    };
    let described = |name: &String| (name.clone(), uses.get(name.as_str()).map_or_else(|| json!({}), NameUses::schema));
    let properties: Map<String, Value> = names.iter().map(described).collect();
    let source = [
        ("type", Value::from("object")),
        ("properties", Value::Object(properties)),
        ("required", Value::from(names.to_vec())),
        ("additionalProperties", Value::from(false)),
    ];
    let source = source.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect();
    Schema::compile(Value::Object(source)).unwrap_or_else(|_| Schema::any())
}

/// How a request uses a name.
#[derive(Debug, Default)]
struct NameUses {
    /// It is printed into the address or a header.
    is_printed: bool,
    /// It is printed where no block asked for it.
    is_needed: bool,
    /// It is a parameter of the query as a whole: a list is sent once for each entry.
    is_parameter: bool,
    /// Parts of it are named, or its entries.
    has_parts: bool,
}

impl NameUses {
    /// It is named in an address or a header.
    fn print(&mut self, used: &ValueUse) {
        self.has_parts |= used.path.len() > 1;
        self.is_printed |= used.is_printed && used.path.len() == 1;
        self.is_needed |= used.is_printed && used.guarded == 0;
    }

    fn schema(&self) -> Value {
        const TEXTS: [&str; 3] = ["string", "number", "boolean"];
        match self {
            Self { has_parts: true, .. } => json!({}),
            Self { is_printed: true, is_needed: true, .. } => json!({ "type": TEXTS }),
            Self { is_printed: true, .. } => json!({ "type": ["string", "number", "boolean", "null"] }),
            Self { is_parameter: true, .. } => {
                json!({ "type": ["string", "number", "boolean", "array"], "items": { "type": TEXTS } })
            }
            _ => json!({}),
        }
    }
}

/// How a request uses the names that it takes.
fn uses(http: &HttpTool) -> HashMap<String, NameUses> {
    let mut all = HashMap::new();
    http.url.uses().iter().for_each(|used| of(&mut all, used).print(used));
    for (_, header) in &http.headers {
        header.each_use(&mut |_, used| of(&mut all, used).print(used));
    }
    for (name, parameter) in &http.query {
        let has_form = http.action.query_style.get(name) == Some(&ValueStyle::Brackets);
        parameter.each_use(&mut |_, used| match parameter {
            // Any value has a form there.
            Field::Path(_) if used.path.len() == 1 && has_form => of(&mut all, used).has_parts = true,
            Field::Path(_) if used.path.len() == 1 => of(&mut all, used).is_parameter = true,
            Field::Template(_) | Field::Array(_) => of(&mut all, used).print(used),
            _ => of(&mut all, used).has_parts |= used.path.len() > 1,
        });
    }
    match &http.body {
        Some(Body::Json(field)) => field.each_use(&mut |_, used| of(&mut all, used).has_parts |= used.path.len() > 1),
        Some(Body::Text(template)) => {
            template.uses().iter().for_each(|used| of(&mut all, used).has_parts |= used.path.len() > 1);
        }
        Some(Body::Notice(_)) | None => {}
    }
    all
}

fn of<'u>(all: &'u mut HashMap<String, NameUses>, used: &ValueUse) -> &'u mut NameUses {
    let name = match used.path.first() {
        Some(PathStep::Name(name)) => name.as_str(),
        _ => "",
    };
    all.entry(name.to_owned()).or_default()
}
