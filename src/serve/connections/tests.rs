//! Which connection is closed for another one, and whose quota it counts in.

use super::super::quotas::Capacity;
use super::*;
use crate::language::serving::{Limits, Share};

fn connections(room: Room, most: u32) -> Arc<Connections> {
    let token = Share { connections: Some(most), ..Share::default() };
    let whole = Capacity { connections: room.known, places: 1, orgs: 2 };
    let limits = Limits { org: token.clone(), token, unknown_connections: None };
    Connections::new(room, Arc::new(Quotas::new(&limits, whole, false)))
}

fn owner(token: &str) -> Owner {
    Owner { org: Some(format!("of {token}")), token: Some(token.to_owned()) }
}

/// Whether a connection was asked to close.
fn is_closing(entered: &Entered) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        tokio::select! {
            biased;
            () = entered.is_to_close() => true,
            () = std::future::ready(()) => false,
        }
    })
}

#[test]
fn the_descriptors_less_a_reserve_bound_the_connections() {
    assert_eq!(Room::of(usize::MAX, 64, None), Room { unknown: 256, known: 3_840 });
    assert_eq!(Room::of(1_024, 64, None), Room { unknown: 144, known: 432 });
    assert_eq!(Room::of(1_024, 64, Some(10)), Room { unknown: 10, known: 566 });
    assert_eq!(Room::of(1_024, 64, Some(60_000)), Room { unknown: 288, known: 288 });
    assert_eq!(Room::of(256, 100_000, None), Room { unknown: 32, known: 96 });
    assert_eq!(Room::of(0, 1, None), Room { unknown: 1, known: 1 });
}

#[test]
fn of_those_without_a_token_the_oldest_idle_one_makes_room() {
    let connections = connections(Room { unknown: 3, known: 10 }, 10);
    let open: Vec<Entered> = (0..3).map(|_| connections.enter()).collect();
    let answered = open[0].requests().busy();
    let new = connections.enter();
    assert_eq!(open.iter().map(is_closing).collect::<Vec<_>>(), [false, true, false], "the oldest one is answered");
    drop(answered);
    let newer = connections.enter();
    assert!(is_closing(&open[0]) && !is_closing(&open[2]) && !is_closing(&new));
    assert_eq!(connections.count(), (3, 0));
    drop((open, new, newer));
    assert_eq!(connections.count(), (0, 0));
}

#[test]
fn who_shows_a_token_is_closed_for_nobody_and_counts_in_its_share() {
    let connections = connections(Room { unknown: 1, known: 3 }, 2);
    let shown = |token: &str| {
        let entered = connections.enter();
        let shown = entered.requests().show(&owner(token));
        (entered, shown.map_err(|problem| (problem.status.as_u16(), problem.code)))
    };
    let (one, first) = shown("a");
    let (_two, second) = shown("a");
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(one.requests().show(&owner("a")).map_err(|problem| problem.code), Ok(()), "again it counts once");
    let (_three, third) = shown("a");
    assert_eq!(third, Err((429, "too_many_connections")));
    let (other, fourth) = shown("b");
    assert_eq!(fourth, Ok(()), "another one has a share of its own");
    let (_none, fifth) = shown("c");
    assert_eq!(fifth, Err((503, "no_connection_left")));
    assert_eq!(connections.count(), (1, 3));
    assert!(!is_closing(&one) && !is_closing(&other));
    // A connection that several owners use counts for the last one.
    assert_eq!(one.requests().show(&owner("b")).map_err(|problem| problem.code), Ok(()));
    let (_six, sixth) = shown("a");
    assert_eq!(sixth, Err((503, "no_connection_left")), "its share has room again, the server has none");
    drop(one);
    assert_eq!(connections.count(), (1, 2));
}
