//! What is fixed since the start of a run.

use std::sync::Arc;

use super::event::{Allowance, CopiedUsage, DecisionRights, ForkPoint, ModelFacts, ParentCall, WebhookDelivery};
use jiff::tz::TimeZone;
use loopctl_lang::language::react::CallOrder;
use loopctl_lang::program::ProgramHead;
use loopctl_lang::program::approval::CallRules;
use loopctl_lang::program::bind::run_input::RunInput;
use loopctl_lang::program::condition::OrderRules;
use loopctl_lang::program::denial::DenialRule;
use loopctl_lang::program::file_value::FileValues;
use loopctl_lang::program::json_texts::JsonRule;

/// What is fixed since the start of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunHeader {
    /// The run's id.
    pub run_id: String,
    /// The session whose memory it shares.
    pub session: Option<String>,
    /// The loop's name.
    pub loop_name: String,
    /// The objective, rendered.
    pub objective: String,
    /// The run's input.
    pub input: RunInput,
    /// The model.
    pub model: ModelFacts,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The active time that it may take, in milliseconds, unless that is raised.
    pub timeout_ms: u64,
    /// The digest of its present documents: an approval is bound to them.
    pub meaning: [u8; 32],
    /// What it may spend, besides the `budget` of the document.
    pub bound: Allowance,
    /// The order of the calls of a turn.
    pub order: CallOrder,
    /// Whether a script took the place of its models.
    pub scripted: bool,
    /// The edition of the engine's decisions.
    pub edition: u32,
    /// The call that started it, when it is a sub-run.
    pub caller: Option<ParentCall>,
    /// The earlier run whose account it received.
    pub previous_run_id: Option<Box<str>>,
    /// The earlier run whose input it has, when it is a rerun.
    pub rerun_of: Option<Box<str>>,
    /// Where it comes from, when it is a fork.
    pub fork: Option<ForkPoint>,
    /// What it copied as spent, then.
    pub copied: CopiedUsage,
    /// The run that started it without waiting for it.
    pub started_by: Option<Box<str>>,
    /// The delivery that started it, when a webhook did.
    pub delivery: Option<Box<WebhookDelivery>>,
    /// The values of the files of the project that it reads, by `doc:NAME`.
    pub files: Arc<FileValues>,
    /// What the receiver of its callbacks may decide about; none when it may not decide.
    pub callback_rights: Option<DecisionRights>,
}

impl RunHeader {
    /// Whether a loop of mode `foreach` goes through a text that is the JSON of a list.
    pub(super) fn reads_json_lists(&self) -> bool {
        self.edition >= 2
    }

    /// How texts are read as JSON.
    pub fn json_rule(&self) -> JsonRule {
        match self.edition {
            0 | 1 => JsonRule::Plain,
            2..=6 => JsonRule::Fenced,
            7 => JsonRule::Whole,
            8 => JsonRule::AnyFence,
            _ => JsonRule::BehindMarks,
        }
    }

    /// Whether a workflow has no `max_iterations` to raise.
    pub(super) fn refuses_iterations(&self) -> bool {
        self.edition >= 9
    }

    /// Whether a reply that writes a call as text is judged by the marks of calls and the tools of the loop, and native calls
    /// count in dialects whose calls are text.
    pub(super) fn knows_written_calls(&self) -> bool {
        self.edition >= 3
    }

    /// Whether a reply that is empty is answered with a request for one.
    pub(super) fn knows_empty_replies(&self) -> bool {
        self.edition >= 3
    }

    /// Whether the same thought over calls that differ is no repetition.
    pub(super) fn compares_actions(&self) -> bool {
        self.edition >= 3
    }

    /// Whether an input or an answer that does not match its schema is read where it has one reading.
    pub(super) fn fits_values(&self) -> bool {
        self.edition >= 3
    }

    /// Whether a call that the end of the run's time cut off is said to have maybe happened.
    pub(super) fn names_lost_calls(&self) -> bool {
        self.edition >= 3
    }

    /// Whether a count of zero tokens is none, so that the engine estimates.
    pub(super) fn estimates_zeros(&self) -> bool {
        self.edition >= 3
    }

    /// Whether two times have an order, a text with blanks around is no number, a text in the input of a step is read as the number
    /// or boolean that its schema wants, an answer of JSON that has a key twice is none, and today in a form is that of the time
    /// zone.
    pub(super) fn reads_exact_texts(&self) -> bool {
        self.edition >= 4
    }

    /// Whether a date alone and the days of a wait are those of the time zone of the workflow.
    pub(super) fn waits_in_zone(&self) -> bool {
        self.edition >= 4
    }

    /// Whether a step that failed because its approval expired says so by its code.
    pub(super) fn names_expired_approvals(&self) -> bool {
        self.edition >= 5
    }

    /// Whether a step whose approval is escalated asks in a new pause, as a call does.
    pub(super) fn escalates_in_a_new_pause(&self) -> bool {
        self.edition >= 8
    }

    /// Whether a workflow, or an item, whose budget is spent begins no further step, also none that asks no model.
    pub(super) fn stops_when_spent(&self) -> bool {
        self.edition >= 9
    }

    /// Whether what the steps for a failure wrote is out of reach of the steps that failed, when those run again.
    pub(super) fn keeps_keys_of_a_failure_apart(&self) -> bool {
        self.edition >= 10
    }

    /// Whether a workflow asks in a new pause what an edit has changed that more people must approve, as a loop does.
    pub(super) fn asks_an_edit_in_a_new_pause(&self) -> bool {
        self.edition >= 9
    }

    /// Whether the model reads that notes of its history were cut off, or why there are none.
    pub(super) fn marks_cut_notes(&self) -> bool {
        self.edition >= 6
    }

    /// Whether an answer is read out of fences of all forms, and half of a surrogate pair in the JSON of a reply is U+FFFD.
    pub(super) fn reads_all_fences(&self) -> bool {
        self.edition >= 8
    }

    /// Whether thoughts and calls are no notes of a history.
    pub(super) fn reads_notes(&self) -> bool {
        self.edition >= 7
    }

    /// Whether `length` and `in` of a condition read a text that is JSON, and a path into a text that should be JSON and is none can't
    /// be judged.
    pub(super) fn reads_json_in_conditions(&self) -> bool {
        self.edition >= 6
    }

    /// Whether a value that can't be read or made fails what asks for it, and is not null.
    pub(super) fn refuses_unread_values(&self) -> bool {
        self.json_rule().is_whole()
    }

    /// Whether a call that a human did not allow counts for `require_tool_before_answer`.
    pub(super) fn counts_denied_calls(&self) -> bool {
        self.edition >= 6
    }

    /// What the conditions of approvals are judged by, at this moment; `zone` is that of a workflow.
    pub fn call_rules<'r>(&self, program: &'r ProgramHead, zone: Option<&'r TimeZone>, now: &'r str) -> CallRules<'r> {
        CallRules { json: self.json_rule(), order: self.order_rules(program, zone), now }
    }

    /// How values are ordered.
    pub(super) fn order_rules<'r>(&self, program: &'r ProgramHead, zone: Option<&'r TimeZone>) -> OrderRules<'r> {
        let hidden = &program.project.redact;
        OrderRules { is_exact: self.reads_exact_texts(), reads_json: self.reads_json_in_conditions(), zone, hidden }
    }

    /// What decides what a no to an approval does that says nothing of it.
    pub(super) fn denial_rule(&self) -> DenialRule {
        match self.edition {
            0 | 1 => DenialRule::Letters,
            2 => DenialRule::Loose,
            _ => DenialRule::Firm,
        }
    }

    /// Whether replies and observations are bounded by a window that the project says.
    pub(super) fn knows_windows(&self) -> bool {
        self.edition >= 1
    }
}
