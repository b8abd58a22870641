//! What a run of a workflow came to: its steps, the sides of their filters, and what humans decided about them.

use std::collections::{BTreeMap, BTreeSet};

use super::conditions::{self, JudgedCall};
use super::map::CoveragePart;
use super::point::{CoverageOutcome, CoveragePoint};
use crate::engine::address::StepAddress;
use crate::engine::event::{Decision, EventKind};
use crate::engine::flow::record::StepStatus;
use crate::engine::flow::state::{Current, ItemStatus, StepChange, StepFrame};
use crate::engine::operation::{AskedFor, Progress};
use crate::engine::state::State;
use crate::program::flow::{FlowStep, StepAction};

/// What the steps of a run came to so far.
pub(super) struct StepsReached<'m> {
    part: &'m CoveragePart,
    /// The addresses of the steps that ran.
    ran: BTreeSet<String>,
    /// What waits for a human: the address of each step, and whether it is a form.
    waiting: BTreeMap<String, bool>,
}

impl<'m> StepsReached<'m> {
    pub fn new(part: &'m CoveragePart) -> Self {
        Self { part, ran: BTreeSet::new(), waiting: BTreeMap::new() }
    }

    /// Takes an event that was folded.
    pub fn take(&mut self, event: &EventKind, state: &State, reached: &mut BTreeSet<CoveragePoint>) {
        let Some(flow) = &state.flow else { return };
        self.decided(event, state, reached);
        for change in &flow.changes {
            match change {
                StepChange::Started { at, .. } => self.note(at, CoverageOutcome::Runs, reached),
                StepChange::Retried { .. } => {}
                StepChange::Ended(record) => {
                    let fails = record.status == StepStatus::Failed;
                    self.note(&record.at, CoverageOutcome::Runs, reached);
                    if fails {
                        self.note(&record.at, CoverageOutcome::Fails, reached);
                    }
                    if let Some(input) = &record.input {
                        self.judge(&record.at, input, state, reached);
                    }
                }
                StepChange::ItemsEnded { at, statuses } => {
                    for (index, status) in statuses.iter().enumerate() {
                        self.item(at, index, *status, reached);
                    }
                }
            }
        }
        self.waiting = flow
            .open()
            .into_iter()
            .filter_map(|open| match open.progress {
                Progress::Asks(AskedFor::Approval(_)) | Progress::Asks(AskedFor::Consent { .. }) => {
                    Some((open.address.to_string(), false))
                }
                Progress::Asks(AskedFor::Form { .. }) => Some((open.address.to_string(), true)),
                _ => None,
            })
            .collect();
    }

    /// The conditions of the texts of a call.
    fn judge(&self, at: &str, input: &serde_json::Value, state: &State, reached: &mut BTreeSet<CoveragePoint>) {
        let Some((placed, FlowStep { action: StepAction::Call(call), .. })) = self.part.step(at) else { return };
        let call = JudgedCall {
            tool: &call.tool,
            pointer: placed.pointer.clone(),
            input,
            run_input: &state.header.input,
            run_id: &state.header.run_id,
            at_ms: state.now.wall_ms,
        };
        conditions::in_call(self.part, &call, reached);
    }

    /// What a human decided about steps that waited, or did not.
    fn decided(&self, event: &EventKind, state: &State, reached: &mut BTreeSet<CoveragePoint>) {
        let outcome = |is_form: bool| match event {
            EventKind::Human(decided) => match decided.decision {
                Decision::Approve | Decision::Edit(_) => Some(CoverageOutcome::IsApproved),
                Decision::Deny(_) => Some(CoverageOutcome::IsDenied),
                Decision::Answer(_) if is_form => Some(CoverageOutcome::IsFilledIn),
                _ => None,
            },
            EventKind::ApprovalExpired if is_form => Some(CoverageOutcome::Expires),
            _ => None,
        };
        for (at, is_form) in &self.waiting {
            let waits = |progress: &Progress| {
                progress.is_approval() || matches!(progress, Progress::Asks(AskedFor::Form { .. }))
            };
            let still = state
                .flow
                .as_ref()
                .and_then(|flow| flow.open_at(&StepAddress::new(at)))
                .is_some_and(|open| waits(&open.progress));
            if let Some(outcome) = outcome(*is_form).filter(|_| !still)
                && let Some((placed, _)) = self.part.step(at)
            {
                reached.insert(self.part.of_step(placed, outcome));
            }
        }
    }

    fn note(&mut self, at: &str, outcome: CoverageOutcome, reached: &mut BTreeSet<CoveragePoint>) {
        if let Some((placed, _)) = self.part.step(at) {
            self.ran.insert(at.to_owned());
            reached.insert(self.part.of_step(placed, outcome));
        }
    }

    /// The filters of an item that ended with all of its steps.
    fn item(&self, of: &str, index: usize, status: ItemStatus, reached: &mut BTreeSet<CoveragePoint>) {
        if matches!(status, ItemStatus::Completed | ItemStatus::Skipped)
            && let Some((_, FlowStep { action: StepAction::Foreach(foreach), .. })) = self.part.step(of)
        {
            self.passed(&foreach.steps, &format!("{of}.{index}."), reached);
        }
    }

    /// The filters of steps that are over: one that did not run was left out by its filter, and so was each whose place
    /// another one took.
    fn passed<'s>(
        &self,
        steps: impl IntoIterator<Item = &'s FlowStep>,
        prefix: &str,
        reached: &mut BTreeSet<CoveragePoint>,
    ) {
        for step in steps {
            let mut next = Some(step);
            while let Some(step) = next {
                let at = format!("{prefix}{}", step.name);
                if self.ran.contains(&at) {
                    break;
                }
                if let Some((placed, _)) = self.part.step(&at).filter(|_| step.filter.is_some()) {
                    reached.insert(self.part.of_step(placed, CoverageOutcome::IsSkipped));
                }
                next = step.otherwise.as_deref();
            }
        }
    }

    /// Takes the state at the end of the journal: lists that have not ended, or failed.
    pub fn finish(&self, state: &State, reached: &mut BTreeSet<CoveragePoint>) {
        if let (Some(flow), Some(of_program)) = (&state.flow, self.part.program.as_flow()) {
            self.frame(&of_program.steps, &flow.root, "", reached);
        }
    }

    /// Loops are at most three deep: the recursion ends.
    fn frame(&self, steps: &[FlowStep], frame: &StepFrame, prefix: &str, reached: &mut BTreeSet<CoveragePoint>) {
        self.passed(steps.iter().filter(|step| step.number < frame.next), prefix, reached);
        let current = steps.iter().find(|step| step.number == frame.next);
        // The step that took the place of the present one is open, or failed.
        self.passed(current.filter(|step| self.took_place(step, prefix)), prefix, reached);
        let Current::Items(items) = &frame.current else { return };
        let Some((_, FlowStep { action: StepAction::Foreach(foreach), .. })) = self.part.step(&items.at) else {
            return;
        };
        for (index, status) in &items.ended {
            self.item(&items.at, usize::try_from(*index).unwrap_or(usize::MAX), *status, reached);
        }
        for (index, frame) in items.open.iter().chain(&items.unfinished) {
            self.frame(&foreach.steps, frame, &format!("{}.{index}.", items.at), reached);
        }
    }

    /// Whether a step in the place of this one ran.
    fn took_place(&self, step: &FlowStep, prefix: &str) -> bool {
        let mut next = step.otherwise.as_deref();
        while let Some(step) = next {
            if self.ran.contains(&format!("{prefix}{}", step.name)) {
                return true;
            }
            next = step.otherwise.as_deref();
        }
        false
    }
}
