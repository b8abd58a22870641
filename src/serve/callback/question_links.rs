//! Links for the questions that runs post to targets of `ask`: the same tokens and pages as those of callbacks.

use std::sync::{Arc, OnceLock, Weak};

use super::Callbacks;
use super::pause::Issue;
use crate::drive::answer_hint::{AnswerHint, AnswerHints, HintRequest};
use crate::drive::fault::Fault;
use crate::drive::future::BoxFuture;
use crate::journal::answer_token::NO_PAUSE;

/// Why a question is posted without a link.
const NO_KEY: &str = "the server has no `serve.callback_secret`";
const NO_URL: &str = "the server has no `serve.public_url`";
const MAY_NOT: &str = "the token that started the run may not decide about this";

/// Lets the engines of the server reach the callbacks, which are made after them.
#[derive(Default)]
pub struct CallbacksLink(OnceLock<Weak<Callbacks>>);

impl CallbacksLink {
    /// The callbacks, once they are there.
    pub fn connect(&self, callbacks: &Arc<Callbacks>) {
        // They are there for the whole life of the server.
        drop(self.0.set(Arc::downgrade(callbacks)));
    }
}

impl AnswerHints for CallbacksLink {
    fn hint(&self, asked: HintRequest) -> BoxFuture<'_, Result<AnswerHint, String>> {
        Box::pin(async move {
            match self.0.get().and_then(Weak::upgrade) {
                Some(callbacks) => callbacks.hint(asked).await.map_err(|fault| fault.to_string()),
                None => Err("the server is about to stop".to_owned()),
            }
        })
    }
}

impl Callbacks {
    /// A link to the page where a question is answered, with a new token; or why there is none.
    async fn hint(&self, request: HintRequest) -> Result<AnswerHint, Fault> {
        let HintRequest { run_id, rights, asked } = request;
        let without = |why| AnswerHint { without_link: Some(why), ..AnswerHint::default() };
        if self.key.is_none() {
            return Ok(without(NO_KEY));
        }
        let Some(public_url) = self.public_url.as_deref() else { return Ok(without(NO_URL)) };
        let Some(run) = self.runs.journal.find(&run_id).await.map_err(Fault::Store)? else {
            return Ok(AnswerHint::default());
        };
        let held = match self.answer_rights(&run, rights) {
            Ok(held) => held,
            Err(why) => return Ok(without(why)),
        };
        // Of no pause: the tokens of a posted pause, which are counted, stay good.
        let mut issue = Issue::new(Some(public_url), &run_id, NO_PAUSE, held.until_ms);
        let Some(link) = issue.link_asked(&asked, held.rights)?.and_then(|answer| answer.link) else {
            return Ok(without(MAY_NOT));
        };
        // Before the post: whoever has the link can use it.
        self.runs.journal.put_answer_tokens(&run_id, issue.tokens).await.map_err(Fault::Store)?;
        Ok(AnswerHint { link: Some(link), ..AnswerHint::default() })
    }
}
