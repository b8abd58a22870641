//! A declaration that names several actions by a pattern, as those of an OpenAPI page.

use std::collections::BTreeSet;

use super::{Declare, MAX_TOOLS};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::language::ToolDeclaration;
use crate::language::tool::{ActionTool, TypedTool};
use crate::policy::name_pattern::matches_pattern;

impl Declare<'_> {
    /// Makes a tool of each action whose name is as the declaration at `pointer` says. One that has a declaration of its own is
    /// declared by that.
    pub(super) fn actions_like(&mut self, declaration: &ActionTool, pointer: &str) {
        let (pattern, at) = (declaration.name.as_str(), format!("{pointer}/name"));
        let names = self.catalog.all.iter().map(|action| action.name);
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
        let own: BTreeSet<&str> = self.properties.tools.iter().filter_map(written_name).collect();
        let names: Vec<&str> =
            matching.into_iter().filter(|name| !own.contains(name) && !self.declared.contains_key(*name)).collect();
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

/// The name that a declaration has for one tool.
fn written_name(declaration: &ToolDeclaration) -> Option<&str> {
    match declaration {
        ToolDeclaration::Typed(TypedTool::Action(tool)) => Some(&tool.name),
        ToolDeclaration::Typed(_) => None,
        ToolDeclaration::Legacy(name) => Some(name),
    }
}
