//! The order of queued runs: round robin over the organisations, within one over its tokens, and first come,
//! first served for one token. Pure: it knows neither runs nor locks.

use std::collections::{BTreeMap, VecDeque};

use crate::serve::quotas::Owner;

/// The queued items in their order.
#[derive(Debug)]
pub struct Queue<T> {
    orgs: Ring<Ring<VecDeque<T>>>,
    len: usize,
}

/// Takes turns: the last one that was served comes last.
#[derive(Debug)]
struct Ring<T> {
    turns: VecDeque<Option<String>>,
    of: BTreeMap<Option<String>, T>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), of: BTreeMap::new() }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { orgs: Ring::default(), len: 0 }
    }
}

impl<T: Default> Ring<T> {
    fn entry(&mut self, name: &Option<String>) -> &mut T {
        if !self.of.contains_key(name) {
            self.turns.push_back(name.clone());
        }
        self.of.entry(name.clone()).or_default()
    }

    /// Serves the entry at this place: it comes last from now on, or is removed when nothing of it is queued
    /// any more.
    fn served(&mut self, turn: usize, is_empty: impl Fn(&T) -> bool) {
        let Some(name) = self.turns.remove(turn) else { return };
        if self.of.get(&name).is_some_and(is_empty) {
            self.of.remove(&name);
        } else {
            self.turns.push_back(name);
        }
    }
}

impl<T> Queue<T> {
    /// How many items are queued.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether an item of this owner is queued.
    pub fn has(&self, owner: &Owner) -> bool {
        self.orgs.of.get(&owner.org).is_some_and(|tokens| tokens.of.contains_key(&owner.token))
    }

    /// Adds an item after all others of its owner.
    pub fn push(&mut self, owner: &Owner, item: T) {
        self.orgs.entry(&owner.org).entry(&owner.token).push_back(item);
        self.len += 1;
    }

    /// Takes the next item of the owners that `may_go_on` accepts.
    pub fn pop(&mut self, may_go_on: impl Fn(&Owner) -> bool) -> Option<(Owner, T)> {
        let mut found = None;
        'orgs: for (at, org) in self.orgs.turns.iter().enumerate() {
            let Some(tokens) = self.orgs.of.get(org) else { continue };
            for (turn, token) in tokens.turns.iter().enumerate() {
                let owner = Owner { org: org.clone(), token: token.clone() };
                if may_go_on(&owner) {
                    found = Some((at, turn, owner));
                    break 'orgs;
                }
            }
        }
        let (at, turn, owner) = found?;
        let tokens = self.orgs.of.get_mut(&owner.org)?;
        let item = tokens.of.get_mut(&owner.token)?.pop_front()?;
        tokens.served(turn, VecDeque::is_empty);
        self.orgs.served(at, |tokens| tokens.of.is_empty());
        self.len = self.len.saturating_sub(1);
        Some((owner, item))
    }

    /// Removes all items that match, wherever they are queued.
    pub fn remove(&mut self, is_meant: impl Fn(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        for tokens in self.orgs.of.values_mut() {
            for items in tokens.of.values_mut() {
                let (out, stay): (VecDeque<T>, VecDeque<T>) = items.drain(..).partition(&is_meant);
                removed.extend(out);
                *items = stay;
            }
            tokens.of.retain(|_, items| !items.is_empty());
            tokens.turns.retain(|token| tokens.of.contains_key(token));
        }
        self.orgs.of.retain(|_, tokens| !tokens.of.is_empty());
        self.orgs.turns.retain(|org| self.orgs.of.contains_key(org));
        self.len = self.len.saturating_sub(removed.len());
        removed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owner(org: u8, token: u8) -> Owner {
        Owner { org: (org > 0).then(|| format!("org{org}")), token: (token > 0).then(|| format!("t{token}")) }
    }

    #[test]
    fn organisations_take_turns_and_then_their_tokens() {
        let mut queue = Queue::default();
        for (org, token, item) in [(1, 1, "a"), (1, 1, "b"), (1, 2, "c"), (1, 1, "d"), (2, 1, "e"), (0, 0, "f")] {
            queue.push(&owner(org, token), item);
        }
        let mut order = String::new();
        while let Some((_, item)) = queue.pop(|_| true) {
            order.push_str(item);
        }
        assert_eq!((order.as_str(), queue.len()), ("aefcbd", 0));
    }

    #[test]
    fn who_may_not_go_on_keeps_the_place_and_holds_nobody_up() {
        let mut queue = Queue::default();
        for n in 0..100 {
            queue.push(&owner(1, 1), n);
        }
        queue.push(&owner(2, 1), 1_000);
        assert_eq!(queue.pop(|owner| owner.org.as_deref() != Some("org1")).unwrap().1, 1_000);
        assert_eq!(queue.pop(|owner| owner.org.as_deref() != Some("org1")), None);
        assert_eq!(queue.remove(|item| item % 2 == 0).len(), 50);
        assert_eq!((queue.len(), queue.pop(|_| true).unwrap().1), (50, 1));
    }

    proptest! {
        #[test]
        fn nobody_who_waits_is_passed_twice_by_another_and_nothing_is_lost(
            mut comes in prop::collection::vec((0_u8..4, 0_u8..3, any::<bool>()), 1..200),
        ) {
            // In the end everything queued is taken.
            comes.extend(std::iter::repeat_n((0, 0, true), 200));
            let mut queue = Queue::default();
            let (mut number, mut left) = (0_u32, Vec::new());
            let mut waiting: Vec<(Owner, u32)> = Vec::new();
            for (org, token, pops) in comes {
                if pops {
                    let Some((owner, item)) = queue.pop(|_| true) else { continue };
                    // First come, first served for one owner.
                    let at = waiting.iter().position(|(of, _)| *of == owner).unwrap();
                    prop_assert_eq!(waiting.remove(at).1, item);
                    // An organisation that was queued at the last turn of this one, and still is, was served
                    // since.
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
                    queue.push(&owner(org, token), number);
                    waiting.push((owner(org, token), number));
                }
                prop_assert_eq!(queue.len(), waiting.len());
            }
            prop_assert_eq!(waiting.len(), 0, "nothing is lost");
        }
    }
}
