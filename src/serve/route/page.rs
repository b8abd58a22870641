//! `GET /`: the page for humans, embedded in the binary. It uses the API and nothing else.

use std::sync::LazyLock;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

use crate::policy::characters::{BLANK, HIDDEN, PRESENTATION, class};

/// What the page may do: load its own files and send requests to its own server. The browser itself refuses
/// markup that is made from text.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

pub async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("../page/index.html"))
}

pub async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("../page/page.css"))
}

pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../page/page.js"))
}

/// The forms of decisions.
pub async fn decide() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../page/decide.js"))
}

/// The steps of a workflow.
pub async fn flow() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../page/flow.js"))
}

/// One iteration of a loop.
pub async fn time() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../page/time.js"))
}

/// Requests to the server.
pub async fn server() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../page/server.js"))
}

/// The functions that show text.
pub async fn text() -> Response {
    file("text/javascript; charset=utf-8", &TEXT)
}

/// Includes the table of characters by which the rest of the program escapes.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let (hidden, deceives) = (class(&[HIDDEN]), class(&[HIDDEN, PRESENTATION, BLANK]));
    include_str!("../page/text.js").replace("@HIDDEN@", &hidden).replace("@DECEIVES@", &deceives)
});

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::characters::{deceives, is_hidden};

    /// The ranges of the character class in a constant of the script.
    fn ranges(name: &str) -> Vec<(u32, u32)> {
        let (_, after) = TEXT.split_once(&format!("const {name} = /[")).unwrap();
        let (class, _) = after.split_once("]/gu;").unwrap();
        let number = |sign: &str| u32::from_str_radix(sign.strip_prefix("\\u{")?.strip_suffix('}')?, 16).ok();
        let pairs = class.split_inclusive('}').collect::<Vec<_>>();
        let pair = |pair: &[&str]| Some((number(pair[0])?, number(pair[1].strip_prefix('-')?)?));
        pairs.chunks(2).map(|at| pair(at).unwrap()).collect()
    }

    #[test]
    fn the_page_hides_the_same_characters_as_the_rest() {
        assert!(!TEXT.contains('@'), "every place is filled in");
        type Rule = fn(char) -> bool;
        for (name, rule) in [("HIDDEN", is_hidden as Rule), ("DECEIVES", deceives as Rule)] {
            let ranges = ranges(name);
            let in_page = |c: char| ranges.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(c)));
            let differs = ('\0'..=char::MAX).find(|c| in_page(*c) != rule(*c));
            assert_eq!(differs, None, "{name}");
        }
    }
}
