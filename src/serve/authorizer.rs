//! Authorizes requests: bearer tokens by their hashes, scopes, and the organisation that a caller acts for.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use ring::{digest, rand};
use subtle::ConstantTimeEq as _;

use super::problem::ProblemDetails;
use super::quotas::Owner;
use crate::engine::event::DecisionRights;
use crate::language::serving::{ALL_ORGS, Serving, TokenScope};
use crate::trace::units::rfc3339;

/// The longest token that is checked, in bytes.
const MAX_TOKEN_BYTES: usize = 512;
/// The prefix of every token, so that a leaked one is recognised.
const TOKEN_PREFIX: &str = "loopctl-";
/// The prefix of every token that answers a pause.
const ANSWER_PREFIX: &str = "loopctl-answer-";
/// How long before its end a token is said to expire, in milliseconds: 14 days.
pub const EXPIRY_NOTICE_MS: i64 = 14 * 24 * 60 * 60 * 1_000;

/// Says who sends a request: the program around the server knows.
pub type HostIdentity = Arc<dyn Fn(&Parts) -> Option<Caller> + Send + Sync>;

/// Knows the tokens and what they may do.
pub struct Authorizer {
    holders: Vec<Holder>,
    /// Who says instead who calls, whatever the tokens are.
    host: Option<HostIdentity>,
}

#[derive(Debug)]
struct Holder {
    name: String,
    hash: [u8; 32],
    scopes: Vec<TokenScope>,
    org: Option<String>,
    /// Whether it acts for all organisations.
    of_all_orgs: bool,
    expires_at_ms: Option<i64>,
}

/// A token that has expired, or does soon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiringToken {
    /// Its name.
    pub name: String,
    /// From when on it is refused, in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// Whether it is refused already.
    pub is_over: bool,
}

/// The caller of a request. [`ServiceBuilder::identify`](super::ServiceBuilder::identify) gives one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller {
    /// The name of the token; none without tokens.
    pub name: Option<String>,
    /// The organisation that it acts for.
    pub org: Option<String>,
    /// Whether that is its own one.
    pub reach: OrgReach,
    /// What it may do.
    pub scopes: Vec<TokenScope>,
    /// The hash of the token that it showed; none without tokens.
    pub hash: Option<[u8; 32]>,
}

/// A request whose caller is not taken.
#[derive(Debug)]
pub struct NotIdentified {
    /// Why.
    pub problem: Box<ProblemDetails>,
    /// Whose token came with it, where that is known: for the log.
    pub holder: Option<Box<Caller>>,
}

impl From<ProblemDetails> for NotIdentified {
    fn from(problem: ProblemDetails) -> Self {
        Self { problem: Box::new(problem), holder: None }
    }
}

impl From<NotIdentified> for ProblemDetails {
    fn from(refused: NotIdentified) -> Self {
        *refused.problem
    }
}

/// What the tokens of a name may decide about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldRights {
    /// The rights.
    pub rights: DecisionRights,
    /// When the last of these tokens expires, in milliseconds since 1970; none if one does not.
    pub until_ms: Option<i64>,
}

/// For which organisations a caller acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrgReach {
    /// Its own one, or none.
    Own,
    /// One that the request names, of a token for all.
    Chosen,
    /// All: what it starts is of none.
    All,
}

impl Caller {
    /// Somebody of this name, who may do nothing yet, and acts for no organisation.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), org: None, reach: OrgReach::Own, scopes: Vec::new(), hash: None }
    }

    /// The same for an organisation: it starts its runs, and sees these alone.
    #[must_use]
    pub fn org(self, org: impl Into<String>) -> Self {
        Self { org: Some(org.into()), reach: OrgReach::Own, ..self }
    }

    /// The same for all organisations: what it starts is of none.
    #[must_use]
    pub fn all_orgs(self) -> Self {
        Self { org: None, reach: OrgReach::All, ..self }
    }

    /// The same with these scopes.
    #[must_use]
    pub fn scopes(self, scopes: impl IntoIterator<Item = TokenScope>) -> Self {
        Self { scopes: scopes.into_iter().collect(), ..self }
    }

    /// Checks that the caller has this scope.
    ///
    /// # Errors
    /// 403 without it.
    pub fn require(&self, scope: TokenScope) -> Result<(), ProblemDetails> {
        if self.scopes.contains(&scope) { Ok(()) } else { Err(lacks(&[scope])) }
    }

    /// Checks that the caller may start a loop of the folder.
    ///
    /// # Errors
    /// 403 when it may start none, or others only.
    pub fn may_run(&self, loop_name: &str) -> Result<(), ProblemDetails> {
        let of_loop = TokenScope::RunLoop(loop_name.to_owned());
        let may = self.scopes.contains(&TokenScope::Run) || self.scopes.contains(&of_loop);
        if may { Ok(()) } else { Err(lacks(&[TokenScope::Run, of_loop])) }
    }

    /// Checks that the caller may cancel the runs of a loop.
    ///
    /// # Errors
    /// 403 when it may not.
    pub fn may_cancel(&self, loop_name: &str) -> Result<(), ProblemDetails> {
        let any = [TokenScope::Cancel, TokenScope::Compose, TokenScope::Admin];
        if self.scopes.iter().any(|scope| any.contains(scope)) || self.may_run(loop_name).is_ok() {
            return Ok(());
        }
        Err(lacks(&[TokenScope::Cancel, TokenScope::Run, TokenScope::RunLoop(loop_name.to_owned())]))
    }

    /// Checks that the caller has one of these scopes.
    ///
    /// # Errors
    /// 403 without any.
    pub fn needs_one(&self, any: &[TokenScope]) -> Result<(), ProblemDetails> {
        // The route finds out for which runs a holder of `decide:LOOP` may decide.
        let decides = |scope: &TokenScope| scope.decides() && any.contains(&TokenScope::Decide);
        let runs = |scope: &TokenScope| matches!(scope, TokenScope::RunLoop(_)) && any.contains(&TokenScope::Run);
        let sees = |scope: &TokenScope| *scope == TokenScope::Admin && any.contains(&TokenScope::Read);
        let is_enough = |scope: &TokenScope| any.contains(scope) || decides(scope) || runs(scope) || sees(scope);
        if self.scopes.iter().any(is_enough) { Ok(()) } else { Err(lacks(any)) }
    }

    /// What the caller may decide about in the runs of a loop.
    ///
    /// # Errors
    /// 403 when that is nothing.
    pub fn rights(&self, loop_name: &str) -> Result<DecisionRights, ProblemDetails> {
        let of_loop = |scope: &TokenScope| matches!(scope, TokenScope::DecideLoop(name) if name == loop_name);
        let ordinary = self.scopes.iter().any(|scope| *scope == TokenScope::Decide || of_loop(scope));
        match (ordinary, self.scopes.contains(&TokenScope::DecideEscalated)) {
            (true, true) => Ok(DecisionRights::All),
            (true, false) => Ok(DecisionRights::Ordinary),
            (false, true) => Ok(DecisionRights::Escalated),
            (false, false) => Err(lacks(&[TokenScope::Decide, TokenScope::DecideLoop(loop_name.to_owned())])),
        }
    }

    /// Checks that the caller may make the runs of a loop continue.
    ///
    /// # Errors
    /// 403 when it may decide about escalated approvals only, or about nothing.
    pub fn may_resume(&self, loop_name: &str) -> Result<(), ProblemDetails> {
        match self.rights(loop_name)? {
            DecisionRights::Escalated => Err(lacks(&[TokenScope::Decide])),
            DecisionRights::All | DecisionRights::Ordinary => Ok(()),
        }
    }

    /// The organisation; the empty text means none.
    pub fn owner(&self) -> String {
        self.org.clone().unwrap_or_default()
    }

    /// The organisation as filters of runs name it: the empty text means the runs of none, and nothing those of all.
    pub fn seen_org(&self) -> Option<String> {
        (self.reach != OrgReach::All).then(|| self.owner())
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("holders", &self.holders).finish_non_exhaustive()
    }
}

impl Holder {
    /// The caller that shows its token and names no organisation.
    fn own(&self) -> Caller {
        let reach = if self.of_all_orgs { OrgReach::All } else { OrgReach::Own };
        let (name, hash) = (Some(self.name.clone()), Some(self.hash));
        Caller { name, org: self.org.clone(), reach, scopes: self.scopes.clone(), hash }
    }

    fn is_over(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|at| at <= now_ms)
    }

    /// The caller of a request that names this organisation.
    fn caller(&self, named: Option<&str>, now_ms: i64) -> Result<Caller, ProblemDetails> {
        if let Some(expires_at_ms) = self.expires_at_ms.filter(|_| self.is_over(now_ms)) {
            return Err(expired(&self.name, expires_at_ms));
        }
        match named {
            // It may act for one organisation as that one's own tokens do.
            Some(org) if self.of_all_orgs => {
                Ok(Caller { org: Some(org.to_owned()), reach: OrgReach::Chosen, ..self.own() })
            }
            Some(_) if named != self.org.as_deref() => {
                let detail = "`X-Org-Id` is not the token's organisation";
                Err(ProblemDetails::new(StatusCode::FORBIDDEN, "forbidden", detail))
            }
            _ => Ok(self.own()),
        }
    }
}

impl Authorizer {
    /// The authorizer for a project's tokens.
    ///
    /// # Errors
    /// A sentence that names the token that can't be used.
    pub fn new(serving: &Serving) -> Result<Self, String> {
        let mut holders: Vec<Holder> = Vec::new();
        for token in &serving.tokens {
            let refuse = |why: &str| Err(format!("the token `{}` of `serve.tokens` {why}", token.name));
            let Some(hash) = token.hash.strip_prefix("sha256:").and_then(hash_of) else {
                return refuse(
                    "needs a `hash` of the form sha256: and 64 hexadecimal digits; `loopctl token` makes one",
                );
            };
            if holders.iter().any(|known| known.hash == hash) {
                return refuse("has the hash of another one");
            }
            let is_admin = token.scopes.contains(&TokenScope::Admin);
            let of_all_orgs = is_admin || token.org.as_deref() == Some(ALL_ORGS);
            let org = token.org.clone().filter(|org| org != ALL_ORGS);
            if org.as_deref().is_some_and(|org| !is_org(org)) {
                return refuse("has an `org` with other signs than letters, digits, `_`, `-` and `.`, or more than 64");
            }
            if let Some(scope) = token.scopes.iter().find(|scope| scope.is_for_all_orgs()).filter(|_| org.is_some()) {
                return refuse(&format!(
                    "has the scope {}, which is for all organisations, and an `org`: leave one of them out",
                    scope.name()
                ));
            }
            if token.scopes.is_empty() {
                return refuse(
                    "has no scopes: write one or more of run, compose, read, metrics, cancel, decide and admin",
                );
            }
            if token.scopes.iter().any(|scope| matches!(scope, TokenScope::Unknown(_))) {
                let known = TokenScope::LIST.replace('`', "");
                return refuse(&format!("has a scope that is none of {known}"));
            }
            let Ok(expires_at_ms) = token.expires_at_ms() else {
                return refuse("needs an `expires_at` like 2027-01-31T12:00:00Z, or none");
            };
            let (name, scopes) = (token.name.clone(), token.scopes.clone());
            holders.push(Holder { name, hash, scopes, org, of_all_orgs, expires_at_ms });
        }
        Ok(Self { holders, host: None })
    }

    /// The same, where the program around the server says who calls.
    #[must_use]
    pub fn with_host(self, host: Option<HostIdentity>) -> Self {
        Self { host, ..self }
    }

    /// Who says who calls, where that is the program around the server.
    pub fn host(&self) -> Option<&HostIdentity> {
        self.host.as_ref()
    }

    /// Whether there are no tokens, so that everybody on this machine is admitted.
    pub fn is_open(&self) -> bool {
        self.holders.is_empty() && self.host.is_none()
    }

    /// The owners that may start runs, each once: their organisations, and the names of their tokens.
    pub fn starters(&self) -> Vec<Owner> {
        let may = |holder: &&Holder| holder.scopes.iter().any(TokenScope::starts);
        let starts = self.holders.iter().filter(may);
        let mut known = BTreeSet::new();
        let owners = starts.map(|holder| Owner { org: holder.org.clone(), token: Some(holder.name.clone()) });
        owners.filter(|owner| known.insert(owner.clone())).collect()
    }

    /// The tokens that have expired, or do within [`EXPIRY_NOTICE_MS`].
    pub fn expiring(&self, now_ms: i64) -> Vec<ExpiringToken> {
        let soon_ms = now_ms.saturating_add(EXPIRY_NOTICE_MS);
        let expiring = self.holders.iter().filter_map(|holder| {
            let expires_at_ms = holder.expires_at_ms.filter(|at| *at <= soon_ms)?;
            Some(ExpiringToken { name: holder.name.clone(), expires_at_ms, is_over: expires_at_ms <= now_ms })
        });
        expiring.collect()
    }

    /// The loops that the scopes of tokens name and that are none of these, each with the name of the token.
    pub fn scopes_of_other_loops(&self, is_known: impl Fn(&str) -> bool) -> Vec<(&str, String)> {
        let scopes = self.holders.iter().flat_map(|holder| holder.scopes.iter().map(|scope| (&*holder.name, scope)));
        let unknown = scopes.filter(|(_, scope)| scope.loop_name().is_some_and(|name| !is_known(name)));
        unknown.map(|(token, scope)| (token, scope.name())).collect()
    }

    /// The names of the tokens of no organisation that read, but not `/metrics` and `/workers`, because other tokens are of an
    /// organisation: see [`Authorizer::may_see_all`].
    pub fn kept_from_metrics(&self) -> Vec<&str> {
        if self.holders.iter().all(|holder| holder.org.is_none()) {
            return Vec::new();
        }
        let reads = |holder: &&Holder| {
            let sees = holder.of_all_orgs || holder.scopes.contains(&TokenScope::Metrics);
            holder.org.is_none() && !sees && holder.scopes.contains(&TokenScope::Read)
        };
        self.holders.iter().filter(reads).map(|holder| &*holder.name).collect()
    }

    /// The number of organisations that have tokens; tokens without an organisation count as one.
    pub fn orgs(&self) -> usize {
        self.holders.iter().map(|holder| &holder.org).collect::<BTreeSet<_>>().len()
    }

    /// Whether the server may listen on an address: without tokens only on this machine's own.
    pub fn may_listen(&self, address: IpAddr) -> bool {
        !self.is_open() || address.is_loopback()
    }

    /// The caller of a request, if it has one of these scopes.
    ///
    /// # Errors
    /// 401 without a token that is known, 403 without any of the scopes or for another organisation.
    #[cfg(test)]
    pub fn admit(&self, headers: &HeaderMap, any: &[TokenScope]) -> Result<Caller, ProblemDetails> {
        let caller = self.holder_of(headers, 0)?;
        caller.needs_one(any)?;
        Ok(caller)
    }

    /// The caller of a request at a moment in milliseconds since 1970: as the program around the server says, or by its token.
    ///
    /// # Errors
    /// 401 without a token that is known and has not expired, 403 for another organisation; 401 for whom that program does not know.
    pub fn identify(&self, parts: &Parts, now_ms: i64) -> Result<Caller, NotIdentified> {
        let Some(host) = &self.host else { return self.holder_of(&parts.headers, now_ms) };
        let caller = host(parts).filter(|caller| caller.org.as_deref().is_none_or(is_org));
        // What it has of a token is of none that is known here.
        caller.map(|caller| Caller { hash: None, ..caller }).ok_or_else(|| NotIdentified::from(unidentified()))
    }

    /// The same by its token alone.
    fn holder_of(&self, headers: &HeaderMap, now_ms: i64) -> Result<Caller, NotIdentified> {
        let named = one(headers, "x-org-id").map_err(|()| ProblemDetails::bad_request("`X-Org-Id` may come once"))?;
        if named.is_some_and(|org| !is_org(org)) {
            let detail = "`X-Org-Id` takes letters, digits, `_`, `-` and `.`, at most 64";
            return Err(ProblemDetails::bad_request(detail).into());
        }
        if self.is_open() {
            let (org, scopes) = (named.map(str::to_owned), TokenScope::ALL.to_vec());
            return Ok(Caller { name: None, org, reach: OrgReach::Own, scopes, hash: None });
        }
        let given = one(headers, header::AUTHORIZATION.as_str()).ok().flatten().ok_or_else(unknown)?;
        let token = bearer(given).ok_or_else(unknown)?;
        let holder = self.holder(token).ok_or_else(unknown)?;
        holder.caller(named, now_ms).map_err(|problem| {
            let holder = Some(Box::new(holder.own()));
            NotIdentified { problem: Box::new(problem), holder }
        })
    }

    /// Checks that a caller who was admitted would be now, for the same runs: while a stream is open, its token may expire, or be
    /// none of the server's any more. Returns the caller with the scopes of now.
    ///
    /// # Errors
    /// 401 or 403.
    pub fn check_again(&self, caller: &Caller, any: &[TokenScope], now_ms: i64) -> Result<Caller, ProblemDetails> {
        let Some(hash) = &caller.hash else {
            // Who is no holder of a token was known when the request came.
            return if self.is_open() || self.host.is_some() { Ok(caller.clone()) } else { Err(unknown()) };
        };
        let holder = self.holders.iter().find(|holder| holder.hash == *hash).ok_or_else(unknown)?;
        let named = caller.org.as_deref().filter(|_| caller.reach == OrgReach::Chosen);
        let now = holder.caller(named, now_ms)?;
        now.needs_one(any)?;
        if now.seen_org() == caller.seen_org() { Ok(now) } else { Err(unknown()) }
    }

    /// What the tokens of this name, for this organisation, may decide about in the runs of a loop; none when no such token
    /// is left that has not expired.
    pub fn rights_of(&self, owner: &Owner, loop_name: &str, now_ms: i64) -> Option<HeldRights> {
        let is_of = |holder: &&Holder| {
            let acts_for = holder.of_all_orgs || holder.org == owner.org;
            owner.token.as_ref() == Some(&holder.name) && acts_for && !holder.is_over(now_ms)
        };
        let held = |holder: &Holder| {
            let rights = holder.own().rights(loop_name).ok()?;
            Some(HeldRights { rights, until_ms: holder.expires_at_ms })
        };
        self.holders.iter().filter(is_of).filter_map(held).reduce(|one, other| HeldRights {
            rights: if one.rights == other.rights { one.rights } else { DecisionRights::All },
            until_ms: one.until_ms.zip(other.until_ms).map(|(one, other)| one.max(other)),
        })
    }

    /// Checks that the caller may read what is about the runs of all organisations: with a scope for that, or with `read` and a token
    /// for all. Where no token names an organisation, there is one, and `read` is enough.
    ///
    /// # Errors
    /// 403.
    pub fn may_see_all(&self, caller: &Caller) -> Result<(), ProblemDetails> {
        let has = |scope: TokenScope| caller.scopes.contains(&scope);
        let is_one = self.host.is_none() && self.holders.iter().all(|holder| holder.org.is_none());
        let is_for_all = match caller.reach {
            OrgReach::All => has(TokenScope::Read) || has(TokenScope::Admin),
            OrgReach::Own => self.is_open() || is_one && has(TokenScope::Read),
            OrgReach::Chosen => false,
        };
        if is_for_all || has(TokenScope::Metrics) {
            return Ok(());
        }
        let detail = "this is about the runs of all organisations: use a token with the scope `metrics` or `admin`, or one with \
                      `\"org\": \"*\"`";
        Err(ProblemDetails::new(StatusCode::FORBIDDEN, "forbidden", detail))
    }

    /// Compares with every hash, each in constant time, whether or not another one matches.
    fn holder(&self, token: &str) -> Option<&Holder> {
        let hash = sha256(token);
        let mut found = None;
        for holder in &self.holders {
            if bool::from(holder.hash.ct_eq(&hash)) {
                found = Some(holder);
            }
        }
        found
    }
}

/// The problem of a request without a token that is known.
fn unknown() -> ProblemDetails {
    let detail = "a token is needed that this server knows: `Authorization: Bearer TOKEN`";
    ProblemDetails::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// The problem of a request whose sender the program around the server does not know.
fn unidentified() -> ProblemDetails {
    let detail = "the program that serves this does not know who sent the request: sign in there";
    ProblemDetails::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// The problem of a token that is not taken any more.
fn expired(name: &str, expires_at_ms: i64) -> ProblemDetails {
    let detail = format!("the token `{name}` has expired at {}: ask for another one", rfc3339(expires_at_ms));
    ProblemDetails::new(StatusCode::UNAUTHORIZED, "token_expired", detail)
}

/// The problem of a token that has none of the needed scopes.
fn lacks(any: &[TokenScope]) -> ProblemDetails {
    let names: Vec<String> = any.iter().map(|scope| format!("`{}`", scope.name())).collect();
    let detail = format!("the token lacks the scope {}", names.join(" or "));
    ProblemDetails::new(StatusCode::FORBIDDEN, "forbidden", detail)
}

/// The one value of a header; an error when there are several, or it is no text.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().map_err(|_| ())).transpose()?;
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let fits = scheme.eq_ignore_ascii_case("bearer") && token.len() <= MAX_TOKEN_BYTES && !token.contains([' ', ',']);
    fits.then_some(token).filter(|token| !token.is_empty())
}

/// Whether a text is a valid name of an organisation: letters, digits, `_`, `-` and `.`, 1 to 64 of them.
pub fn is_org(text: &str) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=64).contains(&text.len()) && text.bytes().all(sign)
}

fn sha256(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    hash.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    hash
}

fn hash_of(hex: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(hash)
}

/// The hash of a token, in the form of the project file.
pub fn hash_text(token: &str) -> String {
    let digits: String = sha256(token).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// A new token of 256 random bits.
///
/// # Errors
/// When the system has no randomness.
pub fn new_token() -> Result<String, String> {
    random(TOKEN_PREFIX)
}

/// A new token of 256 random bits that answers a pause.
///
/// # Errors
/// When the system has no randomness.
pub fn new_answer_token() -> Result<String, String> {
    random(ANSWER_PREFIX)
}

/// `Authorization` has another form, or comes twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoBearer;

/// The token of `Authorization: Bearer`; none without the header.
///
/// # Errors
/// When the header has another form, or comes twice.
pub fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, NoBearer> {
    let value = one(headers, header::AUTHORIZATION.as_str()).map_err(|()| NoBearer)?;
    value.map(|value| bearer(value).ok_or(NoBearer)).transpose()
}

fn random(prefix: &str) -> Result<String, String> {
    use base64::Engine as _;
    let bytes: rand::Random<[u8; 32]> =
        rand::generate(&rand::SystemRandom::new()).map_err(|_| "the system gives no random numbers".to_owned())?;
    Ok(format!("{prefix}{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes.expose())))
}

#[cfg(test)]
mod tests;
