//! The list of runs, word for word.

use super::*;

fn run(id: &str, status: Status, termination: Option<Termination>) -> RunSummary {
    RunSummary {
        run_id: id.to_owned(),
        loop_name: "refund-check".to_owned(),
        session: None,
        status,
        termination,
        iterations: 3,
        started_at_ms: 1_769_941_800_000,
        updated_at_ms: 1_769_941_800_000,
        tokens: None,
        cost_usd: None,
        error: None,
        question: None,
        due_at_ms: None,
        schedule: None,
        scheduled_for_ms: None,
        is_complete: true,
        driven: false,
        waits_since_ms: None,
        damaged: None,
        identity: String::new(),
        parent_run_id: None,
        org: None,
        token: None,
        callback: None,
    }
}

#[test]
fn runs_stand_in_a_table() {
    let runs = [
        RunSummary { cost_usd: Some(0.0421), ..run("agent-1", Status::Completed, Some(Termination::Complete)) },
        run("agent-2", Status::Failed, Some(Termination::Stuck)),
        run("agent-3", Status::Paused, Some(Termination::Human)),
        run("agent-4", Status::Running, None),
        run("agent-5", Status::Cancelled, None),
        run("agent-6", Status::Cancelled, Some(Termination::Cancelled)),
        run("agent-7", Status::Quarantined, None),
        RunSummary {
            error: Some("the model answered 401".to_owned()),
            cost_usd: Some(12.3),
            ..run("agent-8", Status::Failed, Some(Termination::ModelError))
        },
        RunSummary {
            question: Some("Refund 40 EUR?".to_owned()),
            ..run("agent-9", Status::Paused, Some(Termination::Human))
        },
    ];
    let text = table(&runs, &Look::plain(110), 1_769_941_800_000 + 5 * 60_000);
    insta::assert_snapshot!(text, @r#"
    RUN      LOOP          STATUS       ITER.  COST      AGE      WHY
    agent-1  refund-check  completed        3  $0.0421   5 min
    agent-2  refund-check  failed           3            5 min    the agent is stuck
    agent-3  refund-check  paused           3            5 min    a question for a human
    agent-4  refund-check  running          3            5 min    interrupted; resumable
    agent-5  refund-check  cancelled        3            5 min    stopped; resumable
    agent-6  refund-check  cancelled        3            5 min
    agent-7  refund-check  quarantined      3            5 min    its process died 3 times or more; resumable
    agent-8  refund-check  failed           3  $12.30    5 min    the model answered 401
    agent-9  refund-check  paused           3            5 min    Refund 40 EUR?
    "#);
}

#[test]
fn a_narrow_terminal_gets_a_few_lines_a_run() {
    let runs = [run("agent-1", Status::Completed, Some(Termination::Complete)), run("agent-2", Status::Running, None)];
    insta::assert_snapshot!(table(&runs, &Look::plain(50), 1_769_941_800_000 + 5 * 60_000), @r#"
    agent-1
      completed  refund-check, 3 iterations, 5 min ago
    agent-2
      running    refund-check, 3 iterations, 5 min ago
      interrupted; resumable
    "#);
}

#[test]
fn a_hostile_id_is_one_harmless_line() {
    let text = table(&[run("a\u{1b}[2J\nb", Status::Failed, None)], &Look::plain(100), 0);
    assert_eq!(text.lines().count(), 2);
    assert!(!text.contains(escape::is_hidden));
}

#[test]
fn a_clock_that_went_back_makes_it_now() {
    assert_eq!(age(0, 5_000), "now");
    assert_eq!(age(0, -2 * 86_400_000), "2 days");
}
