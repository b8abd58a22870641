//! A declaration that names several actions by a pattern, as those of an OpenAPI page.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Declare, MAX_TOOLS};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::language::tool::ActionTool;
use crate::policy::name_pattern::matches_pattern;

impl Declare<'_> {
    /// Makes a tool of each action whose name is as the declaration at `pointer` says. One that has a declaration of its own is
    /// declared by that; one that another pattern has declared is an error, because only one of the two settings could hold.
    pub(super) fn actions_like(&mut self, declaration: &ActionTool, pointer: &str) {
        let (pattern, at) = (declaration.name.as_str(), format!("{pointer}/name"));
        let names = self.catalog.all.iter().map(|action| action.name);
        let names = names.chain(self.texts.embedded_tools().map(|tool| tool.name.as_str()));
        let matching: BTreeSet<&str> = names.filter(|name| matches_pattern(pattern, name)).collect();
        if matching.is_empty() {
            let message = format!("no action has a name like `{pattern}`");
            let fault = Diagnostic::error(codes::UNKNOWN_ACTION, message, at.as_str(), self.main.tree.place(&at));
            let searched = self.searched_files();
            return self.faults.push(fault.help(searched));
        }
        if declaration.description.is_some() && matching.len() > 1 {
            let message = format!("a `description` is that of one tool, and `{pattern}` has {}", matching.len());
            let at = format!("{pointer}/description");
            let fault = Diagnostic::error(codes::UNKNOWN_ACTION, message, at.as_str(), self.main.tree.place(&at));
            self.faults.push(fault.help("declare the action that it is meant for by its name"));
        }
        let written = self.layout.get(self.main, "tools").and_then(Value::as_array);
        let own: BTreeSet<&str> = written.into_iter().flatten().filter_map(written_name).collect();
        let (twice, names): (Vec<&str>, Vec<&str>) =
            matching.into_iter().filter(|name| !own.contains(name)).partition(|name| self.declared.contains_key(*name));
        if let Some((first, declared)) = twice.first().and_then(|name| Some((name, self.declared.get(*name)?))) {
            let others = match twice.len() - 1 {
                0 => String::new(),
                others => format!(" and {others} more that `{pattern}` names"),
            };
            let message = format!("`{first}` is declared twice{others}");
            let place = self.main.tree.place(declared);
            let fault = Diagnostic::error(codes::DUPLICATE_TOOL, message, at.as_str(), self.main.tree.place(&at));
            let help = format!(
                "give an action that needs other settings a declaration by its full name, `{first}`: it holds instead of a pattern's, \
                 in any order"
            );
            self.faults.push(fault.help(help).related(&place, "it is declared here already"));
        }
        for name in names {
            if self.tools.len() >= MAX_TOOLS {
                let message = format!("a loop may have at most {MAX_TOOLS} tools; the rest is not looked at");
                let fault = Diagnostic::error(codes::TOO_MUCH, message, at.as_str(), self.main.tree.place(&at));
                self.faults.push(fault.help("name the actions that the loop needs"));
                break;
            }
            let one = ActionTool { name: name.to_owned(), ..declaration.clone() };
            self.action(&one, pointer, &at);
            few_of_many(&mut self.faults);
        }
    }
}

/// The name that a declaration of an action has for one tool.
fn written_name(declaration: &Value) -> Option<&str> {
    let is_action = declaration.get("type").is_some_and(|kind| kind == "action");
    declaration.as_str().or_else(|| declaration.get("name")?.as_str().filter(|_| is_action))
}
