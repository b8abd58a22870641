//! A page of Markdown as a terminal shows it: headings, paragraphs, lists, code.

use crate::trace::layout::wrap;
use crate::trace::{Look, Tone, escape};

/// The indentation of code and quotes.
const INDENT: &str = "    ";

/// The page. Unknown markup is shown as written.
pub fn page(markdown: &str, look: &Look) -> String {
    let mut shown = String::new();
    let mut paragraph = String::new();
    let mut code = false;
    for line in markdown.lines() {
        let line = escape::terminal(line);
        let fence = line.trim_start().starts_with("```");
        let begins =
            line.is_empty() || fence || line.starts_with('#') || line.starts_with("- ") || line.starts_with('|');
        if code || begins {
            flush(&mut paragraph, look, &mut shown);
        }
        match (code, fence) {
            (_, true) => code = !code,
            (true, false) => {
                let line = look.paint(Tone::Accent, &line);
                shown.push_str(&format!("{INDENT}{line}\n"));
            }
            (false, false) if line.starts_with('#') => {
                let heading = line.trim_start_matches('#').trim();
                shown.push_str(&format!("{}\n", look.paint(Tone::Bold, heading)));
            }
            (false, false) if line.starts_with('|') || line.is_empty() => shown.push_str(&format!("{line}\n")),
            (false, false) => {
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(line.trim());
            }
        }
    }
    flush(&mut paragraph, look, &mut shown);
    shown
}

/// Writes a paragraph, or an entry of a list, wrapped to the width.
fn flush(paragraph: &mut String, look: &Look, shown: &mut String) {
    let text = std::mem::take(paragraph);
    if text.is_empty() {
        return;
    }
    let indent = if text.starts_with("- ") { "  " } else { "" };
    let mut code = false;
    for (at, line) in wrap(&text, look.width.saturating_sub(indent.len())).iter().enumerate() {
        if at > 0 {
            shown.push_str(indent);
        }
        if !look.colour {
            shown.push_str(&format!("{line}\n"));
            continue;
        }
        // Inline code may continue on the next line: each line is painted by itself.
        for (part, text) in line.split('`').enumerate() {
            if part > 0 {
                code = !code;
            }
            shown.push_str(&if code { look.paint(Tone::Accent, text) } else { text.to_owned() });
        }
        shown.push('\n');
    }
}
