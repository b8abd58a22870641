//! Whether a command starts a shell, and which of its arguments the shell reads as a program.

use crate::language::action::CommandAction;

/// A shell that a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    pub name: String,
    /// The first argument that it reads as a program.
    pub script: usize,
    /// Whether it reads all that follow as a program too; else those are values for it.
    pub all: bool,
}

const UNIX: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash"];

/// The shell that a command gives a script to.
pub fn of(command: &CommandAction) -> Option<Shell> {
    let mut name = base(&command.program);
    let mut args = command.args.iter().map(String::as_str).enumerate().peekable();
    if name == "env" {
        // Options of its own and variables come before the program.
        while args.next_if(|(_, text)| text.starts_with('-') || text.contains('=')).is_some() {}
        name = base(args.next()?.1);
    }
    let unix = UNIX.contains(&name.as_str());
    let reads_script = |text: &str| {
        let text = text.to_ascii_lowercase();
        match name.as_str() {
            "cmd" => matches!(text.as_str(), "/c" | "/k"),
            "powershell" | "pwsh" => text.len() >= 2 && "-command".starts_with(&text),
            // Short options may be combined, as in `-ec`.
            _ => unix && text.starts_with('-') && !text.starts_with("--") && text.contains('c'),
        }
    };
    let (at, _) = args.find(|(_, text)| reads_script(text))?;
    Some(Shell { script: at + 1, all: !unix, name })
}

fn base(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}
