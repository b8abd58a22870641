//! Credentials of AWS, found in AWS's own order: variables, a token of a web identity, the endpoint of a container, the
//! metadata of a machine. They are kept until shortly before they expire, and are asked for by one request at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::http::Method;
use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use bytes::BytesMut;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Host;
use url::Url;

use super::http::HttpClients;
use crate::drive::clock;
use crate::drive::http_client::Request;
use crate::drive::secret::Vault;
use loopctl_lang::policy::aws_host::is_region;
use loopctl_lang::policy::json_text;

/// How long before their end credentials are asked for again.
const EARLIER_MS: i64 = 300_000;
/// How long credentials without an end are used.
const DEFAULT_MS: i64 = 900_000;
/// How long an answer about credentials may take: of the metadata, which are near, and of AWS's service for tokens.
const NEAR: Duration = Duration::from_secs(2);
const FAR: Duration = Duration::from_secs(10);
/// The most bytes of such an answer.
const MAX_ANSWER: usize = 64 << 10;
/// After a failure: how long nobody is asked again only to know whether there are credentials.
const REST: Duration = Duration::from_secs(10);
/// After a failure: how long the last credentials are used before they are asked for again.
const REST_MS: i64 = 10_000;
/// How long is waited to know whether there are credentials.
const PROBE: Duration = Duration::from_secs(3);
/// How many seconds the session with a machine's metadata may be used.
const METADATA_SESSION_S: &str = "300";

/// The address of a container's credentials, and the hosts that such addresses may have in plain HTTP.
const CONTAINER: &str = "http://169.254.170.2";
const CONTAINER_HOSTS: [&str; 4] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "localhost"];
/// The address of a machine's metadata, by the version of its addresses.
const METADATA: &str = "http://169.254.169.254";
const METADATA_V6: &str = "http://[fd00:ec2::254]";

/// The names under which credentials are removed from texts.
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";

/// Credentials of AWS.
#[derive(Clone)]
pub(super) struct AwsCredentials {
    /// The id of the key, which is no secret.
    pub(super) key_id: String,
    /// The key.
    pub(super) secret_key: SecretString,
    /// What is sent beside a signature, for credentials that expire.
    pub(super) session_token: Option<SecretString>,
    /// When they end, in milliseconds since 1970.
    expires_ms: Option<i64>,
}

/// Where credentials are.
enum CredentialSource {
    Variables(AwsCredentials),
    WebIdentity { token_file: String, role: String },
    Container(String),
    Metadata,
}

/// Finds the credentials of this machine.
pub(super) struct AwsIdentity {
    vault: Arc<Vault>,
    http: Arc<HttpClients>,
    variable: fn(&str) -> Option<String>,
    state: Mutex<IdentityState>,
    /// Held by the request that asks; the others wait for what it gets.
    asking: tokio::sync::Mutex<()>,
}

/// What came of asking for credentials.
#[derive(Default)]
struct IdentityState {
    known: Option<AwsCredentials>,
    /// When they are asked for again, in milliseconds since 1970.
    until_ms: i64,
    fault: Option<String>,
    rests_until: Option<Instant>,
    /// How often they were asked for.
    asked: u64,
}

impl AwsIdentity {
    pub(super) fn new(vault: &Arc<Vault>, http: &Arc<HttpClients>, variable: fn(&str) -> Option<String>) -> Self {
        let (vault, http) = (Arc::clone(vault), Arc::clone(http));
        Self { vault, http, variable, state: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn state(&self) -> MutexGuard<'_, IdentityState> {
        // It is whole at any moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The region that the environment names.
    pub(super) fn region(&self) -> Option<String> {
        let region = self.variable("AWS_REGION").or_else(|| self.variable("AWS_DEFAULT_REGION"));
        region.filter(|region| is_region(region))
    }

    /// Whether there can be credentials, as far as that is known without asking anybody.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    pub(super) fn readable(&self) -> Result<(), String> {
        self.source().map(drop)
    }

    /// The credentials as they are now.
    ///
    /// # Errors
    /// A sentence without secrets that says why there are none.
    pub(super) async fn current(&self) -> Result<AwsCredentials, String> {
        let source = self.source()?;
        if let CredentialSource::Variables(held) = source {
            return Ok(held);
        }
        match self.at_hand() {
            Some(known) => Ok(known),
            None => self.ask(&source, None).await,
        }
    }

    /// Asks again for credentials that were refused. Returns whether they are other ones now.
    ///
    /// # Errors
    /// A sentence without secrets that says why there are none.
    pub(super) async fn renewed(&self, refused: &AwsCredentials) -> Result<bool, String> {
        let now = match self.source()? {
            CredentialSource::Variables(held) => held,
            source => self.ask(&source, Some(refused)).await?,
        };
        Ok(!now.is_same(refused))
    }

    /// Whether there are credentials now. If nobody was asked yet, or that failed some time ago, they are asked for, and
    /// waited for shortly.
    ///
    /// # Errors
    /// A sentence without secrets that says why there are none.
    pub(super) async fn probe(self: &Arc<Self>) -> Result<(), String> {
        if matches!(self.source()?, CredentialSource::Variables(_)) || self.at_hand().is_some() {
            return Ok(());
        }
        let rests = self.state().rests_until.is_some_and(|until| clock::instant() < until);
        if !rests && self.asking.try_lock().is_ok() {
            let here = Arc::clone(self);
            let asked = tokio::spawn(async move { drop(here.current().await) });
            drop(tokio::time::timeout(PROBE, asked).await);
        }
        let state = self.state();
        match (&state.fault, &state.known) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(_)) => Ok(()),
            (None, None) => Err("AWS has given no credentials yet".to_owned()),
        }
    }

    fn at_hand(&self) -> Option<AwsCredentials> {
        let state = self.state();
        state.known.clone().filter(|_| clock::wall_ms() < state.until_ms)
    }

    /// Where the credentials are.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    fn source(&self) -> Result<CredentialSource, String> {
        let id = self.variable("AWS_ACCESS_KEY_ID");
        let key = self.variable(SECRET_KEY);
        match (id, key) {
            (Some(key_id), Some(key)) => {
                let token = self.variable(SESSION_TOKEN);
                return self.taken(key_id, key, token, None).map(CredentialSource::Variables);
            }
            (Some(_), None) => return Err(half("AWS_ACCESS_KEY_ID", SECRET_KEY)),
            (None, Some(_)) => return Err(half(SECRET_KEY, "AWS_ACCESS_KEY_ID")),
            (None, None) => {}
        }
        match (self.variable("AWS_WEB_IDENTITY_TOKEN_FILE"), self.variable("AWS_ROLE_ARN")) {
            (Some(token_file), Some(role)) => return Ok(CredentialSource::WebIdentity { token_file, role }),
            (Some(_), None) => return Err(half("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN")),
            _ => {}
        }
        if let Some(path) = self.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            return Ok(CredentialSource::Container(format!("{CONTAINER}/{}", path.trim_start_matches('/'))));
        }
        if let Some(url) = self.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            return Ok(CredentialSource::Container(url));
        }
        if self.variable("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(
                "AWS's credentials are not there: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the \
                        machine a role"
                    .to_owned(),
            );
        }
        Ok(CredentialSource::Metadata)
    }

    /// Asks for credentials, unless another request just does: then its outcome is that of both. `used`: those that were
    /// refused.
    async fn ask(&self, source: &CredentialSource, used: Option<&AwsCredentials>) -> Result<AwsCredentials, String> {
        let before = self.state().asked;
        let _asking = self.asking.lock().await;
        {
            let state = self.state();
            let is_other = used.is_none_or(|used| state.known.as_ref().is_some_and(|known| !known.is_same(used)));
            match (&state.fault, &state.known) {
                (Some(why), _) if state.asked != before => return Err(why.clone()),
                (None, Some(known)) if state.asked != before || (is_other && clock::wall_ms() < state.until_ms) => {
                    return Ok(known.clone());
                }
                _ => {}
            }
        }
        let asked = Box::pin(self.asked(source)).await.map_err(|why| format!("AWS gave no credentials: {why}"));
        let mut state = self.state();
        state.asked = state.asked.saturating_add(1);
        match asked {
            Ok(given) => {
                let now = clock::wall_ms();
                let end = given.expires_ms.map_or(now.saturating_add(DEFAULT_MS), |end| end.saturating_sub(EARLIER_MS));
                *state = IdentityState {
                    known: Some(given.clone()),
                    until_ms: end,
                    asked: state.asked,
                    ..IdentityState::default()
                };
                Ok(given)
            }
            Err(why) => {
                state.rests_until = clock::instant().checked_add(REST);
                // The last ones are used as long as they are good, unless they were refused.
                let is_good = |known: &&AwsCredentials| known.expires_ms.is_some_and(|end| clock::wall_ms() < end);
                if let Some(known) = state.known.as_ref().filter(is_good).filter(|_| used.is_none()) {
                    tracing::warn!("earlier credentials are used: {why}");
                    let known = known.clone();
                    state.until_ms = clock::wall_ms().saturating_add(REST_MS).min(known.expires_ms.unwrap_or_default());
                    return Ok(known);
                }
                state.fault = Some(why.clone());
                Err(why)
            }
        }
    }

    async fn asked(&self, source: &CredentialSource) -> Result<AwsCredentials, String> {
        match source {
            CredentialSource::Variables(held) => Ok(held.clone()),
            CredentialSource::WebIdentity { token_file, role } => self.of_web_identity(token_file, role).await,
            CredentialSource::Container(url) => self.of_container(url).await,
            CredentialSource::Metadata => self.of_metadata().await,
        }
    }

    async fn of_web_identity(&self, token_file: &str, role: &str) -> Result<AwsCredentials, String> {
        let token = self.vault.fresh(&format!("file:{token_file}").into()).await?;
        let base = match (self.variable("AWS_ENDPOINT_URL_STS"), self.region()) {
            (Some(base), _) => base,
            (None, Some(region)) if region.starts_with("cn-") => format!("https://sts.{region}.amazonaws.com.cn"),
            (None, Some(region)) => format!("https://sts.{region}.amazonaws.com"),
            (None, None) => "https://sts.amazonaws.com".to_owned(),
        };
        let session = self.variable("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "loopctl".to_owned());
        let form = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", "2011-06-15"),
            ("RoleArn", role),
            ("RoleSessionName", &session),
            ("WebIdentityToken", token.expose_secret().trim()),
        ];
        let encoded = |text: &str| percent_encode(text.as_bytes(), NON_ALPHANUMERIC).to_string();
        let form = form.map(|(name, value)| format!("{name}={}", encoded(value))).join("&");
        let mut request = Request::new(Method::POST, address(&base)?);
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/xml"));
        *request.body_mut() = Some(form.into());
        let answer = self.exchange(request, FAR).await?;
        let field = |name: &str| element(&answer, name);
        self.given(field("AccessKeyId"), field("SecretAccessKey"), field("SessionToken"), field("Expiration"))
    }

    async fn of_container(&self, url: &str) -> Result<AwsCredentials, String> {
        let url = address(url)?;
        let host = url.host_str().unwrap_or_default();
        let is_here = CONTAINER_HOSTS.contains(&host)
            || match url.host() {
                Some(Host::Ipv4(address)) => address.is_loopback(),
                Some(Host::Ipv6(address)) => address.is_loopback(),
                _ => false,
            };
        if url.scheme() != "https" && !is_here {
            return Err(format!(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI names the host `{host}`: it must be https, this machine or AWS's own \
                 address"
            ));
        }
        let mut request = Request::new(Method::GET, url);
        let token = match self.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => Some(self.vault.fresh(&format!("file:{file}").into()).await?),
            None => self.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(SecretString::from),
        };
        if let Some(token) = token {
            self.vault.take("AWS_CONTAINER_AUTHORIZATION_TOKEN", token.expose_secret().trim())?;
            request.headers_mut().insert(AUTHORIZATION, secret_header(token.expose_secret().trim())?);
        }
        let answer = self.exchange(request, NEAR).await?;
        self.of_json(&answer)
    }

    async fn of_metadata(&self) -> Result<AwsCredentials, String> {
        let is_v6 = self
            .variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")
            .is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6"));
        let base = self.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let base = base.unwrap_or_else(|| if is_v6 { METADATA_V6 } else { METADATA }.to_owned());
        let base = base.trim_end_matches('/');
        let mut request = Request::new(Method::PUT, address(&format!("{base}/latest/api/token"))?);
        let lasts = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
        request.headers_mut().insert(lasts, HeaderValue::from_static(METADATA_SESSION_S));
        let session = self.exchange(request, NEAR).await.map_err(|why| {
            format!("{why} (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role)")
        })?;
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("x-aws-ec2-metadata-token"), secret_header(session.trim())?);
        let get = async |path: &str| {
            let url = address(&format!("{base}/latest/meta-data/iam/security-credentials/{path}"))?;
            let mut request = Request::new(Method::GET, url);
            request.headers_mut().clone_from(&headers);
            self.exchange(request, NEAR).await
        };
        let roles = get("").await?;
        let role = roles.lines().next().unwrap_or_default().trim();
        if role.is_empty() || role.contains(|c: char| !c.is_ascii_graphic() || "/?#%\\".contains(c)) || role == ".." {
            return Err("the machine has no role".to_owned());
        }
        self.of_json(&get(role).await?)
    }

    fn of_json(&self, answer: &str) -> Result<AwsCredentials, String> {
        let answer: Value = json_text::read(answer).map_err(|_| "the answer is not JSON".to_owned())?;
        let field = |name: &str| Some(answer.get(name)?.as_str()?.to_owned());
        self.given(field("AccessKeyId"), field("SecretAccessKey"), field("Token"), field("Expiration"))
    }

    /// The credentials of an answer.
    fn given(
        &self,
        key_id: Option<String>,
        key: Option<String>,
        token: Option<String>,
        end: Option<String>,
    ) -> Result<AwsCredentials, String> {
        let (Some(key_id), Some(key)) = (key_id, key) else {
            return Err("the answer has no `AccessKeyId` and `SecretAccessKey`".to_owned());
        };
        let end: Option<jiff::Timestamp> = end.and_then(|end| end.parse().ok());
        self.taken(key_id, key, token, end.map(jiff::Timestamp::as_millisecond))
    }

    /// Keeps credentials, so that they are removed from texts from now on.
    fn taken(
        &self,
        key_id: String,
        key: String,
        token: Option<String>,
        expires_ms: Option<i64>,
    ) -> Result<AwsCredentials, String> {
        if key_id.contains(|c: char| !c.is_ascii_alphanumeric()) {
            return Err("the id of AWS's key has characters that no id has".to_owned());
        }
        self.vault.take(SECRET_KEY, &key)?;
        let token = token.filter(|token| !token.is_empty());
        if let Some(token) = &token {
            self.vault.take(SESSION_TOKEN, token)?;
        }
        Ok(AwsCredentials { key_id, secret_key: key.into(), session_token: token.map(Into::into), expires_ms })
    }

    /// Sends a request for credentials. Nothing of the answer is repeated: it may hold them.
    async fn exchange(&self, request: Request, limit: Duration) -> Result<String, String> {
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let client = self.http.client(request.url().scheme() == "https")?;
        let asked = async {
            let mut response = client.execute(request).await.map_err(|_| format!("no answer from {host}"))?;
            let status = response.status();
            let mut body = BytesMut::new();
            while let Some(piece) = response.chunk().await.map_err(|_| format!("the answer of {host} was cut off"))? {
                body.extend_from_slice(&piece);
                if body.len() > MAX_ANSWER {
                    return Err(format!("the answer of {host} is longer than {} KiB", MAX_ANSWER >> 10));
                }
            }
            let text = String::from_utf8(body.to_vec()).map_err(|_| format!("the answer of {host} is no text"))?;
            if status.is_success() {
                Ok(text)
            } else {
                Err(format!("http {} from {host}{}", status.as_u16(), code(&text)))
            }
        };
        match tokio::time::timeout(limit, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("{host} gave no answer within {} s", limit.as_secs())),
        }
    }
}

impl AwsCredentials {
    fn is_same(&self, other: &Self) -> bool {
        let token = |held: &Self| held.session_token.as_ref().map(|token| token.expose_secret().to_owned());
        self.key_id == other.key_id
            && self.secret_key.expose_secret() == other.secret_key.expose_secret()
            && token(self) == token(other)
    }
}

fn half(given: &str, missing: &str) -> String {
    format!("{given} is set and {missing} is not: set both, or none of them")
}

fn address(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| format!("the address of AWS's credentials is none: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
        return Err("the address of AWS's credentials must begin with http:// or https://, and hold no user".to_owned());
    }
    Ok(url)
}

fn secret_header(text: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| "the token for AWS's credentials has characters that no header can carry")?;
    value.set_sensitive(true);
    Ok(value)
}

/// The text of the first element of this name. The values that are read so have no signs that XML escapes.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(text.trim().to_owned())
}

/// The code of an error in an answer, as a text in brackets.
fn code(answer: &str) -> String {
    let json: Value = json_text::read(answer).unwrap_or_default();
    let code = ["code", "Code"].iter().find_map(|name| Some(json.get(name)?.as_str()?.to_owned()));
    let code = code.or_else(|| element(answer, "Code")).unwrap_or_default();
    let is_word = !code.is_empty() && code.len() <= 60 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_word { format!(" ({code})") } else { String::new() }
}
