//! The model that a loop asks, as far as documents tell.

use super::Subject;
use crate::language::project::{Model, Provider};

/// A model by its name.
#[derive(Clone, Copy)]
pub struct Named<'s> {
    /// The name that the loop, or the project, gives.
    pub name: &'s str,
    /// What the project says of it; nothing when it is a provider's own id.
    pub declared: Option<&'s Model>,
}

/// The model that `written` names, else the project's own; nothing when none is named, or the
/// project file has errors.
pub fn named<'s>(subject: &'s Subject<'_>, written: Option<&'s str>) -> Option<Named<'s>> {
    let project = subject.project()?;
    let name = written.or(project.model.as_deref()).filter(|name| !name.is_empty())?;
    Some(Named { name, declared: project.models.get(name) })
}

impl<'s> Named<'s> {
    /// The provider's own id.
    pub fn id(&self) -> &'s str {
        self.declared.and_then(|model| model.model.as_deref()).unwrap_or(self.name)
    }

    /// Whether it is one of Anthropic's.
    pub fn is_anthropic(&self) -> bool {
        match self.declared {
            Some(model) => model.provider == Provider::Anthropic,
            None => self.name.starts_with("claude"),
        }
    }

    /// Whether it is asked at OpenAI's own server.
    fn is_openai(&self) -> bool {
        match self.declared {
            Some(model) => {
                let official = |url: &str| url.contains("://api.openai.com");
                model.provider == Provider::Openai && model.base_url.as_deref().is_none_or(official)
            }
            None => !self.is_anthropic(),
        }
    }

    /// Whether its provider refuses a temperature: then none is sent.
    pub fn takes_no_temperature(&self) -> bool {
        let id = self.id();
        if self.is_anthropic() {
            return anthropic_version(id) >= (4, 7);
        }
        self.is_openai() && ["o1", "o3", "o4", "gpt-5"].iter().any(|family| id.starts_with(family))
    }
}

/// The version in an id like `claude-opus-4-1-20250805`; longer numbers are dates.
fn anthropic_version(id: &str) -> (u32, u32) {
    let Some(rest) = id.strip_prefix("claude-") else { return (0, 0) };
    let numbers = rest.split('-').skip_while(|word| word.parse::<u32>().is_err());
    let mut version = numbers.map_while(|word| word.parse::<u32>().ok().filter(|_| word.len() <= 2));
    (version.next().unwrap_or(0), version.next().unwrap_or(0))
}
