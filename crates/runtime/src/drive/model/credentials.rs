//! The headers of a model's requests: the key or the signature, and what the project gives with it. Secrets are read for each request, so
//! that one that has changed is sent from then on.

use std::sync::Arc;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::http;
use super::identity::{AwsCredentials, AwsIdentity};
use super::protocol::Protocol;
use super::signature::{SigningScope, UnsignedRequest};
use crate::drive::clock;
use crate::drive::secret::{HeldSecret, Vault};
use loopctl_lang::language::project::Model;
use loopctl_lang::language::{ModelAuth, SecretSource};
use loopctl_lang::policy::provider::ProviderServer;
use loopctl_lang::policy::{aws_host, model_header};

/// The headers of every request to a model.
pub(super) struct Credentials {
    vault: Arc<Vault>,
    /// Those that hold no secret.
    plain: HeaderMap,
    secret: Vec<SecretHeader>,
    /// What signs them in place of a key.
    signer: Option<RequestSigner>,
}

/// What signs requests to AWS.
pub(super) struct RequestSigner {
    pub(super) identity: Arc<AwsIdentity>,
    pub(super) region: String,
    pub(super) service: &'static str,
}

/// A header whose value is a secret.
struct SecretHeader {
    name: HeaderName,
    /// What stands before the secret.
    scheme: &'static str,
    /// What it is, for messages.
    called: String,
    key: ModelKey,
}

/// A secret, or where it is.
#[derive(Clone)]
pub(super) enum ModelKey {
    /// Given by the embedder.
    Given(SecretString),
    /// Read when it is sent.
    Source(SecretSource),
}

/// The headers of a request, and the secrets that were read for them.
pub(super) struct SentHeaders {
    pub(super) headers: HeaderMap,
    held: Vec<HeldSecret>,
    /// The credentials that signed it.
    signed_by: Option<AwsCredentials>,
    signature: Option<String>,
}

impl Credentials {
    /// Those of a model's protocol, without a key.
    pub(super) fn new(protocol: &dyn Protocol, vault: &Arc<Vault>) -> Self {
        let mut plain = http::headers();
        for (header, value) in protocol.headers() {
            plain.insert(HeaderName::from_static(header), HeaderValue::from_static(value));
        }
        Self { vault: Arc::clone(vault), plain, secret: Vec::new(), signer: None }
    }

    /// Sends a key as the project says, or else as the provider's own server takes it.
    pub(super) fn add_key(&mut self, name: &str, home: &ProviderServer, auth: Option<ModelAuth>, key: ModelKey) {
        let (header, scheme) = match auth {
            None => (home.key_header, home.key_scheme),
            Some(ModelAuth::Bearer) => ("authorization", "Bearer "),
            Some(ModelAuth::XApiKey) => ("x-api-key", ""),
            Some(ModelAuth::ApiKey) => ("api-key", ""),
            Some(ModelAuth::None | ModelAuth::Sigv4) => return,
        };
        let called = format!("the key of the model {name:?}");
        self.secret.push(SecretHeader { name: HeaderName::from_static(header), scheme, called, key });
    }

    /// Signs each request in place of a key.
    pub(super) fn sign_with(&mut self, signer: RequestSigner) {
        self.signer = Some(signer);
    }

    /// Adds the headers that the project gives.
    ///
    /// # Errors
    /// A sentence that says which one can't be sent, without its value.
    pub(super) fn add_headers(&mut self, name: &str, model: &Model) -> Result<(), String> {
        for (written, source) in &model.headers {
            let called = format!("the header `{}` of the model {name:?}", written.escape_debug());
            if let Some(fault) = model_header::name_fault(written) {
                return Err(format!("{called} can't be sent: {fault}"));
            }
            let header = HeaderName::try_from(written.as_str()).map_err(|_| format!("{called} has no valid name"))?;
            let is_of_signature = self.signer.is_some() && aws_host::SIGNATURE_HEADERS.contains(&header.as_str());
            if is_of_signature || self.secret.iter().any(|known| known.name == header) {
                return Err(format!("{called} is sent already: it stands twice, or holds the key or the signature"));
            }
            let source = match source.written().and_then(|text| text.strip_prefix("orgconfig:")) {
                Some(key) => self.vault.source(key).map_err(|why| format!("{called} can't be read: {why}"))?,
                None => source.clone(),
            };
            match source.written().filter(|text| !model_header::is_source(text)) {
                Some(text) => drop(self.plain.insert(header, header_value(text, &called)?)),
                None => {
                    // What the project gives takes the place of a header of ours.
                    self.plain.remove(&header);
                    self.secret.push(SecretHeader { name: header, scheme: "", called, key: ModelKey::Source(source) });
                }
            }
        }
        Ok(())
    }

    /// Reads what can be read now, before anything is sent: programs are asked when they are needed.
    ///
    /// # Errors
    /// A sentence that says what can't be read.
    pub(super) fn readable(&self) -> Result<(), String> {
        for secret in &self.secret {
            if let ModelKey::Source(source @ SecretSource::Written(_)) = &secret.key {
                let held = self.vault.held(source).map_err(|why| secret.unread(&why))?;
                secret.value(held.expose_secret())?;
            }
        }
        self.signer.as_ref().map_or(Ok(()), |signer| signer.identity.readable())
    }

    /// Whether the credentials that sign requests are given now.
    ///
    /// # Errors
    /// A sentence without secrets that says why they are not.
    pub(super) async fn signs(&self) -> Result<(), String> {
        match &self.signer {
            Some(signer) => signer.identity.probe().await,
            None => Ok(()),
        }
    }

    /// The sources whose secrets programs print.
    pub(super) fn programs(&self) -> impl Iterator<Item = &SecretSource> {
        self.secret.iter().filter_map(|secret| match &secret.key {
            ModelKey::Source(source @ SecretSource::Command(_)) => Some(source),
            _ => None,
        })
    }

    /// The headers of a request that is sent now to this address with this body.
    ///
    /// # Errors
    /// A sentence without secrets that says what can't be read.
    pub(super) async fn headers(&self, url: &Url, body: &[u8]) -> Result<SentHeaders, String> {
        let held = Vec::with_capacity(self.secret.len());
        let mut sent = SentHeaders { headers: self.plain.clone(), held, signed_by: None, signature: None };
        for secret in &self.secret {
            let text = match &secret.key {
                ModelKey::Given(key) => key.clone(),
                ModelKey::Source(source) => {
                    let text = match self.vault.at_hand(source) {
                        Some(text) => text,
                        // On the heap: a run that waits for its model holds the common path only.
                        None => Box::pin(self.vault.fresh(source)).await.map_err(|why| secret.unread(&why))?,
                    };
                    sent.held.push(HeldSecret { source: source.clone(), text: text.clone() });
                    text
                }
            };
            sent.headers.insert(secret.name.clone(), secret.value(text.expose_secret())?);
        }
        if let Some(signer) = &self.signer {
            let credentials = Box::pin(signer.identity.current()).await?;
            signer.sign(&mut sent, credentials, url, body)?;
        }
        Ok(sent)
    }

    /// Reads the secrets again that a server has refused. Returns whether one of them is another one now.
    ///
    /// # Errors
    /// A sentence without secrets that says what can't be read.
    pub(super) async fn renewed(&self, sent: &SentHeaders) -> Result<bool, String> {
        let is_other = self.vault.renewed(&sent.held).await?;
        match (&self.signer, &sent.signed_by) {
            (Some(signer), Some(credentials)) => Ok(signer.identity.renewed(credentials).await? || is_other),
            _ => Ok(is_other),
        }
    }
}

impl RequestSigner {
    /// Adds the signature of a request.
    fn sign(&self, sent: &mut SentHeaders, credentials: AwsCredentials, url: &Url, body: &[u8]) -> Result<(), String> {
        let called = "the signature of the request";
        let moment = clock::basic(clock::wall_ms());
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let kind = sent.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
        let mut headers = vec![("content-type", kind.as_str()), ("host", &host), (aws_host::DATE, &moment)];
        let token = credentials.session_token.as_ref().map(ExposeSecret::expose_secret);
        headers.extend(token.map(|token| (aws_host::TOKEN, token)));
        let query = url.query().unwrap_or_default();
        let request = UnsignedRequest { method: "POST", path: url.path(), query, headers: &headers, body };
        let scope = SigningScope {
            moment: &moment,
            region: &self.region,
            service: self.service,
            key_id: &credentials.key_id,
            secret_key: credentials.secret_key.expose_secret(),
        };
        let signed = scope.sign(&request);
        sent.headers.insert(HeaderName::from_static(aws_host::DATE), header_value(&moment, called)?);
        if let Some(token) = token {
            sent.headers.insert(HeaderName::from_static(aws_host::TOKEN), header_value(token, called)?);
        }
        sent.headers.insert(AUTHORIZATION, header_value(&signed.authorization, called)?);
        sent.signature = Some(signed.signature);
        sent.signed_by = Some(credentials);
        Ok(())
    }
}

impl SentHeaders {
    /// The answer to a request, without the request's signature: a server may repeat it.
    pub(super) fn without_signature(&self, answer: &[u8]) -> Option<String> {
        let signature = self.signature.as_deref()?;
        let text = String::from_utf8_lossy(answer);
        text.contains(signature).then(|| text.replace(signature, "[hidden]"))
    }
}

impl SecretHeader {
    fn unread(&self, why: &str) -> String {
        format!("{} can't be read: {why}", self.called)
    }

    fn value(&self, text: &str) -> Result<HeaderValue, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err(format!("{} is empty", self.called));
        }
        // Some programs and files hold the word before the key, too. No key has a blank.
        let word = text.get(..self.scheme.len()).filter(|word| word.eq_ignore_ascii_case(self.scheme));
        let key = word.and_then(|word| text.strip_prefix(word)).unwrap_or(text);
        header_value(&format!("{}{}", self.scheme, key.trim_start()), &self.called)
    }
}

/// The value of a header, which no log shows.
fn header_value(text: &str, called: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| format!("{called} has characters that no header can carry"))?;
    value.set_sensitive(true);
    Ok(value)
}
