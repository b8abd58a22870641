//! The names by which a provider's native tool calls know a loop's tools. Providers take letters,
//! digits, `_` and `-` of ASCII, at most 64; a tool with another name gets one that they take. The
//! way there and the way back are here and nowhere else.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

#[cfg(test)]
mod tests;

/// The longest name that all providers take, in characters.
const LONGEST: usize = 64;

/// The tools whose names no provider takes, and the names that they are called by instead. No such
/// name is another tool's, so that each leads back to one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolNames(Vec<(String, String)>);

impl ToolNames {
    /// The names for these tools, in their order: the same tools give the same names.
    pub fn of<'a>(tools: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut taken: HashSet<String> = tools.clone().filter(|name| is_taken(name)).map(str::to_owned).collect();
        // Where the search for a free number goes on: those before it are taken.
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut given = Vec::new();
        for name in tools.filter(|name| !is_taken(name)) {
            let base = fitted(name);
            let mut called = base.clone();
            let number = numbers.entry(base.clone()).or_insert(2);
            while taken.contains(&called) {
                let ending = format!("_{number}");
                called = format!("{}{ending}", head(&base, LONGEST.saturating_sub(ending.len())));
                *number = number.saturating_add(1);
            }
            taken.insert(called.clone());
            given.push((name.to_owned(), called));
        }
        Self(given)
    }

    /// The name that is sent to a provider for the tool of this name.
    pub fn out<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.iter().find(|(tool, _)| tool == name).map_or(name, |(_, called)| called)
    }

    /// The tool that a provider's name means; a name that was not given means itself.
    pub fn back<'a>(&'a self, called: &'a str) -> &'a str {
        self.0.iter().find(|(_, given)| given == called).map_or(called, |(tool, _)| tool)
    }

    /// A name that a model wrote, as it can be sent to a provider: also a name of no tool.
    pub fn sendable<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        let name = self.out(name);
        if is_taken(name) { Cow::Borrowed(name) } else { Cow::Owned(fitted(name)) }
    }

    /// The tools that have another name there: the tool's name, and the provider's.
    pub fn changed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(tool, called)| (tool.as_str(), called.as_str()))
    }
}

/// Whether all providers accept the name unchanged.
pub fn is_taken(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(fits)
}

fn fits(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// A name like this one that providers take.
fn fitted(name: &str) -> String {
    let plain: String = name.chars().take(LONGEST).map(|c| if fits(c) { c } else { '_' }).collect();
    if plain.is_empty() { "_".to_owned() } else { plain }
}

/// The beginning of a text of ASCII, so many characters of it.
fn head(text: &str, length: usize) -> &str {
    text.get(..length).unwrap_or(text)
}
