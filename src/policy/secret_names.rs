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
        let numbered = !rest.is_empty() && last.chars().all(|c| c.is_ascii_digit());
        if numbered || (!rest.is_empty() && ITSELF.contains(&last.as_str())) {
            words = rest;
        } else {
            break;
        }
    }
    let Some((last, before)) = words.split_last() else { return Secrecy::None };
    if !before.is_empty() && ABOUT.contains(&last.as_str()) {
        return Secrecy::None;
    }
    if words.iter().any(|word| ANYWHERE.contains(&word.as_str())) || LAST.contains(&last.as_str()) {
        return Secrecy::All;
    }
    by_last(last, before.last().map(String::as_str))
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
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
