//! An approval whose no stops the run, although a later step asks what was decided.

use crate::check::step_tree::{StepNode, each_list};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::reference::{as_path, each_text};

/// What a later step reads, whose name makes a no go on.
const DECIDED: &str = "__approved";

/// Reports those of a document.
pub(in crate::check) fn approvals(
    rule: &Rule,
    subject: &Subject<'_>,
    nodes: &[StepNode<'_>],
    found: &mut Vec<Diagnostic>,
) {
    each_list(nodes, &mut |list| {
        for (number, first) in list.iter().enumerate() {
            let later = list.get(number + 1..).unwrap_or_default();
            let mut next = Some(first);
            while let Some(node) = next {
                if node.step.kind == "PbotApproval" && !node.step.properties.contains_key("on_rejected") {
                    found.extend(stops(rule, subject, node, later));
                }
                next = node.otherwise.as_deref();
            }
        }
    });
}

fn stops(rule: &Rule, subject: &Subject<'_>, node: &StepNode<'_>, later: &[StepNode<'_>]) -> Option<Diagnostic> {
    // The compiler looks for the name in the whole text of these steps.
    if later.iter().any(|node| node.step.written.to_string().contains(DECIDED)) {
        return None;
    }
    let key = node.step.written.get("outputKey")?.as_str()?;
    let (at, path) = later.iter().find_map(|node| asks(node, key))?;
    let message = format!("`{path}` is always true here: a no stops the run, or the item, at this step");
    let cursor = subject.at(&format!("{}/properties", node.step.at)).key();
    let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(rule, message) };
    let help = format!(
        "write `\"on_rejected\": \"go_on\"`, or ask for `@{DECIDED}`; `\"on_rejected\": \"stop\"` says that it is meant"
    );
    Some(fault.help(help).related(&subject.at(&at).place(), "it is asked here"))
}

/// Where a condition in a step asks what was decided, under the key of the approval.
fn asks(node: &StepNode<'_>, key: &str) -> Option<(String, String)> {
    let mut asked = None;
    node.each(&mut Vec::new(), &mut |node, _| {
        let mut at = format!("{}/filter/condition", node.step.at);
        let Some(condition) = node.step.filter().filter(|_| asked.is_none()) else { return };
        each_text(condition, &mut at, &mut |at, text| {
            let is_decided = as_path(text).is_some_and(|path| path == [key, "approved"]);
            if is_decided && asked.is_none() && !at.ends_with("/hasKey") {
                asked = Some((at.to_owned(), text.to_owned()));
            }
        });
    });
    asked
}
