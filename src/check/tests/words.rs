//! What the rules read by themselves: hosts, queries, shells.

use crate::check::host::{Entry, Host, is_no_entry, is_private};
use crate::check::shell;
use crate::check::sql::{Does, verb};
use crate::language::action::CommandAction;

#[test]
fn hosts_are_read_with_their_ports() {
    let host = |url: &str| Host::of(url).map(|host| (host.text.to_owned(), host.name(), host.port));
    let some = |text: &str, name: &str, port: u16| Some((text.to_owned(), Some(name.to_owned()), Some(port)));
    assert_eq!(host("https://API.example.com./x"), some("API.example.com.", "api.example.com", 443));
    assert_eq!(host("http://h:8080?x"), some("h:8080", "h", 8080));
    assert_eq!(host("HTTP://[::1]:81"), some("[::1]:81", "[::1]", 81));
    assert_eq!(host("http://[0:0::1]/"), some("[0:0::1]", "[::1]", 80));
    assert_eq!(host("https://{{a}}.x/{{b}}").map(|(text, name, _)| (text, name)), Some(("{{a}}.x".to_owned(), None)));
    assert_eq!(host("https://"), None);
    assert_eq!(host("https://u:p@h/"), None);
    assert_eq!(host("ftp://h/"), None);
    for odd in
        ["http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://b\u{fc}cher.example/", "http://%31/"]
    {
        assert_eq!(host(odd).map(|(_, name, _)| name), Some(None), "{odd}");
    }
}

#[test]
fn entries_take_what_they_say() {
    let takes = |entry: &str, name: &str| Entry::read(entry).is_some_and(|entry| entry.takes(name, Some(443)));
    assert!(takes(" Example.com ", "example.com"));
    assert!(!takes("example.com", "www.example.com"));
    assert!(takes("*.example.com:443", "a.b.example.com"));
    assert!(!takes("*.example.com", "example.com"));
    assert!(!takes("*.example.com", "badexample.com"));
    assert!(!takes("example.com:80", "example.com"));
    assert!(Entry::read("*.127.0.0.1").is_none());
}

#[test]
fn what_is_no_entry_is_told_apart_from_what_is_not_understood() {
    for entry in ["*", "*.", "", "https://x", "x/y", "a@b", "a b", "x:port", "x:70000", "x.*"] {
        assert!(is_no_entry(entry), "{entry}");
    }
    for entry in ["x", "*.x", "x:1", "[::1]:80", "b\u{fc}cher.example", "127.1"] {
        assert!(!is_no_entry(entry), "{entry}");
    }
}

#[test]
fn private_hosts_are_known() {
    for name in ["localhost", "a.localhost", "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"] {
        assert!(is_private(name), "{name}");
    }
    for name in ["[::1]", "[fd00::1]", "[fe80::1]", "0.0.0.0", "metadata.google.internal"] {
        assert!(is_private(name), "{name}");
    }
    for name in ["8.8.8.8", "example.com", "localhost.example.com", "[2606:4700::1111]", "172.32.0.1"] {
        assert!(!is_private(name), "{name}");
    }
}

#[test]
fn what_a_query_does_is_told_by_its_first_word() {
    let does = |query: &str| verb(query).map(|(does, range)| (does, query[range].to_owned()));
    let writes = |word: &str| Some((Does::Writes, word.to_owned()));
    assert_eq!(does("-- INSERT\n /* x */ delete from t"), writes("delete"));
    assert_eq!(does("WITH old AS (SELECT 1), \"x\" AS (SELECT 2) UPDATE t SET a = 1"), writes("UPDATE"));
    assert_eq!(does("WITH a AS (DELETE FROM t) SELECT 1").map(|(does, _)| does), Some(Does::Reads));
    assert_eq!(does("(SELECT 1)").map(|(does, _)| does), None);
    assert_eq!(does("SELECT replace(a, 'INSERT', '') FROM t").map(|(does, _)| does), Some(Does::Reads));
    for unsure in ["", "'", "/*", "--", "PRAGMA x", "CREATE TEMP TABLE t (a)", "EXPLAIN DELETE FROM t", "\u{e9}"] {
        assert_eq!(does(unsure), None, "{unsure}");
    }
}

#[test]
fn shells_are_known_by_what_they_are_given() {
    let found = |program: &str, args: &[&str]| {
        let command = serde_json::json!({ "action_name": "a", "program": program, "args": args });
        let command: CommandAction = serde_json::from_value(command).unwrap();
        shell::of(&command).map(|shell| (shell.name, shell.script, shell.all))
    };
    let some = |name: &str, script, all| Some((name.to_owned(), script, all));
    assert_eq!(found("/bin/sh", &["-c", "x"]), some("sh", 1, false));
    assert_eq!(found("bash", &["-e", "-lc", "x"]), some("bash", 2, false));
    assert_eq!(found("/usr/bin/env", &["-i", "A=1", "zsh", "-c", "x"]), some("zsh", 4, false));
    assert_eq!(found("C:\\Windows\\cmd.EXE", &["/C", "x"]), some("cmd", 1, true));
    assert_eq!(found("pwsh", &["-NoProfile", "-Command", "x"]), some("pwsh", 2, true));
    assert_eq!(found("sh", &["script.sh"]), None);
    assert_eq!(found("bash", &["--rcfile", "x"]), None);
    assert_eq!(found("python3", &["-c", "x"]), None);
    assert_eq!(found("env", &[]), None);
}
