//! The model that a loop uses, as far as documents say.

use super::{Cursor, Subject};
use crate::language::Action;
use crate::language::project::{Model, Provider, ThinkingKind};
use crate::policy::provider::{NeedsResponses, RequestLimits, refuses_no_effort};
use crate::policy::window;

/// A model by its name.
#[derive(Clone, Copy)]
pub struct NamedModel<'s> {
    /// The name that the loop, or the project, gives.
    pub name: &'s str,
    /// What the project says of it; nothing when it is a provider's own id.
    pub declared: Option<&'s Model>,
}

/// A provider, and the most of what a request to it can have.
#[derive(Debug, Clone, Copy)]
pub struct ProviderLimits {
    /// The name of the provider.
    pub provider: &'static str,
    /// The most of a request.
    pub limits: RequestLimits,
}

/// The model that `written` names, else the project's own; nothing when none is named, or the
/// project file has errors.
pub fn named<'s>(subject: &'s Subject<'_>, written: Option<&'s str>) -> Option<NamedModel<'s>> {
    let project = subject.project()?;
    let name = written.or(project.model.as_deref()).filter(|name| !name.is_empty())?;
    Some(NamedModel { name, declared: project.models.get(name) })
}

/// A model that the document asks, and the most that one reply of it may have.
pub struct LongestReply<'s, 'a> {
    pub model: NamedModel<'s>,
    /// In tokens.
    pub tokens: u32,
    /// Where the document says that.
    pub at: Option<Cursor<'a>>,
}

/// The models that the loop asks, and those of its `llm` actions.
pub fn longest_replies<'s, 'a>(subject: &'s Subject<'a>) -> Vec<LongestReply<'s, 'a>> {
    let mut replies = Vec::new();
    if let Some(react) = subject.react(&["max_tokens", "model", "fallback_models"]) {
        let own = named(subject, react.model.as_deref());
        let fallbacks = react.fallback_models.iter().filter_map(|model| named(subject, Some(model.name())));
        for model in own.into_iter().chain(fallbacks) {
            let window = model.declared.and_then(|model| model.context_tokens);
            let tokens = react.max_tokens.unwrap_or_else(|| window::max_tokens(window));
            replies.push(LongestReply { model, tokens, at: subject.property("max_tokens") });
        }
    }
    for used in subject.actions() {
        if let Action::Llm(llm) = &*used.action
            && let Some(model) = named(subject, llm.model.as_deref())
        {
            let at = Some(used.at("/max_tokens")).filter(Cursor::is_written);
            replies.push(LongestReply { model, tokens: llm.max_tokens, at });
        }
    }
    replies
}

impl<'s> NamedModel<'s> {
    /// The provider's own id.
    pub fn id(&self) -> &'s str {
        self.declared.and_then(|model| model.model.as_deref()).unwrap_or(self.name)
    }

    /// The provider that is asked.
    fn provider(&self) -> Provider {
        match self.declared {
            Some(model) => model.provider,
            None => Provider::of_model(self.name).unwrap_or(Provider::DEFAULT),
        }
    }

    /// What keeps it from the chat completions of OpenAI's own server.
    pub fn needs_responses(&self) -> Option<NeedsResponses> {
        (self.provider().facts().needs_responses)(self.id()).filter(|_| self.is_official())
    }

    /// Whether it is known to refuse the effort `none`.
    pub fn refuses_no_effort(&self) -> bool {
        refuses_no_effort(self.id())
    }

    /// The highest temperature that is sent; none when every one is, or no temperature at all.
    pub fn max_temperature(&self) -> Option<f64> {
        self.provider().facts().max_temperature.filter(|_| !self.takes_no_temperature())
    }

    /// Whether its provider refuses a temperature: then none is sent.
    pub fn takes_no_temperature(&self) -> bool {
        (self.provider().facts().refuses_temperature)(self.id(), self.is_official())
    }

    /// Whether it has a `top_p`, beside which its provider refuses a temperature.
    pub fn chooses_by_top_p(&self) -> bool {
        self.provider().facts().top_p_alone && self.declared.is_some_and(|model| model.top_p.is_some())
    }

    /// The provider that is asked, and the most of what a request to it can have.
    pub fn limits(&self) -> ProviderLimits {
        let facts = self.provider().facts();
        ProviderLimits { provider: facts.name, limits: facts.limits }
    }

    /// The tokens that it may think, where the server wants less of them than a reply may have.
    pub fn thinking_budget(&self) -> Option<u32> {
        let thinking = self.declared.filter(|model| model.provider.facts().sends_thinking)?.thinking?;
        thinking.budget_tokens.filter(|_| thinking.kind == ThinkingKind::Enabled)
    }

    /// Whether it is asked at the provider's own server.
    fn is_official(&self) -> bool {
        let facts = self.provider().facts();
        let base = self.declared.and_then(|model| model.base_url.as_deref());
        let is_own = |base: &str| facts.server.as_ref().is_some_and(|own| base.contains(&format!("://{}", own.host)));
        base.is_none_or(is_own)
    }
}
