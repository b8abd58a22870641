//! A file is replaced as a whole or not at all.

use super::*;

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.json");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_text_is_new_and_nothing_else_is_left_in_the_folder() {
    let (folder, path) = file("old");
    replace(&path, "old", "new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(names(folder.path()), ["loop.json"]);
}

#[cfg(unix)]
#[test]
fn the_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = file("old");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    replace(&path, "old", "new").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_file_that_changed_meanwhile_is_left_as_it_is() {
    let (folder, path) = file("other");
    let fault = replace(&path, "old", "new").unwrap_err();
    assert!(fault.message.contains("changed"), "{fault:?}");
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), ("other", 1));
}

#[cfg(unix)]
#[test]
fn a_link_and_a_file_that_is_not_to_be_written_are_left_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = file("old");
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(replace(&link, "old", "new").unwrap_err().message.contains("link"));
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    assert!(replace(&path, "old", "new").unwrap_err().message.contains("permissions"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(replace(&folder.path().join("gone.json"), "", "x").unwrap_err().code, "L000");
}
