//! Faults as GitHub's workflow commands, which show them at their lines of a pull request. Texts of a document
//! can't start a command: a command starts a line, and messages and names contain no line breaks.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use crate::cli::remedies::help;
use crate::diagnostic::{Diagnostic, Severity};
use crate::trace::escape;

/// One command a line.
pub fn github(diagnostics: &[Diagnostic]) -> String {
    let mut shown = String::new();
    let folder = folder_of_repository();
    for fault in diagnostics {
        let level = match fault.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let place = &fault.place;
        let file = in_repository(&place.file, &folder);
        let _ = write!(shown, "::{level} file={},line={}", property(&file), place.line);
        // GitHub shows columns only for a fault on one line.
        let _ = if place.line == place.end_line {
            write!(shown, ",col={},endLine={},endColumn={}", place.column, place.end_line, place.end_column)
        } else {
            write!(shown, ",endLine={}", place.end_line)
        };
        let mut message = escape::terminal(&fault.message).into_owned();
        if let Some(help) = help(fault) {
            message.push_str("\nhelp: ");
            message.push_str(&escape::terminal(&help));
        }
        let _ = writeln!(shown, ",title={}::{}", property(fault.code), data(&message));
    }
    shown
}

/// A command that marks the lines of a file, for what is no fault of a document.
pub fn github_lines(file: &str, lines: [usize; 2], title: &str, message: &str) -> String {
    let file = property(&in_repository(file, &folder_of_repository()));
    let [first, last] = lines;
    let message = data(&escape::terminal(message));
    format!("::error file={file},line={first},endLine={last},title={}::{message}\n", property(title))
}

/// The path from the root of the repository to this folder, when GitHub plays a step in a folder below it: GitHub finds a file by
/// its path from the root only.
#[expect(clippy::disallowed_methods, reason = "GitHub says in the environment where the repository is")]
fn folder_of_repository() -> PathBuf {
    let below_root = || {
        let root = std::env::var_os("GITHUB_WORKSPACE")?;
        let folder = Path::new(".").canonicalize().ok()?;
        Some(folder.strip_prefix(Path::new(&root).canonicalize().ok()?).ok()?.to_owned())
    };
    below_root().unwrap_or_default()
}

/// A file's path from the root of the repository.
fn in_repository(file: &str, folder: &Path) -> String {
    if folder.as_os_str().is_empty() || Path::new(file).is_absolute() {
        return file.strip_prefix("./").unwrap_or(file).to_owned();
    }
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.display().to_string()
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(&escape::line(text)).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;

    #[test]
    fn a_fault_is_one_command_with_its_place() {
        let source = Source::new("./loops/a,b:c%.json", "{\n \"x\": 1}");
        let fault = Diagnostic::warning("L012", "100% wrong: a, b", "", source.place(3, 6)).help("take it out");
        assert_eq!(
            github(&[fault]),
            "::warning file=loops/a%2Cb%3Ac%25.json,line=2,col=2,endLine=2,endColumn=5,title=L012::100%25 wrong: a, b%0Ahelp: take it out\n"
        );
        let several = Diagnostic::error("L001", "x", "", source.place(0, 6));
        assert_eq!(github(&[several]), "::error file=loops/a%2Cb%3Ac%25.json,line=1,endLine=2,title=L001::x\n");
    }

    #[test]
    fn a_file_is_named_from_the_root_of_the_repository() {
        let folder = Path::new("my loops");
        assert_eq!(in_repository("./a/b.json", folder), "my loops/a/b.json");
        assert_eq!(in_repository("../other/b.json", folder), "other/b.json");
        assert_eq!(in_repository("/etc/b.json", folder), "/etc/b.json");
        assert_eq!(in_repository("./b.json", Path::new("")), "b.json");
    }

    #[test]
    fn neither_a_message_nor_a_name_can_forge_another_annotation() {
        let source = Source::new("a\r\n::error file=x::y\u{85}\u{2028}.json", "{}");
        for hostile in
            ["x\n::error::y", "x\r::error::y", "x\r\n::stop-commands::t", "\u{b}\u{c}\u{85}\u{2028}\u{2029}::error::y"]
        {
            let mut fault = Diagnostic::error("L001", "x", "", source.whole());
            // Set directly, because the constructors would escape it.
            fault.message = hostile.to_owned();
            fault.help = Some(hostile.into());
            let shown = github(&[fault]);
            assert_eq!(shown.lines().count(), 1, "{shown:?}");
            assert!(shown.starts_with("::error file=a%0D%0A") || shown.starts_with("::error file=a"), "{shown}");
            let breaks = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
            assert!(!shown.trim_end_matches('\n').contains('\n') && !shown.contains(breaks), "{shown:?}");
        }
    }
}
