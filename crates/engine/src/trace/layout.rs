//! The layout of text for people: with or without colours, and a width for wrapped lines.

use anstyle::{AnsiColor, Color, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The colours and the width of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether to use colours.
    pub colour: bool,
    /// The columns of a line, at least 20.
    pub width: usize,
}

/// The meaning of a part of a text; only this module decides how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Less important than the rest.
    Dim,
    /// More important than the rest.
    Bold,
    /// Names of tools, numbers of iterations.
    Accent,
    /// A success.
    Good,
    /// A failure.
    Bad,
    /// The text about a failure: it may be long.
    Fault,
    /// A warning.
    Warn,
}

impl Tone {
    fn style(self) -> Style {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(Color::Ansi(colour)));
        match self {
            Self::Dim => Style::new().dimmed(),
            Self::Bold => Style::new().bold(),
            Self::Accent => colour(AnsiColor::Cyan).bold(),
            Self::Good => colour(AnsiColor::Green).bold(),
            Self::Bad => colour(AnsiColor::Red).bold(),
            Self::Fault => colour(AnsiColor::Red),
            Self::Warn => colour(AnsiColor::Yellow).bold(),
        }
    }
}

/// A block of wrapped text.
#[derive(Debug, Clone, Copy)]
pub struct TextBlock<'a> {
    /// The painted text before the first line, and its width in columns; the other lines are indented by as
    /// many.
    pub lead: (&'a str, usize),
    /// The tone of the text.
    pub tone: Option<Tone>,
    /// The dim text after the last line; on its own line if there is no room.
    pub tail: &'a str,
    /// The most lines; the rest is counted.
    pub lines: usize,
}

impl Look {
    /// No colours, for files and pipes.
    pub fn plain(width: usize) -> Self {
        Self { colour: false, width: width.max(20) }
    }

    /// The text in a tone. It must already be escaped.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let style = tone.style();
        format!("{style}{text}{style:#}")
    }

    /// The text as lines that are wrapped to the width, each ended by a newline. It must already be escaped.
    pub fn block(&self, text: &str, block: &TextBlock<'_>) -> String {
        let (lead, indent) = block.lead;
        let room = self.width.saturating_sub(indent).max(16);
        let wrapped = wrap(text.trim_end_matches('\n'), room);
        let (mut lines, left_out) = fit(wrapped, block.lines.max(1), room, block.tail.width() + 2);
        let mut end = format!("{}{}", more(left_out), if block.tail.is_empty() { "" } else { "  " });
        end.push_str(block.tail);
        if left_out == 0 && lines.last().is_some_and(|line| line.width() + end.width() > room) {
            lines.push(std::mem::take(&mut end).trim_start().to_owned());
        }
        let last = lines.len().saturating_sub(1);
        let mut shown = String::new();
        for (at, line) in lines.iter().enumerate() {
            if at == 0 {
                shown.push_str(lead);
            } else if !line.is_empty() || at == last {
                shown.extend(std::iter::repeat_n(' ', indent));
            }
            match block.tone {
                Some(tone) => shown.push_str(&self.paint(tone, line)),
                None => shown.push_str(line),
            }
            if at == last {
                shown.push_str(&self.paint(Tone::Dim, &end));
            }
            shown.push('\n');
        }
        shown
    }
}

/// The first lines, the last one short enough for the count of what is left out, and that count.
fn fit(mut wrapped: Vec<String>, lines: usize, room: usize, tail: usize) -> (Vec<String>, usize) {
    if wrapped.len() <= lines {
        return (wrapped, 0);
    }
    let count = |lines: &[String]| lines.iter().map(|line| line.chars().count()).sum::<usize>();
    let whole = count(&wrapped);
    wrapped.truncate(lines);
    if let Some(last) = wrapped.last_mut() {
        let room = room.saturating_sub(more(whole).width() + tail).max(1);
        *last = wrap(last, room).into_iter().next().unwrap_or_default();
    }
    let left_out = whole - count(&wrapped);
    (wrapped, left_out)
}

/// How much is left out; empty if nothing is.
fn more(left_out: usize) -> String {
    if left_out == 0 { String::new() } else { format!(" … {} more", super::units::plural(left_out, "character")) }
}

/// The text in lines of at most `width` columns: broken at spaces, or inside a word that is longer. Tabs become
/// spaces.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        wrap_line(&line.replace('\t', "    "), width, &mut lines);
    }
    lines
}

fn wrap_line(line: &str, width: usize, lines: &mut Vec<String>) {
    let mut current = String::new();
    let mut columns = 0;
    for word in line.split_inclusive(' ') {
        let bare = word.trim_end_matches(' ').width();
        if columns > 0 && columns + bare > width {
            current.truncate(current.trim_end_matches(' ').len());
            lines.push(std::mem::take(&mut current));
            columns = 0;
        }
        if bare <= width {
            current.push_str(word);
            columns += word.width();
            continue;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if columns > 0 && columns + wide > width {
                lines.push(std::mem::take(&mut current));
                columns = 0;
            }
            current.push(c);
            columns += wide;
        }
    }
    current.truncate(current.trim_end_matches(' ').len());
    lines.push(current);
}

/// The text cut to `width` columns, with `…` at its end if something was cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut columns = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if columns + wide >= width {
            break;
        }
        shown.push(c);
        columns += wide;
    }
    shown.push('…');
    shown
}

/// The text padded with spaces to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    let mut shown = text.to_owned();
    shown.extend(std::iter::repeat_n(' ', width.saturating_sub(text.width())));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole_and_long_ones_broken() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("a\n\nb", 10), ["a", "", "b"]);
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(wrap("漢字漢字", 4), ["漢字", "漢字"]);
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(pad("漢", 4), "漢  ");
    }

    #[test]
    fn a_block_counts_what_it_leaves_out() {
        let look = Look::plain(20);
        let block = TextBlock { lead: ("  > ", 4), tone: None, tail: "end", lines: 1 };
        let text = look.block(&"abcdefgh ".repeat(9), &block);
        assert_eq!(text, "  > a … 71 characters more  end\n");
        let whole = TextBlock { lines: 9, ..block };
        assert_eq!(look.block("abcdefgh abcdef", &whole), "  > abcdefgh abcdef\n    end\n");
        assert_eq!(look.block("abcdefgh", &whole), "  > abcdefgh  end\n");
    }

    #[test]
    fn a_plain_look_paints_nothing() {
        assert_eq!(Look::plain(80).paint(Tone::Bad, "x"), "x");
        assert!(Look { colour: true, width: 80 }.paint(Tone::Bad, "x").contains('\u{1b}'));
    }
}
