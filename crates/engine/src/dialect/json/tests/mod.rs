//! Tests of the dialect: what is read, what is refused, and what holds for any text.

mod decode;
mod properties;
mod refuse;
mod words;

use super::{read, read_cut_off};
use crate::dialect::{Reading, Wanted};

/// The thought and the call of a reply that must be read.
#[track_caller]
fn call(reply: &str) -> (String, Wanted) {
    match read(reply) {
        Reading::Calls { thought, mut calls } if calls.len() == 1 => (thought, calls.remove(0)),
        other => panic!("not read: {reply}\n{other:?}"),
    }
}

/// Why a reply is refused that must be refused.
#[track_caller]
fn refusal(reply: &str) -> String {
    match read(reply) {
        Reading::Unreadable { why, .. } => why,
        other => panic!("read: {reply}\n{other:?}"),
    }
}
