//! How many parts of a schema are compared with one and the same value, inside each other.

use super::SchemaFault;
use super::plan::{Asks, Id, Plan};

/// The most of them. Each takes room on the stack, for every level of the value again.
const MAX_CHAIN: usize = 200;

/// Refuses a schema whose parts are nested deeper. A cycle ends where it closes.
pub(super) fn check(plan: &Plan) -> Result<(), SchemaFault> {
    let mut chains: Vec<Option<usize>> = vec![None; plan.parts.len()];
    let mut open = vec![false; plan.parts.len()];
    for id in 0..plan.parts.len() {
        let mut todo = vec![(id, false)];
        while let Some((part, done)) = todo.pop() {
            if done {
                let chain = below(plan, part).iter().filter_map(|next| *chains.get(*next)?).max().unwrap_or(0);
                let chain = chain + usize::from(!matches!(plan.part(part).map(|part| &part.asks), Some(Asks::Same(_))));
                if chain > MAX_CHAIN {
                    return Err(too_deep(plan, id));
                }
                chains.get_mut(part).into_iter().for_each(|slot| *slot = Some(chain));
                continue;
            }
            if chains.get(part).is_none_or(Option::is_some) || open.get(part) == Some(&true) {
                continue;
            }
            open.get_mut(part).into_iter().for_each(|slot| *slot = true);
            todo.push((part, true));
            todo.extend(below(plan, part).into_iter().map(|next| (next, false)));
        }
    }
    Ok(())
}

/// The parts that are compared with the same value as this one.
fn below(plan: &Plan, part: Id) -> Vec<Id> {
    let mut below = Vec::new();
    let Some(part) = plan.part(part) else { return below };
    if let Asks::Same(next) = part.asks {
        below.push(next);
    }
    for ruled in part.rules() {
        ruled.rule.each_part(&mut |next, same| below.extend(same.then_some(next)));
    }
    below
}

fn too_deep(plan: &Plan, id: Id) -> SchemaFault {
    let path = plan.part(id).and_then(|part| part.at.as_deref()).unwrap_or_default();
    let message = format!(
        "more than {MAX_CHAIN} parts of it are compared with the same value inside each other; write what they ask for together in fewer parts"
    );
    SchemaFault::new(path, message)
}
