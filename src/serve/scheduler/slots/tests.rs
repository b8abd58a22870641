//! Who gets a slot when others hold theirs for ever.

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
