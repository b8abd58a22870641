//! Who may drive another run. Each organisation that has a token, and in it each token, has some slots that
//! nobody else may take, so that hanging runs only hold slots of their owner. Pure.

use std::collections::BTreeMap;

use crate::language::serving::Limits;
use crate::serve::quotas::Owner;

/// Decisions drive runs beyond the slots: at least this number for each organisation, even if there are few slots.
const MIN_EXTRA_SLOTS: usize = 16;

/// The most slots that one owner may hold, by the project file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotLimits {
    /// Each token.
    pub token: Option<usize>,
    /// Each organisation.
    pub org: Option<usize>,
}

impl SlotLimits {
    /// The limits of the project file.
    pub fn of(limits: &Limits) -> Self {
        let count = |written: Option<u32>| written.map(|written| usize::try_from(written).unwrap_or(usize::MAX));
        Self { token: count(limits.token.running), org: count(limits.org.running) }
    }
}

/// The slots, and who holds them.
#[derive(Debug)]
pub struct RunSlots {
    all: usize,
    most: SlotLimits,
    /// Whether there are tokens: without them, decisions have no limit.
    is_shared: bool,
    /// Whether no slot is given to anybody, because a run is driven alone or waits for that.
    is_kept: bool,
    held: usize,
    /// The slots that are reserved for organisations and not held by them, in all.
    missing: usize,
    orgs: BTreeMap<Option<String>, OrgSlots>,
}

#[derive(Debug, Default)]
struct OrgSlots {
    held: usize,
    extra: usize,
    /// The slots that are reserved for it.
    own: usize,
    /// The slots that are reserved for its tokens and not held by them, in all.
    missing: usize,
    tokens: BTreeMap<Option<String>, TokenSlots>,
}

#[derive(Debug, Default)]
struct TokenSlots {
    held: usize,
    extra: usize,
    own: usize,
}

/// A slot in which a run is driven. It is freed by [`RunSlots::give_back`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSlot {
    /// The owner of the run.
    pub owner: Owner,
    is_extra: bool,
}

impl RunSlots {
    /// `all` slots, at least one, for the owners of these tokens that may start runs.
    pub fn new(all: usize, most: SlotLimits, owners: &[Owner]) -> Self {
        let all = all.max(1);
        let mut orgs: BTreeMap<Option<String>, OrgSlots> = BTreeMap::new();
        for owner in owners {
            orgs.entry(owner.org.clone()).or_default().tokens.entry(owner.token.clone()).or_default();
        }
        // Half of all slots are reserved; a single organisation has no others to reserve any from.
        let own = own_places(all, orgs.len());
        let mut missing = 0;
        for org in orgs.values_mut() {
            org.own = own;
            missing += own;
            let each = own_places(own, org.tokens.len());
            for token in org.tokens.values_mut() {
                token.own = each;
                org.missing += each;
            }
        }
        Self { all, most, is_shared: !owners.is_empty(), is_kept: false, held: 0, missing, orgs }
    }

    /// How many runs are driven, including those that decisions drive beyond the slots.
    pub fn driven(&self) -> usize {
        self.held + self.orgs.values().map(|org| org.extra).sum::<usize>()
    }

    /// From now on slots are given to nobody, or to all again. Decisions drive their runs nevertheless.
    pub fn keep(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// Whether no slot is free for anybody.
    pub fn is_full(&self) -> bool {
        self.is_kept || self.held >= self.all
    }

    /// The owner as the slots know it: without tokens all are one.
    fn known(&self, owner: &Owner) -> Owner {
        if self.is_shared { owner.clone() } else { Owner::default() }
    }

    /// Whether another run of this owner may be driven.
    pub fn has_room(&self, owner: &Owner) -> bool {
        self.has_room_for(&self.known(owner))
    }

    fn has_room_for(&self, owner: &Owner) -> bool {
        let free = self.all.saturating_sub(self.held);
        let nobody = OrgSlots::default();
        let org = self.orgs.get(&owner.org).unwrap_or(&nobody);
        let (token, token_own) = org.tokens.get(&owner.token).map_or((0, 0), |token| (token.held, token.own));
        if self.is_kept || free == 0 || is_at(self.most.org, org.held) || is_at(self.most.token, token) {
            return false;
        }
        // Never more than half is reserved for others: with more organisations than slots most would have none.
        let own_left = org.own.saturating_sub(org.held);
        let kept = self.missing.saturating_sub(own_left).min(self.all / 2);
        let room = free.saturating_sub(kept).max(own_left.min(free));
        if token < token_own {
            return room > 0;
        }
        // The same among the tokens of the organisation.
        let largest = self.all.saturating_sub(self.missing.saturating_sub(own_left).min(self.all / 2));
        room > org.missing.min(largest / 2)
    }

    /// Takes a slot if there is one for the owner.
    pub fn take(&mut self, owner: &Owner) -> Option<RunSlot> {
        let owner = self.known(owner);
        self.has_room_for(&owner).then(|| self.slot(owner, false))
    }

    /// Takes a slot for a run that a human decided about: an extra one when there is none. None when the owner
    /// already drives as many extra runs as there are slots.
    pub fn take_decided(&mut self, owner: &Owner) -> Option<RunSlot> {
        let owner = self.known(owner);
        if self.has_room_for(&owner) {
            return Some(self.slot(owner, false));
        }
        let most = self.all.max(MIN_EXTRA_SLOTS);
        let org = self.orgs.get(&owner.org);
        let token = org.and_then(|org| org.tokens.get(&owner.token)).map_or(0, |token| token.extra);
        // A token leaves half of them to the other tokens of its organisation.
        let is_full = org.is_some_and(|org| org.extra >= most) || token >= most.div_ceil(2);
        (!self.is_shared || !is_full).then(|| self.slot(owner, true))
    }

    /// Frees a slot.
    pub fn give_back(&mut self, slot: &RunSlot) {
        let Some(org) = self.orgs.get_mut(&slot.owner.org) else { return };
        let Some(token) = org.tokens.get_mut(&slot.owner.token) else { return };
        if slot.is_extra {
            org.extra = org.extra.saturating_sub(1);
            token.extra = token.extra.saturating_sub(1);
        } else {
            self.held = self.held.saturating_sub(1);
            org.held = org.held.saturating_sub(1);
            token.held = token.held.saturating_sub(1);
            self.missing += usize::from(org.held < org.own);
            org.missing += usize::from(token.held < token.own);
        }
        // An owner without a token is not kept.
        if token.held + token.extra + token.own == 0 {
            org.tokens.remove(&slot.owner.token);
        }
        if org.own == 0 && org.tokens.is_empty() {
            self.orgs.remove(&slot.owner.org);
        }
    }

    fn slot(&mut self, owner: Owner, is_extra: bool) -> RunSlot {
        let org = self.orgs.entry(owner.org.clone()).or_default();
        let token = org.tokens.entry(owner.token.clone()).or_default();
        if is_extra {
            org.extra += 1;
            token.extra += 1;
        } else {
            self.held += 1;
            self.missing -= usize::from(org.held < org.own);
            org.missing -= usize::from(token.held < token.own);
            org.held += 1;
            token.held += 1;
        }
        RunSlot { owner, is_extra }
    }
}

/// The slots that are reserved for each of several: half of all are divided, and each gets at least one.
fn own_places(all: usize, several: usize) -> usize {
    if several < 2 { 0 } else { (all / several / 2).max(1) }
}

fn is_at(most: Option<usize>, held: usize) -> bool {
    most.is_some_and(|most| held >= most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owner(org: &str, token: &str) -> Owner {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Owner { org: text(org), token: text(token) }
    }

    /// Takes as many slots as an owner gets.
    fn fill(run_slots: &mut RunSlots, owner: &Owner) -> usize {
        std::iter::from_fn(|| run_slots.take(owner)).count()
    }

    #[test]
    fn who_is_alone_gets_every_place() {
        let mut run_slots = RunSlots::new(64, SlotLimits::default(), &[]);
        assert_eq!(fill(&mut run_slots, &owner("", "")), 64);
        let mut run_slots = RunSlots::new(64, SlotLimits::default(), &[owner("a", "one")]);
        assert_eq!(fill(&mut run_slots, &owner("a", "one")), 64);
        assert!(!run_slots.has_room(&owner("a", "one")));
    }

    #[test]
    fn runs_of_one_organisation_that_hang_leave_the_others_their_places() {
        let owners = [owner("a", "one"), owner("b", "two"), owner("c", "three"), owner("d", "four")];
        let mut run_slots = RunSlots::new(64, SlotLimits::default(), &owners);
        assert_eq!(fill(&mut run_slots, &owners[0]), 40, "half of 64 is shared out to four; three keep theirs");
        assert_eq!(fill(&mut run_slots, &owners[1]), 8);
        assert_eq!(fill(&mut run_slots, &owners[2]), 8);
        assert_eq!(fill(&mut run_slots, &owners[3]), 8);
        assert_eq!(run_slots.driven(), 64);
    }

    #[test]
    fn runs_of_one_token_that_hang_leave_the_others_of_its_organisation_theirs() {
        let owners = [owner("a", "one"), owner("a", "two"), owner("b", "three")];
        let mut run_slots = RunSlots::new(64, SlotLimits::default(), &owners);
        assert_eq!(fill(&mut run_slots, &owners[0]), 44);
        assert_eq!(fill(&mut run_slots, &owners[1]), 4);
        assert_eq!(fill(&mut run_slots, &owners[2]), 16);
    }

    #[test]
    fn one_place_for_two_is_taken_by_who_comes_first() {
        let owners = [owner("a", "one"), owner("b", "two")];
        let mut run_slots = RunSlots::new(1, SlotLimits::default(), &owners);
        let slot = run_slots.take(&owners[1]).unwrap();
        assert!(!run_slots.has_room(&owners[0]));
        run_slots.give_back(&slot);
        assert!(run_slots.has_room(&owners[0]));
    }

    #[test]
    fn what_the_project_file_says_is_never_passed() {
        let owners = [owner("a", "one"), owner("a", "two"), owner("b", "three")];
        let mut run_slots = RunSlots::new(64, SlotLimits { token: Some(3), org: Some(5) }, &owners);
        assert_eq!(owners.each_ref().map(|owner| fill(&mut run_slots, owner)), [3, 2, 3]);
    }

    #[test]
    fn decisions_drive_beyond_the_places_and_take_none_of_the_others() {
        let owners = [owner("a", "one"), owner("b", "two")];
        let mut run_slots = RunSlots::new(8, SlotLimits::default(), &owners);
        assert_eq!(fill(&mut run_slots, &owners[0]), 6);
        let slots: Vec<RunSlot> = std::iter::from_fn(|| run_slots.take_decided(&owners[0])).collect();
        assert_eq!(slots.len(), 8, "one token: half of sixteen");
        assert_eq!(fill(&mut run_slots, &owners[1]), 2, "the others have theirs");
        assert_eq!(run_slots.driven(), 16);
        slots.iter().for_each(|slot| run_slots.give_back(slot));
        assert_eq!(run_slots.driven(), 8);
        // Without tokens there is nobody to reserve anything for.
        let mut run_slots = RunSlots::new(1, SlotLimits::default(), &[]);
        assert_eq!((0..100).filter_map(|_| run_slots.take_decided(&owner("", ""))).count(), 100);
    }

    proptest! {
        #[test]
        fn whatever_others_hold_each_organisation_gets_a_place_while_there_are_twice_as_many(
            orgs in 2_usize..20,
            more in 0_usize..40,
            tokens in 1_usize..4,
            greedy in prop::collection::vec((0_usize..20, 0_usize..4), 0..300),
        ) {
            let name = |org: usize, token: usize| owner(&format!("o{org}"), &format!("t{token}"));
            let owners: Vec<Owner> = (0..orgs).flat_map(|org| (0..tokens).map(move |token| name(org, token))).collect();
            let mut run_slots = RunSlots::new(2 * orgs + more, SlotLimits::default(), &owners);
            for (org, token) in greedy {
                run_slots.take(&name(org % orgs, token % tokens));
            }
            // Every further organisation finds a slot of its own.
            for org in 0..orgs {
                let held = run_slots.orgs[&name(org, 0).org].held;
                prop_assert!(held > 0 || run_slots.take(&name(org, 0)).is_some(), "o{org}");
            }
            prop_assert!(run_slots.held <= run_slots.all);
        }

        #[test]
        fn what_is_given_back_is_there_again(
            steps in prop::collection::vec((0_usize..3, 0_usize..3, any::<bool>(), any::<bool>()), 1..200),
        ) {
            let name = |org: usize, token: usize| owner(&format!("o{org}"), &format!("t{token}"));
            // The third organisation and the third token have no token in the project file.
            let owners = [name(0, 0), name(0, 1), name(1, 0)];
            let mut run_slots = RunSlots::new(12, SlotLimits::default(), &owners);
            let mut slots = Vec::new();
            for (org, token, back, decided) in steps {
                let owner = name(org, token);
                if back {
                    if let Some(slot) = slots.pop() {
                        run_slots.give_back(&slot);
                    }
                } else {
                    slots.extend(if decided { run_slots.take_decided(&owner) } else { run_slots.take(&owner) });
                }
                prop_assert_eq!(run_slots.driven(), slots.len());
                prop_assert!(run_slots.held <= run_slots.all);
            }
            slots.iter().for_each(|slot| run_slots.give_back(slot));
            let mut fresh = RunSlots::new(12, SlotLimits::default(), &owners);
            prop_assert!(run_slots.orgs.len() <= 2, "who has no token is not remembered");
            prop_assert_eq!((run_slots.held, run_slots.missing), (fresh.held, fresh.missing));
            for owner in &owners {
                prop_assert_eq!(fill(&mut run_slots, owner), fill(&mut fresh, owner));
            }
        }
    }
}
