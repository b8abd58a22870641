//! Which database a datasource means.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::language::project::Datasource;

#[test]
fn datasources_are_names_or_secrets() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("url"), "sqlite:from-secret.db").unwrap();
    fs::write(root.path().join("pg"), "oracle://user:hunter22@host/db").unwrap();
    let keys = BTreeMap::from([("db:x".to_owned(), "file:url".to_owned()), ("db:pg".to_owned(), "file:pg".to_owned())]);
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
}
