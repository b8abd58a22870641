//! Lines are wrapped by columns, not by bytes.

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
