//! Access tokens for servers at an address, which a client of an authorization server asks for by its own credentials: there is no
//! browser, and no user. A token is kept in memory only, for all runs of the process.

mod authorization_server;
pub(super) mod challenge;
mod client_assertion;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Mutex as AsyncMutex;
use url::Url;

use self::authorization_server::GivenToken;
use self::challenge::BearerChallenge;
use crate::drive::clock;
use crate::drive::egress::Egress;
use crate::drive::http_client::Client;
use crate::drive::secret::Vault;
use crate::drive::tool::runner::RawFault;
use loopctl_lang::language::mcp::{McpServer, OauthClient};
use loopctl_lang::program::mcp::{oauth_texts, sent_texts};
use loopctl_lang::program::template::Template;

/// How long before its end a token is asked for anew, and the share of its time that this is at most.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);
const SHARE_BEFORE: u32 = 4;

/// The tokens of this process.
#[derive(Debug, Default)]
pub(super) struct AccessTokens(Mutex<HashMap<TokenUse, Arc<AsyncMutex<Option<HeldToken>>>>>);

/// What a token is for.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TokenUse {
    resource: Url,
    client: OauthClient,
}

/// A token that was given.
#[derive(Debug, Clone)]
struct HeldToken {
    text: SecretString,
    /// The scopes that it was asked for with.
    scopes: BTreeSet<String>,
    /// When it is asked for anew, and when it ends; none where that was not said.
    renewed_at: Option<Instant>,
    ends_at: Option<Instant>,
}

impl HeldToken {
    fn new(given: GivenToken, scopes: BTreeSet<String>) -> Self {
        let after = |lasts: Duration| clock::instant().checked_add(lasts);
        let before = |lasts: Duration| lasts.saturating_sub(RENEWED_BEFORE.min(lasts / SHARE_BEFORE));
        let ends_at = given.lasts.and_then(after);
        Self { text: given.text, scopes, renewed_at: given.lasts.map(before).and_then(after), ends_at }
    }

    fn is_before(at: Option<Instant>) -> bool {
        at.is_none_or(|at| clock::instant() < at)
    }
}

/// Where the tokens of a server come from.
pub(super) struct TokenSource {
    client: OauthClient,
    /// Who the client is.
    texts: Vec<(String, Template)>,
    keys: Vec<String>,
    /// The server that the tokens are for.
    resource: Url,
    held: Arc<AsyncMutex<Option<HeldToken>>>,
    http: Client,
    egress: Egress,
    vault: Arc<Vault>,
}

/// What requests go through.
pub(super) struct TokenReach<'r> {
    pub tokens: &'r AccessTokens,
    pub http: &'r Client,
    pub egress: &'r Egress,
    pub vault: &'r Arc<Vault>,
}

impl TokenSource {
    /// The source of the tokens of a server; none for one that is sent none.
    ///
    /// # Errors
    /// When a text can't be used.
    pub(super) fn of(server: &McpServer, url: &Url, reach: &TokenReach<'_>) -> Result<Option<Self>, String> {
        let Some(client) = &server.oauth else { return Ok(None) };
        let texts = sent_texts(&oauth_texts(client))?;
        let keys = texts.iter().flat_map(|(_, text)| text.secrets().to_vec()).collect();
        let usage = TokenUse { resource: url.clone(), client: client.clone() };
        let mut all = reach.tokens.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(Self {
            client: client.clone(),
            texts,
            keys,
            resource: url.clone(),
            held: Arc::clone(all.entry(usage).or_default()),
            http: reach.http.clone(),
            egress: reach.egress.clone(),
            vault: Arc::clone(reach.vault),
        }))
    }

    /// The token that a request is sent with. Requests that need one at the same time wait for the same.
    ///
    /// # Errors
    /// When there is none, and why.
    pub(super) async fn token(&self) -> Result<SecretString, RawFault> {
        let mut held = self.held.lock().await;
        if let Some(token) = held.as_ref().filter(|token| HeldToken::is_before(token.renewed_at)) {
            return Ok(token.text.clone());
        }
        let scopes = held.as_ref().map(|token| token.scopes.clone()).unwrap_or_default();
        match self.given(&BearerChallenge::default(), scopes).await {
            Ok(token) => Ok(held.insert(token).text.clone()),
            // The authorization server is away for a moment, and the token is good still.
            Err(raw) if raw.transient.is_some() => match held.as_ref() {
                Some(token) if HeldToken::is_before(token.ends_at) => Ok(token.text.clone()),
                _ => Err(raw),
            },
            Err(raw) => Err(raw),
        }
    }

    /// A request with a token was refused. Returns whether there is another token now, by which it may be sent again.
    ///
    /// # Errors
    /// When there is none, and why.
    pub(super) async fn renew(
        &self,
        refused: &SecretString,
        status: u16,
        challenge: &BearerChallenge,
    ) -> Result<bool, RawFault> {
        let mut held = self.held.lock().await;
        let Some(token) = held.as_ref() else { return Ok(false) };
        if token.text.expose_secret() != refused.expose_secret() {
            return Ok(true);
        }
        let mut scopes = token.scopes.clone();
        if self.client.scopes.is_empty() {
            scopes.extend(challenge.scopes());
        }
        // Who may not do it as they are may not do it with another token of the same scopes.
        if status != 401 && scopes == token.scopes {
            return Ok(false);
        }
        *held = None;
        *held = Some(self.given(challenge, scopes).await?);
        Ok(true)
    }

    /// Asks for a token. `scopes`: those that it is known to need.
    async fn given(&self, challenge: &BearerChallenge, scopes: BTreeSet<String>) -> Result<HeldToken, RawFault> {
        let resource = self.resource_metadata(challenge).await?;
        let mut scopes = match self.client.scopes.as_slice() {
            [] => scopes,
            written => written.iter().cloned().collect(),
        };
        if scopes.is_empty() {
            scopes = resource.scopes.iter().cloned().collect();
        }
        let given = self.requested(&resource.name, &scopes).await?;
        // It is hidden from now on, as what it replaces is.
        let source = format!("access token of {}", self.resource.host_str().unwrap_or("an MCP server"));
        self.vault.take(&source, given.text.expose_secret()).map_err(no_token)?;
        Ok(HeldToken::new(given, scopes))
    }
}

/// That there is no token: what the operator reads.
fn no_token(why: impl Into<String>) -> RawFault {
    crate::drive::tool::output::fault("no access token", why.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_anew_before_it_ends() {
        let held = |lasts: Option<u64>| {
            let given = GivenToken { text: SecretString::from("t"), lasts: lasts.map(Duration::from_secs) };
            HeldToken::new(given, BTreeSet::new())
        };
        let left = |token: &HeldToken| token.ends_at.unwrap() - token.renewed_at.unwrap();
        assert!(left(&held(Some(3600))).abs_diff(Duration::from_secs(60)) < Duration::from_secs(1));
        assert!(left(&held(Some(20))).abs_diff(Duration::from_secs(5)) < Duration::from_secs(1));
        assert!(HeldToken::is_before(held(None).renewed_at) && !HeldToken::is_before(held(Some(0)).renewed_at));
    }
}
