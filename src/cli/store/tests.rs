//! Which store is found from which folder.

use super::*;

#[test]
fn a_given_store_wins_and_is_relative_to_the_current_folder() {
    let place = locate(Some("sqlite:x.db"), Path::new("some/folder")).unwrap();
    assert_eq!((place.url.as_str(), place.base.as_path()), ("sqlite:x.db", Path::new(".")));
}

#[test]
fn the_project_above_says_where_and_its_folder_is_the_base() {
    let top = tempfile::tempdir().unwrap();
    let below = top.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(top.path().join(Project::FILE), r#"{"store": "sqlite:all.db"}"#).unwrap();
    let place = locate(None, &below).unwrap();
    assert_eq!(place.file().unwrap().canonicalize().ok(), None);
    assert_eq!(place.file().unwrap(), top.path().join("all.db"));
    assert!(place.project.is_some());
}

#[test]
fn without_a_project_it_is_the_folders_own() {
    let top = tempfile::tempdir().unwrap();
    let place = locate(None, top.path()).unwrap();
    assert_eq!(place.file().unwrap(), top.path().join(".loopctl/runs.db"));
    assert_eq!(place.home().unwrap(), top.path());
    assert!(!place.exists() && place.lasts());
}

#[test]
fn a_broken_project_file_is_reported() {
    let top = tempfile::tempdir().unwrap();
    std::fs::write(top.path().join(Project::FILE), "{").unwrap();
    assert!(matches!(locate(None, top.path()), Err(CommandError::Usage { .. })));
}

#[test]
fn a_store_elsewhere_must_be_named_in_commands() {
    let top = tempfile::tempdir().unwrap();
    let place = locate(None, top.path()).unwrap();
    assert_eq!(place.needed(), Some(format!("sqlite:{}", top.path().join(".loopctl/runs.db").display())));
}
