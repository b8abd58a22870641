//! The templates that a call of a tool is made of.

use super::reference::Field;
use super::template::Template;
use super::{Body, Tool, ToolKind};

impl Tool {
    /// The templates that a call is made of, in a fixed order.
    pub fn templates(&self) -> Vec<&Template> {
        match &self.kind {
            ToolKind::Builtin(_)
            | ToolKind::Embedded
            | ToolKind::Matcher(_)
            | ToolKind::Launch(_)
            | ToolKind::Loop(_) => Vec::new(),
            ToolKind::Http(http) => {
                let fields = http.headers.iter().chain(&http.query).flat_map(|(_, field)| field.templates());
                let mut all: Vec<&Template> = std::iter::once(&http.url).chain(fields).collect();
                match &http.body {
                    Some(Body::Json(field)) => all.extend(field.templates()),
                    Some(Body::Text(template)) => all.push(template),
                    None => {}
                }
                all
            }
            ToolKind::Action(tool) => tool.templates().collect(),
            ToolKind::Db(db) => db.params.iter().flat_map(Field::templates).collect(),
            ToolKind::Command(command) => {
                command.args.iter().chain(&command.stdin).chain(command.env.values()).collect()
            }
        }
    }
}
