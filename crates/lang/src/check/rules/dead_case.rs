//! A case of a choice that never runs, or has nothing to run.

use serde_json::Value;

use crate::check::key_flow::{Fact, KeysAt, facts, follow};
use crate::check::step_tree::{StepNode, tree};
use crate::check::{Rule, Subject};
use crate::compile::steps::{CaseList, case_lists};
use crate::diagnostic::{Diagnostic, Severity, codes};

pub const RULE: Rule = Rule { code: codes::DEAD_CASE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    follow(subject, &tree(subject), &mut |node, keys| {
        if !node.cases.is_empty() {
            never_run(subject, node, keys, found);
            empty(subject, node, found);
        }
    });
}

/// Whether some of what follows from a condition is known to be otherwise.
fn contradicts(known: &[Fact<'_>], condition: &Value) -> bool {
    facts(condition, true).iter().any(|fact| known.contains(&Fact { holds: !fact.holds, ..*fact }))
}

/// Whether all that a condition asks for is known to hold.
fn follows(known: &[Fact<'_>], condition: &Value) -> bool {
    let asked = facts(condition, true);
    !asked.is_empty() && asked.iter().all(|fact| known.contains(fact))
}

/// The cases that cannot be reached, by the conditions of those before them and of the filters around.
fn never_run<'a>(subject: &Subject<'a>, node: &StepNode<'a>, keys: &KeysAt<'a>, found: &mut Vec<Diagnostic>) {
    let mut known = keys.facts.clone();
    // The case that holds wherever it is asked.
    let mut taken = None;
    for (number, case) in node.cases.iter().enumerate() {
        let at = match &case.when {
            Some(when) => when.at.clone(),
            None => format!("{}/otherwise", node.step.at),
        };
        let cursor = subject.at(&at).key();
        if let Some(taken) = taken {
            let fault = cursor.report(&RULE, format!("this never runs: case {taken} of the choice holds before"));
            found.push(fault.help("take it out, or give that case a condition that does not always hold"));
            continue;
        }
        let Some(when) = case.when.as_ref().map(|when| when.written) else { continue };
        if subject.is_faulty(&at) {
            return;
        }
        if contradicts(&known, when) {
            let message = "this case never runs: a condition before it has decided that it does not hold".to_owned();
            let fault = cursor.report(&RULE, message);
            let earlier = node.cases.iter().take(number).filter_map(|case| case.when.as_ref());
            let same = earlier.into_iter().find(|earlier| earlier.written == when);
            let fault = fault.help("the first case that holds runs: order them from the narrow to the wide");
            found.push(match same {
                Some(same) => fault.related(&subject.at(&same.at).key().place(), "this case has the same condition"),
                None => fault,
            });
        } else if follows(&known, when) {
            taken = Some(number);
        }
        known.extend(facts(when, false));
    }
}

/// The cases without a step, unless a later one has some: that one does not run then.
fn empty(subject: &Subject<'_>, node: &StepNode<'_>, found: &mut Vec<Diagnostic>) {
    let cases = case_lists(node.step.written);
    let has_steps = |case: &CaseList<'_>| case.steps.as_array().is_some_and(|steps| !steps.is_empty());
    let last = cases.iter().rposition(has_steps).map_or(0, |last| last + 1);
    for case in cases.iter().skip(last) {
        if !has_steps(case) {
            let at = format!("{}{}", node.step.at, case.pointer);
            let fault = subject.at(&at).report(&RULE, "the case has no steps: nothing runs where it holds".to_owned());
            let fault = Diagnostic { severity: Severity::Warning, ..fault };
            found.push(match case.when {
                Some(_) => fault.help("write its steps, or take the case out: nothing runs either way"),
                None => fault.help("take `otherwise` out: without it nothing runs when no case holds"),
            });
        }
    }
}
