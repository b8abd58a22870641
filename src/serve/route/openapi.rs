//! `GET /openapi.json`: the description of all routes.

use axum::http::StatusCode;
use axum::response::Response;

use crate::serve::{openapi, request};

/// The description, OpenAPI 3.1.
pub async fn openapi() -> Response {
    request::json(StatusCode::OK, &*openapi::DOCUMENT)
}
