//! The units of systemd.

use std::fs;
use std::process::Command;

use crate::packaging::{after, read};

const ALL: [&str; 2] = ["packaging/loopctl.service", "packaging/loopctl@.service"];

fn value(unit: &str, name: &str) -> String {
    after(unit, name).next().unwrap_or_else(|| panic!("{name}")).concat()
}

/// The arguments of the program, with the values that systemd puts in.
fn arguments(unit: &str) -> Vec<String> {
    let start = after(unit, "ExecStart=").next().unwrap();
    start[1..].iter().map(|word| word.replace("%i", "3010").replace("%d", "/run/credentials/x")).collect()
}

#[test]
fn the_units_give_time_to_end_and_do_not_start_again_what_is_unsound() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("loop.json"), r#"{"type": "loop"}"#).unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_loopctl"));
    let ended = serve.args(["serve", ".", "--listen", "127.0.0.1:0"]).current_dir(folder.path()).output().unwrap();
    for unit in ALL.map(read) {
        let arguments = arguments(&unit);
        let grace = arguments.iter().skip_while(|word| *word != "--grace-ms").nth(1).unwrap();
        let (grace, stop): (u64, u64) = (grace.parse().unwrap(), value(&unit, "TimeoutStopSec=").parse().unwrap());
        assert!(stop * 1000 >= grace + 5000, "systemd kills after {stop} s");
        assert_eq!(ended.status.code().unwrap().to_string(), value(&unit, "RestartPreventExitStatus="));
    }
}

#[test]
fn the_command_lines_of_the_units_are_taken() {
    for unit in ALL.map(read) {
        let arguments = arguments(&unit);
        assert!(!arguments.iter().any(|word| word.contains('%')), "{arguments:?}");
        let output = Command::new(env!("CARGO_BIN_EXE_loopctl")).args(&arguments).arg("--help").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_store_of_the_template_is_a_credential_that_it_loads() {
    let unit = read(ALL[1]);
    let (name, _) =
        value(&unit, "LoadCredential=").split_once(':').map(|(name, path)| (name.to_owned(), path.to_owned())).unwrap();
    let arguments = arguments(&unit);
    let store = arguments.iter().skip_while(|word| *word != "--store").nth(1).unwrap();
    assert_eq!(store, &format!("file:/run/credentials/x/{name}"));
}

/// The template differs from the unit of one server in what several need, and in nothing else.
#[test]
fn both_units_confine_the_program_in_the_same_way() {
    let [one, several] = ALL.map(read).map(|unit| {
        let own = unit.split("\nNoNewPrivileges=").nth(1).expect("the part that confines").to_owned();
        own.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(one, several);
    assert!(one.len() > 20, "{one:?}");
}

/// A store that is away comes back by itself: a start that finds it away is tried again, for as long as it takes.
#[test]
fn a_store_that_can_not_be_reached_has_an_exit_code_that_the_units_start_again() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"{"replies": [{"thought": "t", "action": "__complete__", "action_input": {"answer": "x"}}]}"#;
    fs::write(folder.path().join("s.json"), script).unwrap();
    fs::write(
        folder.path().join("loop.json"),
        r#"{"type": "loop", "name": "l", "properties": {"mode": "react", "objective": "o", "tools": []}}"#,
    )
    .unwrap();
    let ended = |arguments: &[&str], store: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
        let output = command.args(arguments).args(["--store", store]).current_dir(folder.path()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let prevented: Vec<Vec<String>> = ALL
        .map(read)
        .map(|unit| value(&unit, "RestartPreventExitStatus=").split(' ').map(str::to_owned).collect())
        .to_vec();
    let commands: [&[&str]; 9] = [
        &["serve", ".", "--listen", "127.0.0.1:0"],
        &["run", "loop.json", "--script", "s.json"],
        &["resume", "r", "--approve"],
        &["runs"],
        &["trace", "r"],
        &["workers"],
        &["cancel", "r"],
        &["store", "check"],
        &["store", "migrate"],
    ];
    // Nothing listens at port 1, and no name server knows a name that ends with `.invalid`.
    for store in ["postgres://ada@127.0.0.1:1/d", "postgres://ada@db.invalid/d?sslmode=disable&connect_timeout=5"] {
        for command in commands {
            let (code, said) = ended(command, store);
            let errors = said.lines().filter(|line| line.starts_with("error: ")).count();
            assert_eq!((code, errors), (75, 1), "{command:?} {store}: {said}");
            assert!(said.contains("start its server"), "{said}");
        }
    }
    // What a person must correct.
    for store in ["postgres://ada@127.0.0.1:1/d?nonsense=1", "nonsense:x", "sqlite:/proc/none/r.db"] {
        let (code, said) = ended(&["serve", ".", "--listen", "127.0.0.1:0"], store);
        assert_eq!(code, 2, "{store}: {said}");
        assert!(prevented.iter().all(|codes| codes.contains(&code.to_string())), "{prevented:?}");
    }
    assert!(prevented.iter().all(|codes| !codes.contains(&"75".to_owned())), "{prevented:?}");
    for unit in ALL.map(read) {
        assert_eq!(value(&unit, "Restart="), "on-failure");
        assert_eq!(value(&unit, "StartLimitIntervalSec="), "0", "systemd gives up after a few starts otherwise");
    }
}
