//! What of a reply is notes.

use super::notes::{MAX_NOTES, NotesFault};
use crate::dialect::{self, WrittenWords};
use crate::event::{Finish, Reply};
use loopctl_lang::program::LoopProgram;

/// The notes of a reply, and what is wrong with them: thoughts and calls are none.
pub(super) fn of_reply<'r>(program: &LoopProgram, reply: &'r Reply) -> (Option<&'r str>, Option<NotesFault>) {
    let WrittenWords { text, is_open, has_call } = dialect::written_words(program, reply);
    let is_cut = reply.finish == Finish::Length;
    if reply.finish == Finish::Filtered || reply.refusal.is_some() {
        return (None, Some(NotesFault::Refused));
    }
    if has_call {
        return (None, Some(NotesFault::Called));
    }
    if text.is_empty() {
        return (None, Some(if is_cut || is_open { NotesFault::CutOff } else { NotesFault::Empty }));
    }
    (Some(text), (is_cut || text.chars().nth(MAX_NOTES).is_some()).then_some(NotesFault::CutOff))
}

/// The same in a run of an older edition, which takes the whole text of a reply.
pub(super) fn of_older_reply(reply: &Reply) -> (Option<&str>, Option<NotesFault>) {
    let text = Some(reply.text.as_str()).filter(|text| !text.trim().is_empty() && reply.finish != Finish::Filtered);
    let is_cut = reply.finish == Finish::Length;
    let fault = match text {
        Some(text) => (is_cut || text.trim().chars().nth(MAX_NOTES).is_some()).then_some(NotesFault::CutOff),
        None if reply.finish == Finish::Filtered || reply.refusal.is_some() => Some(NotesFault::Refused),
        None if is_cut => Some(NotesFault::CutOff),
        None if !reply.calls.is_empty() => Some(NotesFault::Called),
        None => Some(NotesFault::Empty),
    };
    (text, fault)
}
