//! An approval whose no stops the run, although a later step asks what was decided.

use crate::check::denials::{FilteredNode, chains, links};
use crate::check::step_tree::{StepNode, each_list};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::denial::{self, ChainLink, DECIDED, DenialRule, Hold, StepAfter, StepsAfterNo};
use crate::program::reference::{as_path, each_text};

/// Reports those of a document.
pub(in crate::check) fn approvals<'a>(
    rule: &Rule,
    subject: &Subject<'a>,
    nodes: &[StepNode<'a>],
    found: &mut Vec<Diagnostic>,
) {
    each_list(nodes, &mut |list| {
        let Some(chains) = chains(list.nodes.iter().copied()) else { return };
        for (number, chain) in chains.iter().enumerate().take(list.own) {
            let later = chains.get(number.saturating_add(1)..).unwrap_or_default();
            for approval in chain.iter().filter(|one| one.asks() && one.on_rejected().is_none()) {
                found.extend(stops(&ApprovalJudge { rule, subject, approval }, later));
            }
        }
    });
}

struct ApprovalJudge<'j, 'n, 'a> {
    rule: &'j Rule,
    subject: &'j Subject<'a>,
    approval: &'j FilteredNode<'n, 'a>,
}

fn stops<'a>(judge: &ApprovalJudge<'_, '_, 'a>, later: &[Vec<FilteredNode<'_, 'a>>]) -> Option<Diagnostic> {
    let ApprovalJudge { rule, subject, approval } = judge;
    let steps = StepsAfterNo::new(approval.filter.as_ref(), DenialRule::Firm);
    let chains: Vec<Vec<ChainLink<'_>>> = later.iter().map(|chain| links(subject, chain)).collect();
    if denial::runs_on(steps.clone(), &chains) {
        return None;
    }
    let cursor = subject.at(&format!("{}/properties", approval.node.step.at)).key();
    let report = |message: String| Diagnostic { severity: Severity::Warning, ..cursor.report(rule, message) };
    let means = "`\"on_rejected\": \"stop\"` says that it is meant";
    let key = approval.node.step.written.get("outputKey").and_then(serde_json::Value::as_str);
    let asked = key.and_then(|key| later.iter().flatten().find_map(|one| asks(one.node, key)));
    if let Some((at, path)) = asked {
        let message = format!("`{path}` is always true here: a no stops the run, or the item, at this step");
        let help = format!("write `\"on_rejected\": \"go_on\"`, or ask for `@{DECIDED}`; {means}");
        return Some(report(message).help(help).related(&subject.at(&at).place(), "it is asked here"));
    }
    let (held, unheld) = held_and_not(later, &chains, steps)?;
    let message = format!(
        "a no stops the run, or the item, at this step: {} has no filter that reads `@{DECIDED}`, as {} has",
        unheld.called(),
        held.called()
    );
    let help =
        format!("give each step up to the next approval such a filter, or write `\"on_rejected\": \"go_on\"`; {means}");
    let place = subject.at(&format!("{}/type", unheld.node.step.at)).place();
    Some(report(message).help(help).related(&place, "this step has none"))
}

/// The first step that is held by what was decided, and the first one that is not, up to the next approval.
fn held_and_not<'c, 'n, 'a>(
    later: &'c [Vec<FilteredNode<'n, 'a>>],
    chains: &[Vec<ChainLink<'_>>],
    mut steps: StepsAfterNo,
) -> Option<(&'c FilteredNode<'n, 'a>, &'c FilteredNode<'n, 'a>)> {
    let (mut held, mut unheld) = (None, None);
    for (chain, links) in later.iter().zip(chains) {
        match steps.next(links) {
            StepAfter::Asks | StepAfter::MayAsk => break,
            StepAfter::Step(Hold::Firm) => held = held.or(chain.first()),
            StepAfter::Step(Hold::None) => unheld = unheld.or(chain.first()),
            // It is reported itself.
            StepAfter::Step(Hold::Idle | Hold::Loose) | StepAfter::Decides => {}
        }
    }
    held.zip(unheld)
}

/// Where a condition in a step asks what was decided, under the key of the approval.
fn asks(node: &StepNode<'_>, key: &str) -> Option<(String, String)> {
    let mut asked = None;
    node.each(&mut Vec::new(), &mut |node, _| {
        for mut condition in node.conditions() {
            each_text(condition.written, &mut condition.at, &mut |at, text| {
                let is_decided = as_path(text).is_some_and(|path| path == [key, "approved"]);
                if is_decided && asked.is_none() && !at.ends_with("/hasKey") {
                    asked = Some((at.to_owned(), text.to_owned()));
                }
            });
        }
    });
    asked
}
