//! Completions of a shell that offer the ids of runs.

use std::process::Command;

use crate::common::{Place, complete};

/// What bash offers for the last of these words.
fn offered(place: &Place, words: &[&str]) -> Vec<String> {
    let script = place.call(&["completions", "bash"]).stdout;
    place.file("completions.bash", script);
    let program = env!("CARGO_BIN_EXE_loopctl");
    let play = r#"source completions.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _loopctl_with_runs "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.current_dir(place.path()).args(["--norc", "-c", play, "bash", program]).args(words);
    let output = bash.output().expect("bash starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn bash_offers_the_runs_of_the_folder_and_runs_nothing_of_their_ids() {
    let place = Place::new();
    place.looped(&serde_json::json!({})).script(&[complete(serde_json::json!("ok"))]);
    for id in ["alpha-1", "alpha-2", "beta", "sched@20261130T192200Z", "$(touch gone)", "two words"] {
        let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", id]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    let ids = place.call(&["runs", "--ids"]);
    assert_eq!((ids.code, ids.stdout.lines().count()), (0, 4), "{ids:#?}");
    assert!(ids.stderr.contains("2 runs left out"), "{ids:#?}");
    let mut all = offered(&place, &["trace", ""]);
    all.sort();
    assert_eq!(all, ["alpha-1", "alpha-2", "beta", "last", "sched@20261130T192200Z"]);
    assert_eq!(offered(&place, &["resume", "alpha-"]).len(), 2);
    assert!(offered(&place, &["trace", "--for"]).contains(&"--format".to_owned()), "flags are offered as before");
    assert!(offered(&place, &["ch"]).contains(&"check".to_owned()), "and so are commands");
    assert!(!place.path().join("gone").exists());
    let both = place.call(&["runs", "--ids", "--output", "json"]);
    assert_eq!(both.code, 2, "{both:#?}");
}

/// What a shell prints; none when it is not installed here.
fn printed(place: &Place, shell: &str, play: &str) -> Option<Vec<String>> {
    let script = place.call(&["completions", shell]).stdout;
    place.file(&format!("completions.{shell}"), script);
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_loopctl")).parent().expect("a folder").display().to_string();
    let mut command = Command::new(shell);
    command.current_dir(place.path()).env("PATH", format!("{folder}:/usr/local/bin:/usr/bin:/bin"));
    command.env("HOME", place.path());
    let flag = if shell == "zsh" { "-f" } else { "--no-config" };
    let output = match command.args([flag, "-c", play]).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        output => output.expect("it starts"),
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    // fish says what an option is for behind a tab.
    Some(text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect())
}

#[test]
fn zsh_and_fish_offer_the_runs_of_the_folder_too() {
    let place = Place::new();
    place.looped(&serde_json::json!({})).script(&[complete(serde_json::json!("ok"))]);
    for id in ["alpha-1", "beta"] {
        let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", id]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    if let Some(ids) = printed(&place, "fish", "source completions.fish; complete -C 'loopctl trace '") {
        assert_eq!(sorted(ids), ["alpha-1", "beta", "last"]);
    }
    if let Some(ids) = printed(&place, "fish", "source completions.fish; complete -C 'loopctl ch'") {
        assert_eq!(ids, ["check"], "commands are offered as before");
    }
    // What zsh would add is printed.
    let play = r#"compdef() { :; }; source ./completions.zsh; compadd() { print -l -- "${(@P)2}"; }; _loopctl_runs"#;
    if let Some(ids) = printed(&place, "zsh", play) {
        assert_eq!(sorted(ids), ["alpha-1", "beta", "last"]);
    }
    let script = place.call(&["completions", "zsh"]).stdout;
    assert_eq!(
        script.matches(":_loopctl_runs'").count(),
        13,
        "resume, retry, rerun, cancel, trace, record, replay, fork, explain, export, both of diff, and runs erase"
    );
}
