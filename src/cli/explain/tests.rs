//! Pages, the list, and unknown codes.

use super::*;

const PAGE: &str = "# L012: A word that is none of those that are known\n\nA `mode` is one of some words, and this text is long enough to be wrapped.\n\n## Example\n\n```json\n{\"mode\": \"reakt\"}\n```\n\n- one entry of a list\n| a | b |\n";

#[test]
fn a_page_is_found_by_its_code_and_its_name_in_any_case() {
    assert!(page_of("L012").unwrap().starts_with("# L012: Value not in the list of allowed values\n"));
    for word in ["l012", " L012 ", "wrong-word", "Wrong-Word"] {
        assert_eq!(page_of(word), page_of("L012"), "{word}");
    }
    assert_eq!(page_of("L999"), None);
}

#[test]
fn a_code_that_there_is_not_brings_the_nearest() {
    assert_eq!(near("L0999").len(), 3);
    assert_eq!(near("l12").first(), Some(&"L012"));
    assert_eq!(near("12").first(), Some(&"L012"));
    assert_eq!(near("wrong-wrd"), ["wrong-word"]);
    assert_eq!(near("LOI2").first(), Some(&"L012"));
    assert!(near("nothing like it").is_empty());
    assert!(near("L99999999999999999999").len() <= 3);
}

#[test]
fn the_list_has_every_code_with_its_title() {
    let list = list(&Look::plain(80));
    assert_eq!(list.lines().count(), TABLE.len());
    assert!(list.contains("L012  Value not in the list of allowed values\n"), "{list}");
}

#[test]
fn a_page_is_laid_out_for_a_terminal() {
    insta::assert_snapshot!(page::page(PAGE, &Look::plain(40)), @r#"
    L012: A word that is none of those that are known

    A `mode` is one of some words, and this
    text is long enough to be wrapped.

    Example

        {"mode": "reakt"}

    - one entry of a list
    | a | b |
    "#);
    let coloured = page::page("`a` b `c\u{1b}[2J`\n", &Look { colour: true, width: 40 });
    assert!(!coloured.contains('`') && !coloured.contains("\u{1b}[2J"), "{coloured:?}");
}
