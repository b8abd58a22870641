//! The secrets by which deliveries of other services are verified.

use secrecy::SecretString;

use super::missing_requirement::{Missing, MissingRequirement};
use super::world::Engine;

impl Engine {
    /// The secrets of these keys of `orgconfig` as they are now. The log says why one can't be read.
    pub async fn secrets_of(&self, keys: &[String]) -> Vec<SecretString> {
        let mut secrets = Vec::with_capacity(keys.len());
        for key in keys {
            let read = match self.world.vault.source(key) {
                Ok(source) => self.world.vault.fresh(&source).await,
                Err(why) => Err(why),
            };
            match read {
                Ok(secret) => secrets.push(secret),
                Err(why) => tracing::error!(key, "the secret of a webhook can't be read: {why}"),
            }
        }
        secrets
    }

    /// Those of these keys that can't be read; `of` is what needs them, in a sentence.
    pub fn missing_secrets(&self, keys: &[String], of: &str) -> Vec<MissingRequirement> {
        let missing = |key: &String| {
            let why = self.world.vault.readable(key).err()?;
            Some(MissingRequirement::new(Missing::Secret { name: key.clone() }, format!("{why}; {of} needs it")))
        };
        keys.iter().filter_map(missing).collect()
    }
}
