//! How long a request to a model is: its bytes, and the tokens that these may make. The reservation in a spending limit, the most that a
//! lost request counts, the wall of a declared window and `estimate` all go by it.

use super::conversation::Conversation;
use super::dialect;
use super::state::LoopState;
use super::token_estimator::MIN_TOKENS_PER_1000_BYTES;
use loopctl_lang::program::selected_tools::SelectedTools;
use loopctl_lang::program::{LoopProgram, Tool};

/// What a provider adds to a request, and to each message: roles, marks.
const REQUEST_FRAME: u64 = 100;
const MESSAGE_FRAME: u64 = 8;

/// The bytes with which a tool is declared.
fn tool_bytes(tool: &Tool) -> usize {
    let texts = [tool.name.as_str(), tool.description.as_str(), tool.parameters.text()];
    texts.iter().map(|text| text.len()).sum()
}

/// The bytes with which the tools of a loop are declared that its model is offered now, and the schema of its answer.
fn declared_bytes(program: &LoopProgram, selected: Option<&SelectedTools>) -> usize {
    let answer = program.answer.as_ref().map_or(0, |schema| schema.text().len());
    program.offered_of(selected).map(tool_bytes).fold(answer, usize::saturating_add)
}

/// The most of them: which tools a loop that searches them offers is not known before, so they are the longest.
pub fn most_declared_bytes(program: &LoopProgram) -> usize {
    let mut sizes: Vec<usize> = program.offered().map(tool_bytes).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let answer = program.answer.as_ref().map_or(0, |schema| schema.text().len());
    sizes.into_iter().take(program.most_offered()).fold(answer, usize::saturating_add)
}

/// The bytes of a request with this conversation. `program`: the loop whose tools are declared to the provider, if they are: those of
/// other dialects are in the conversation. `selected`: of these tools, those that are offered.
pub fn bytes(conversation: &Conversation, program: Option<&LoopProgram>, selected: Option<&SelectedTools>) -> usize {
    let declared = program.filter(|program| dialect::is_native(program.properties.dialect));
    conversation.bytes.saturating_add(declared.map_or(0, |program| declared_bytes(program, selected)))
}

/// The most tokens of a request with this number of bytes and messages: a tokenizer that reads bytes never makes more tokens of a
/// text than it has bytes.
pub fn most_tokens(bytes: usize, messages: usize) -> u64 {
    number(bytes).saturating_add(REQUEST_FRAME).saturating_add(number(messages).saturating_mul(MESSAGE_FRAME))
}

/// The most tokens of a run's next request to its own model: those that the provider counted in the last one and its reply, and the
/// bytes of what was added since.
pub fn most_tokens_of(program: &LoopProgram, state: &LoopState) -> u64 {
    let (messages, (counted, known)) = (state.conversation.messages.len(), state.counters.window);
    let (conversation, selected) = (&state.conversation, state.selected.as_deref());
    if !state.counters.is_window_counted {
        return most_tokens(bytes(conversation, Some(program), selected), messages);
    }
    // A tool that was found since is declared in the next request: which ones were in the last one is not kept.
    let declared =
        selected.map_or(0, |_| bytes(conversation, Some(program), selected).saturating_sub(conversation.bytes));
    let added = conversation.bytes.saturating_sub(known).saturating_add(declared);
    counted.saturating_add(most_tokens(added, messages))
}

/// The fewest tokens of a text with this number of bytes: no text that is sent has fewer.
pub fn fewest_tokens(bytes: usize) -> u64 {
    number(bytes).saturating_mul(MIN_TOKENS_PER_1000_BYTES) / 1_000
}

/// The most bytes of a text that may have this number of tokens.
pub fn most_bytes(tokens: u64) -> u64 {
    tokens.saturating_add(1).saturating_mul(1_000) / MIN_TOKENS_PER_1000_BYTES
}

fn number(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_passes_the_wall_of_a_window_is_no_longer_than_what_is_said_of_it() {
        for window in [0, 1, 7, 4_096, 128_000] {
            let longest = usize::try_from(most_bytes(window)).unwrap();
            assert!(fewest_tokens(longest + 17) > window, "{window}: {longest}");
        }
    }
}
