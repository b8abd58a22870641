//! Which database a datasource means.

use std::collections::BTreeMap;
use std::fs;

use secrecy::ExposeSecret as _;

use super::*;
use loopctl_lang::language::project::Datasource;

#[test]
fn datasources_are_names_or_secrets() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("url"), "sqlite:from-secret.db").unwrap();
    fs::write(root.path().join("pg"), "oracle://user:hunter22@host/db").unwrap();
    let keys = BTreeMap::from([("db:x".to_owned(), "file:url".into()), ("db:pg".to_owned(), "file:pg".into())]);
    let vault = Vault::new(keys, root.path());
    let named = |url: &str| Datasource { url: url.to_owned(), ..Datasource::default() };
    let datasources = [("a", "sqlite:a.db"), ("m", "sqlite::memory:"), ("e", "sqlite:"), ("s", "orgconfig:db:x")];
    let project = Project {
        datasources: datasources.iter().map(|(name, url)| ((*name).to_owned(), named(url))).collect(),
        ..Project::default()
    };
    let file = |name: &str| {
        DatabaseAddress::of(name, &project, root.path(), &vault).map(|address| address.root.join(address.rest()))
    };
    assert_eq!(file("a").unwrap(), root.path().join("a.db"));
    assert_eq!(file("s").unwrap(), root.path().join("from-secret.db"));
    assert_eq!(file("orgconfig:db:x").unwrap(), root.path().join("from-secret.db"));
    assert_eq!(file("none").unwrap_err().class, "database: not configured");
    assert_eq!(file("orgconfig:db:none").unwrap_err().class, "database: not configured");
    for name in ["m", "e"] {
        assert_eq!(file(name).unwrap_err().class, "database: not supported");
    }
    let fault = file("orgconfig:db:pg").unwrap_err();
    assert!(fault.detail.contains("oracle:") && !fault.detail.contains("hunter22"), "{fault:?}");
    fs::write(root.path().join("pg"), "sk-hunter22").unwrap();
    let vault = Vault::new(BTreeMap::from([("db:pg".to_owned(), "file:pg".into())]), root.path());
    let fault = DatabaseAddress::of("orgconfig:db:pg", &project, root.path(), &vault).map(drop).unwrap_err();
    assert!(fault.detail.contains("orgconfig:db:pg") && !fault.detail.contains("hunter22"), "{fault:?}");
}

/// The address of a datasource with this URL and this source of a password, and the vault that read it.
fn addressed(url: &str, password: Option<&str>) -> (Result<DatabaseAddress, ToolFault>, Vault) {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("word"), "from-a-file-22").unwrap();
    let vault = Vault::new(BTreeMap::from([("db:word".to_owned(), "file:word".into())]), root.path());
    let datasource = Datasource { url: url.to_owned(), password: password.map(str::to_owned), ..Datasource::default() };
    let project = Project { datasources: [("d".to_owned(), datasource)].into(), ..Project::default() };
    (DatabaseAddress::of("d", &project, root.path(), &vault), vault)
}

/// Servers repeat parts of an address in their errors.
#[test]
fn the_password_of_an_address_is_hidden_wherever_it_stands_alone() {
    let hidden = "[secret the password of the datasource d]";
    for (url, password) in [
        ("postgres://user:hunter22-word@host/db", "hunter22-word"),
        ("postgres://user:hunter%4022%20word@host/db", "hunter@22 word"),
        ("postgres://user@host/db?password=hunter22-word", "hunter22-word"),
        ("postgres://user@host/db?sslmode=require&password=hunter%4022+word", "hunter@22 word"),
        ("oracle://user@host/db?password=hunter22-word", "hunter22-word"),
    ] {
        let (_, vault) = addressed(url, None);
        assert_eq!(vault.scrub(format!("refused: {password}.")), format!("refused: {hidden}."), "{url}");
        assert_eq!(vault.scrub("user require host".to_owned()), "user require host", "{url}");
    }
    // Both are kept: a driver may take either.
    let (_, vault) = addressed("postgres://user:first-word-22@host/db?password=second-word-22", None);
    assert_eq!(
        vault.scrub("first-word-22 second-word-22".to_owned()),
        format!("{hidden} {}", hidden.replace("the password", "the other password"))
    );
    for none in ["postgres://user:@host/db?password=", "postgres://user@host/db?passwords=plain-word-22"] {
        let (_, vault) = addressed(none, None);
        assert_eq!(vault.scrub("user plain-word-22 host".to_owned()), "user plain-word-22 host", "{none}");
    }
}

#[test]
fn a_password_beside_the_address_says_where_it_is() {
    for source in ["file:word", "orgconfig:db:word"] {
        let (address, _) = addressed("sqlite:a.db", Some(source));
        let password = address.unwrap().password.unwrap();
        assert_eq!(password.expose_secret(), "from-a-file-22", "{source}");
    }
    for written in ["hunter22-word", "plain:hunter22-word", ""] {
        let (address, _) = addressed("sqlite:a.db", Some(written));
        let fault = address.map(drop).unwrap_err();
        assert_eq!(
            (fault.class.as_str(), fault.detail.as_str()),
            ("database: not configured", "`password` must say where it is")
        );
    }
    assert!(addressed("sqlite:a.db", None).0.unwrap().password.is_none());
}

#[test]
fn of_an_address_that_no_database_takes_a_short_scheme_is_shown_and_nothing_else() {
    for (url, shown) in [
        ("oracle://user:hunter22-word@host/db", "not `oracle:`"),
        ("hunter22-word-that-is-long", "not `?:`"),
        ("nineteen-characters:x", "not `nineteen-characters:`"),
        ("twenty-characters-us:x", "not `?:`"),
    ] {
        let fault = addressed(url, None).0.map(drop).unwrap_err();
        assert_eq!(fault.class, "database: not supported");
        assert!(fault.detail.contains(shown) && !fault.detail.contains("hunter22"), "{url}: {}", fault.detail);
    }
}
