//! What a provider's file says: how its server is asked, and how it answers. To add a provider: its name and its
//! facts in `policy::provider`, its file beside this one, its line in [`super::protocol_of`].

use bytes::BytesMut;
use serde_json::{Map, Value};
use url::Url;

use super::Ask;
use super::constraint::TurnMeans;
use super::failure::Peer;
use super::refused_fields::RequestField;
use super::reply::{AttemptReply, StreamedReply, UnreadableReply};
use super::wire::RequestForm;
use loopctl_engine::conversation::{Message, Role};
use loopctl_lang::language::project::Model;

/// The protocol of a provider's server. A conversation is written so that it only grows at its end.
pub(super) trait Protocol: Send + Sync {
    /// Writes a request up to its messages. Returns how many messages it took.
    fn head(&self, buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>) -> usize;

    /// Writes messages behind the one that `last` said. Returns who said the last one now.
    fn messages(
        &self,
        buffer: &mut BytesMut,
        form: &RequestForm,
        last: Option<Role>,
        messages: NewMessages<'_>,
    ) -> Option<Role>;

    /// Writes what closes a request, behind its messages.
    fn tail(&self, buffer: &mut BytesMut, form: &RequestForm, last: Option<Role>, ask: &Ask<'_>);

    /// The settings of a model, as fields of a request.
    fn settings(&self, model: &Model) -> Map<String, Value>;

    /// The form in which the model of this id, at this address, is sent the schema of a turn.
    fn turn_means(&self, id: &str, url: &Url) -> TurnMeans;

    /// Reads a whole answer.
    ///
    /// # Errors
    /// When it is no reply of a model.
    fn read(&self, peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply>;

    /// Takes one event of a stream. `true`: it was the last one.
    ///
    /// # Errors
    /// When it is no piece of a reply.
    fn piece(&self, peer: &Peer, reply: &mut StreamedReply, data: &[u8]) -> Result<bool, UnreadableReply>;

    /// Where a streamed reply is asked for, when that is not the same address.
    fn stream_url(&self, _url: &Url) -> Option<Url> {
        None
    }

    /// Whether it has a form for a PDF document that the provider is to read from an address.
    fn takes_pdf_by_address(&self) -> bool {
        true
    }

    /// Whether a request has a place for words that stand where a turn of the model lacks this of its reasoning.
    fn has_words_for(&self, _missing: RequestField) -> bool {
        false
    }

    /// The headers that every request has, beside those of all providers.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// The form of OpenAI's protocols: a server on plain `http` is one of this machine or network, which takes branches.
pub(super) fn openai_turn_means(url: &Url) -> TurnMeans {
    if url.scheme() == "http" { TurnMeans::Branches } else { TurnMeans::Strict }
}

/// The messages of a conversation that are to be written.
#[derive(Clone, Copy)]
pub(super) struct NewMessages<'a> {
    /// All messages.
    pub(super) all: &'a [Message],
    /// How many of them are written already.
    pub(super) taken: usize,
}

impl<'a> NewMessages<'a> {
    /// Those that are to be written.
    pub(super) fn iter(self) -> impl Iterator<Item = &'a Message> {
        self.all.iter().skip(self.taken)
    }

    /// The same, each with its place in the conversation.
    pub(super) fn numbered(self) -> impl Iterator<Item = (usize, &'a Message)> {
        self.all.iter().enumerate().skip(self.taken)
    }

    /// The name of the call that the message at this place answers.
    pub(super) fn called(self, at: usize, id: &str) -> &'a str {
        let mut before = self.all.iter().take(at).rev();
        let name = before.find_map(|message| message.calls().iter().find(|call| call.id == id));
        name.map_or("", |call| &call.name)
    }
}
