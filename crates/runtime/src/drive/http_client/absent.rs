//! What has the place of the client in a program without one. There is never a client, and so never a response.
#![allow(missing_docs, reason = "each is what reqwest has under the same name")]

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use ::http::header::HeaderMap;
use ::http::{Method, StatusCode};
use bytes::Bytes;
use url::Url;

pub use self::{
    AbsentClient as Client, AbsentClientError as Error, AbsentResponse as Response, UnsentRequest as Request,
};
use super::NOT_BUILT_IN;
use crate::drive::egress::Egress;

/// No client.
#[derive(Debug, Clone)]
pub struct AbsentClient {
    never: Infallible,
}

/// A request that nobody sends.
#[derive(Debug)]
pub struct UnsentRequest {
    url: Url,
    headers: HeaderMap,
    body: Option<UnsentBody>,
}

/// A response that never comes.
#[derive(Debug)]
pub struct AbsentResponse {
    never: Infallible,
}

/// An error that never happens, because nothing is sent.
#[derive(Debug)]
pub struct AbsentClientError {
    never: Infallible,
}

/// A body that nobody sends.
#[derive(Debug)]
pub struct UnsentBody(#[allow(dead_code, reason = "nobody sends it")] Bytes);

impl<T: Into<Bytes>> From<T> for UnsentBody {
    fn from(bytes: T) -> Self {
        Self(bytes.into())
    }
}

/// There is no client.
///
/// # Errors
/// Always.
pub fn guarded(_: &Egress, _: usize, _: Duration) -> Result<AbsentClient, String> {
    Err(NOT_BUILT_IN.to_owned())
}

/// There is no client.
///
/// # Errors
/// Always.
pub fn of_models(_: bool, _: Duration) -> Result<AbsentClient, String> {
    Err(NOT_BUILT_IN.to_owned())
}

/// Nothing is encrypted.
pub fn is_tls_fault(_: &(dyn StdError + 'static)) -> bool {
    false
}

impl AbsentClient {
    pub async fn execute(&self, _: UnsentRequest) -> Result<AbsentResponse, AbsentClientError> {
        match self.never {}
    }
}

impl UnsentRequest {
    pub fn new(_: Method, url: Url) -> Self {
        Self { url, headers: HeaderMap::new(), body: None }
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    pub fn body_mut(&mut self) -> &mut Option<UnsentBody> {
        &mut self.body
    }
}

impl AbsentResponse {
    pub fn status(&self) -> StatusCode {
        match self.never {}
    }

    pub fn headers(&self) -> &HeaderMap {
        match self.never {}
    }

    pub fn url(&self) -> &Url {
        match self.never {}
    }

    pub fn content_length(&self) -> Option<u64> {
        match self.never {}
    }

    pub async fn chunk(&mut self) -> Result<Option<Bytes>, AbsentClientError> {
        match self.never {}
    }
}

impl AbsentClientError {
    pub fn is_timeout(&self) -> bool {
        match self.never {}
    }

    pub fn is_connect(&self) -> bool {
        match self.never {}
    }

    pub fn is_body(&self) -> bool {
        match self.never {}
    }

    pub fn is_decode(&self) -> bool {
        match self.never {}
    }

    pub fn is_builder(&self) -> bool {
        match self.never {}
    }

    #[must_use]
    pub fn without_url(self) -> Self {
        match self.never {}
    }
}

impl fmt::Display for AbsentClientError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}

impl StdError for AbsentClientError {}
