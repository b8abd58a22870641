//! `GET /openapi.json`: the description of all routes.

use axum::Extension;
use axum::extract::NestedPath;
use axum::http::StatusCode;
use axum::response::Response;

use crate::serve::{openapi, request};

/// The description, OpenAPI 3.1. Where the router is mounted under a prefix, its server is at this prefix.
pub async fn openapi(prefix: Option<Extension<NestedPath>>) -> Response {
    match prefix {
        None => request::json(StatusCode::OK, &*openapi::DOCUMENT),
        Some(Extension(prefix)) => request::json(StatusCode::OK, &openapi::under(prefix.as_str())),
    }
}
