//! A step that runs after a no as after a yes.

use crate::check::denials::{FilteredNode, chains, links};
use crate::check::step_tree::{each_list, tree};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::program::denial::{DenialRule, Hold, StepAfter, StepsAfterNo};

pub const RULE: Rule = Rule { code: codes::UNHELD_STEP, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let nodes = tree(subject);
    each_list(&nodes, &mut |list| {
        let Some(chains) = chains(list.nodes.iter().copied()) else { return };
        for (number, chain) in chains.iter().enumerate().take(list.own) {
            let later = chains.iter().skip(number.saturating_add(1));
            for approval in chain.iter().filter(|one| one.asks() && one.on_rejected() != Some("stop")) {
                of_approval(subject, approval, &mut later.clone(), found);
            }
        }
    });
}

/// Reports the steps after an approval, up to the next one that asks in any case. Without `on_rejected` a step without a
/// filter makes a no stop the run.
fn of_approval<'c, 'n: 'c, 'a: 'n>(
    subject: &Subject<'a>,
    approval: &FilteredNode<'_, '_>,
    later: &mut dyn Iterator<Item = &'c Vec<FilteredNode<'n, 'a>>>,
    found: &mut Vec<Diagnostic>,
) {
    let runs_on = approval.on_rejected() == Some("go_on");
    let mut steps = StepsAfterNo::new(approval.filter.as_ref(), DenialRule::Firm);
    let stops = if runs_on { "" } else { ", so a no stops the run, or the item" };
    let name = approval.called();
    for chain in later {
        let Some(first) = chain.first() else { continue };
        let links = links(subject, chain);
        // The step that takes the place of one that is held may be the one that is not.
        let one = chain.get(steps.deciding_link(&links)).unwrap_or(first);
        let is_other = one.node.step.at != first.node.step.at;
        let at = &one.node.step.at;
        let (place, message) = match steps.next(&links) {
            StepAfter::Asks => return,
            StepAfter::Step(Hold::None) if runs_on && is_other => {
                let message = format!(
                    "this step of `onFalse` runs after a no to {name}, and after a yes for which the rest of the filter before \
                     it does not hold"
                );
                (format!("{at}/type"), message)
            }
            StepAfter::Step(Hold::None) if runs_on => {
                (format!("{at}/type"), format!("after a no to {name} this step runs all the same"))
            }
            StepAfter::Step(Hold::Idle) => (
                one.filter_at.clone(),
                format!("this filter reads what was decided of {name}, and holds after a no as after a yes"),
            ),
            StepAfter::Step(Hold::Loose) => (
                one.filter_at.clone(),
                format!("this filter may hold after a no to {name} as well{stops}: something else in it decides that"),
            ),
            // Its own key is reported by itself.
            StepAfter::Decides if chain.iter().all(|one| one.inside().is_empty()) => continue,
            StepAfter::Decides => (
                format!("{}/type", first.node.step.at),
                format!(
                    "this step may run after a no to {name}, and an approval inside it writes `__approved` anew{stops}: later \
                     filters read that one"
                ),
            ),
            StepAfter::Step(_) | StepAfter::MayAsk => continue,
        };
        let help = "a step that needs a yes has the filter {\"condition\": {\"equal\": [\"@__approved\", true]}}, alone or \
                    in an `and`; one that is for a no compares with `false`";
        let fault = subject.at(&place).report(&RULE, message).help(help);
        found.push(fault.related(&subject.at(&approval.node.step.property("comment")).place(), "it is asked here"));
    }
}
