//! An operation: a call of a turn, or a step of a workflow. It is requested at most once at a time, may be made again, may be
//! uncertain, may wait for a human, may be a run of its own, and ends. What follows its end belongs to the turn or to the list
//! of steps.

use std::fmt::{Debug, Display};
use std::sync::Arc;

use serde_json::Value;

use super::address::{StepAddress, split_address};
use super::asked_targets::AskedTargets;
use super::call_attempt::CallAttempt;
use super::compaction::push_tight;
use super::decision;
use super::decision::awaited_approval::AwaitedApproval;
use super::decision::awaited_approval::{NOT_ESCALATED, may_take};
use super::decision::consent;
use super::decision::decision_record::{ApprovalCount, DecisionRecord};
use super::decision::form::FormRequest;
use super::decision::subrun_decision;
use super::effect::Refused;
use super::event::{CallId, Decided, Decision, DecisionRights, Tokens, ToolResult};
use super::header::RunHeader;
use super::outcome::Termination;
use super::question::{EndedPart, SubrunQuestion};
use super::server_question::{AnsweredQuestion, ServerQuestion};
use loopctl_lang::language::approval::OnExpiry;
use loopctl_lang::language::step::OnRejected;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::Tool;
use loopctl_lang::program::awaited_event::EventMatch;
use loopctl_lang::program::file_value::written_json;
use loopctl_lang::program::null_member::without_nulls;
use loopctl_lang::program::schema;

/// Where an operation is in its run.
pub trait Address: Clone + PartialEq + Debug + Display {
    /// The record of a decision about the operation.
    fn in_record(&self, record: DecisionRecord) -> DecisionRecord;

    /// A decision as the sub-run of the operation reads it.
    fn below(&self, decided: &Decided) -> Decided;
}

impl Address for CallId {
    fn in_record(&self, record: DecisionRecord) -> DecisionRecord {
        DecisionRecord { call: Some(*self), ..record }
    }

    fn below(&self, decided: &Decided) -> Decided {
        decided.clone()
    }
}

impl Address for StepAddress {
    fn in_record(&self, record: DecisionRecord) -> DecisionRecord {
        DecisionRecord { step: Some(self.to_string()), ..record }
    }

    fn below(&self, decided: &Decided) -> Decided {
        // The pause is the workflow's own; the run below has another number, and other addresses.
        let at = decided.at.as_deref().and_then(|at| split_address(at).1).map(str::to_owned);
        Decided { at, pause: None, ..decided.clone() }
    }
}

/// A call of a turn.
pub type Call = Operation<CallId>;
/// A step of a workflow that has started and not ended: a call, a run or a question.
pub type OpenStep = Operation<StepAddress>;

/// A call of a turn, or a step of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation<A> {
    /// Where it is in its run.
    pub address: A,
    /// The tool as the model named it, or the `type` of the step: that of a call is the name of its action.
    pub name: String,
    /// Its input; for a form, the keys that it asks for, or its question with its fields. It may be large, so all that name it share it.
    pub input: Arc<Value>,
    /// How far it is.
    pub progress: Progress,
    /// The attempts that failed and were followed by another one.
    pub attempts: Vec<CallAttempt>,
    /// How long its attempts waited for their turns, in milliseconds.
    pub waited_ms: u64,
    /// When it became due, in milliseconds since 1970.
    pub due_at_ms: i64,
    /// When it was requested last, in milliseconds since 1970; none before.
    pub requested_at_ms: Option<i64>,
    /// Whether it is a run of another loop.
    pub is_subrun: bool,
    /// The run that it is, once its id is known.
    pub run_id: Option<Box<str>>,
    /// What was counted of it so far.
    pub settled: SettledCost,
    /// How often it was made before, when its step runs again.
    pub repetition: Repetition,
    /// What the item of a workflow is called that the step is of.
    pub item_label: Option<Arc<str>>,
    /// The targets that its question is posted to.
    pub ask: Option<Arc<[String]>>,
    /// After how long they are asked again, in milliseconds.
    pub reminders_ms: Box<[u64]>,
    /// What the server of its tool asked so far, and was answered; the oldest first.
    pub answered: Vec<AnsweredQuestion>,
    /// How often the server asked in all.
    pub asked: u32,
    /// What ends when a step fails; none where that is not known.
    pub ends: Option<EndedPart>,
}

/// How often a step was made before. That of a call of a turn is all zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repetition {
    /// How often failed steps had been run again when it became due: a run of its own is another one each time, unless it
    /// continues.
    pub round: u32,
    /// Whether its run had failed for a reason outside of it, and continues.
    pub continues: bool,
    /// How often its request was changed by a new document after it failed: each has a key of its own.
    pub request: u32,
}

/// How far an operation is.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It may be requested when what comes before it allows that: calls that the loop's `order` puts before it; with a
    /// budget, an operation that asks models waits until the cost of the one before it is known.
    Held,
    /// It was requested; only the driver knows whether it is under way.
    Requested,
    /// It may or may not have happened; a human must decide.
    Uncertain(Doubt),
    /// A human must decide.
    Asks(AskedFor),
    /// It waits for no human.
    Waits(AwaitedThing),
    /// It ended, or was not made because it is not allowed.
    Done {
        /// Its result.
        result: ToolResult,
        /// Its time in milliseconds.
        duration_ms: u64,
    },
}

/// What a step waits for that no human decides.
#[derive(Debug, Clone, PartialEq)]
pub struct AwaitedThing {
    /// Until when, in milliseconds since 1970: for an event, the step fails then.
    pub until_ms: i64,
    /// What for.
    pub what: AwaitedKind,
}

/// What a step waits for that has a time.
#[derive(Debug, Clone, PartialEq)]
pub enum AwaitedKind {
    /// The time itself.
    Time,
    /// An event.
    Event(Box<EventMatch>),
    /// Room in a spending limit of the project, for the model that the step asks: why there is none.
    Room(Box<str>),
}

/// Why nobody knows whether a call happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The process stopped during the call.
    Stopped,
    /// Its answer was lost: its last attempt says how.
    Lost,
}

/// What a human must decide about an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum AskedFor {
    /// Whether the call may be made.
    Approval(Box<AwaitedApproval>),
    /// Whether the workflow may continue: a step that asks for an approval.
    Consent {
        /// What the human is asked.
        comment: String,
        /// What a no does.
        on_rejected: OnRejected,
    },
    /// The values of a form.
    Form {
        /// Until when, in milliseconds since 1970.
        expires_at_ms: Option<i64>,
    },
    /// What its sub-run asks.
    Subrun(Box<SubrunWait>),
    /// What the server of its tool asks before it continues: then the call is made again.
    Server(Box<ServerQuestion>),
}

/// A sub-run that waits for a human.
#[derive(Debug, Clone, PartialEq)]
pub struct SubrunWait {
    /// What it asks.
    pub asks: SubrunQuestion,
    /// The decision of the human, to be passed to the sub-run.
    pub decided: Option<Decided>,
    /// Whether it asks again, because another document asked before.
    pub again: bool,
}

impl SubrunWait {
    /// Whether no human has decided.
    pub fn is_open(&self) -> bool {
        self.decided.is_none() && !self.again
    }
}

/// What was counted of an operation that has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SettledCost {
    /// Tokens.
    pub tokens: Tokens,
    /// US dollars.
    pub cost_usd: f64,
}

impl SettledCost {
    /// What a provider counted, as far as it did.
    pub(super) fn of(tokens: Option<Tokens>, cost_usd: Option<f64>) -> Self {
        Self { tokens: tokens.unwrap_or_default(), cost_usd: cost_usd.unwrap_or_default() }
    }
}

impl Progress {
    /// Ended at once.
    pub(super) fn done(result: ToolResult) -> Self {
        Self::Done { result, duration_ms: 0 }
    }

    /// Whether it ended.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }

    /// Whether the driver must perform it: it was requested and has not ended.
    pub fn is_under_way(&self) -> bool {
        match self {
            Self::Requested => true,
            Self::Asks(AskedFor::Subrun(wait)) => !wait.is_open(),
            Self::Held | Self::Uncertain(_) | Self::Asks(_) | Self::Waits(_) | Self::Done { .. } => false,
        }
    }

    /// Whether a human must decide about it.
    pub fn waits_for_human(&self) -> bool {
        match self {
            Self::Asks(AskedFor::Subrun(wait)) => wait.is_open() && wait.asks.asks_human(),
            Self::Uncertain(_) | Self::Asks(_) => true,
            Self::Held | Self::Requested | Self::Waits(_) | Self::Done { .. } => false,
        }
    }

    /// Whether a pause is another one without it. The numbers of pauses in journals count a model that can't be reached as a question.
    pub(super) fn makes_a_pause(&self) -> bool {
        match self {
            Self::Asks(AskedFor::Subrun(wait)) => wait.is_open() && !wait.asks.question.kind.is_wait(),
            _ => self.waits_for_human(),
        }
    }

    /// Whether it waits for something outside of its run: a human, or a time.
    pub fn waits(&self) -> bool {
        match self {
            Self::Asks(AskedFor::Subrun(wait)) => wait.is_open(),
            Self::Uncertain(_) | Self::Asks(_) | Self::Waits(_) => true,
            Self::Held | Self::Requested | Self::Done { .. } => false,
        }
    }

    /// Whether it waits for room in a spending limit of the project; its sub-run may.
    pub(super) fn waits_for_room(&self) -> bool {
        match self {
            Self::Waits(awaited) => matches!(awaited.what, AwaitedKind::Room(_)),
            Self::Asks(AskedFor::Subrun(wait)) => wait.is_open() && wait.asks.waits_for_room(),
            _ => false,
        }
    }

    /// Whether it waits for its model, or for room in a spending limit of the project; its sub-run may.
    pub(super) fn waits_for_model(&self) -> bool {
        self.waits_for_room() || self.subrun().is_some_and(|wait| wait.is_open() && wait.asks.waits_for_model())
    }

    /// What is said of its model, if its run waits for that because it can't be reached.
    pub fn away_model(&self) -> Option<&str> {
        self.subrun().filter(|wait| wait.is_open())?.asks.away_model()
    }

    /// Whether a human must approve it, because of its tool or because it asks for that.
    pub fn is_approval(&self) -> bool {
        matches!(self, Self::Asks(AskedFor::Approval(_) | AskedFor::Consent { .. }))
    }

    /// The approval of its tool that it waits for.
    pub fn approval(&self) -> Option<&AwaitedApproval> {
        match self {
            Self::Asks(AskedFor::Approval(awaited)) => Some(awaited),
            _ => None,
        }
    }

    /// Its sub-run, while that waits for a human or for what one has decided.
    pub fn subrun(&self) -> Option<&SubrunWait> {
        match self {
            Self::Asks(AskedFor::Subrun(wait)) => Some(wait),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn subrun_mut(&mut self) -> Option<&mut SubrunWait> {
        match self {
            Self::Asks(AskedFor::Subrun(wait)) => Some(wait),
            _ => None,
        }
    }

    /// Until when a human can decide, in milliseconds since 1970: about the call or the form itself; or until when it waits.
    pub fn expires_at_ms(&self) -> Option<i64> {
        match self {
            Self::Waits(AwaitedThing { until_ms, .. }) => Some(*until_ms),
            Self::Asks(AskedFor::Approval(awaited)) => awaited.expires_at_ms,
            Self::Asks(AskedFor::Form { expires_at_ms }) => *expires_at_ms,
            _ => None,
        }
    }

    /// Whether nobody decided in time, or its wait is over.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms().is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// Which kind of decision it waits for; none when it waits for no human, or its sub-run does.
    fn kind(&self) -> Option<Termination> {
        match self {
            Self::Uncertain(_) => Some(Termination::Uncertain),
            Self::Asks(AskedFor::Approval(_) | AskedFor::Consent { .. }) => Some(Termination::Approval),
            Self::Asks(AskedFor::Form { .. } | AskedFor::Server(_)) => Some(Termination::Human),
            Self::Waits(awaited) => Some(awaited.what.kind()),
            Self::Held | Self::Requested | Self::Asks(AskedFor::Subrun(_)) | Self::Done { .. } => None,
        }
    }
}

impl AwaitedKind {
    /// The kind of the pause of a run that waits for it.
    pub(super) fn kind(&self) -> Termination {
        match self {
            Self::Time => Termination::Waiting,
            Self::Event(_) => Termination::WaitingEvent,
            Self::Room(_) => Termination::SpendingLimit,
        }
    }
}

/// Why an operation failed whose outcome is not known.
pub(super) const LOST: &str = "the outcome is not known: the process stopped during the call";

/// What follows a decision.
#[derive(Debug, PartialEq)]
pub(super) enum AfterDecision {
    /// It is requested: the call, or the sub-run with the decision.
    Request,
    /// It waits on: for another human, or until it may be requested.
    Wait,
    /// It ends.
    End(Conclusion),
}

/// How a human's decision ends an operation.
#[derive(Debug, PartialEq)]
pub(super) enum Conclusion {
    /// The question is answered.
    Answer(String),
    /// The form is filled in.
    Form(Vec<(String, Value)>),
    /// A step that asks for an approval has it, or not.
    Consent {
        /// Whether it has it.
        approved: bool,
        /// What was said about it.
        comment: Option<String>,
        /// Why not.
        reason: Option<String>,
        /// What a no does.
        on_rejected: OnRejected,
    },
    /// It waits no longer.
    Waited,
    /// The event came, with this.
    Event(Value),
    /// The call may not be made.
    Denied {
        /// Why not.
        reason: Option<String>,
    },
    /// The call happened, and gave this.
    Happened(Value),
    /// The call failed.
    Failed(String),
}

/// What a decision led to.
#[derive(Debug, PartialEq)]
pub(super) struct Taken {
    /// What follows.
    pub next: AfterDecision,
    /// How many have approved it, when several must.
    pub approvals: Option<ApprovalCount>,
}

impl<A: Address> Operation<A> {
    /// An operation that may be requested.
    pub fn new(address: A, name: String, input: impl Into<Arc<Value>>, due_at_ms: i64) -> Self {
        Self {
            address,
            name,
            input: input.into(),
            progress: Progress::Held,
            attempts: Vec::new(),
            waited_ms: 0,
            due_at_ms,
            requested_at_ms: None,
            is_subrun: false,
            run_id: None,
            settled: SettledCost::default(),
            repetition: Repetition::default(),
            item_label: None,
            ask: None,
            reminders_ms: Box::default(),
            answered: Vec::new(),
            asked: 0,
            ends: None,
        }
    }

    /// It is requested now.
    pub(super) fn request(&mut self, now_ms: i64) {
        self.requested_at_ms = Some(now_ms);
        if self.progress.subrun().is_none() {
            self.progress = Progress::Requested;
        }
    }

    /// A sub-run waits for a human.
    pub(super) fn waits(&mut self, run_id: &str, asks: SubrunQuestion, settled: SettledCost) {
        self.run_id = Some(run_id.into());
        self.settled = settled;
        self.progress = Progress::Asks(AskedFor::Subrun(Box::new(SubrunWait { asks, decided: None, again: false })));
    }

    /// There is no room for its model in a spending limit of the project.
    pub(super) fn waits_for_room(&mut self, until_ms: i64, why: &str) {
        self.requested_at_ms = None;
        self.progress = Progress::Waits(AwaitedThing { until_ms, what: AwaitedKind::Room(why.into()) });
    }

    /// Whether it is what waits for room in a spending limit, and not its sub-run.
    pub(super) fn lacks_room(&self) -> bool {
        self.progress.subrun().is_none() && self.progress.waits_for_room()
    }

    /// It is to be requested again, when it may be: nothing of it is under way.
    pub(super) fn hold(&mut self) {
        self.requested_at_ms = None;
        self.progress = Progress::Held;
    }

    /// The server of its tool asks a human before it continues.
    pub(super) fn is_asked(&mut self, question: ServerQuestion) {
        self.asked = self.asked.saturating_add(1);
        // A server that has forgotten what it was answered asks anew.
        self.answered.truncate(question.after);
        self.progress = Progress::Asks(AskedFor::Server(Box::new(question)));
    }

    /// Notes a failed attempt: another one follows, or a human says whether the call happened.
    pub(super) fn failed(&mut self, attempt: CallAttempt) {
        if attempt.lost {
            self.progress = Progress::Uncertain(Doubt::Lost);
        }
        push_tight(&mut self.attempts, attempt);
    }

    /// Whether this attempt is under way.
    ///
    /// # Errors
    /// When another one is.
    pub(super) fn takes_attempt(&self, number: u32) -> Result<(), Refused> {
        let before = self.attempts.len();
        if usize::try_from(number).ok() == Some(before.saturating_add(1)) {
            return Ok(());
        }
        Err(Refused::new(format!("attempt {number} at `{}` does not follow attempt {before}", self.address)))
    }

    /// What a decision about it is bound to: 16 hexadecimal digits over the run, the place, the name, what is shown of it
    /// (1e2 is not 100), and the document that defines it.
    pub fn hash(&self, header: &RunHeader) -> String {
        let shown = match &self.progress {
            Progress::Asks(AskedFor::Consent { comment, .. }) => format!("{comment}\n{}", self.input),
            Progress::Asks(AskedFor::Server(asks)) => {
                format!("{}\n{}\n{}", self.asked, Value::Object(asks.requests.clone()), self.input)
            }
            _ => self.input.to_string(),
        };
        let mut at = self.address.to_string();
        if self.repetition.request > 0 && StepAddress::new(&at).is_for_failure() {
            // The next failure is another question: no answer to the one before counts for it.
            at = format!("{at}~{}", self.repetition.request);
        }
        consent::hash_of(header, &at, &self.name, &shown)
    }

    /// The targets that its question is posted to, while it asks one.
    pub(super) fn targets(&self) -> Option<Box<AskedTargets>> {
        let asks = matches!(
            self.progress,
            Progress::Asks(AskedFor::Approval(_) | AskedFor::Consent { .. } | AskedFor::Form { .. })
        );
        let to = self.ask.as_ref().filter(|_| asks)?.to_vec();
        let since_ms = self.due_at_ms;
        let at_ms = self.reminders_ms.iter().map(|after_ms| since_ms.saturating_add_unsigned(*after_ms));
        let until_ms = self.progress.expires_at_ms().unwrap_or(i64::MAX);
        let reminders_ms = at_ms.filter(|at_ms| *at_ms < until_ms).collect();
        Some(Box::new(AskedTargets { to, since_ms, reminders_ms }))
    }

    /// What a form asks for.
    pub(super) fn form(&self) -> FormRequest {
        FormRequest::of(&self.input)
    }

    /// Whether a decision about it may be taken. `tool`: what it calls, if it is there.
    ///
    /// # Errors
    /// Why not, and what may.
    pub(super) fn accepts(
        &self,
        decided: &Decided,
        header: &RunHeader,
        tool: Option<&Tool>,
        now_ms: i64,
    ) -> Result<(), Refused> {
        if let Some(wait) = self.progress.subrun() {
            return subrun_decision::fits(&wait.asks, &self.address.below(decided), now_ms);
        }
        if decided.hash.as_ref().is_some_and(|shown| *shown != self.hash(header)) {
            return Err(Refused::Unseen);
        }
        if let Progress::Asks(AskedFor::Server(asks)) = &self.progress {
            if decided.rights == DecisionRights::Escalated {
                return Err(Refused::rights(NOT_ESCALATED));
            }
            return asks.accepts(&decided.decision);
        }
        let is_form = matches!(self.progress, Progress::Asks(AskedFor::Form { .. }));
        if is_form && !matches!(decided.decision, Decision::Answer(_)) {
            return Err(Refused::new(format!(
                "the step `{}` is a form, and takes no approval: {}",
                self.address,
                self.form().shape()
            )));
        }
        if let Some(kind) = self.progress.kind() {
            decision::is_of_kind(kind, &decided.decision)?;
        }
        match (&self.progress, &decided.decision) {
            (Progress::Asks(AskedFor::Approval(awaited)), decision) => {
                may_take(awaited, &self.name, decided, now_ms)?;
                accepts_input(tool, decision)
            }
            (_, _) if decided.rights == DecisionRights::Escalated => Err(Refused::rights(NOT_ESCALATED)),
            (Progress::Asks(AskedFor::Consent { .. }), Decision::Edit(value)) if !value.is_object() => {
                Err(Refused::new("the payload of an approval is a JSON object"))
            }
            (Progress::Asks(AskedFor::Form { .. }), Decision::Answer(answer)) => {
                if self.progress.is_expired(now_ms) {
                    return Err(Refused::expired(
                        "nobody filled in the form in time: the run fails when it is resumed",
                    ));
                }
                self.form().values(answer).map(drop).map_err(Refused::new)
            }
            (Progress::Waits(awaited), Decision::Answer(data)) => {
                if awaited.until_ms <= decided.came_at_ms.unwrap_or(now_ms) {
                    return Err(Refused::expired("the event came too late: the step fails when the run is resumed"));
                }
                let refused = |why| Refused::new(format!("the data of an event is JSON: {why}"));
                written_json(data).map(drop).map_err(refused)
            }
            _ => Ok(()),
        }
    }

    /// Applies a decision that it accepts.
    pub(super) fn decide(&mut self, decided: &Decided, tool: Option<&Tool>) -> Taken {
        let form = self.form();
        let mut approvals = None;
        let next = match (&mut self.progress, &decided.decision) {
            (Progress::Asks(AskedFor::Subrun(wait)), _) => {
                let (pause, call) = (Some(wait.asks.pause), subrun_decision::meant(&wait.asks, decided));
                // It stays what it is: the sub-run takes the decision.
                wait.decided = Some(Decided { pause, call, ..self.address.below(decided) });
                AfterDecision::Request
            }
            (Progress::Asks(AskedFor::Server(asks)), decision) => {
                self.answered.push(asks.answered(decision));
                AfterDecision::Request
            }
            (Progress::Asks(AskedFor::Approval(awaited)), Decision::Approve | Decision::Edit(_)) => {
                if let Decision::Edit(edited) = &decided.decision {
                    // The approvals so far were for the other input.
                    awaited.approved_by.clear();
                    self.input = Arc::new(fitted(tool, edited).unwrap_or_else(|| edited.clone()));
                }
                let is_last = awaited.approve(decided);
                approvals = ApprovalCount::of(awaited);
                if is_last {
                    self.progress = Progress::Held;
                }
                AfterDecision::Wait
            }
            (Progress::Asks(AskedFor::Consent { on_rejected, .. }), decision) => {
                let (approved, reason) = match decision {
                    Decision::Deny(reason) => (false, reason.clone()),
                    _ => (true, None),
                };
                if let Decision::Edit(edited) = decision {
                    self.input = Arc::new(edited.clone());
                }
                let comment = decided.comment.clone().or_else(|| reason.clone());
                AfterDecision::End(Conclusion::Consent { approved, comment, reason, on_rejected: *on_rejected })
            }
            (Progress::Asks(AskedFor::Form { .. }), Decision::Answer(answer)) => {
                AfterDecision::End(Conclusion::Form(form.values(answer).unwrap_or_default()))
            }
            (Progress::Waits(_), Decision::Approve) => AfterDecision::End(Conclusion::Waited),
            (Progress::Waits(_), Decision::Answer(data)) => AfterDecision::End(Conclusion::Event(
                json_text::read(data).unwrap_or_else(|_| Value::from(data.as_str())),
            )),
            (_, Decision::Answer(text)) => AfterDecision::End(Conclusion::Answer(text.clone())),
            (_, Decision::Deny(reason)) => AfterDecision::End(Conclusion::Denied { reason: reason.clone() }),
            (_, Decision::Happened(value)) => AfterDecision::End(Conclusion::Happened(value.clone())),
            (_, Decision::Failed(reason)) => AfterDecision::End(Conclusion::Failed(decision::reported_failure(reason))),
            (_, Decision::Retry) => AfterDecision::Request,
            (_, Decision::Approve | Decision::Edit(_)) => AfterDecision::Wait,
        };
        Taken { next, approvals }
    }

    /// The record of a decision about it, as it is before the decision.
    pub(super) fn record(&self, header: &RunHeader, of: DecisionRecord) -> DecisionRecord {
        let record = of.about(self.hash(header), &self.input);
        let run_id = self.progress.subrun().and_then(|wait| wait.asks.question.run_id.clone());
        self.address.in_record(DecisionRecord { run_id, ..record })
    }

    /// Applies that nobody decided in time; what happens then, when that is so. An approval that is escalated waits on.
    pub(super) fn expire(&mut self, now_ms: i64) -> Option<OnExpiry> {
        if !self.progress.is_expired(now_ms) {
            return None;
        }
        let Progress::Asks(AskedFor::Approval(awaited)) = &mut self.progress else { return Some(OnExpiry::Fail) };
        let on_expiry = awaited.on_expiry.unwrap_or_default();
        if on_expiry == OnExpiry::Escalate {
            awaited.escalate();
        }
        Some(on_expiry)
    }

    /// Asks the sub-run again that waits for a human, because its question may have changed. Whether it is one.
    pub(super) fn ask_again(&mut self) -> bool {
        let Some(wait) = self.progress.subrun_mut() else { return false };
        wait.again = wait.decided.is_none();
        true
    }
}

impl OpenStep {
    /// The id of the run that a loop of mode `react` is; of one that failed and runs again, another one.
    pub fn subrun_id(&self, run_id: &str) -> String {
        subrun_id(run_id, &self.address, self.repetition.round)
    }
}

/// The id of the run that a step of a run is, which began in this round.
pub(crate) fn subrun_id(run_id: &str, at: &StepAddress, round: u32) -> String {
    match round {
        0 => format!("{run_id}.{at}"),
        round => format!("{run_id}.{at}.retry-{round}"),
    }
}

/// An edited input that has null where the schema of its tool takes none, without these members; none where they may not be left out.
fn fitted(tool: Option<&Tool>, input: &Value) -> Option<Value> {
    without_nulls(&tool?.parameters, input)
}

/// Whether an edited input matches the tool's schema, like the model's own input.
fn accepts_input(tool: Option<&Tool>, decision: &Decision) -> Result<(), Refused> {
    let (Decision::Edit(input), Some(tool)) = (decision, tool) else { return Ok(()) };
    let faults = tool.parameters.faults(input);
    if faults.is_empty() || fitted(Some(tool), input).is_some() {
        return Ok(());
    }
    Err(Refused::new(format!("the edited input is not accepted:{}", schema::list(&faults))))
}
