//! Links and pipes in a folder that somebody else made: no command reads or writes what is outside of it, or waits for a pipe.
#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::common::Place;

/// A project that passes `check`, `test` and `run`, beside a file that is not its own.
fn project() -> (Place, Place) {
    let (outside, place) = (Place::new(), Place::new());
    outside.file("secret.json", "{\"token\": hunter2}");
    let made = place.call(&["init", "--from", "http", "--yes", "."]);
    assert_eq!(made.code, 0, "{made:#?}");
    (outside, place)
}

#[test]
fn a_file_that_is_named_is_no_link_out_of_its_project() {
    let (outside, place) = project();
    std::fs::create_dir(place.path().join("loops")).unwrap();
    symlink(outside.path().join("secret.json"), place.path().join("loops/x.json")).unwrap();
    symlink(outside.path(), place.path().join("away")).unwrap();
    // `..` behind a link, and a link to another project.
    std::fs::create_dir(outside.path().join("sub")).unwrap();
    symlink(outside.path().join("sub"), place.path().join("awaysub")).unwrap();
    let other = Place::new();
    other.file("loopctl.json", "{}");
    other.file("secret.json", "{\"token\": hunter2}");
    other.file("f.json", "{\"type\":   \"loop\"}");
    symlink(other.path(), place.path().join("awayproject")).unwrap();
    symlink(outside.path().join("secret.json"), place.path().join("in.json")).unwrap();
    let alone = Place::new();
    symlink(outside.path().join("secret.json"), alone.path().join("z.json")).unwrap();
    for (place, args) in [
        (&place, &["check", "loops/x.json"][..]),
        (&place, &["fmt", "loops/x.json"]),
        (&place, &["run", "loops/x.json"]),
        (&place, &["run", "x"]),
        (&place, &["run", "answer", "--actions", "loops/x.json"]),
        (&place, &["prompt", "loops/x.json"]),
        (&place, &["check", "away/secret.json"]),
        (&place, &["check", "loops/../loops/x.json"]),
        (&place, &["check", "awaysub/../secret.json"]),
        (&place, &["check", "awayproject/secret.json"]),
        (&place, &["run", "awayproject/secret.json"]),
        (&place, &["fmt", "awayproject/f.json"]),
        (&place, &["run", "answer", "--input-file", "in.json"]),
        (&place, &["run", "answer", "--script", "in.json"]),
        (&place, &["import", "in.json"]),
        (&alone, &["check", "z.json"]),
    ] {
        let ran = place.call(args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == 2 || ran.code == 1, "{args:?}: {ran:#?}");
        assert!(!said.contains("hunter2"), "{args:?}: {said}");
        assert!(said.contains("a link leads there, and is not followed") || args == ["run", "x"], "{args:?}: {said}");
    }
    assert_eq!(std::fs::read_to_string(other.path().join("f.json")).unwrap(), "{\"type\":   \"loop\"}");
    // A link to a file of the project is followed, and so is a path that leads out without a link.
    symlink("../answer.json", place.path().join("loops/y.json")).unwrap();
    let own = place.call(&["check", "loops/y.json"]);
    assert!(!own.stderr.contains("a link leads there"), "{own:#?}");
    let named = place.call(&["check", outside.path().join("secret.json").to_str().unwrap()]);
    assert!(named.stderr.contains("hunter2"), "{named:#?}");
}

#[test]
fn no_report_or_page_is_written_through_a_link_out_of_its_folder_or_into_a_pipe() {
    let (outside, place) = project();
    let input = ["--input", "order_id=A-1001", "--input", "question=Why?"];
    let run = ["run", "answer", "--script", "script.json", "--run-id", "r"];
    let ran = place.call(&[&run[..], &input].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let target = outside.path().join("mine");
    std::fs::write(&target, "mine").unwrap();
    symlink(&target, place.path().join("link")).unwrap();
    symlink(outside.path().join("new"), place.path().join("dangling")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path().join("pipe")).status().unwrap().success());
    symlink(outside.path(), place.path().join("away")).unwrap();
    for args in [
        &["export", "r", "-o", "away/e.jsonl"][..],
        &["store", "backup", "sqlite:.loopctl/runs.db", "away/b.db"],
        &["test", "--probe", "answer.json", "--write", "away/p.test.json"],
        &["test", "--probe", "answer.json", "--write", "dangling"],
    ] {
        let ran = place.call(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
    }
    for name in ["link", "dangling", "pipe", "away/page"] {
        let junit = format!("junit={name}");
        for args in [
            &["test", "--report", &junit][..],
            &["trace", "r", "--format", "html", "-o", name],
            &["diff", "r", "r", "--format", "html", "-o", name],
            &["record", "r", "-o", name],
        ] {
            let ran = place.call(args);
            assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
        }
    }
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "mine");
    let left: Vec<_> = std::fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    // What reads a pipe does not wait for its writer.
    for args in
        [&["import", "pipe"][..], &["store", "check", "--store", "sqlite:pipe"], &["runs", "--store", "sqlite:pipe"]]
    {
        let ran = place.call(args);
        assert!(ran.code != 0, "{args:?}: {ran:#?}");
    }
    // A file of the folder is written through a link, and standard output is what it is.
    std::fs::write(place.path().join("own.html"), "").unwrap();
    symlink("own.html", place.path().join("page")).unwrap();
    assert_eq!(place.call(&["trace", "r", "--format", "html", "-o", "page"]).code, 0);
    assert!(std::fs::read_to_string(place.path().join("own.html")).unwrap().contains("<html"));
    let shown = place.call(&["trace", "r", "--format", "html", "-o", "/dev/stdout"]);
    assert!(shown.code == 0 && shown.stdout.contains("<html"), "{shown:#?}");
}
