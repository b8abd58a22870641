//! A filter that reads what was decided, where the approval before it may have been skipped: then an older decision counts.

use serde_json::Value;

use crate::check::denials::{FilteredNode, chains};
use crate::check::step_tree::{StepNode, tree, with_failure};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::program::denial::DECIDED;

pub const RULE: Rule = Rule { code: codes::OLDER_DECISION, check };

/// Whose decision is the last one at a place of a list.
#[derive(Clone)]
enum LastDecision {
    /// Nobody's.
    None,
    /// That of one approval, if it was asked.
    Known,
    /// That of the approval at this pointer, or an older one if that was skipped.
    Doubtful { at: String, why: String, key: Option<String> },
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    in_list(subject, &tree(subject), &LastDecision::None, found);
}

/// A document is never deeper than its reader allows: the recursion ends.
fn in_list(subject: &Subject<'_>, list: &[StepNode<'_>], around: &LastDecision, found: &mut Vec<Diagnostic>) {
    let (list, failed) = with_failure(list);
    if !failed.is_empty() {
        in_list_alone(subject, failed, around, found);
    }
    in_list_alone(subject, list, around, found);
}

fn in_list_alone(subject: &Subject<'_>, list: &[StepNode<'_>], around: &LastDecision, found: &mut Vec<Diagnostic>) {
    let Some(chains) = chains(list) else { return };
    let mut last = around.clone();
    for chain in &chains {
        for one in chain {
            report(subject, one, &last, found);
            if !one.inside().is_empty() {
                in_list(subject, one.inside(), &last, found);
            }
        }
        last = after(chain, last);
    }
}

fn report(subject: &Subject<'_>, one: &FilteredNode<'_, '_>, last: &LastDecision, found: &mut Vec<Diagnostic>) {
    let LastDecision::Doubtful { at, why, key } = last else { return };
    let Some(filter) = one.filter.as_ref().filter(|filter| filter.reads(&[DECIDED])) else { return };
    // What the skipped approval would have written under its own key is missing: a filter that demands it does not hold.
    let is_missing = |path: &[String]| key.is_some() && path.first() == key.as_ref();
    if filter.outcome(&|path| is_missing(path).then_some(Value::Null)) == Some(false) {
        return;
    }
    let message = format!("`@{DECIDED}` may be an older decision here: {why}");
    let help = "give that approval an `outputKey`, and read its own decision: with `\"outputKey\": \"decided\"` it is \
                `@decided.approved`, and missing when nobody was asked";
    let fault = subject.at(&one.filter_at).report(&RULE, message).help(help);
    found.push(fault.related(&subject.at(at).place(), "it is asked here"));
}

/// Whose decision is the last one after a step, or one in its place.
fn after(chain: &[FilteredNode<'_, '_>], before: LastDecision) -> LastDecision {
    let only_asks = chain.iter().all(FilteredNode::asks);
    if only_asks && chain.last().is_some_and(|one| one.filter.is_none()) {
        return LastDecision::Known;
    }
    if let Some(one) = chain.iter().find(|one| one.asks()) {
        return match before {
            LastDecision::None => LastDecision::Known,
            _ => LastDecision::Doubtful {
                at: one.node.step.property("comment"),
                why: format!("the approval {} may have been skipped, and the one before it counts then", one.called()),
                key: one.node.step.written.get("outputKey").and_then(Value::as_str).map(str::to_owned),
            },
        };
    }
    let Some((one, inner)) = chain.iter().find_map(|one| Some((one, asked_inside(one.node)?))) else { return before };
    match before {
        // A key of the items alone is reported as such; the approval of a case is the only one.
        LastDecision::None if one.node.cases.is_empty() => LastDecision::None,
        LastDecision::None => LastDecision::Known,
        _ if !one.node.cases.is_empty() => LastDecision::Doubtful {
            at: inner,
            why: format!(
                "the choice {} may ask in one case and not in another, and an older decision counts then",
                one.called()
            ),
            key: None,
        },
        _ => LastDecision::Doubtful {
            at: inner,
            why: format!("the items of the loop {} are asked too, and the last one of them counts then", one.called()),
            key: None,
        },
    }
}

/// Where an item of a loop asks for an approval.
fn asked_inside(node: &StepNode<'_>) -> Option<String> {
    let mut asked = None;
    node.each_inside(&mut |inner| {
        if inner.step.kind == crate::check::denials::APPROVAL && asked.is_none() {
            asked = Some(inner.step.property("comment"));
        }
    });
    asked
}
