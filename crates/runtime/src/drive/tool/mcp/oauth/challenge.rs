//! What a server says of the token that it wants: `WWW-Authenticate`.

use ::http::HeaderMap;
use ::http::header::WWW_AUTHENTICATE;

/// The most bytes of a header that are read.
const MAX_BYTES: usize = 8 << 10;

/// What a server says of the token that it wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct BearerChallenge {
    /// The scopes that a request needs, between spaces.
    pub scope: Option<String>,
    /// Where the server says what it is, and who gives tokens for it.
    pub resource_metadata: Option<String>,
}

impl BearerChallenge {
    /// That of an answer.
    pub(in super::super) fn of(headers: &HeaderMap) -> Self {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let mut found = Self::default();
        for text in texts.filter(|text| text.len() <= MAX_BYTES) {
            found.read(text);
        }
        found
    }

    /// The scopes.
    pub(in super::super) fn scopes(&self) -> impl Iterator<Item = String> {
        self.scope.iter().flat_map(|scope| scope.split_ascii_whitespace()).map(str::to_owned)
    }

    /// A header may have the challenges of several schemes, one after the other.
    fn read(&mut self, text: &str) {
        let mut is_bearer = false;
        for item in items(text) {
            // `Bearer realm="x"` begins a challenge, `scope="y"` belongs to it.
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            let mut words = name.split_ascii_whitespace();
            let (first, second) = (words.next().unwrap_or_default(), words.next());
            let name = match second {
                Some(name) => {
                    is_bearer = first.eq_ignore_ascii_case("bearer");
                    name
                }
                None if value.is_empty() => {
                    is_bearer = first.eq_ignore_ascii_case("bearer");
                    continue;
                }
                None => first,
            };
            if !is_bearer {
                continue;
            }
            let place = match name.to_ascii_lowercase().as_str() {
                "scope" => &mut self.scope,
                "resource_metadata" => &mut self.resource_metadata,
                _ => continue,
            };
            place.get_or_insert_with(|| unquoted(value.trim()));
        }
    }
}

/// The parts between commas, but those between quotes.
fn items(text: &str) -> Vec<&str> {
    let (mut all, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, sign) in text.char_indices() {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                all.extend(text.get(start..at));
                start = at.saturating_add(1);
            }
            _ => {}
        }
    }
    all.extend(text.get(start..));
    all.into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) else {
        return value.to_owned();
    };
    let (mut text, mut is_escaped) = (String::new(), false);
    for sign in inner.chars() {
        if sign == '\\' && !is_escaped {
            is_escaped = true;
        } else {
            text.push(sign);
            is_escaped = false;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_wants_is_read_of_its_challenge_and_of_no_other_one() {
        let of = |texts: &[&str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(WWW_AUTHENTICATE, text.parse().unwrap());
            }
            let BearerChallenge { scope, resource_metadata } = BearerChallenge::of(&headers);
            (scope.unwrap_or_default(), resource_metadata.unwrap_or_default())
        };
        let (scope, at) = ("a b".to_owned(), "https://x.example/m?a,b=c".to_owned());
        for texts in [
            &[r#"Bearer resource_metadata="https://x.example/m?a,b=c", scope="a b""#][..],
            &[
                r#"bearer realm="a, \"Basic\" b",error=invalid_token , Scope = "a b", resource_metadata="https://x.example/m?a,b=c""#,
            ],
            &[r#"Basic realm="x", scope="no", Bearer scope="a b", resource_metadata="https://x.example/m?a,b=c""#],
            &[r#"Basic realm="x""#, r#"Bearer scope="a b""#, r#"Bearer resource_metadata="https://x.example/m?a,b=c""#],
        ] {
            assert_eq!(of(texts), (scope.clone(), at.clone()), "{texts:?}");
        }
        assert_eq!(of(&["Bearer"]), <(String, String)>::default());
        assert_eq!(of(&["Bearer", r#"Digest scope="no""#, "", ",=,\"", r#"Bearer scope="y"#]).1, "");
        assert_eq!(of(&[r#"Bearer, scope="a b""#]).0, scope);
    }
}
