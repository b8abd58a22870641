//! What people did: its lines are written together with the events that they are about.

use super::*;

fn entry(at_ms: i64, action: AuditAction, actor: &str, detail: &str) -> AuditEntry {
    AuditEntry::new(at_ms, action, Some(actor), Some(detail))
}

fn listed(journal: &dyn Journal, filter: AuditFilter) -> Vec<AuditLine> {
    wait(journal.audit(filter)).unwrap()
}

/// The actors of the lines of a filter.
fn actors(journal: &dyn Journal, filter: AuditFilter) -> Vec<String> {
    listed(journal, filter).into_iter().filter_map(|line| line.entry.actor).collect()
}

fn of_org(org: &str) -> AuditFilter {
    AuditFilter { org: Some(org.to_owned()), ..AuditFilter::default() }
}

pub(super) fn a_line_is_written_with_its_event_or_not_at_all(journal: &dyn Journal) {
    let started = |id: &str| NewRun {
        org: Some("acme".to_owned()),
        audit: Some(Box::new(entry(1_000, AuditAction::Started, "ci", "by its schedule"))),
        ..new_run(id)
    };
    assert!(matches!(wait(journal.create(started("r"))).unwrap(), Created::New(_)));
    // The same start again is no other one.
    assert_eq!(wait(journal.create(started("r"))).unwrap(), Created::Same);
    let lines = listed(journal, AuditFilter::default());
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    let of_run = |entry: AuditEntry, id: u64| AuditLine {
        id,
        run_id: Some("r".to_owned()),
        loop_name: Some("triage".to_owned()),
        org: Some("acme".to_owned()),
        ..AuditLine::new(entry)
    };
    assert_eq!(*line, of_run(entry(1_000, AuditAction::Started, "ci", "by its schedule"), line.id));
    let decided = |fence: u64, seq: u64| Append {
        audit: Some(Box::new(entry(2_000, AuditAction::Decided, "ann", "approve pay"))),
        ..event("r", fence, seq)
    };
    assert!(wait(journal.append(decided(1, 2))).is_err(), "out of order");
    assert!(wait(journal.append(decided(9, 1))).is_err(), "of another driver");
    assert_eq!(listed(journal, AuditFilter::default()).len(), 1);
    wait(journal.append(decided(1, 1))).unwrap();
    let lines = listed(journal, AuditFilter::default());
    let [last, _] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(*last, of_run(entry(2_000, AuditAction::Decided, "ann", "approve pay"), last.id));
}

pub(super) fn lines_are_found_by_what_they_say_and_stay_when_their_run_is_pruned(journal: &dyn Journal) {
    let noted = |at_ms: i64, action, actor: &str| AuditLine::new(entry(at_ms, action, actor, "x"));
    let of = |org: &str, run: &str, line: AuditLine| AuditLine {
        org: Some(org.to_owned()).filter(|org| !org.is_empty()),
        run_id: Some(run.to_owned()).filter(|run| !run.is_empty()),
        ..line
    };
    let lines = vec![
        of("acme", "r-1", noted(10, AuditAction::Cancelled, "ann")),
        of("other", "r-2", noted(20, AuditAction::Retried, "bob")),
        of("", "r-3", noted(30, AuditAction::Released, "cid")),
        of("", "", noted(40, AuditAction::Pruned, "dan")),
        AuditLine { times: 7, ..of("acme", "", noted(50, AuditAction::Refused, "eve")) },
    ];
    wait(journal.note_audit(lines)).unwrap();
    let all = listed(journal, AuditFilter::default());
    assert!(all.windows(2).all(|pair| pair[0].id > pair[1].id), "{all:?}");
    assert_eq!(all.iter().map(|line| line.times).collect::<Vec<_>>(), [7, 1, 1, 1, 1]);
    let filtered = |filter: AuditFilter| actors(journal, filter);
    assert_eq!(filtered(AuditFilter::default()), ["eve", "dan", "cid", "bob", "ann"]);
    assert_eq!(filtered(of_org("acme")), ["eve", "ann"]);
    assert_eq!(filtered(of_org("other")), ["bob"]);
    // Who has no organisation sees the runs of none, and not what is about all.
    assert_eq!(filtered(of_org("")), ["cid"]);
    assert_eq!(filtered(AuditFilter { run_id: Some("r-2".to_owned()), ..AuditFilter::default() }), ["bob"]);
    assert_eq!(filtered(AuditFilter { run_id: Some("r-2".to_owned()), ..of_org("acme") }), [""; 0]);
    assert_eq!(filtered(AuditFilter { actor: Some("dan".to_owned()), ..AuditFilter::default() }), ["dan"]);
    assert_eq!(filtered(AuditFilter { action: Some(AuditAction::Refused), ..AuditFilter::default() }), ["eve"]);
    let between = AuditFilter { since_ms: Some(20), until_ms: Some(40), ..AuditFilter::default() };
    assert_eq!(filtered(between), ["cid", "bob"]);
    assert_eq!(filtered(AuditFilter { limit: 2, ..AuditFilter::default() }), ["eve", "dan"]);
    let before = all.get(1).map(|line| line.id);
    assert_eq!(filtered(AuditFilter { before, limit: 2, ..AuditFilter::default() }), ["cid", "bob"]);
    let after = all.get(2).map(|line| line.id);
    assert_eq!(filtered(AuditFilter { after, ..AuditFilter::default() }), ["dan", "eve"]);
    assert_eq!(filtered(AuditFilter { after: Some(0), limit: 2, ..AuditFilter::default() }), ["ann", "bob"]);

    let fence = begin(journal, "r-1");
    let ended = StatusRecord {
        status: Status::Completed,
        termination: Some(Termination::Complete),
        iterations: 1,
        at_ms: 2_000,
        ..StatusRecord::new(Status::Running, 0)
    };
    wait(journal.append(Append { status_record: Some(ended), release: true, ..event("r-1", fence, 1) })).unwrap();
    let which = PruneQuery::all_before(9_000, vec![Status::Completed]);
    assert_eq!(wait(journal.prune(which)).unwrap(), 1);
    assert_eq!(filtered(AuditFilter { run_id: Some("r-1".to_owned()), ..AuditFilter::default() }), ["ann"]);
}

pub(super) fn a_loop_is_switched_off_and_on_again_with_a_line_of_it(journal: &dyn Journal) {
    let switch = |name: &str, is_off: bool, at_ms: i64| LoopSwitch {
        name: name.to_owned(),
        is_off,
        at_ms,
        actor: Some("ops".to_owned()),
        reason: is_off.then(|| "the bank \0 is away".to_owned()),
    };
    assert_eq!(wait(journal.loop_switches()).unwrap(), []);
    wait(journal.switch_loop(switch("pay", true, 10))).unwrap();
    wait(journal.switch_loop(switch("ask", true, 20))).unwrap();
    assert_eq!(wait(journal.loop_switches()).unwrap(), [switch("ask", true, 20), switch("pay", true, 10)]);
    wait(journal.switch_loop(switch("pay", false, 30))).unwrap();
    assert_eq!(wait(journal.loop_switches()).unwrap(), [switch("ask", true, 20), switch("pay", false, 30)]);
    let lines = listed(journal, AuditFilter::default());
    let said = lines.iter().map(|line| (line.entry.action, line.loop_name.as_deref(), line.entry.at_ms));
    let (off, on) = (AuditAction::SwitchedOff, AuditAction::SwitchedOn);
    assert_eq!(said.collect::<Vec<_>>(), [(on, Some("pay"), 30), (off, Some("ask"), 20), (off, Some("pay"), 10)]);
}
