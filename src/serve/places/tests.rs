//! Who gets a place when others hold theirs for ever.

use proptest::prelude::*;

use super::*;

fn owner(org: &str, token: &str) -> Owner {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Owner { org: text(org), token: text(token) }
}

/// As many places as an owner gets.
fn fill(places: &mut Places, owner: &Owner) -> usize {
    std::iter::from_fn(|| places.take(owner)).count()
}

#[test]
fn who_is_alone_gets_every_place() {
    let mut places = Places::new(64, Most::default(), &[]);
    assert_eq!(fill(&mut places, &owner("", "")), 64);
    let mut places = Places::new(64, Most::default(), &[owner("a", "one")]);
    assert_eq!(fill(&mut places, &owner("a", "one")), 64);
    assert!(!places.has_room(&owner("a", "one")));
}

#[test]
fn runs_of_one_organisation_that_hang_leave_the_others_their_places() {
    let owners = [owner("a", "one"), owner("b", "two"), owner("c", "three"), owner("d", "four")];
    let mut places = Places::new(64, Most::default(), &owners);
    assert_eq!(fill(&mut places, &owners[0]), 40, "half of 64 is shared out to four; three keep theirs");
    assert_eq!(fill(&mut places, &owners[1]), 8);
    assert_eq!(fill(&mut places, &owners[2]), 8);
    assert_eq!(fill(&mut places, &owners[3]), 8);
    assert_eq!(places.driven(), 64);
}

#[test]
fn runs_of_one_token_that_hang_leave_the_others_of_its_organisation_theirs() {
    let owners = [owner("a", "one"), owner("a", "two"), owner("b", "three")];
    let mut places = Places::new(64, Most::default(), &owners);
    assert_eq!(fill(&mut places, &owners[0]), 44);
    assert_eq!(fill(&mut places, &owners[1]), 4);
    assert_eq!(fill(&mut places, &owners[2]), 16);
}

#[test]
fn one_place_for_two_is_taken_by_who_comes_first() {
    let owners = [owner("a", "one"), owner("b", "two")];
    let mut places = Places::new(1, Most::default(), &owners);
    let seat = places.take(&owners[1]).unwrap();
    assert!(!places.has_room(&owners[0]));
    places.give_back(&seat);
    assert!(places.has_room(&owners[0]));
}

#[test]
fn what_the_project_file_says_is_never_passed() {
    let owners = [owner("a", "one"), owner("a", "two"), owner("b", "three")];
    let mut places = Places::new(64, Most { token: Some(3), org: Some(5) }, &owners);
    assert_eq!(owners.each_ref().map(|owner| fill(&mut places, owner)), [3, 2, 3]);
}

#[test]
fn decisions_drive_beyond_the_places_and_take_none_of_the_others() {
    let owners = [owner("a", "one"), owner("b", "two")];
    let mut places = Places::new(8, Most::default(), &owners);
    assert_eq!(fill(&mut places, &owners[0]), 6);
    let seats: Vec<Seat> = std::iter::from_fn(|| places.take_decided(&owners[0])).collect();
    assert_eq!(seats.len(), 8, "one token: half of sixteen");
    assert_eq!(fill(&mut places, &owners[1]), 2, "the others have theirs");
    assert_eq!(places.driven(), 16);
    seats.iter().for_each(|seat| places.give_back(seat));
    assert_eq!(places.driven(), 8);
    // Without tokens there is nobody to keep anything for.
    let mut places = Places::new(1, Most::default(), &[]);
    assert_eq!((0..100).filter_map(|_| places.take_decided(&owner("", ""))).count(), 100);
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
        let mut places = Places::new(2 * orgs + more, Most::default(), &owners);
        for (org, token) in greedy {
            places.take(&name(org % orgs, token % tokens));
        }
        // Whoever comes last finds a place of its own.
        for org in 0..orgs {
            let held = places.orgs[&name(org, 0).org].held;
            prop_assert!(held > 0 || places.take(&name(org, 0)).is_some(), "o{org}");
        }
        prop_assert!(places.held <= places.all);
    }

    #[test]
    fn what_is_given_back_is_there_again(
        steps in prop::collection::vec((0_usize..3, 0_usize..3, any::<bool>(), any::<bool>()), 1..200),
    ) {
        let name = |org: usize, token: usize| owner(&format!("o{org}"), &format!("t{token}"));
        // The third organisation and the third token have no token in the project file.
        let owners = [name(0, 0), name(0, 1), name(1, 0)];
        let mut places = Places::new(12, Most::default(), &owners);
        let mut seats = Vec::new();
        for (org, token, back, decided) in steps {
            let owner = name(org, token);
            if back {
                if let Some(seat) = seats.pop() {
                    places.give_back(&seat);
                }
            } else {
                seats.extend(if decided { places.take_decided(&owner) } else { places.take(&owner) });
            }
            prop_assert_eq!(places.driven(), seats.len());
            prop_assert!(places.held <= places.all);
        }
        seats.iter().for_each(|seat| places.give_back(seat));
        let mut fresh = Places::new(12, Most::default(), &owners);
        prop_assert!(places.orgs.len() <= 2, "who has no token is not remembered");
        prop_assert_eq!((places.held, places.missing), (fresh.held, fresh.missing));
        for owner in &owners {
            prop_assert_eq!(fill(&mut places, owner), fill(&mut fresh, owner));
        }
    }
}
