//! A filter that reads what was decided, where the approval before it may have been skipped: then an older decision counts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::denials::{FilteredNode, chains};
use crate::check::step_tree::{StepNode, tree, with_failure};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::program::condition::CompiledCondition;
use crate::program::denial::DECIDED;
use crate::program::flow::APPROVAL_KEYS;

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

/// Whose decisions are the last ones at a place of a list.
#[derive(Clone)]
struct LastDecisions {
    /// That under the keys of all approvals.
    of_all: LastDecision,
    /// Those under keys of their own, by the key.
    by_key: BTreeMap<String, LastDecision>,
}

/// The most keys of approvals that are followed.
const MAX_KEYS: usize = 100;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let nobodys = LastDecisions { of_all: LastDecision::None, by_key: BTreeMap::new() };
    in_list(subject, &tree(subject), &nobodys, found);
}

/// Returns the doubts that a step of the list may have failed with. A document is never deeper than its reader allows: the
/// recursion ends.
fn in_list(
    subject: &Subject<'_>,
    list: &[StepNode<'_>],
    around: &LastDecisions,
    found: &mut Vec<Diagnostic>,
) -> LastDecisions {
    let (list, failed) = with_failure(list);
    let doubts = in_list_alone(subject, list, around, found);
    if failed.is_empty() {
        return doubts;
    }
    // The step that failed may have been behind an approval.
    let asked = || chains(list).is_some_and(|chains| chains.iter().flatten().any(FilteredNode::asks));
    let mut after_failure = doubts.clone();
    if matches!(after_failure.of_all, LastDecision::None) && asked() {
        after_failure.of_all = LastDecision::Known;
    }
    in_list_alone(subject, failed, &after_failure, found);
    doubts
}

/// The same for the steps of a list, or those that run when it has failed.
fn in_list_alone(
    subject: &Subject<'_>,
    list: &[StepNode<'_>],
    around: &LastDecisions,
    found: &mut Vec<Diagnostic>,
) -> LastDecisions {
    let mut doubts = around.clone();
    let Some(chains) = chains(list) else { return doubts };
    let mut last = around.clone();
    for chain in &chains {
        // Each step may fail.
        doubts.add(&last);
        for one in chain {
            report(subject, one, &last, found);
            if !one.inside().is_empty() {
                let inside = in_list(subject, one.inside(), &last, found);
                if !one.node.cases.is_empty() {
                    doubts.add(&inside);
                }
            }
        }
        after_keys(chain, &mut last.by_key);
        last.of_all = after(chain, last.of_all);
    }
    doubts
}

impl LastDecisions {
    /// Takes over what is in doubt of others.
    fn add(&mut self, others: &Self) {
        let is_doubtful = |decision: &LastDecision| matches!(decision, LastDecision::Doubtful { .. });
        if is_doubtful(&others.of_all) && !is_doubtful(&self.of_all) {
            self.of_all = others.of_all.clone();
        }
        for (key, decision) in others.by_key.iter().filter(|(_, decision)| is_doubtful(decision)) {
            self.by_key.entry(key.clone()).or_insert_with(|| decision.clone());
        }
    }
}

fn report(subject: &Subject<'_>, one: &FilteredNode<'_, '_>, last: &LastDecisions, found: &mut Vec<Diagnostic>) {
    of_own_key(subject, one, last, found);
    let LastDecision::Doubtful { at, why, key } = &last.of_all else { return };
    let reads = |filter: &&CompiledCondition| APPROVAL_KEYS.iter().any(|key| filter.reads(&[key]));
    let Some(filter) = one.filter.as_ref().filter(reads) else { return };
    // A key that an approval before had too is not missing.
    let key = key.as_ref().filter(|key| !matches!(last.by_key.get(*key), Some(LastDecision::Doubtful { .. })));
    // What the skipped approval would have written under its own key is missing: a filter that demands it does not hold.
    let is_missing = |path: &[String]| key.is_some() && path.first() == key;
    if filter.outcome(&|path| is_missing(path).then_some(Value::Null)) == Some(false) {
        return;
    }
    let read = APPROVAL_KEYS.into_iter().find(|key| filter.reads(&[key])).unwrap_or(DECIDED);
    let message = format!("`@{read}` may be an older decision here: {why}");
    let help = "give that approval an `outputKey`, and read its own decision: with `\"outputKey\": \"decided\"` it is \
                `@decided.approved`, and missing when nobody was asked";
    let fault = subject.at(&one.filter_at).report(&RULE, message).help(help);
    found.push(fault.related(&subject.at(at).place(), "it is asked here"));
}

/// A filter that reads the own key of an approval which may have been skipped, and which an approval before has, too.
fn of_own_key(subject: &Subject<'_>, one: &FilteredNode<'_, '_>, last: &LastDecisions, found: &mut Vec<Diagnostic>) {
    let Some(filter) = &one.filter else { return };
    for (key, decision) in &last.by_key {
        let LastDecision::Doubtful { at, why, .. } = decision else { continue };
        let reads = [&["approved"][..], &["comment"], &["data"], &[]].iter().any(|part| {
            let path: Vec<&str> = std::iter::once(key.as_str()).chain(part.iter().copied()).collect();
            filter.reads(&path)
        });
        if !reads {
            continue;
        }
        let message = format!("`@{key}` may be an older decision here: {why}");
        let help = "give each of the two approvals an `outputKey` of its own: without an answer it is missing";
        let fault = subject.at(&one.filter_at).report(&RULE, message).help(help);
        found.push(fault.related(&subject.at(at).place(), "it is asked here"));
    }
}

/// Whose decisions are under keys of their own after a step, or one in its place.
fn after_keys(chain: &[FilteredNode<'_, '_>], by_key: &mut BTreeMap<String, LastDecision>) {
    for one in chain.iter().filter(|one| one.asks()) {
        let Some(key) = one.node.step.written.get("outputKey").and_then(Value::as_str) else { continue };
        let is_skipped = one.filter.is_some() && by_key.contains_key(key);
        let decision = match is_skipped {
            true => LastDecision::Doubtful {
                at: one.node.step.property("comment"),
                why: format!(
                    "the approval {} may have been skipped, and the one before it has the same `outputKey`",
                    one.called()
                ),
                key: None,
            },
            false => LastDecision::Known,
        };
        if by_key.len() < MAX_KEYS || by_key.contains_key(key) {
            by_key.insert(key.to_owned(), decision);
        }
    }
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
