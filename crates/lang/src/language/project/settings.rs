//! How a model is asked, beside what a loop says: what all requests to it have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Constrain, Model};

/// The most characters of an id in a message.
const MAX_SHOWN_CHARS: usize = 100;

/// How much a model reasons before it replies. Not every model takes every word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// Little.
    Low,
    /// Between the two.
    Medium,
    /// Much.
    High,
    /// Very much.
    Xhigh,
    /// As much as it can.
    Max,
}

/// Extended thinking of Anthropic's models, in Anthropic's own form. Gemini takes `budget_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    /// Whether the model thinks.
    #[serde(rename = "type")]
    pub kind: ThinkingKind,
    /// The most tokens that it thinks, for `enabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub budget_tokens: Option<u32>,
}

/// Whether a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingKind {
    /// As much as the model decides: newer models.
    Adaptive,
    /// Up to `budget_tokens`: older models.
    Enabled,
    /// Not at all.
    Disabled,
}

/// A setting of a model that can't be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFault {
    /// Its place in the model, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl SettingFault {
    /// That of an id that would lead the request to another address.
    pub fn of_id(id: &str) -> Self {
        let message = format!("no model has the id {:?}", id.chars().take(MAX_SHOWN_CHARS).collect::<String>());
        Self { pointer: "/model".to_owned(), message }
    }
}

impl Model {
    /// The settings that can't be sent: those that the provider does not have, and fields of `extra_body` that
    /// loopctl writes itself.
    pub fn setting_faults(&self) -> Vec<SettingFault> {
        let facts = self.provider.facts();
        let lacks = |name: &&str| !facts.settings.contains(name);
        let lacking = self.written_settings().into_iter().filter(lacks).map(|name| SettingFault {
            pointer: format!("/{name}"),
            message: format!("requests of the provider `{}` have no `{name}`", facts.name),
        });
        let owned = self.extra_body.keys().filter(|name| facts.own_fields.contains(&name.as_str()));
        let owned = owned.map(|name| SettingFault {
            pointer: format!("/extra_body/{name}"),
            message: format!("`extra_body` can't have the field `{name}`, which loopctl writes itself"),
        });
        let id = self.model.as_deref().filter(|id| facts.server.is_some() && self.provider.path_of(id).is_none());
        lacking
            .chain(owned)
            .chain(id.map(SettingFault::of_id))
            .chain(self.unthinkable())
            .chain(self.unbounded())
            .chain(self.blank_stops())
            .collect()
    }

    /// Thinking beside constrained replies, of a model that is made to call a tool for them: its server refuses both together.
    fn unthinkable(&self) -> Option<SettingFault> {
        let thinks = self.thinking.is_some_and(|thinking| thinking.kind != ThinkingKind::Disabled);
        let is_made_to_call =
            self.constrain == Constrain::On && self.model.as_deref().is_some_and(self.provider.facts().is_made_to_call);
        (thinks && is_made_to_call).then(|| SettingFault {
            pointer: "/thinking".to_owned(),
            message: "with `\"constrain\": \"on\"` this model must call a tool in each reply, and can't think"
                .to_owned(),
        })
    }

    /// Thinking of a fixed size without the size, which its server refuses.
    fn unbounded(&self) -> Option<SettingFault> {
        let is_unbounded = self
            .thinking
            .is_some_and(|thinking| thinking.kind == ThinkingKind::Enabled && thinking.budget_tokens.is_none());
        (is_unbounded && self.provider.facts().sends_thinking).then(|| SettingFault {
            pointer: "/thinking/type".to_owned(),
            message: "`thinking` of the type `enabled` needs `budget_tokens`".to_owned(),
        })
    }

    /// Texts to stop at that are blank, where the server refuses them.
    fn blank_stops(&self) -> impl Iterator<Item = SettingFault> {
        let facts = self.provider.facts();
        let blank = |(_, text): &(usize, &String)| !facts.takes_blank_stops && text.trim().is_empty();
        self.stop.iter().enumerate().filter(blank).map(|(at, _)| SettingFault {
            pointer: format!("/stop/{at}"),
            message: format!("the provider `{}` stops at no text of blanks and line breaks alone", facts.name),
        })
    }

    fn written_settings(&self) -> Vec<&'static str> {
        [
            ("reasoning_effort", self.reasoning_effort.is_some()),
            ("thinking", self.thinking.is_some()),
            ("seed", self.seed.is_some()),
            ("stop", !self.stop.is_empty()),
            ("top_p", self.top_p.is_some()),
            ("top_k", self.top_k.is_some()),
            ("min_p", self.min_p.is_some()),
            ("frequency_penalty", self.frequency_penalty.is_some()),
            ("presence_penalty", self.presence_penalty.is_some()),
            ("extra_body", !self.extra_body.is_empty()),
        ]
        .into_iter()
        .filter_map(|(name, is_written)| is_written.then_some(name))
        .collect()
    }
}
