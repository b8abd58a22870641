//! Functions, measured: how long, how many arguments.

use super::source::{File, occurrences};

/// A function with a body.
pub struct Function {
    pub name: String,
    pub line: usize,
    pub arguments: usize,
    /// Lines with code on them, the first and the last too.
    pub lines: usize,
    /// Whether it says that it is one flat match.
    pub flat: bool,
}

pub fn functions(file: &File) -> Vec<Function> {
    occurrences(&file.code, "fn").into_iter().filter_map(|at| function(file, at)).collect()
}

fn function(file: &File, at: usize) -> Option<Function> {
    let rest = file.code.split_at(at).1.strip_prefix("fn ")?;
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if name.is_empty() {
        return None;
    }
    let open = at + file.code.split_at(at).1.find('(')?;
    let (arguments, closed) = arguments(file.code.split_at(open).1)?;
    let after = file.code.split_at(open + closed).1;
    let body = after.find('{')?;
    // A declaration without a body ends at its semicolon; `[u8; 4]` as an answer is no such end.
    if after.find(';').is_some_and(|end| end < body && !after.split_at(end).0.contains('[')) {
        return None;
    }
    let begin = open + closed + body;
    let end = begin + closing(file.code.split_at(begin).1)?;
    let code = file.code.get(at..end)?;
    let line = file.line_of(at);
    let above = file.text.lines().take(line).collect::<Vec<_>>();
    let attributes = above.iter().rev().skip(1).take_while(|line| is_above_a_function(line));
    let says_so = |text: &str| text.contains("house: flat match") || text.contains("clippy::too_many_lines");
    let flat = file.text.get(at..end).is_some_and(says_so) || attributes.into_iter().any(|line| says_so(line));
    let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    Some(Function { name, line, arguments, lines, flat })
}

fn is_above_a_function(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("//") || line.starts_with("#[") || line.ends_with(")]") || line.starts_with("reason")
}

/// How many arguments are in the parentheses, and how many bytes these take.
fn arguments(code: &str) -> Option<(usize, usize)> {
    let mut depth = 0_usize;
    let mut count = 0_usize;
    let mut filled = false;
    let mut before = ' ';
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 1 => {
                count += usize::from(filled);
                filled = false;
            }
            _ => {}
        }
        if depth == 0 {
            return Some((count + usize::from(filled), at + 1));
        }
        filled |= depth > 1 || !(c.is_whitespace() || c == ',' || c == '(');
        before = c;
    }
    None
}

/// How many bytes the block takes that begins here.
fn closing(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}
