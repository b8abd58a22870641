//! What is gathered from real folders, and what is refused there.
use super::*;

const LOOP: &str = r#"{"type": "loop", "properties": {"mode": "react", "objective": "x", "tools": []}}"#;

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    file
}

fn names(gathered: &Gathered) -> Vec<String> {
    let name = |source: &Source| Path::new(&*source.name).file_name().unwrap().to_string_lossy().into_owned();
    gathered.texts.actions.iter().map(name).collect()
}

fn refused(path: &Path) -> Diagnostic {
    let mut faults = gather(path, &[]).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.remove(0)
}

#[test]
fn the_project_and_the_actions_up_to_its_folder_are_found_the_nearest_first() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "loopctl.json", "{}");
    write(root, "actions/z.json", "[]");
    write(root, "team/actions/b.json", "[]");
    write(root, "team/actions/a.json", "[]");
    write(root, "team/actions/notes.txt", "no");
    write(root, "other/actions/c.json", "[]");
    let document = write(root, "team/loop.json", LOOP);
    let gathered = gather(&document, &[]).unwrap();
    assert_eq!(names(&gathered), ["a.json", "b.json", "z.json"]);
    assert_eq!(gathered.root.canonicalize().unwrap(), root.canonicalize().unwrap());
    assert!(gathered.texts.project.is_some());
}

#[test]
fn without_a_project_only_the_actions_beside_the_document_are_found() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "actions/z.json", "[]");
    write(folder.path(), "team/actions/a.json", "[]");
    let document = write(folder.path(), "team/loop.json", LOOP);
    let gathered = gather(&document, &[]).unwrap();
    assert_eq!(names(&gathered), ["a.json"]);
    assert_eq!(gathered.root, folder.path().join("team"));
}

#[test]
fn a_file_that_is_named_is_not_taken_a_second_time() {
    let folder = tempfile::tempdir().unwrap();
    let named = write(folder.path(), "actions/a.json", "[]");
    let document = write(folder.path(), "loop.json", LOOP);
    let gathered = gather(&document, &[named]).unwrap();
    assert_eq!((gathered.texts.actions.len(), gathered.texts.extra_actions.len()), (0, 1));
}

#[test]
fn what_is_missing_or_no_file_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let missing = refused(&folder.path().join("no.json"));
    assert_eq!((missing.code, missing.message.as_str()), ("L000", "the file can't be read: there is no such file"));
    assert_eq!(refused(folder.path()).message, "this is a folder; a file was expected");
}

#[cfg(unix)]
#[test]
fn a_pipe_and_a_device_are_refused_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("loop.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(refused(&pipe).message.contains("no regular file"));
    assert!(refused(Path::new("/dev/zero")).message.contains("no regular file"));
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_project_is_not_followed_and_one_inside_is() {
    let folder = tempfile::tempdir().unwrap();
    let outside = write(folder.path(), "outside.json", "[]");
    let inside = write(folder.path(), "project/inside.json", "[]");
    let document = write(folder.path(), "project/loop.json", LOOP);
    std::fs::create_dir(folder.path().join("project/actions")).unwrap();
    std::os::unix::fs::symlink(outside, folder.path().join("project/actions/a.json")).unwrap();
    std::os::unix::fs::symlink(inside, folder.path().join("project/actions/b.json")).unwrap();
    let gathered = gather(&document, &[]).unwrap();
    assert_eq!(names(&gathered), ["b.json"]);
    assert_eq!(gathered.texts.unread.len(), 1);
}

#[test]
fn bytes_that_are_not_utf_8_are_reported_with_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let document = write(folder.path(), "loop.json", b"{\n \"\xc3\xa9\": \"\xff\"}");
    let fault = refused(&document);
    assert_eq!((fault.code, fault.place.line, fault.place.column), ("L002", 2, 8));
    let wide = write(folder.path(), "wide.json", b"\xff\xfe{\0}\0");
    assert_eq!(refused(&wide).help.as_deref(), Some("save it as UTF-8"));
}

#[test]
fn a_file_over_16_mib_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.json");
    std::fs::File::create(&large).unwrap().set_len(100 << 20).unwrap();
    assert_eq!(refused(&large).code, "L009");
}

#[test]
fn more_files_than_are_looked_at_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let document = write(folder.path(), "loop.json", LOOP);
    for number in 0..=MAX_FILES {
        write(folder.path(), &format!("actions/{number}.json"), "[]");
    }
    assert!(refused(&document).message.contains("more than 2000 files"));
}

#[test]
fn a_file_beside_the_document_that_can_t_be_read_is_kept_for_later() {
    let folder = tempfile::tempdir().unwrap();
    let document = write(folder.path(), "loop.json", LOOP);
    write(folder.path(), "actions/bad.json", b"\xff");
    let gathered = gather(&document, &[]).unwrap();
    assert_eq!((gathered.texts.actions.len(), gathered.texts.unread.len()), (0, 1));
}
