//! Which field names say that their value is secret.

/// What a name says about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// Nothing.
    None,
    /// Texts and containers are secret; numbers and booleans are not.
    Texts,
    /// All but booleans.
    All,
}

/// Words that make every name secret that contains them.
const ANYWHERE: &[&str] =
    &["password", "passwd", "passphrase", "passcode", "authorization", "credential", "credentials"];

/// Words that make a name secret as its last word.
const LAST: &[&str] = &["secret", "secrets", "apikey", "pwd", "cookie", "cookies", "otp", "totp", "cvv", "cvc", "jwt"];

/// The words before `key` that make it secret.
const BEFORE_KEY: &[&str] = &[
    "api",
    "access",
    "private",
    "secret",
    "signing",
    "encryption",
    "master",
    "ssh",
    "account",
    "auth",
    "shared",
    "service",
    "subscription",
    "deploy",
    "webhook",
    "hmac",
    "aes",
    "rsa",
];

/// The words before `token` that make it no secret: pages, positions in a text, kinds of tokens.
const BEFORE_TOKEN: &[&str] = &[
    "next",
    "page",
    "previous",
    "prev",
    "continuation",
    "continue",
    "cursor",
    "sync",
    "pagination",
    "resume",
    "max",
    "min",
    "input",
    "output",
    "total",
    "stop",
    "eos",
    "bos",
    "pad",
    "unk",
    "unknown",
    "mask",
    "special",
    "cls",
    "sep",
    "start",
    "end",
    "design",
    "css",
    "lexer",
    "parser",
    "syntax",
    "first",
    "last",
    "prompt",
    "completion",
    "current",
    "per",
    "new",
    "context",
    "text",
    "word",
    "sub",
];

/// The words before `tokens` that make them secret; other `tokens` are counted or written.
const BEFORE_TOKENS: &[&str] =
    &["access", "refresh", "auth", "api", "session", "bearer", "security", "identity", "personal", "oauth"];

/// Last words that describe a secret but are none: `password_policy`, `secret_name`.
const ABOUT: &[&str] = &[
    "name",
    "names",
    "id",
    "ids",
    "hint",
    "policy",
    "length",
    "url",
    "uri",
    "link",
    "path",
    "file",
    "expires",
    "expiry",
    "expiration",
    "ttl",
    "updated",
    "changed",
    "created",
    "rotated",
    "at",
    "age",
    "count",
    "strength",
    "required",
    "type",
    "kind",
    "status",
    "rotation",
    "version",
    "arn",
    "ref",
    "reference",
    "label",
    "title",
    "description",
    "field",
    "fields",
    "source",
    "provider",
    "consent",
    "domain",
    "limit",
    "attempts",
    "format",
    "scope",
    "scopes",
    "manager",
    "reset",
    "days",
    "date",
    "enabled",
    "error",
    "message",
    "scheme",
    "method",
    "found",
];

/// Last words that still mean the secret itself: `password_value`, `authorization_header`.
const ITSELF: &[&str] =
    &["value", "text", "plain", "plaintext", "raw", "header", "b64", "base64", "encoded", "old", "confirm"];

/// Names written as one word: a name with such an ending is secret.
const WRITTEN_TOGETHER: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesstoken",
    "authtoken",
    "refreshtoken",
    "idtoken",
    "sessiontoken",
    "bearertoken",
    "securitytoken",
    "csrftoken",
    "xsrftoken",
    "clientsecret",
    "privatekey",
    "secretkey",
    "accesskey",
    "connectionstring",
    "setcookie",
];

/// Whether a name is that of a password, which may be any word.
pub fn is_password(name: &str) -> bool {
    let folded = fold(name);
    let folded = unnumbered(&folded);
    ["password", "passwd", "passphrase", "passcode", "pwd"].iter().any(|word| folded.ends_with(word))
}

/// The names under which other products keep secrets: `secrets.x`, `env.X`.
const HOLDERS: &[&str] = &["orgconfig", "secrets", "secret", "env", "environ", "vault"];

/// Whether a name is that under which another product keeps secrets.
pub fn holds_secrets(name: &str) -> bool {
    HOLDERS.iter().any(|holder| holder.eq_ignore_ascii_case(name))
}

/// Whether a template's variable names a secret in the syntax of another product: `secrets.x`, `orgconfig:x`, `API_KEY`.
/// Filled as a variable, the model would write it.
pub fn is_foreign_secret(path: &[String]) -> bool {
    let Some(first) = path.first() else { return false };
    let holder = first.split_once(':').map(|(holder, _)| holder);
    match holder.or((path.len() > 1).then_some(first)) {
        Some(holder) => holds_secrets(holder.trim_start_matches('$')),
        None => is_variable(first) && secrecy(first) != Secrecy::None,
    }
}

/// Whether a name is written as variables of the environment are: `API_KEY`.
pub fn is_variable(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// A name without case and separators.
pub fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What a name says about its value.
pub fn secrecy(name: &str) -> Secrecy {
    // No field of a sensible document has a longer name; a text that is used as a name is not searched.
    if name.len() > 128 {
        return Secrecy::None;
    }
    let words = words(name);
    let mut words: &[String] = &words;
    while let Some((last, rest)) = words.split_last() {
        let is_itself = ITSELF.contains(&last.as_str()) || ITSELF.contains(&unnumbered(last));
        if !rest.is_empty() && (is_itself || unnumbered(last).is_empty()) {
            words = rest;
        } else {
            break;
        }
    }
    let Some((last, before)) = words.split_last() else { return Secrecy::None };
    let last = unnumbered(last);
    if !before.is_empty() && ABOUT.contains(&last) {
        return Secrecy::None;
    }
    if words.iter().any(|word| ANYWHERE.contains(&unnumbered(word))) || LAST.contains(&last) {
        return Secrecy::All;
    }
    by_last(last, before.last().map(String::as_str))
}

/// A word without the number behind it: `password2` is a password. `auth0` is a product.
fn unnumbered(word: &str) -> &str {
    if word == "auth0" { word } else { word.trim_end_matches(|c: char| c.is_ascii_digit()) }
}

fn by_last(last: &str, before: Option<&str>) -> Secrecy {
    match (last, before) {
        ("key", Some(before)) if BEFORE_KEY.contains(&before) => Secrecy::All,
        ("keys", Some("api" | "private" | "secret")) => Secrecy::All,
        ("string", Some("connection")) => Secrecy::All,
        ("token", Some(before)) if BEFORE_TOKEN.contains(&before) => Secrecy::None,
        ("token" | "pass" | "dsn", _) | ("auth" | "bearer", None) => Secrecy::Texts,
        ("tokens", Some(before)) if BEFORE_TOKENS.contains(&before) => Secrecy::Texts,
        (last, _) if WRITTEN_TOGETHER.iter().any(|name| last.ends_with(name)) => Secrecy::All,
        _ => Secrecy::None,
    }
}

/// The words of a name, in lower case: separated by `_`, `-`, `.`, spaces and a change to a capital letter.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let begins = c.is_uppercase()
            && (before.is_lowercase()
                || before.is_ascii_digit()
                || (before.is_uppercase() && rest.peek().is_some_and(|next| next.is_lowercase())));
        if (begins || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match c {
            _ if c.is_ascii_alphanumeric() => word.push(c.to_ascii_lowercase()),
            _ if c.is_alphanumeric() => word.extend(c.to_lowercase()),
            _ => {}
        }
        before = c;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_says_is_in_its_last_word_and_the_one_before() {
        for (name, secrecy_of) in [
            ("password", Secrecy::All),
            ("password_2", Secrecy::All),
            ("password1", Secrecy::All),
            ("dbPassword12", Secrecy::All),
            ("password2_confirm", Secrecy::All),
            ("api_key2", Secrecy::All),
            ("token1", Secrecy::Texts),
            ("next_token1", Secrecy::None),
            ("auth0", Secrecy::None),
            ("password_value2", Secrecy::All),
            ("api_key_b64", Secrecy::All),
            ("signingKey", Secrecy::All),
            ("password_hint2", Secrecy::None),
            ("key_1", Secrecy::None),
            ("2", Secrecy::None),
            ("value", Secrecy::None),
            ("api_key_value", Secrecy::All),
            ("apiKEY", Secrecy::All),
            ("my.api-key", Secrecy::All),
            ("X2Key", Secrecy::None),
            ("api2Key", Secrecy::None),
            ("api_keys", Secrecy::All),
            ("public_keys", Secrecy::None),
            ("connection_string", Secrecy::All),
            ("long_string", Secrecy::None),
            ("token", Secrecy::Texts),
            ("next_token", Secrecy::None),
            ("JSONToken", Secrecy::Texts),
            ("access_tokens", Secrecy::Texts),
            ("input_tokens", Secrecy::None),
            ("auth", Secrecy::Texts),
            ("basic_auth", Secrecy::None),
            ("myapikey", Secrecy::All),
            ("password_policy", Secrecy::None),
            ("policy", Secrecy::None),
            ("", Secrecy::None),
            ("-", Secrecy::None),
            ("authorization_header", Secrecy::All),
            ("session_cookie", Secrecy::All),
        ] {
            assert_eq!(secrecy(name), secrecy_of, "{name}");
        }
        let long = |length: usize| format!("{}_password", "x".repeat(length - 9));
        assert_eq!((secrecy(&long(128)), secrecy(&long(129))), (Secrecy::All, Secrecy::None));
    }

    #[test]
    fn the_names_of_passwords_may_be_followed_by_any_word() {
        for name in ["password", "DB_PASSWORD", "userPwd", "pass-phrase", "passcode", "passwd", "password2"] {
            assert!(is_password(name), "{name}");
        }
        for name in ["password_policy", "token", "pass"] {
            assert!(!is_password(name), "{name}");
        }
    }

    #[test]
    fn secrets_in_the_syntax_of_other_products_are_known() {
        let is_foreign = |path: &str| is_foreign_secret(&path.split('.').map(str::to_owned).collect::<Vec<_>>());
        for path in ["secrets.x", "ENV.home", "orgconfig:x", "$env:x", "$vault.a.b", "API_KEY", "DB_PASSWORD2"] {
            assert!(is_foreign(path), "{path}");
        }
        for path in ["secrets", "env", "input.secrets", "other:x", "api_key", "KEY_NAME", "A", "API-KEY", "2_TOKEN"] {
            assert!(!is_foreign(path), "{path}");
        }
        assert!(!is_foreign_secret(&[]));
    }

    #[test]
    fn variables_of_the_environment_are_written_in_capitals() {
        for name in ["API_KEY", "A1", "X_"] {
            assert!(is_variable(name), "{name}");
        }
        for name in ["", "A", "_A", "1A", "Api", "A-B", "API KEY"] {
            assert!(!is_variable(name), "{name}");
        }
        assert_eq!(fold("My-Name_2 É"), "myname2é");
    }
}
