//! The secrets of an operation: `securitySchemes`, as headers and queries with `orgconfig:`.

use std::collections::{BTreeMap, BTreeSet};

use super::page_files::{PageFiles, PagePart};
use super::page_text::name_of;
use super::parameter::{Parameter, ParameterPlace};
use crate::compile::tool::is_connection_header;

/// The most characters of the key of a secret.
const MAX_KEY_CHARACTERS: usize = 64;

/// How the requests of an operation say who sends them.
#[derive(Debug, Default, Clone)]
pub(super) struct OperationCredentials {
    pub headers: BTreeMap<String, String>,
    pub query: BTreeMap<String, String>,
    /// The keys of the secrets, and what each holds.
    pub secrets: BTreeMap<String, String>,
}

impl OperationCredentials {
    /// Whether a parameter is sent by them.
    pub fn send(&self, parameter: &Parameter) -> bool {
        match parameter.place {
            ParameterPlace::Path => false,
            ParameterPlace::Query => self.query.contains_key(&parameter.name),
            ParameterPlace::Header => self.headers.keys().any(|own| own.eq_ignore_ascii_case(&parameter.name)),
        }
    }
}

/// The credentials of an operation: those of the first alternative that an action can send. `keys`: those of the secrets, by scheme.
/// `bearer`: the key of the secret for operations that say nothing.
///
/// # Errors
/// Why no action can send any of them.
pub(super) fn credentials(
    files: &PageFiles,
    operation: PagePart<'_>,
    keys: &BTreeMap<String, String>,
    bearer: Option<&str>,
) -> Result<OperationCredentials, String> {
    let page = files.page();
    let Some(written) = operation.get("security").or_else(|| page.get("security")) else {
        return Ok(bearer.map(of_bearer).unwrap_or_default());
    };
    let (mut refusal, mut is_optional) = (None, written.items().next().is_none());
    for alternative in written.items() {
        if alternative.object().is_none_or(serde_json::Map::is_empty) {
            is_optional = true;
            continue;
        }
        let mut made = OperationCredentials::default();
        let names: Vec<&String> = alternative.members().map(|(name, _)| name).collect();
        let added: Result<Vec<()>, String> = names.iter().map(|name| add(files, name, keys, &mut made)).collect();
        match added {
            Ok(_) => return Ok(made),
            Err(why) => refusal = refusal.or(Some(why)),
        }
    }
    match refusal {
        Some(why) if !is_optional => Err(why),
        _ => Ok(OperationCredentials::default()),
    }
}

/// A token that the caller names.
fn of_bearer(key: &str) -> OperationCredentials {
    OperationCredentials {
        headers: BTreeMap::from([("Authorization".to_owned(), format!("Bearer orgconfig:{key}"))]),
        secrets: BTreeMap::from([(key.to_owned(), "the token".to_owned())]),
        ..OperationCredentials::default()
    }
}

/// Adds what a scheme asks for.
fn add(
    files: &PageFiles,
    name: &str,
    keys: &BTreeMap<String, String>,
    made: &mut OperationCredentials,
) -> Result<(), String> {
    let unknown = || format!("it names the security scheme `{name}`, which is not described");
    let schemes = files.page().get("components").and_then(|all| all.get("securitySchemes"));
    let scheme = files.follow(schemes.and_then(|all| all.get(name)).ok_or_else(unknown)?)?;
    let key = keys.get(name).ok_or_else(unknown)?;
    let kind = scheme.text("type").unwrap_or_default();
    let (place, header, text, holds) = match kind {
        "http" => match scheme.text("scheme").unwrap_or_default().to_ascii_lowercase().as_str() {
            "bearer" => ("header", "Authorization", format!("Bearer orgconfig:{key}"), "the token".to_owned()),
            "basic" => {
                let holds = "USER:PASSWORD in base64".to_owned();
                ("header", "Authorization", format!("Basic orgconfig:{key}"), holds)
            }
            other => return Err(format!("its security scheme `{name}` is HTTP's `{other}`")),
        },
        "oauth2" | "openIdConnect" => {
            ("header", "Authorization", format!("Bearer orgconfig:{key}"), "an access token".to_owned())
        }
        "apiKey" => {
            let sent = scheme.text("name").unwrap_or_default();
            let place = scheme.text("in").unwrap_or_default();
            (place, sent, format!("orgconfig:{key}"), format!("the key that is sent as `{sent}`"))
        }
        other => return Err(format!("its security scheme `{name}` is `{other}`")),
    };
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    match place {
        "header" if !header.is_empty() && header.chars().all(is_token) && !is_connection_header(header) => {
            let is_twice = made.headers.keys().any(|known| known.eq_ignore_ascii_case(header));
            // One key under two names is sent once.
            if is_twice && kind == "apiKey" {
                return Ok(());
            }
            if is_twice {
                return Err(format!("two of its security schemes send the header `{header}`"));
            }
            made.headers.insert(header.to_owned(), text);
        }
        "query" if made.query.contains_key(header) => return Ok(()),
        "query" if !header.is_empty() => {
            made.query.insert(header.to_owned(), text);
        }
        "cookie" => return Err(format!("its security scheme `{name}` is a cookie")),
        _ => return Err(format!("its security scheme `{name}` is sent as no header and no parameter")),
    }
    made.secrets.insert(key.clone(), holds);
    Ok(())
}

/// The keys of the secrets of all schemes of a page. Two schemes have no key in common, whatever of their names is left in it, and one
/// that was pinned before keeps its key: what is new never gets the secret of another one.
pub(super) fn scheme_keys(
    files: &PageFiles,
    prefix: &str,
    known: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let schemes = files.page().get("components").and_then(|all| all.get("securitySchemes"));
    let names: BTreeSet<&str> =
        schemes.into_iter().flat_map(PagePart::members).map(|(name, _)| name.as_str()).collect();
    keys_of(&names, prefix, known)
}

fn keys_of(names: &BTreeSet<&str>, prefix: &str, known: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let own = |name: &str| {
        let key = format!("{prefix}_{}", name_of(name, &[])).to_ascii_lowercase();
        key.trim_end_matches('_').chars().take(MAX_KEY_CHARACTERS).collect::<String>()
    };
    let (mut keys, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for name in names {
        // A lock file may say anything.
        let key = known.get(*name).filter(|key| is_key_of(key, &own(name)));
        if let Some(key) = key.filter(|key| taken.insert((*key).clone())) {
            keys.insert((*name).to_owned(), key.clone());
        }
    }
    for name in names {
        if !keys.contains_key(*name) {
            let own = own(name);
            let mut numbers = 2_usize..;
            let mut key = own.clone();
            while !taken.insert(key.clone()) {
                key = numbered(&own, &numbers.next().unwrap_or_default().to_string());
            }
            keys.insert((*name).to_owned(), key);
        }
    }
    keys
}

/// A key with a number behind it, which has no more characters than others.
fn numbered(own: &str, number: &str) -> String {
    let most = MAX_KEY_CHARACTERS.saturating_sub(number.len().saturating_add(1));
    format!("{}_{number}", own.chars().take(most).collect::<String>())
}

/// Whether a key is one that a scheme may have: its own, or that with a number.
fn is_key_of(key: &str, own: &str) -> bool {
    let number = key.rsplit_once('_').map_or("", |(_, number)| number);
    let is_number = !number.is_empty() && number.len() <= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
    key == own || is_number && key == numbered(own, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_schemes_have_two_keys_and_a_new_one_takes_none_of_them() {
        let long = ["a".repeat(80), "a".repeat(81)];
        let names = BTreeSet::from(["api_key", "api-key", "API-Key", "other", &long[0], &long[1]]);
        let keys = keys_of(&names, "shop", &BTreeMap::new());
        let of = |name: &str| keys[name].as_str();
        assert_eq!(
            [of("api_key"), of("api-key"), of("API-Key"), of("other")],
            ["shop_api_key_3", "shop_api_key_2", "shop_api_key", "shop_other"]
        );
        let [one, other] = [of(&long[0]), of(&long[1])];
        assert!(one != other && [one, other].iter().all(|key| key.len() == MAX_KEY_CHARACTERS), "{keys:?}");
        let more: BTreeSet<&str> = names.iter().copied().chain(["API-KEY", "API_Key"]).collect();
        let later = keys_of(&more, "shop", &keys);
        assert!(keys.iter().all(|(name, key)| later[name] == *key), "{later:?}");
        assert_eq!([&*later["API-KEY"], &*later["API_Key"]], ["shop_api_key_4", "shop_api_key_5"]);
        // A lock file that says another secret of the project.
        let odd = BTreeMap::from([("other".to_owned(), "bank_password".to_owned())]);
        assert_eq!(keys_of(&names, "shop", &odd)["other"], "shop_other");
    }
}
