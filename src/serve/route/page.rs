//! `GET /`: the page for humans, whole in the binary. It shows what the API tells it, and nothing more.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

/// What the page may do: load its own files and ask its own server. Markup that is made from text
/// is refused by the browser itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The page.
pub async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("../page/index.html"))
}

/// Its style.
pub async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("../page/page.css"))
}

/// What it does.
pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../page/page.js"))
}

/// How it shows text.
pub async fn text() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../page/text.js"))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    ];
    (headers, text).into_response()
}
