//! A step that runs after a no as after a yes.

use crate::check::denials::{FilteredNode, chains, links};
use crate::check::step_tree::{each_list, tree};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::program::condition::CompiledCondition;
use crate::program::denial::{self, Hold, StepAfter};

/// The rule.
pub const RULE: Rule = Rule { code: codes::UNHELD_STEP, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let nodes = tree(subject);
    each_list(&nodes, &mut |list| {
        let Some(chains) = chains(list) else { return };
        for (number, chain) in chains.iter().enumerate() {
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
    subject: &Subject<'_>,
    approval: &FilteredNode<'_, '_>,
    later: &mut dyn Iterator<Item = &'c Vec<FilteredNode<'n, 'a>>>,
    found: &mut Vec<Diagnostic>,
) {
    let runs_on = approval.on_rejected() == Some("go_on");
    let demanded = approval.filter.as_ref().map(CompiledCondition::equalities).unwrap_or_default();
    let name = approval.called();
    for chain in later {
        let Some(first) = chain.first() else { continue };
        let at = &first.node.step.at;
        let (place, message) = match denial::after(&links(chain), &demanded) {
            StepAfter::Asks => return,
            StepAfter::Step(Hold::None) if runs_on => {
                (format!("{at}/type"), format!("after a no to {name} this step runs all the same"))
            }
            StepAfter::Step(Hold::Idle) => (
                format!("{at}/filter/condition"),
                format!("this filter reads what was decided of {name}, and holds after a no as after a yes"),
            ),
            StepAfter::Step(Hold::Loose) => (
                format!("{at}/filter/condition"),
                format!("this filter may hold after a no to {name} as well: something else in it decides that"),
            ),
            StepAfter::Step(_) | StepAfter::MayAsk => continue,
        };
        let help = "a step that needs a yes has the filter {\"condition\": {\"equal\": [\"@__approved\", true]}}, alone or \
                    in an `and`; one that is for a no compares with `false`";
        let fault = subject.at(&place).report(&RULE, message).help(help);
        found.push(fault.related(&subject.at(&approval.node.step.property("comment")).place(), "it is asked here"));
    }
}
