//! A world: the journal that lasts, the clocks, what is under way, and the driver that lives or not.

use std::collections::BTreeMap;

use loopctl::Program;
use loopctl::engine::blob::Blob;
use loopctl::engine::effect::{Effect, Effects};
use loopctl::engine::event::{CallId, Cancelled, EDITION, Event, EventKind, Moment};
use loopctl::engine::notice::{self, Baseline, Notice};
use loopctl::engine::state::{Phase, State};
use loopctl::engine::step::step;
use loopctl::engine::wait_deadline::due_at_ms;
use loopctl::{Status, Termination};
use serde_json::{Value, json};

use crate::simulation::called::{PRICE, Run};
use crate::simulation::chance::Chance;
use crate::simulation::driver::Driver;
use crate::simulation::human;
use crate::simulation::ledger::Ledger;

/// After so many turns of the world nothing goes wrong any more, and the run must come to its end.
const CALM: u32 = 150;
/// By then every run has ended.
const END: u32 = 600;

/// What came of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    pub journal: Vec<String>,
    pub ending: String,
    pub state: String,
    /// The inputs of the trace's entries, with their iterations.
    pub inputs: Vec<(u32, Value)>,
}

/// Why an event was not taken.
#[derive(Debug)]
pub enum NotTaken {
    /// The engine refused it.
    Refused,
    /// The store failed: the driver ends.
    Died,
}

/// A world.
pub struct World<'a> {
    pub program: &'a Program,
    pub chance: Chance,
    pub ledger: Ledger,
    pub calm: bool,
    /// Milliseconds since the world began, and by how much the machine's clock is off.
    pub time: u64,
    wall_off: i64,
    /// The state that the journal begins with, the durable texts, and their fold.
    base: State,
    journal: Vec<String>,
    shadow: State,
    /// What a listener has heard of all durable events.
    heard: Vec<Notice>,
    /// The runs that were called: their journals last too.
    pub called: BTreeMap<CallId, Run>,
}

impl<'a> World<'a> {
    pub fn new(seed: u64, program: &'a Program) -> Self {
        let chance = Chance::new(seed);
        Self {
            program,
            chance,
            ledger: Ledger::default(),
            calm: false,
            time: 0,
            wall_off: 0,
            base: State::new(program),
            journal: Vec::new(),
            shadow: State::new(program),
            heard: Vec::new(),
            called: BTreeMap::new(),
        }
    }

    /// Begins in the middle: with this state, as if its journal had been.
    pub fn at(mut self, state: &State) -> Self {
        (self.base, self.shadow) = (state.clone(), state.clone());
        self
    }

    /// Plays the run to its end.
    pub fn play(mut self) -> Played {
        for turn in 0..END {
            self.calm = turn >= CALM;
            if let Some(mut driver) = self.process() {
                driver.drive(&mut self);
            }
            if matches!(self.shadow.phase, Phase::Ended(_)) && !self.continues() {
                return self.ended();
            }
        }
        panic!("the run makes no way: {:?}\n{}", self.shadow.phase, self.journal.join("\n"));
    }

    /// Whether a human makes a run continue that has ended.
    fn continues(&mut self) -> bool {
        let can = human::continues(&mut self.chance, self.program, &self.shadow).is_some();
        can && self.trouble(2)
    }

    /// A new process takes the run up as a driver does: by the fold of the journal, and one event.
    fn process(&mut self) -> Option<Driver> {
        let rest = 1 + self.chance.below(5000);
        self.passes(rest);
        let mut state = self.base.clone();
        for text in &self.journal {
            let event = read(text);
            step(self.program, &mut state, event).expect("what was taken once is taken again");
        }
        assert!(state == self.shadow, "the fold of the journal is another state");
        let what = match &state.phase {
            Phase::New => started(self.program),
            Phase::Paused { pause, .. } => {
                if self.trouble(3) {
                    let wrong = human::refused(&mut self.chance, pause);
                    self.refuses(&state, wrong);
                }
                if self.trouble(40) {
                    cancelled()
                } else if (pause.asks.is_some() || pause.question.kind == Termination::ModelError) && self.trouble(6) {
                    // What the run below asked is asked again, and so is a model that was away.
                    EventKind::Resumed
                } else if due_at_ms(&state).is_some_and(|at_ms| at_ms <= self.wall_ms())
                    && pause.asks.is_none()
                    && (self.calm || self.chance.one_in(2))
                {
                    EventKind::ApprovalExpired
                } else {
                    human::decides(&mut self.chance, pause)
                }
            }
            Phase::Ended(ending) => {
                if self.trouble(3) {
                    let wrong = human::refused_of_ended(&mut self.chance, &state, ending);
                    self.refuses(&state, wrong);
                }
                human::continues(&mut self.chance, self.program, &state).expect("it can")
            }
            _ if self.trouble(60) => cancelled(),
            _ => EventKind::Resumed,
        };
        let mut driver = Driver::new(state, self.time);
        if self.trouble(25) {
            self.take(&mut driver, EventKind::NewDocument(Vec::new())).ok()?;
        }
        let effects = self.take(&mut driver, what).ok()?;
        driver.owe(effects);
        Some(driver)
    }

    /// An event: into the live state, then into the journal, which may fail before or after it is durable.
    pub fn take(&mut self, driver: &mut Driver, what: EventKind) -> Result<Effects, NotTaken> {
        let wall_ms = self.wall_ms();
        let event = Event { at: Moment { wall_ms, active_ms: driver.active_ms(self.time) }, kind: what };
        let text = serde_json::to_string(&event).expect("an event can be written");
        let baseline = Baseline::new(&driver.state, &event.kind);
        let Ok(effects) = step(self.program, &mut driver.state, event) else {
            assert!(driver.state == self.shadow, "what is refused leaves no mark");
            return Err(NotTaken::Refused);
        };
        if self.trouble(30) {
            return Err(NotTaken::Died);
        }
        let read = read(&text);
        let before = self.shadow.clone();
        let again = step(self.program, &mut self.shadow, read.clone()).expect("what was taken once is taken again");
        assert_eq!(effects, again, "the fold asks for other effects");
        assert!(driver.state == self.shadow, "the fold of the journal is the live state\n{text}");
        self.journal.push(text);
        self.heard.extend(baseline.notices(self.program, &driver.state, &effects));
        self.ledger.note(self.program, &read, &before, &self.shadow);
        self.ledger.holds(self.program, &self.shadow);
        let (old, new) = (before.as_loop().unwrap(), self.shadow.as_loop().unwrap());
        let (old, new) = (&old.conversation, &new.conversation);
        if old.generation == new.generation {
            assert!(new.messages.starts_with(&old.messages), "the conversation grows at its end");
        }
        for effect in &effects {
            if let Effect::Remember(key) = effect {
                assert!(self.shadow.as_loop().unwrap().memory.contains_key(key), "what is to be remembered is there");
            }
        }
        // Durable, and the driver never hears of it.
        if self.trouble(30) { Err(NotTaken::Died) } else { Ok(effects) }
    }

    /// What must be refused, and leave no mark.
    pub fn refuses(&self, state: &State, what: EventKind) {
        let mut state = state.clone();
        let said = format!("{what:?}");
        let event = Event { at: Moment { wall_ms: 0, active_ms: 1 << 40 }, kind: what };
        assert!(step(self.program, &mut state, event).is_err(), "taken in {:?}: {said}", state.phase);
        assert!(state == self.shadow, "what is refused leaves no mark: {said}");
    }

    /// What the machine's clock says.
    fn wall_ms(&self) -> i64 {
        1_769_941_800_000_i64 + self.time as i64 + self.wall_off
    }

    /// Something goes wrong once in `n` times, unless the world is calm.
    pub fn trouble(&mut self, n: u64) -> bool {
        self.chance.one_in(n) && !self.calm
    }

    /// Time passes; the machine's clock is set back or forward sometimes.
    pub fn passes(&mut self, ms: u64) {
        self.time += ms;
        if self.trouble(12) {
            self.wall_off += self.chance.pick(&[-3_600_000, 86_400_000]);
        }
    }

    /// The notices that a reader of the journal makes of it.
    fn notices_of_the_journal(&self) -> Vec<Notice> {
        let mut state = self.base.clone();
        let of_event = |text: &String| notice::notices(self.program, &mut state, read(text));
        let notices = self.journal.iter().map(of_event).collect::<Result<Vec<_>, _>>();
        notices.expect("what was taken once is taken again").concat()
    }

    fn ended(self) -> Played {
        assert_eq!(self.notices_of_the_journal(), self.heard, "the journal and the live run cause other notices");
        let Phase::Ended(ending) = &self.shadow.phase else { unreachable!() };
        let fits = match ending.termination {
            Termination::Complete => ending.status == Status::Completed && ending.limit.is_none(),
            Termination::ForcedAnswer => ending.status == Status::Completed && ending.limit.is_some(),
            Termination::Cancelled => ending.status == Status::Cancelled,
            // Nobody approved in time.
            Termination::Approval => ending.error.as_ref().is_some_and(|error| error.code == "approval_expired"),
            Termination::Human | Termination::Uncertain => false,
            _ => ending.status == Status::Failed,
        };
        assert!(fits, "the table knows no such end: {ending:?}");
        assert_eq!(ending.answer.is_some(), ending.status == Status::Completed, "{ending:?}");
        assert_eq!(ending.error.is_some(), ending.status != Status::Completed, "{ending:?}");
        assert_eq!(ending.stuck.is_some(), ending.termination == Termination::Stuck, "{ending:?}");
        for late in [EventKind::Resumed, EventKind::Interrupted, EventKind::DeadlinePassed, cancelled()] {
            self.refuses(&self.shadow, late);
        }
        let ending = serde_json::to_value(ending.termination).unwrap();
        let ending = ending.as_str().unwrap().to_owned();
        let inputs = self.shadow.entries().iter().map(|entry| (entry.iteration, entry.action_input.value())).collect();
        Played { ending, inputs, state: format!("{:?}", self.shadow), journal: self.journal }
    }
}

pub fn cancelled() -> EventKind {
    EventKind::Cancelled(Cancelled { reason: None, by: None })
}

/// The system prompt.
const SYSTEM: &str = "You are an agent.";

/// How the run begins.
pub fn started(program: &Program) -> EventKind {
    let priced = program.budget.as_ref().is_some_and(|budget| budget.cost_usd.is_some());
    let price = priced.then(|| json!({ "input": PRICE.input, "output": PRICE.output }));
    let started = json!({
        "run_id": "r", "session": "s", "loop_name": "simulated", "input": {}, "objective": "Do it.",
        "system": Blob::from(SYSTEM), "model": { "name": "m", "price": price }, "order": program.order(),
        "edition": EDITION
    });
    let mut what = EventKind::Started(Box::new(serde_json::from_value(started).expect("it is one")));
    what.put_back(&[SYSTEM.into()]).expect("the text is there");
    what
}

/// An event as it is read back, with the long text that was kept beside it.
pub fn read(text: &str) -> Event {
    let mut event = Event::read(text).expect("what was written can be read");
    event.kind.put_back(&[SYSTEM.into()]).expect("the text is there");
    event
}
