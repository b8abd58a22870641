//! `GET /`: the page for humans, embedded in the binary. It uses the API and nothing else.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::policy::characters::{BLANK, HIDDEN, PRESENTATION, class};

/// What the page may do: load its own files and send requests to its own server. The browser itself refuses
/// markup that is made from text.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// A file of the page, beside its document.
struct PageFile {
    path: &'static str,
    text: &'static str,
}

const STYLES: [PageFile; 2] = [
    PageFile { path: "/page.css", text: include_str!("../page/page.css") },
    PageFile { path: "/run.css", text: include_str!("../page/run.css") },
];

const SCRIPTS: [PageFile; 24] = [
    PageFile { path: "/page.js", text: include_str!("../page/page.js") },
    PageFile { path: "/about.js", text: include_str!("../page/about.js") },
    PageFile { path: "/acts.js", text: include_str!("../page/acts.js") },
    PageFile { path: "/approvals.js", text: include_str!("../page/approvals.js") },
    PageFile { path: "/audit.js", text: include_str!("../page/audit.js") },
    PageFile { path: "/bulk.js", text: include_str!("../page/bulk.js") },
    PageFile { path: "/decide.js", text: include_str!("../page/decide.js") },
    PageFile { path: "/diff.js", text: include_str!("../page/diff.js") },
    PageFile { path: "/fields.js", text: include_str!("../page/fields.js") },
    PageFile { path: "/flow.js", text: include_str!("../page/flow.js") },
    PageFile { path: "/form.js", text: include_str!("../page/form.js") },
    PageFile { path: "/graph.js", text: include_str!("../page/graph.js") },
    PageFile { path: "/home.js", text: include_str!("../page/home.js") },
    PageFile { path: "/list.js", text: include_str!("../page/list.js") },
    PageFile { path: "/loops.js", text: include_str!("../page/loops.js") },
    PageFile { path: "/pause.js", text: include_str!("../page/pause.js") },
    PageFile { path: "/place.js", text: include_str!("../page/place.js") },
    PageFile { path: "/run.js", text: include_str!("../page/run.js") },
    PageFile { path: "/said.js", text: include_str!("../page/said.js") },
    PageFile { path: "/server.js", text: include_str!("../page/server.js") },
    PageFile { path: "/time.js", text: include_str!("../page/time.js") },
    PageFile { path: "/units.js", text: include_str!("../page/units.js") },
    PageFile { path: "/waterfall.js", text: include_str!("../page/waterfall.js") },
    PageFile { path: "/workers.js", text: include_str!("../page/workers.js") },
];

/// The routes of the page and its files.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let of = |kind: &'static str, text: &'static str| get(async move || file(kind, text));
    let mut router = Router::new().route("/", of("text/html; charset=utf-8", &DOCUMENT));
    for PageFile { path, text } in &STYLES {
        router = router.route(path, of("text/css; charset=utf-8", text));
    }
    for PageFile { path, text } in &SCRIPTS {
        router = router.route(path, of("text/javascript; charset=utf-8", text));
    }
    router.route("/text.js", get(async || file("text/javascript; charset=utf-8", &TEXT)))
}

/// Names all scripts: a browser asks for them at once, and not one after the other as they import each other.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let paths = SCRIPTS.iter().map(|script| script.path).chain(["/text.js"]);
    let link = |path: &str| format!("<link rel=\"modulepreload\" href=\"{}\">", path.trim_start_matches('/'));
    let preloads: Vec<String> = paths.map(link).collect();
    include_str!("../page/index.html").replace("@PRELOADS@", &preloads.join("\n"))
});

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
