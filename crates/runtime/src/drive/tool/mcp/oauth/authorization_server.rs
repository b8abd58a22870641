//! What a server and its authorization server say of themselves (RFC 9728, RFC 8414), and the request for a token.

use std::collections::BTreeSet;
use std::time::Duration;

use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use ::http::{Method, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::SecretString;
use serde_json::{Map, Value};
use url::{Url, form_urlencoded};

use super::challenge::BearerChallenge;
use super::client_assertion::ClientAssertion;
use super::{TokenSource, no_token};
use crate::drive::http_client::Request;
use crate::drive::retry::Transient;
use crate::drive::tool::http::{egress_fault, network, server};
use crate::drive::tool::mcp::answer_bytes::bytes;
use crate::drive::tool::mcp::frame::quoted;
use crate::drive::tool::mcp::no_values;
use crate::drive::tool::runner::RawFault;
use crate::drive::tool::seconds;
use loopctl_engine::json::from_bytes;
use loopctl_lang::policy::host::is_private;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 64 << 10;
/// How long an authorization server may take for an answer.
const TIME_TO_ANSWER: Duration = Duration::from_secs(10);
/// The most bytes of a token: it is a header.
const MAX_TOKEN: usize = 16 << 10;
/// The longest time that a token is kept for, in seconds.
const MAX_LASTS_S: u64 = 30 * 24 * 60 * 60;

/// A token, as it was given.
pub(super) struct GivenToken {
    pub text: SecretString,
    /// For how long, where that was said.
    pub lasts: Option<Duration>,
}

/// What a server says of itself.
pub(super) struct ResourceMetadata {
    /// Its name, which the token is asked for.
    pub name: String,
    /// The scopes that it knows.
    pub scopes: Vec<String>,
}

/// What an authorization server says of itself.
struct IssuerMetadata {
    /// Its name, as it writes it.
    issuer: String,
    token_endpoint: Url,
    /// How clients say who they are; none where it does not say it.
    methods: Option<Vec<String>>,
}

/// An answer with JSON in it, or without.
struct JsonAnswer {
    status: StatusCode,
    /// None where it is no object.
    members: Option<Map<String, Value>>,
}

impl TokenSource {
    /// What the server says of itself: where it names that, else where that is by its address. Older servers say nothing.
    pub(super) async fn resource_metadata(&self, challenge: &BearerChallenge) -> Result<ResourceMetadata, RawFault> {
        let found = match &challenge.resource_metadata {
            Some(named) => {
                let url = Url::parse(named).map_err(|_| no_token("the server names metadata that is at no address"))?;
                let members = self.read(&url).await?.members;
                Some(members.ok_or_else(|| no_token(format!("{} has no metadata of the server", server(&url))))?)
            }
            None => self.first_of(&well_known(&self.resource, "oauth-protected-resource")).await?,
        };
        let Some(members) = found else {
            return Ok(ResourceMetadata { name: canonical(&self.resource), scopes: Vec::new() });
        };
        let name = members.get("resource").and_then(Value::as_str).unwrap_or_default();
        if !Url::parse(name).is_ok_and(|named| is_within(&self.resource, &named)) {
            let why = format!("the metadata is of {name:?}, and not of {}", canonical(&self.resource));
            return Err(no_token(quoted(&why)));
        }
        let issuers = texts(&members, "authorization_servers").unwrap_or_default();
        if !issuers.is_empty() && !issuers.iter().any(|issuer| is_same_issuer(issuer, &self.client.issuer)) {
            let why = format!(
                "the server takes tokens of {}, and `oauth.issuer` is {}: the credentials are sent to nobody else",
                quoted(&issuers.join(", ")),
                self.client.issuer
            );
            return Err(no_token(why));
        }
        Ok(ResourceMetadata { name: name.to_owned(), scopes: texts(&members, "scopes_supported").unwrap_or_default() })
    }

    /// What the authorization server says of itself. One that says to be another one is sent nothing.
    async fn issuer_metadata(&self) -> Result<IssuerMetadata, RawFault> {
        let issuer = &self.client.issuer;
        let url = Url::parse(issuer).map_err(|_| no_token(format!("`oauth.issuer` {issuer} is no address")))?;
        let mut places = well_known(&url, "oauth-authorization-server");
        // Behind the path of an issuer, nothing is at the root: another one is there.
        places.truncate(1);
        places.extend(well_known(&url, "openid-configuration").into_iter().take(1));
        places.extend(appended(&url, "openid-configuration"));
        let members = self.first_of(&places).await?;
        let members = members.ok_or_else(|| {
            no_token(format!("the authorization server {issuer} has no metadata: {}", self.places_text(&places)))
        })?;
        let said = members.get("issuer").and_then(Value::as_str).unwrap_or_default();
        if !is_same_issuer(said, issuer) {
            return Err(no_token(quoted(&format!("the authorization server at {issuer} says that it is {said:?}"))));
        }
        let endpoint = members.get("token_endpoint").and_then(Value::as_str).and_then(|text| Url::parse(text).ok());
        let token_endpoint =
            endpoint.ok_or_else(|| no_token(format!("the metadata of {issuer} has no `token_endpoint`")))?;
        let is_clear = token_endpoint.scheme() != "https" && !token_endpoint.host_str().is_some_and(is_private);
        if is_clear {
            let why = format!("the credentials would go to {} in the clear", server(&token_endpoint));
            return Err(no_token(why));
        }
        let issuer = said.to_owned();
        Ok(IssuerMetadata { issuer, token_endpoint, methods: texts(&members, "token_endpoint_auth_methods_supported") })
    }

    fn places_text(&self, places: &[Url]) -> String {
        places.iter().map(Url::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Asks for a token. Credentials that are refused are read again, and sent once more where they are other ones now.
    pub(super) async fn requested(&self, resource: &str, scopes: &BTreeSet<String>) -> Result<GivenToken, RawFault> {
        let metadata = self.issuer_metadata().await?;
        let mut is_first = true;
        loop {
            self.vault.freshen(&self.keys).await.map_err(no_token)?;
            let held = self.vault.hold(&self.keys);
            let answer = self.sent(&self.token_request(&metadata, resource, scopes)?).await?;
            let is_refused = matches!(answer.status, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED);
            if is_refused && std::mem::take(&mut is_first) && self.vault.renewed(&held).await.unwrap_or(false) {
                continue;
            }
            return self.token_of(answer);
        }
    }

    fn token_request(
        &self,
        metadata: &IssuerMetadata,
        resource: &str,
        scopes: &BTreeSet<String>,
    ) -> Result<TokenRequest, RawFault> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials").append_pair("resource", resource);
        if !scopes.is_empty() {
            form.append_pair("scope", &scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
        }
        let client_id = self.text("client_id")?.unwrap_or_default();
        let takes =
            |method: &str| metadata.methods.as_ref().is_none_or(|methods| methods.iter().any(|known| known == method));
        let mut authorization = None;
        if let Some(key) = self.text("private_key")? {
            let assertion = ClientAssertion {
                client_id: &client_id,
                audience: &metadata.issuer,
                key_id: self.client.key_id.as_deref(),
            };
            let signed = assertion.signed(&SecretString::from(key)).map_err(no_token)?;
            form.append_pair("client_id", &client_id)
                .append_pair("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
                .append_pair("client_assertion", &signed);
        } else {
            let secret = self.text("client_secret")?.unwrap_or_default();
            if takes("client_secret_basic") {
                let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let both = BASE64_STANDARD.encode(format!("{}:{}", encoded(&client_id), encoded(&secret)));
                authorization = Some(format!("Basic {both}"));
            } else if takes("client_secret_post") {
                form.append_pair("client_id", &client_id).append_pair("client_secret", &secret);
            } else {
                let methods = metadata.methods.as_deref().unwrap_or_default().join(", ");
                let why = format!("{} takes no secrets, but {}", self.client.issuer, quoted(&methods));
                return Err(no_token(why));
            }
        }
        Ok(TokenRequest { url: metadata.token_endpoint.clone(), authorization, form: form.finish() })
    }

    /// A text of the client, with its secret.
    fn text(&self, field: &str) -> Result<Option<String>, RawFault> {
        let Some((_, text)) = self.texts.iter().find(|(name, _)| name == field) else { return Ok(None) };
        let rendered = text.render(&no_values(&*self.vault));
        rendered.map(Some).map_err(|why| no_token(format!("`oauth.{field}`: {}", why.why)))
    }

    fn token_of(&self, answer: JsonAnswer) -> Result<GivenToken, RawFault> {
        let issuer = &self.client.issuer;
        let members = answer.members.unwrap_or_default();
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        if !answer.status.is_success() {
            let said = [text("error"), text("error_description")].into_iter().flatten().collect::<Vec<_>>().join(": ");
            let said = if said.is_empty() { String::new() } else { format!(": {}", quoted(&said)) };
            let raw = no_token(format!("{issuer} refuses it with http {}{said}", answer.status.as_u16()));
            return Err(transient_if(answer.status.as_u16() == 429, raw));
        }
        let token = text("access_token").unwrap_or_default();
        let is_token = |byte: u8| matches!(byte, 0x21..=0x7e);
        if token.is_empty() || token.len() > MAX_TOKEN || !token.bytes().all(is_token) {
            return Err(no_token(format!("{issuer} answered without a token that can be sent")));
        }
        let kind = text("token_type").unwrap_or_default();
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err(no_token(quoted(&format!("{issuer} gave a token of the type {kind:?}, and not `Bearer`"))));
        }
        // Some write it as a text.
        let lasts = members.get("expires_in").and_then(|lasts| match lasts {
            Value::String(text) => loopctl_lang::policy::json_text::read(text).ok(),
            other => other.as_u64(),
        });
        let lasts = lasts.map(|lasts: u64| Duration::from_secs(lasts.min(MAX_LASTS_S)));
        Ok(GivenToken { text: SecretString::from(token.to_owned()), lasts })
    }

    /// The first of these places at which there is JSON.
    async fn first_of(&self, places: &[Url]) -> Result<Option<Map<String, Value>>, RawFault> {
        for place in places {
            let answer = self.read(place).await?;
            if answer.status.is_success() && answer.members.is_some() {
                return Ok(answer.members);
            }
        }
        Ok(None)
    }

    async fn read(&self, url: &Url) -> Result<JsonAnswer, RawFault> {
        self.exchanged(Request::new(Method::GET, url.clone()), url).await
    }

    async fn sent(&self, asked: &TokenRequest) -> Result<JsonAnswer, RawFault> {
        let mut request = Request::new(Method::POST, asked.url.clone());
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, form);
        if let Some(text) = &asked.authorization {
            let mut value = HeaderValue::from_str(text).map_err(|_| no_token("the credentials can't be sent"))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        *request.body_mut() = Some(asked.form.clone().into());
        self.exchanged(request, &asked.url).await
    }

    async fn exchanged(&self, mut request: Request, url: &Url) -> Result<JsonAnswer, RawFault> {
        self.egress.check(url).map_err(|error| of_exchange(url, &egress_fault(&error)))?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let exchanged = tokio::time::timeout(TIME_TO_ANSWER, async {
            let response = self.http.execute(request).await;
            let response = response.map_err(|error| of_exchange(url, &network(error, &server(url))))?;
            let status = response.status();
            let read = bytes(response, MAX_ANSWER).await;
            let (read, is_whole) = read.map_err(|why| transient_if(true, no_token(why)))?;
            if !is_whole {
                return Err(no_token(format!("the answer of {} was larger than {MAX_ANSWER} bytes", server(url))));
            }
            Ok(JsonAnswer { status, members: from_bytes(&read).ok() })
        });
        let Ok(answer) = exchanged.await else {
            let why = format!("{} did not answer within {}", server(url), seconds(TIME_TO_ANSWER));
            return Err(transient_if(true, no_token(why)));
        };
        let answer = answer?;
        if answer.status.is_server_error() {
            let why = format!("{} answered with http {}", server(url), answer.status.as_u16());
            return Err(transient_if(true, no_token(why)));
        }
        Ok(answer)
    }
}

struct TokenRequest {
    url: Url,
    authorization: Option<String>,
    form: String,
}

/// A fault on the way to an authorization server: nothing of the call was sent.
fn of_exchange(url: &Url, raw: &RawFault) -> RawFault {
    let why = format!("{}: {} {}", server(url), raw.fault.class, raw.fault.detail);
    transient_if(raw.transient.is_some() || raw.is_uncertain, no_token(why.trim_end()))
}

fn transient_if(is_transient: bool, raw: RawFault) -> RawFault {
    RawFault { transient: is_transient.then(Transient::default), ..raw }
}

fn texts(members: &Map<String, Value>, name: &str) -> Option<Vec<String>> {
    let all = members.get(name)?.as_array()?;
    Some(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Where metadata of this kind is: between the host and the path, and then at the root.
fn well_known(url: &Url, kind: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![format!("/.well-known/{kind}{path}")];
    if !path.is_empty() {
        paths.push(format!("/.well-known/{kind}"));
    }
    paths.into_iter().map(|path| with_path(url, &path)).collect()
}

/// Where metadata is behind the path of an issuer that has one.
fn appended(url: &Url, kind: &str) -> Option<Url> {
    let path = url.path().trim_end_matches('/');
    (!path.is_empty()).then(|| with_path(url, &format!("{path}/.well-known/{kind}")))
}

fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// The name of a server: its address, without what chooses something at it.
fn canonical(url: &Url) -> String {
    let text = with_path(url, url.path()).to_string();
    text.strip_suffix('/').map(str::to_owned).unwrap_or(text)
}

/// Whether a server is what some metadata is of: the same host, and the same path or one below it.
fn is_within(url: &Url, named: &Url) -> bool {
    let above = named.path().trim_end_matches('/');
    let is_below = url.path().strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    url.origin() == named.origin() && is_below
}

/// Issuers are compared as they are written, but for a slash at their end, which people leave out.
fn is_same_issuer(one: &str, other: &str) -> bool {
    one.strip_suffix('/').unwrap_or(one) == other.strip_suffix('/').unwrap_or(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_the_address_says() {
        let url = |text: &str| Url::parse(text).unwrap();
        let at =
            |text: &str| well_known(&url(text), "k").iter().map(|url| url.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(
            at("https://x.example/a/mcp?t=1"),
            "https://x.example/.well-known/k/a/mcp https://x.example/.well-known/k"
        );
        assert_eq!(at("https://x.example/"), "https://x.example/.well-known/k");
        assert_eq!(appended(&url("https://x.example/t/"), "k").unwrap().as_str(), "https://x.example/t/.well-known/k");
        assert_eq!(appended(&url("https://x.example/"), "k"), None);
        assert_eq!(canonical(&url("https://x.example")), "https://x.example");
        assert_eq!(canonical(&url("https://x.example:8443/mcp?a=b#c")), "https://x.example:8443/mcp");
    }

    #[test]
    fn metadata_is_of_the_server_or_of_what_it_is_a_part_of() {
        let is = |url: &str, named: &str| is_within(&Url::parse(url).unwrap(), &Url::parse(named).unwrap());
        for (url, named, expected) in [
            ("https://x.example/a/mcp", "https://x.example/a/mcp", true),
            ("https://x.example/a/mcp", "https://x.example", true),
            ("https://x.example/a/mcp", "https://x.example/a/", true),
            ("https://x.example/a/mcp", "https://x.example/a/m", false),
            ("https://x.example/a", "https://x.example/a/mcp", false),
            ("https://x.example/a", "https://y.example/a", false),
            ("https://x.example/a", "http://x.example/a", false),
        ] {
            assert_eq!(is(url, named), expected, "{url} {named}");
        }
    }
}
