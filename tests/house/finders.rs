//! The finders themselves: what each must see, and what it must leave alone.

use std::path::PathBuf;

use super::cycles::cycles;
use super::measure::functions;
use super::names::{defined_twice, tuple_parameters};
use super::source::{File, blanked, names_after, occurrences, root};

#[test]
fn comments_strings_and_characters_are_no_code() {
    let text = "let a = \"tokio\"; // tokio\n/* tokio */ let b = 'a'; let c = r#\"tokio\"#; fn f<'a>(x: &'a str) {}";
    let code = blanked(text);
    assert_eq!(code.len(), text.len());
    assert_eq!(code.lines().count(), text.lines().count());
    assert!(!code.contains("tokio"));
    assert!(code.contains("fn f<'a>(x: &'a str) {}"));
    assert!(blanked("let quote = '\"'; tokio();").contains("tokio"));
    assert!(blanked("let quote = '\\''; tokio();").contains("tokio"));
}

#[test]
fn words_are_found_whole() {
    assert_eq!(occurrences("tokio::spawn; mytokio; tokio_util", "tokio"), vec![0]);
}

#[test]
fn grouped_imports_are_seen() {
    let names = |code: &str| -> Vec<String> { names_after(code, "crate::").into_iter().map(|(_, n)| n).collect() };
    assert_eq!(names("use crate::{engine::{a, b}, journal};"), vec!["engine", "journal"]);
    assert_eq!(names("pub(crate) fn f() -> crate::drive::X {}"), vec!["drive"]);
}

#[test]
fn functions_are_measured() {
    let text = "fn f(a: &str, b: Vec<(u8, u8)>, c: impl Fn(u8) -> u8,) -> [u8; 2] {\n\n    // why\n    [1, 2]\n}\ntrait T { fn g(&self); }\n// house: flat match\nfn h() {\n}\n";
    let file = File { path: PathBuf::from("x.rs"), text: text.to_owned(), code: blanked(text) };
    let found = functions(&file);
    let measured: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.arguments, f.lines, f.flat)).collect();
    assert_eq!(measured, vec![("f", 1, 3, 3, false), ("h", 8, 0, 2, true)]);
}

fn file(path: &str, text: &str) -> File {
    File { path: root().join(path), text: text.to_owned(), code: blanked(text) }
}

#[test]
fn circles_are_found_through_what_a_module_hands_on() {
    let files = [
        file("src/a/mod.rs", "mod x; pub use x::X;"),
        file("src/a/x.rs", "use crate::b::y::Y; pub struct X;"),
        file("src/b/mod.rs", "pub mod y;"),
        file("src/b/y.rs", "use crate::a::{X, z}; pub struct Y;"),
        file("src/a/z.rs", "use super::Hub;"),
    ];
    assert_eq!(cycles(&files, 1), [["src/a/x.rs", "src/b/y.rs"]]);
    assert!(cycles(&files, 2).is_empty());
}

#[test]
fn names_and_tuples_are_found() {
    let files = [
        file(
            "src/a.rs",
            "pub struct One; enum Two {}\nfn f(x: u8, (a, b): (u8, u8)) {}\nfn g(f: fn((u8,)), (): &()) {}",
        ),
        file("src/b.rs", "trait Two {}\n#[cfg(test)]\nmod tests { struct One; }"),
    ];
    assert_eq!(defined_twice(&files), [("Two".to_owned(), vec!["src/a.rs".to_owned(), "src/b.rs".to_owned()])]);
    assert_eq!(files.iter().flat_map(tuple_parameters).collect::<Vec<_>>(), [2]);
}
