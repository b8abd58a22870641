//! Whose runs are claimed next: round robin over the organisations, within one over its tokens. The runs of one token
//! are claimed in the order in which they were started; that is the store's part. Pure: it knows neither runs nor locks.

use std::collections::BTreeMap;

use crate::journal::{QueueShare, QueuedRuns};
use crate::serve::quotas::Owner;

/// When each owner was served last. Only owners whose runs wait are kept: who comes later comes last.
#[derive(Debug, Default)]
pub struct Turns {
    orgs: BTreeMap<Option<String>, OrgTurns>,
    /// Counts turns.
    now: u64,
}

#[derive(Debug, Default)]
struct OrgTurns {
    last: u64,
    tokens: BTreeMap<Option<String>, u64>,
}

/// The runs of one owner that wait, and how many of them are to be claimed.
struct OwnerLine {
    owner: Owner,
    left: u64,
    claimed: usize,
}

impl Turns {
    /// Divides slots among the owners whose runs wait: `take` takes a slot for an owner, if there is one for it.
    pub fn divide(&mut self, queue: &[QueuedRuns], mut take: impl FnMut(&Owner) -> bool) -> Vec<QueueShare> {
        let owner = |of: &QueuedRuns| Owner { org: of.org.clone(), token: of.token.clone() };
        let mut lines: Vec<OwnerLine> =
            queue.iter().map(|of| OwnerLine { owner: owner(of), left: of.runs, claimed: 0 }).collect();
        self.keep(&lines);
        while let Some(line) = lines.iter_mut().filter(|line| line.left > 0).min_by_key(|line| self.last(&line.owner)) {
            if take(&line.owner) {
                line.left -= 1;
                line.claimed += 1;
                self.served(&line.owner);
            } else {
                // It keeps its turn for the next slot.
                line.left = 0;
            }
        }
        let shares = lines.into_iter().filter(|line| line.claimed > 0);
        shares
            .map(|OwnerLine { owner, claimed, .. }| QueueShare { org: owner.org, token: owner.token, runs: claimed })
            .collect()
    }

    /// Forgets owners whose runs do not wait, and lets new ones come last.
    fn keep(&mut self, lines: &[OwnerLine]) {
        self.orgs.retain(|org, turns| {
            turns
                .tokens
                .retain(|token, _| lines.iter().any(|line| line.owner.org == *org && line.owner.token == *token));
            !turns.tokens.is_empty()
        });
        for OwnerLine { owner, .. } in lines {
            let now = self.now;
            let org =
                self.orgs.entry(owner.org.clone()).or_insert_with(|| OrgTurns { last: now, ..OrgTurns::default() });
            org.tokens.entry(owner.token.clone()).or_insert(now);
            self.now += 1;
        }
    }

    fn last(&self, owner: &Owner) -> (u64, u64) {
        let org = self.orgs.get(&owner.org);
        org.map_or((0, 0), |org| (org.last, org.tokens.get(&owner.token).copied().unwrap_or_default()))
    }

    fn served(&mut self, owner: &Owner) {
        self.now += 1;
        if let Some(org) = self.orgs.get_mut(&owner.org) {
            org.last = self.now;
            org.tokens.insert(owner.token.clone(), self.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What waits, as a store counts it: the owner of the oldest one first.
    fn queue(waiting: &[(Owner, u32)]) -> Vec<QueuedRuns> {
        let mut queue: Vec<QueuedRuns> = Vec::new();
        for (owner, _) in waiting {
            match queue.iter_mut().find(|of| of.org == owner.org && of.token == owner.token) {
                Some(of) => of.runs += 1,
                None => {
                    queue.push(QueuedRuns { org: owner.org.clone(), token: owner.token.clone(), runs: 1, since_ms: 0 })
                }
            }
        }
        queue
    }

    /// One slot: whose run gets it.
    fn next(turns: &mut Turns, waiting: &mut Vec<(Owner, u32)>, may: impl Fn(&Owner) -> bool) -> Option<(Owner, u32)> {
        let mut slots = 1;
        let shares = turns.divide(&queue(waiting), |owner| {
            let takes = slots > 0 && may(owner);
            slots -= usize::from(takes);
            takes
        });
        let share = shares.first()?;
        let at = waiting.iter().position(|(owner, _)| owner.org == share.org && owner.token == share.token)?;
        Some(waiting.remove(at))
    }

    fn owner(org: u8, token: u8) -> Owner {
        Owner { org: (org > 0).then(|| format!("org{org}")), token: (token > 0).then(|| format!("t{token}")) }
    }

    #[test]
    fn organisations_take_turns_and_then_their_tokens() {
        let come = [(1, 1, 1), (1, 1, 2), (1, 2, 3), (1, 1, 4), (2, 1, 5), (0, 0, 6)];
        let mut waiting: Vec<(Owner, u32)> = come.map(|(org, token, run)| (owner(org, token), run)).to_vec();
        let mut turns = Turns::default();
        let all = turns.divide(&queue(&waiting), |_| true);
        assert_eq!(all.iter().map(|share| share.runs).collect::<Vec<_>>(), [3, 1, 1, 1], "there is room for all");
        let (mut turns, mut order) = (Turns::default(), Vec::new());
        while let Some((_, run)) = next(&mut turns, &mut waiting, |_| true) {
            order.push(run);
        }
        assert_eq!(order, [1, 5, 6, 3, 2, 4]);
    }

    #[test]
    fn who_may_not_go_on_keeps_the_place_and_holds_nobody_up() {
        let mut waiting: Vec<(Owner, u32)> = (0..100).map(|run| (owner(1, 1), run)).collect();
        waiting.push((owner(2, 1), 1_000));
        let mut turns = Turns::default();
        let others = |owner: &Owner| owner.org.as_deref() != Some("org1");
        assert_eq!(next(&mut turns, &mut waiting, others).unwrap().1, 1_000);
        assert_eq!(next(&mut turns, &mut waiting, others), None);
        waiting.push((owner(2, 1), 1_001));
        assert_eq!(next(&mut turns, &mut waiting, |_| true).unwrap().1, 0);
        assert_eq!(next(&mut turns, &mut waiting, |_| true).unwrap().1, 1_001);
    }

    proptest! {
        #[test]
        fn nobody_who_waits_is_passed_twice_by_another_and_nothing_is_lost(
            mut comes in prop::collection::vec((0_u8..4, 0_u8..3, any::<bool>()), 1..200),
        ) {
            // In the end everything that waits is taken.
            comes.extend(std::iter::repeat_n((0, 0, true), 200));
            let mut turns = Turns::default();
            let (mut number, mut left) = (0_u32, Vec::new());
            let mut waiting: Vec<(Owner, u32)> = Vec::new();
            for (org, token, takes) in comes {
                if takes {
                    let before = waiting.clone();
                    let Some((owner, run)) = next(&mut turns, &mut waiting, |_| true) else { continue };
                    // First come, first served for one owner.
                    let first = before.iter().find(|(of, _)| *of == owner).unwrap().1;
                    prop_assert_eq!(run, first);
                    // An organisation that waited at the last turn of this one, and still does, was served since.
                    let before = left.iter().rposition(|(of, _): &(Owner, Vec<Option<String>>)| of.org == owner.org);
                    if let Some(before) = before {
                        let served: Vec<_> = left[before + 1..].iter().map(|(of, _)| of.org.clone()).collect();
                        for org in left[before].1.iter().filter(|org| **org != owner.org) {
                            prop_assert!(served.contains(org), "{org:?} was passed by {owner:?}");
                        }
                    }
                    let waits = waiting.iter().map(|(of, _)| of.org.clone()).collect();
                    left.push((owner, waits));
                } else {
                    number += 1;
                    waiting.push((owner(org, token), number));
                }
            }
            prop_assert_eq!(waiting.len(), 0, "nothing is lost");
        }
    }
}
