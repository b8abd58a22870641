//! The picture of the terminal in the README, `docs/terminal.svg`: what the program shows in a terminal of 76 columns, in its
//! colours. `UPDATE_PICTURE=1 cargo test --test it picture::` makes it.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::pty::{OpenptyResult, Winsize, openpty};

const PICTURE: &str = "docs/terminal.svg";
/// The command, as the README has it.
const SHOWN: &str = "loopctl demo";
const COLUMNS: u16 = 76;

/// Pixels of a character, of a line, and around the text.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 20.0;
const MARGIN: f64 = 16.0;

const STYLE: &str = "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:#1f2328}\
rect{fill:#fff;stroke:#d0d7de}.bold{font-weight:600}.dim{fill:#59636e}.red{fill:#cf222e}.green{fill:#1a7f37}.yellow{fill:#9a6700}.cyan{fill:#1b7c83}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#0d1117;stroke:#3d444d}.dim{fill:#9198a1}.red{fill:#ff7b72}.green{fill:#3fb950}.yellow{fill:#d29922}.cyan{fill:#39c5cf}}";

/// A part of a line with one look: the names of its classes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    column: usize,
    text: String,
    looks: Vec<&'static str>,
}

/// What the program writes to a terminal, whole.
fn written(folder: &Path) -> String {
    let size = Winsize { ws_row: 50, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    let OpenptyResult { master, slave } = openpty(Some(&size), None).unwrap();
    let end = || Stdio::from(slave.try_clone().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
    command.args(SHOWN.split(' ').skip(1)).current_dir(folder).env_clear();
    command.env("HOME", folder).env("TMPDIR", folder).env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
    let mut child = command.spawn().unwrap();
    drop((slave, command));
    let mut bytes = Vec::new();
    // The other end is closed when the program ends, which Linux reports as an error.
    let _ = File::from(master).read_to_end(&mut bytes);
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&bytes));
    String::from_utf8(bytes).unwrap()
}

/// A line as it is to be seen in the end: what was erased is left out, and so are times, which differ.
fn line(written: &str) -> Vec<Span> {
    let kept = written.trim_end_matches('\r').rsplit("\u{1b}[2K").next().unwrap();
    let mut spans: Vec<Span> = Vec::new();
    let (mut looks, mut column) = (Vec::new(), 0);
    for (number, part) in kept.split("\u{1b}[").enumerate() {
        let text = if number == 0 {
            part
        } else {
            let (code, text) = part.split_once('m').unwrap_or_else(|| panic!("what is {part:?}?"));
            match code {
                "0" => looks.clear(),
                "1" => looks.push("bold"),
                "2" => looks.push("dim"),
                "31" => looks.push("red"),
                "32" => looks.push("green"),
                "33" => looks.push("yellow"),
                "36" => looks.push("cyan"),
                other => panic!("the picture has no look for {other}"),
            }
            text
        };
        let text = without_time(text);
        if !text.is_empty() {
            spans.push(Span { column, text: text.to_owned(), looks: looks.clone() });
            column += text.chars().count();
        }
    }
    spans
}

/// Without a time at its end, and what parts it from the rest.
fn without_time(text: &str) -> &str {
    // On a busy machine a step takes seconds.
    let Some(number) = text.strip_suffix(" ms").or_else(|| text.strip_suffix(" s")) else { return text };
    let rest = number.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    if rest.len() == number.len() { text } else { rest.trim_end_matches([' ', '·', ',']) }
}

/// Iterations 3 and 4, the answer, and how it ended.
fn chosen(written: &str) -> Vec<Vec<Span>> {
    let text = |spans: &[Span]| spans.iter().map(|span| span.text.as_str()).collect::<String>();
    let lines: Vec<Vec<Span>> = written.split('\n').map(line).collect();
    let starts = |with: &str| {
        lines.iter().position(|line| text(line).starts_with(with)).unwrap_or_else(|| panic!("no {with:?}: {written}"))
    };
    let shown = [&lines[starts("  3")..starts("  5")], &lines[starts("── answer")..=starts("✓ completed")]].concat();
    // A line that had a time alone, and two empty lines in a row.
    let mut kept: Vec<Vec<Span>> = Vec::new();
    for line in shown {
        let is_blank = text(&line).trim().is_empty();
        if is_blank && (!line.is_empty() || kept.last().is_none_or(Vec::is_empty)) {
            continue;
        }
        kept.push(line);
    }
    kept
}

fn picture(written: &str) -> String {
    let mut lines = vec![vec![Span { column: 0, text: format!("$ {SHOWN}"), looks: vec!["dim"] }]];
    lines.push(vec![Span { column: 0, text: "…".to_owned(), looks: vec!["dim"] }]);
    lines.extend(chosen(written));
    let width = f64::from(COLUMNS).mul_add(WIDTH, 2.0 * MARGIN).ceil();
    let height = (f64::from(u16::try_from(lines.len()).unwrap())).mul_add(HEIGHT, 2.0 * MARGIN).ceil();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>loopctl finds a double charge</title>\n<style>{STYLE}</style>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        width - 1.0,
        height - 1.0
    );
    for (number, spans) in lines.iter().enumerate().filter(|(_, spans)| !spans.is_empty()) {
        let y = f64::from(u16::try_from(number).unwrap()).mul_add(HEIGHT, MARGIN + 14.0);
        svg.push_str("<text>");
        for Span { column, text, looks } in spans {
            let x = f64::from(u16::try_from(*column).unwrap()).mul_add(WIDTH, MARGIN);
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            write!(svg, "<tspan x=\"{x:.1}\" y=\"{y}\" class=\"{}\">{text}</tspan>", looks.join(" ")).unwrap();
        }
        svg.push_str("</text>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn the_picture_of_the_readme_is_what_a_terminal_shows() {
    let folder = tempfile::tempdir().unwrap();
    let picture = picture(&written(folder.path()));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURE);
    if std::env::var_os("UPDATE_PICTURE").is_some() {
        fs::write(&path, &picture).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == picture, "{PICTURE} is stale: UPDATE_PICTURE=1 cargo test --test it picture::\n{picture}");
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    assert!(readme.contains(&format!("]({PICTURE})")), "README.md does not show it");
}

#[test]
fn what_was_erased_and_how_long_it_took_is_not_in_the_picture() {
    let spans = line("     thinking\r\u{1b}[2K  \u{1b}[1m\u{1b}[32m←\u{1b}[0m {}\u{1b}[2m  23 ms\u{1b}[0m\r");
    let texts: Vec<(usize, &str, &[&str])> =
        spans.iter().map(|span| (span.column, span.text.as_str(), span.looks.as_slice())).collect();
    assert_eq!(texts, [(0, "  ", [].as_slice()), (2, "←", &["bold", "green"]), (3, " {}", &[])]);
    assert_eq!(without_time("  6 iterations · 184 ms"), "  6 iterations");
    assert_eq!(without_time("  1,860 tokens, 12 ms"), "  1,860 tokens");
    assert_eq!(without_time("  1,860 tokens, 1.2 s"), "  1,860 tokens");
    assert_eq!(without_time("23 items"), "23 items");
    assert_eq!(without_time("what it is s"), "what it is s");
}
