//! A model's window, as its server shows it: by the words with which it refuses a request that is too long, or by a reply
//! that ends where the window does. Learned once for each model of a server in a process.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use loopctl_engine::event::{Finish, Tokens};
use loopctl_lang::policy::window::{BELIEVED, RefusedLength};

/// Reads the fields of an error (llama.cpp has `n_ctx` and `n_prompt_tokens`), or else its words.
pub(super) fn refused_length(error: &Value, message: &str) -> RefusedLength {
    let field = |name: &str| error.get(name).and_then(Value::as_u64);
    let said = RefusedLength::read(message);
    let window = field("n_ctx").or(said.window);
    RefusedLength { window, prompt: field("n_prompt_tokens").or(said.prompt) }.believed()
}

/// What was learned of the window of a model of a server.
#[derive(Debug, Default)]
pub(super) struct LearnedWindow {
    /// Its tokens; 0 when nothing is known.
    tokens: AtomicU64,
    /// The tokens of request and reply where a reply was last cut off before its own limit.
    cut_off_at: AtomicU64,
    /// The most tokens of a request and its reply.
    most: AtomicU64,
}

impl LearnedWindow {
    /// The window in tokens, when it is known.
    pub(super) fn known(&self) -> Option<u64> {
        Some(self.tokens.load(Ordering::Relaxed)).filter(|tokens| *tokens > 0)
    }

    /// The server said it in a refusal. One that is smaller than what it has answered is a matter of the run that was refused:
    /// other runs of the process are not bound by it, whatever made the server say it.
    pub(super) fn refused(&self, tokens: Option<u64>) {
        let most = self.most.load(Ordering::Relaxed);
        tokens.filter(|tokens| *tokens >= most).into_iter().for_each(|tokens| self.learn(tokens));
    }

    fn learn(&self, tokens: u64) {
        self.tokens.store(tokens, Ordering::Relaxed);
    }

    /// The window that a reply shows which may have had `asked` tokens: it was cut off well before them. A provider may
    /// have a limit of its own for replies, so the tokens must make a round number, as windows are, or be the same a
    /// second time.
    pub(super) fn of_reply(&self, finish: Finish, usage: Option<Tokens>, asked: u32) -> Option<NonZeroU32> {
        let Tokens { input, output, .. } = usage.filter(|counted| counted.input > 0 && counted.output > 0)?;
        let all = input.saturating_add(output);
        self.most.fetch_max(all, Ordering::Relaxed);
        if self.known().is_some_and(|known| all > known.saturating_add(1)) {
            // The server has a larger one by now.
            self.learn(0);
        }
        let asked = u64::from(asked);
        if finish != Finish::Length || output >= asked - asked / 16 || !BELIEVED.contains(&all) {
            return None;
        }
        let before = self.cut_off_at.swap(all, Ordering::Relaxed);
        let round = [all, all + 1, all - 1].into_iter().find(|tokens| tokens % 256 == 0 || tokens % 100 == 0);
        let window = round.or_else(|| (before.abs_diff(all) <= 1).then_some(all))?;
        self.learn(window);
        NonZeroU32::new(u32::try_from(window).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_fields_of_an_error_count_before_its_words() {
        let read = |error: &Value| {
            let length = refused_length(error, error["message"].as_str().unwrap());
            (length.window, length.prompt)
        };
        let message = "the request exceeds the available context size, try increasing it";
        let llama = json!({ "message": message, "n_prompt_tokens": 1407, "n_ctx": 256 });
        assert_eq!(read(&llama), (Some(256), Some(1407)));
        assert_eq!(read(&json!({ "message": message, "n_ctx": 1 })), (None, None));
        let words = json!({ "message": "Your request exceeded model token limit: 131072 (requested: 150000)" });
        assert_eq!(read(&words), (Some(131_072), Some(150_000)));
    }

    #[test]
    fn a_reply_that_is_cut_off_at_a_round_number_or_twice_at_the_same_shows_the_window() {
        let usage = |input, output| Some(Tokens { input, output, ..Tokens::default() });
        let of = |window: &LearnedWindow, input, output| {
            window.of_reply(Finish::Length, usage(input, output), 1_000).map(|window| u64::from(window.get()))
        };
        for (input, output, shown) in [
            (1_800, 248, Some(2_048)),
            (1_800, 249, Some(2_048)),
            (900, 100, Some(1_000)),
            // As many as it was asked for, or nearly.
            (1_048, 1_000, None),
            (1_098, 950, None),
            // A limit of the provider for replies.
            (1_111, 512, None),
        ] {
            assert_eq!(of(&LearnedWindow::default(), input, output), shown, "{input} {output}");
        }
        let window = LearnedWindow::default();
        assert_eq!(window.of_reply(Finish::Stop, usage(1_800, 248), 1_000), None);
        assert_eq!((of(&window, 1_111, 512), of(&window, 1_333, 290)), (None, Some(1_623)));
        assert_eq!(window.known(), Some(1_623));
        assert_eq!(window.of_reply(Finish::Stop, usage(1_700, 20), 1_000), None);
        assert_eq!(window.known(), None, "a larger request was answered");
        window.refused(Some(64));
        assert_eq!(window.known(), None, "a refusal names less than what was answered");
        window.refused(Some(2_048));
        assert_eq!(window.known(), Some(2_048));
    }
}
