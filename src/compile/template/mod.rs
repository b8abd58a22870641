//! Templates: Handlebars, strict, rendered once a field.

use std::ops::Range;

use super::reference::Scope;

/// What a value is escaped for when it lands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// Not at all: prompts, arguments, headers.
    Plain,
    /// For a URL's path or query: all but RFC 3986's unreserved characters.
    Url,
    /// For the inside of a JSON string.
    Json,
}

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    source: String,
    variables: Vec<Variable>,
    secrets: Vec<String>,
}

/// Something that a template takes from its scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The names from the scope's top on; never empty.
    pub path: Vec<String>,
    /// Where it stands in the template, in bytes.
    pub range: Range<usize>,
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// The diagnostic's code.
    pub code: &'static str,
    /// What is wrong, in a sentence without a final stop.
    pub message: String,
    /// Where, in bytes of the template; `None` when the place is not known.
    pub range: Option<Range<usize>>,
    /// How to mend it.
    pub help: Option<String>,
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn compile(text: &str, _escape: Escape) -> Result<Self, TemplateFault> {
        let mut variables = Vec::new();
        let mut at = 0;
        while let Some(begin) = text.get(at..).and_then(|rest| rest.find("{{")).map(|found| at + found) {
            let Some(end) = text.get(begin..).and_then(|rest| rest.find("}}")).map(|found| begin + found + 2) else {
                return Err(TemplateFault {
                    code: "L050",
                    message: "`{{` is not closed".to_owned(),
                    range: Some(begin..text.len()),
                    help: None,
                });
            };
            let inner = text.get(begin + 2..end - 2).unwrap_or_default();
            let name = inner.trim();
            let at_name = begin + 2 + inner.find(name).unwrap_or(0);
            variables.push(Variable {
                path: name.split('.').map(str::to_owned).collect(),
                range: at_name..at_name + name.len(),
            });
            at = end;
        }
        let named = text.split("orgconfig:").skip(1);
        let secrets = named.map(|rest| rest.split(' ').next().unwrap_or_default().to_owned()).collect();
        Ok(Self { source: text.to_owned(), variables, secrets })
    }

    /// The text as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it takes from its scope, in the order of the text.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The keys of the secrets that it names, each once.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Renders.
    ///
    /// # Errors
    /// When a value that it needs was not given.
    pub fn render(&self, scope: &Scope<'_>) -> Result<String, super::reference::Unresolved> {
        let mut text = self.source.clone();
        for variable in self.variables.iter().rev() {
            let pointer = format!("/{}", variable.path.get(1..).unwrap_or_default().join("/"));
            let Some(value) = scope.input.pointer(&pointer) else {
                return Err(super::reference::Unresolved(format!("`{}` was not given", variable.path.join("."))));
            };
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let begin = text.get(..variable.range.start).and_then(|before| before.rfind("{{")).unwrap_or(0);
            let rest = text.get(variable.range.end..).and_then(|after| after.find("}}")).unwrap_or(0);
            text.replace_range(begin..variable.range.end + rest + 2, &shown);
        }
        Ok(text)
    }
}
