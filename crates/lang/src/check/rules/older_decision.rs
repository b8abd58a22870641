//! A filter that reads what was decided, where the approval before it may have been skipped: then an older decision counts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::denials::{APPROVAL, FilteredNode, chains, compiled};
use crate::check::key_flow::{KeyState, facts, follow};
use crate::check::step_tree::{CaseCondition, StepNode, tree, with_failure};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::wait::WAIT_FOR_EVENT;
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
    of_none(subject, found);
}

/// The type of a form.
const FORM: &str = "PbotForm";

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
    let reads = |filter: &&CompiledCondition| APPROVAL_KEYS.iter().any(|key| filter.reads_of(key));
    let Some(filter) = one.filter.as_ref().filter(reads) else { return };
    // A key that an approval before had too is not missing.
    let key = key.as_ref().filter(|key| !matches!(last.by_key.get(*key), Some(LastDecision::Doubtful { .. })));
    // What the skipped approval would have written under its own key is missing: a filter that demands it does not hold.
    let is_missing = |path: &[String]| key.is_some() && path.first() == key;
    if filter.outcome(&|path| is_missing(path).then_some(Value::Null)) == Some(false) {
        return;
    }
    let read = APPROVAL_KEYS.into_iter().find(|key| filter.reads_of(key)).unwrap_or(DECIDED);
    let message = format!("`@{read}` may be an older decision here: {why}");
    let help = "give that approval an `outputKey`, and read its own decision: with `\"outputKey\": \"decided\"` it is \
                `@decided.approved`, and missing when nobody was asked";
    let fault = subject.at(&one.filter_at).report(&RULE, message).help(help);
    found.push(fault.related(&subject.at(at).place(), "it is asked here"));
}

/// A filter that reads a key of a question which may have been skipped, and which a question before has, too.
fn of_own_key(subject: &Subject<'_>, one: &FilteredNode<'_, '_>, last: &LastDecisions, found: &mut Vec<Diagnostic>) {
    let Some(filter) = &one.filter else { return };
    for (key, decision) in &last.by_key {
        let LastDecision::Doubtful { at, why, .. } = decision else { continue };
        // A question that is asked again by its answer is one question.
        let asks_again = || !one.asks() && AskedKeys::of(one).is_some_and(|asked| asked.keys.contains(&key.as_str()));
        if !filter.reads_of(key) || asks_again() {
            continue;
        }
        let message = format!("`@{key}` may be an older decision here: {why}");
        let help = match asked_by(subject, at) {
            APPROVAL => "give each of the two approvals an `outputKey` of its own: without an answer it is missing",
            _ => "give each of the two a key of its own: without an answer it is missing",
        };
        let fault = subject.at(&one.filter_at).report(&RULE, message).help(help);
        found.push(fault.related(&subject.at(at).place(), "it is asked here"));
    }
}

/// The type of the step that a property belongs to.
fn asked_by<'a>(subject: &Subject<'a>, property: &str) -> &'a str {
    let step = property.rsplit_once("/properties/").map_or(property, |(step, _)| step);
    let kind = subject.document().value.pointer(&format!("{step}/type"));
    kind.and_then(Value::as_str).unwrap_or_default()
}

/// What a step asks, and the keys that only its answer has.
struct AskedKeys<'a> {
    /// What asks, in a word.
    what: &'static str,
    /// The property that says what is asked.
    text: &'static str,
    keys: Vec<&'a str>,
}

impl<'a> AskedKeys<'a> {
    fn of(one: &FilteredNode<'_, 'a>) -> Option<Self> {
        let step = &one.node.step;
        let own = step.written.get("outputKey").and_then(Value::as_str);
        let list = |name: &str| step.properties.get(name).and_then(Value::as_array).into_iter().flatten();
        match step.kind {
            APPROVAL => Some(Self { what: "approval", text: "comment", keys: own.into_iter().collect() }),
            FORM => {
                let fields = list("fields").filter_map(|field| field.get("name")?.as_str());
                let keys = list("expected_keys").filter_map(Value::as_str).chain(fields).chain(own).collect();
                let text = if step.properties.contains_key("question") { "question" } else { "expected_keys" };
                Some(Self { what: "form", text, keys })
            }
            WAIT_FOR_EVENT => Some(Self { what: "wait", text: "event", keys: own.into_iter().collect() }),
            _ => None,
        }
    }
}

/// Whose answers are under keys of their own after a step, or one in its place.
fn after_keys(chain: &[FilteredNode<'_, '_>], by_key: &mut BTreeMap<String, LastDecision>) {
    for one in chain {
        let Some(AskedKeys { what, text, keys }) = AskedKeys::of(one) else { continue };
        for key in keys {
            // Of two forms that are both asked sometimes, either may be the one that is.
            if !one.asks() && one.filter.is_some() && !by_key.contains_key(key) {
                continue;
            }
            let asks_again = || !one.asks() && one.filter.as_ref().is_some_and(|filter| filter.reads_of(key));
            let is_skipped = one.filter.is_some() && by_key.contains_key(key) && !asks_again();
            let word = if one.node.step.kind == FORM { "key" } else { "`outputKey`" };
            let decision = match is_skipped {
                true => LastDecision::Doubtful {
                    at: one.node.step.property(text),
                    why: format!(
                        "the {what} {} may have been skipped, and the one before it has the same {word}",
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
}

/// Filters that take it for a yes that nobody was asked: they refuse a no, and hold without an answer.
fn of_none(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let nodes = tree(subject);
    let mut asked: BTreeMap<String, String> = BTreeMap::new();
    for node in &nodes {
        node.each(&mut Vec::new(), &mut |node, _| {
            let is_question = [APPROVAL, FORM].contains(&node.step.kind);
            if is_question && asked.len() < MAX_KEYS {
                for key in node.step.writes(subject) {
                    asked.entry(key).or_insert_with(|| format!("{}/type", node.step.at));
                }
            }
        });
    }
    if asked.is_empty() {
        return;
    }
    follow(subject, &nodes, &mut |node, keys| {
        let mut known = keys.facts.clone();
        for CaseCondition { at, written } in node.conditions() {
            let filter = compiled(written).filter(|_| !subject.is_faulty(&at));
            let mut holding = known.clone();
            holding.extend(facts(written, true));
            let missing = asked.iter().find(|(key, _)| {
                let is_maybe = matches!(keys.get(key), Some(KeyState::Maybe { .. }));
                let with = |value: Value| {
                    filter.as_ref()?.outcome(&|path| path.first().filter(|first| first == key).map(|_| value.clone()))
                };
                is_maybe
                    && filter.as_ref().is_some_and(|filter| filter.reads_of(key) && !filter.asks_for(key))
                    && with(Value::Bool(false)) == Some(false)
                    && with(Value::Null) != Some(false)
                    && !keys.is_there(key, &holding)
            });
            if let Some((key, asks)) = missing {
                let message = format!(
                    "this holds also when nobody was asked: `@{key}` is missing then, and what is missing is not `false`"
                );
                let help = "ask for the yes: an `equal` with `true` does not hold without an answer";
                let fault = subject.at(&at).report(&RULE, message).help(help);
                found.push(fault.related(&subject.at(asks).place(), "it is asked here, or was skipped"));
            }
            // A case is asked where none before it holds.
            known.extend(facts(written, false));
        }
    });
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

/// Where an item of a loop asks for an approval, or a case of a choice. What is asked when an item has failed is for the steps for that
/// alone. A document is never deeper than its reader allows: the recursion ends.
fn asked_inside(node: &StepNode<'_>) -> Option<String> {
    let inside = node.items.iter().chain(node.cases.iter().flat_map(|case| &case.steps));
    inside.filter(|inner| !inner.is_for_failure).find_map(asked_in)
}

fn asked_in(node: &StepNode<'_>) -> Option<String> {
    if node.step.kind == APPROVAL {
        return Some(node.step.property("comment"));
    }
    asked_inside(node).or_else(|| asked_in(node.otherwise.as_deref()?))
}
