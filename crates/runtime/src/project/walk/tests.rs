//! Which files are found in folders, and in which order.

use super::*;

fn write(folder: &Path, name: &str) {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "{}").unwrap();
}

fn found(folder: &Path, paths: &[&str]) -> Vec<String> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
    let shown = |target: &Target| target.path.strip_prefix(folder).unwrap().display().to_string();
    targets(&paths).unwrap().files.iter().map(shown).collect()
}

#[test]
fn json_files_are_found_in_the_order_of_their_paths_each_once() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.json", "a/z.json", "a/b/c.json", "c.json", "a.json", "notes.txt", "a/x.JSON", "json"] {
        write(folder.path(), name);
    }
    let all = ["a/b/c.json", "a/z.json", "a.json", "b.json", "c.json"];
    assert_eq!(found(folder.path(), &[""]), all);
    assert_eq!(
        found(folder.path(), &["c.json", "a", "", "a/../b.json"]),
        ["c.json", "a/b/c.json", "a/z.json", "a.json", "b.json"]
    );
}

#[test]
fn a_file_that_is_found_and_named_counts_as_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.json");
    write(folder.path(), "b.json");
    let targets = targets(&[folder.path().to_owned(), folder.path().join("b.json")]).unwrap();
    assert_eq!(targets.files.iter().map(|target| target.named).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn hidden_folders_and_those_of_build_tools_are_passed_by_unless_they_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for name in [".git/a.json", "target/a.json", "x/node_modules/y/a.json", "x/a.json"] {
        write(folder.path(), name);
    }
    assert_eq!(found(folder.path(), &[""]), ["x/a.json"]);
    assert_eq!(found(folder.path(), &["target", ".git"]), ["target/a.json", ".git/a.json"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_inside_is_followed_and_each_file_is_found_once() {
    let folder = tempfile::tempdir().unwrap();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
    // The layout of a Kubernetes volume.
    write(folder.path(), "..2026/a.json");
    write(folder.path(), "..2026/b.json");
    link("..2026", "..data");
    link("..data/a.json", "a.json");
    link("..data/b.json", "b.json");
    // A file is known by its own name, if that is found too.
    write(folder.path(), "own/z.json");
    link("own/z.json", "again.json");
    link("nothing.json", "broken.json");
    assert_eq!(found(folder.path(), &[""]), ["a.json", "b.json", "own/z.json"]);
    assert_eq!(found(folder.path(), &["own", ""]), ["own/z.json", "a.json", "b.json"]);
    link("again.json", "own/back.json");
    assert_eq!(found(folder.path(), &["own"]), ["own/z.json"]);
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_pipes_and_loops_of_folders_are_passed_by() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "in/a.json");
    write(folder.path(), "out/b.json");
    let link =
        |to: &str, name: &str| std::os::unix::fs::symlink(folder.path().join(to), folder.path().join(name)).unwrap();
    link("out", "in/folder");
    link("out/b.json", "in/file.json");
    link("in", "in/round");
    link("nowhere", "in/gone.json");
    assert!(std::process::Command::new("mkfifo").arg(folder.path().join("in/pipe.json")).status().unwrap().success());
    assert_eq!(found(folder.path(), &["in"]), ["in/a.json"]);
    // A named file is always taken.
    assert_eq!(found(folder.path(), &["in/folder", "in/file.json"]), ["in/folder/b.json"]);
}

#[test]
fn what_is_not_there_is_left_to_the_reader_and_stdin_is_no_folder() {
    let targets = targets(&[PathBuf::from("-"), PathBuf::from("no/such.json")]).unwrap();
    assert_eq!(targets.files.len(), 2);
    assert!(targets.files.iter().all(|target| target.named && target.real.is_none()));
}

#[test]
fn more_files_than_are_looked_at_are_refused() {
    let mut walk = FolderWalk { found: MAX_WALKED, ..FolderWalk::default() };
    assert!(walk.bounded(Path::new("x")).is_ok());
    walk.found += 1;
    assert!(walk.bounded(Path::new("x")).unwrap_err().message.contains("more than 20000 JSON files"));
    let walk = FolderWalk { bytes: MAX_WALKED_BYTES + 1, ..FolderWalk::default() };
    assert!(walk.bounded(Path::new("x")).is_err());
    let walk = FolderWalk { entries: MAX_ENTRIES + 1, ..FolderWalk::default() };
    assert!(walk.bounded(Path::new("x")).is_err());
}
