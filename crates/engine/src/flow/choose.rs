//! Choices between lists of steps. The steps of the cases follow the choice in its list: the frame keeps which case they run
//! for.

use super::advance::{Advance, StepList};
use super::progress::StepFrame;
use super::record::{StepRecord, StepStatus};
use super::step_start::{BeginFault, Opened};
use loopctl_lang::program::choose::ChooseStep;
use loopctl_lang::program::flow::{FlowStep, StepAction};
use loopctl_lang::program::reference::Scope;

impl Advance<'_> {
    /// The first case that holds.
    pub fn case(&self, choose: &ChooseStep, scope: &Scope<'_>) -> Result<Opened, BeginFault> {
        for (number, case) in choose.cases.iter().enumerate() {
            match case.when.holds(scope, self.order_rules()) {
                Ok(true) => return Ok(Opened::Case(Some(number))),
                Ok(false) => {}
                Err(fault) => {
                    let message = format!("the `when` of its case {number} can't be judged: {fault}");
                    return Err(BeginFault::new("bad_condition", message));
                }
            }
        }
        Ok(Opened::Case(choose.otherwise.as_ref().map(|_| choose.cases.len())))
    }

    /// A choice was made: the steps of its case come next.
    pub fn chose(&mut self, list: &StepList<'_>, step: &FlowStep, frame: &mut StepFrame, case: Option<usize>) {
        frame.next += 1;
        let at = list.address(&step.name);
        let (Some(case), StepAction::Choose(choose)) = (case, &step.action) else {
            frame.cases.remove(&step.name);
            if list.of.is_none() {
                self.records.push(self.skipped(list, step));
            }
            return;
        };
        frame.cases.insert(step.name.clone(), case);
        let now_ms = self.now.wall_ms;
        let record = StepRecord::new(at, step.kind.clone(), StepStatus::Completed, now_ms);
        self.report(list, StepRecord { finished_at_ms: Some(now_ms), case: Some(choose.name_of(case)), ..record });
    }
}
