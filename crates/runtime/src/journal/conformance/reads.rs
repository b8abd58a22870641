//! What is read is what was written, whole or in parts.

use super::*;

pub(super) fn a_run_reads_as_it_was_written(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    for seq in 1..5 {
        wait(journal.append(event("r", fence, seq))).unwrap();
    }
    let events = wait(journal.read("r")).unwrap();
    assert_eq!(events, ["first", "event 1 of r", "event 2 of r", "event 3 of r", "event 4 of r"]);
    for from in 0..=5_u8 {
        assert_eq!(wait(journal.read_from("r", from.into(), usize::MAX)).unwrap(), events[usize::from(from)..]);
    }
    assert!(wait(journal.read_from("r", u64::MAX, usize::MAX)).unwrap().is_empty());
}

pub(super) fn a_part_of_a_run_ends_with_the_event_that_comes_to_its_bound(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    // From one byte to more than a block in memory; no event ends at the border of a block.
    let texts: Vec<String> = [1, 700, 299, 1, 2_500, 1_000, 3].map(|bytes| "x".repeat(bytes)).into();
    for (seq, text) in (1..).zip(&texts) {
        wait(journal.append(Append { event: text.clone(), ..event("r", fence, seq) })).unwrap();
    }
    for first in 0..texts.len() {
        for most in [0, 1, 2, 299, 300, 301, 999, 1_000, 1_001, 2_500, 3_000, 4_504, usize::MAX] {
            let mut bytes = 0;
            let fits = texts[first..].iter().take_while(|text| {
                let begins = bytes < most.max(1);
                bytes += text.len();
                begins
            });
            let expected: Vec<String> = fits.cloned().collect();
            let from = u64::try_from(first).unwrap() + 1;
            assert_eq!(wait(journal.read_from("r", from, most)).unwrap(), expected, "{first}, {most}");
        }
    }
    assert!(wait(journal.read_from("r", 8, 1)).unwrap().is_empty());
}

pub(super) fn texts_of_any_kind_come_back_as_they_are(journal: &dyn Journal) {
    let id = "a/б'\"; DROP TABLE runs; --";
    let fence = begin(journal, id);
    let mut texts = vec![String::new(), "\u{0}nul\n".into(), "😀 \u{202e}".into(), "x".repeat(100_000)];
    // Wherever a block ends, it ends before, behind and within a character of some of them.
    texts.extend((0..12).map(|more| "é".repeat(480 + 7 * more)));
    for (seq, text) in (1..).zip(&texts) {
        wait(journal.append(Append { event: text.clone(), ..event(id, fence, seq) })).unwrap();
    }
    for (from, seq) in (1..).enumerate().take(texts.len()) {
        assert_eq!(wait(journal.read_from(id, seq, usize::MAX)).unwrap(), texts[from..]);
    }
}
