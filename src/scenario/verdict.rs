//! The verdict on a scenario: plays it, and gathers everything that does not hold.

mod delivered;
mod live;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::coverage::{CoverageMap, CoveragePoint, reached};
use super::crash::CrashReport;
use super::faults::FaultSet;
use super::judge::{Failure, judge};
use super::matcher::shown;
use super::outdated_requests;
use super::play::{Play, Played, RUN_ID, failures_of, moment_ms, run_id_of};
use super::record::finished_recording;
use super::snapshot::{self, SnapshotMode, WrittenSnapshot};
use super::story::RunStory;
use super::story::trace_lines;
use crate::check::scenario::endings::why_not;
use crate::drive::engine::Engine;
use crate::drive::model::recording::RecordedPlayer;
use crate::drive::stage::StagePlan;
use crate::engine::event::ToolResult;
use crate::language::Recording;
use crate::language::ending::Status;
use crate::language::scenario::{Expectations, FaultPlan, START_OF_TIME, Scenario, ScenarioDecision, ToolFailure};
use crate::language::script::Script;
use crate::project::ScenarioSet;
use crate::syntax::token;
use crate::trace::Redaction;
use crate::trace::units::plural;

pub use live::{LiveBudget, LiveCount};

/// How scenarios are tested.
#[derive(Debug, Clone, Copy, Default)]
pub struct TestOptions {
    /// Whether snapshots are written.
    pub snapshots: SnapshotMode,
    /// Whether each scenario is stopped at each event and resumed.
    pub crash: bool,
    /// Whether recordings are played whatever the models are asked.
    pub by_position: bool,
}

#[derive(Debug)]
pub struct ScenarioVerdict {
    pub name: String,
    /// What does not hold.
    pub failures: Vec<Failure>,
    /// What the run needed; none if it did not start.
    pub measured: Option<Measured>,
    /// What else is worth knowing, each in a line.
    pub notes: Vec<String>,
    /// Its calls, each in a line.
    pub trace: Vec<String>,
    /// The snapshot that was written.
    pub written: Option<WrittenSnapshot>,
    /// In how many live plays all holds; none for a scenario that was played offline.
    pub live: Option<LiveCount>,
    /// What its runs came to, when that is measured.
    pub reached: BTreeSet<CoveragePoint>,
}

/// What a run needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Replies of the model.
    pub iterations: u32,
    /// Calls that were made.
    pub calls: usize,
    /// Tokens, read and written.
    pub tokens: u64,
    /// US dollars, when the price is known.
    pub cost_usd: Option<f64>,
    /// Seconds on the played clock.
    pub seconds: f64,
}

impl ScenarioVerdict {
    /// Whether everything holds.
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
    }
}

impl Measured {
    fn of(story: &RunStory) -> Self {
        let usage = &story.result.usage;
        Self {
            iterations: story.result.iterations,
            calls: story.made().count(),
            tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            cost_usd: usage.cost_usd,
            seconds: story.seconds,
        }
    }
}

/// A scenario of a file, ready to be played.
pub struct StagedScenario<'a> {
    set: &'a ScenarioSet,
    scenario: &'a Scenario,
    index: usize,
    script: Script,
    models: BTreeMap<String, Vec<Value>>,
    recording: Option<&'a Recording>,
    decisions: Vec<ScenarioDecision>,
    host: Option<&'a Engine>,
    /// What its runs can come to, when it is measured what they do.
    map: Option<Arc<CoverageMap>>,
}

impl<'a> StagedScenario<'a> {
    /// The scenario of a file at a place.
    pub fn new(set: &'a ScenarioSet, index: usize) -> Option<Self> {
        let scenario = set.file.scenarios.get(index)?;
        let script = set.file.script_of(scenario, set.scripts.get(&index).cloned());
        let recording = set.recordings.get(&index);
        let recorded = recording.filter(|_| scenario.decisions.is_empty()).map(Recording::decisions);
        let decisions = recorded.unwrap_or_else(|| scenario.decisions.clone());
        let models = set.file.models_of(scenario);
        Some(Self { set, scenario, index, script, models, recording, decisions, host: None, map: None })
    }

    /// The same with the tools of a program's engine, which are called where the scenario has no answer.
    #[must_use]
    pub fn hosted(self, engine: &'a Engine) -> Self {
        Self { host: Some(engine), ..self }
    }

    /// The same, and it is measured what its runs come to.
    #[must_use]
    pub fn measured(self, map: Option<Arc<CoverageMap>>) -> Self {
        Self { map, ..self }
    }

    fn reached(&self, played: &Played) -> BTreeSet<CoveragePoint> {
        self.map.as_ref().map(|map| reached(map, &played.journals)).unwrap_or_default()
    }

    fn at(&self) -> String {
        format!("/scenarios/{}", self.index)
    }

    fn play(&self, faults: &FaultSet) -> Play<'_> {
        let script = Script { replies: faults.applied(&self.script.replies), ..self.script.clone() };
        let (calls, failures) = (faults.calls.clone(), faults.requests.clone());
        let run_id = self.recording.map_or(RUN_ID, run_id_of);
        let recorded = self.recording.map(|recording| Arc::new(RecordedPlayer::new(recording, run_id)));
        let own = Some(self.scenario.now.as_str()).filter(|now| *now != START_OF_TIME);
        let now = own.or(self.recording.map(|recording| recording.now.as_str())).unwrap_or(START_OF_TIME);
        Play {
            program: &self.set.loaded.program,
            run_id,
            root: &self.set.loaded.root,
            plan: StagePlan { script, models: self.models.clone(), faults: calls, failures, recorded, is_live: false },
            input: self.delivered_input().or_else(|| Some(self.recording?.input.clone())),
            start_ms: moment_ms(now),
            decisions: &self.decisions,
            is_left_waiting: self.scenario.expect.status == Some(Status::Paused),
            host: self.host,
            crash: None,
            #[cfg(test)]
            stores_late: false,
        }
    }

    /// Plays it, and judges what came of it.
    pub fn test(&self, options: &TestOptions) -> ScenarioVerdict {
        let at = self.at();
        if let Some(verdict) = self.undelivered() {
            return verdict;
        }
        let listed = match &self.scenario.faults {
            Some(FaultPlan::Listed(faults)) => FaultSet::listed(faults),
            _ => FaultSet::default(),
        };
        let play = self.play(&listed);
        let player = play.plan.recorded.clone();
        let played = play.perform();
        let mut reached = self.reached(&played);
        let mut failures = failures_of(&played.faults, &at);
        failures.extend(self.not_played(&played));
        let is_crashed = self.scenario.crash.is_some() || options.crash;
        let (mut notes, mut written) = (Vec::new(), None);
        if let Some(player) = player.filter(|_| !matches!(self.scenario.faults, Some(FaultPlan::Listed(_)))) {
            self.is_stale(&player, options, &mut failures, &mut notes);
        }
        let redact = Redaction::new(&self.set.loaded.program.project.redact);
        if let Some(story) = &played.story {
            // Under a fault the script continues by position: what is left over, or missing, is the fault's.
            if played.faults.is_empty() && !matches!(self.scenario.faults, Some(FaultPlan::Listed(_))) {
                failures.extend(self.script_left(&played, story));
            }
            failures.extend(judge(&self.scenario.expect, story, &format!("{at}/expect")));
            if let Some(path) = &self.scenario.expect.snapshot {
                let now = snapshot::text(story, &redact);
                match snapshot::compare(&self.set.folder, path, &now, options.snapshots) {
                    Ok(done) => written = done,
                    Err(message) => failures.push(Failure {
                        pointer: format!("{at}/expect/snapshot"),
                        key: "snapshot",
                        message,
                        near: None,
                    }),
                }
            }
        }
        if !is_crashed && played.faults.is_empty() {
            self.kept_in_vain(&played, &mut failures, &mut notes);
        }
        if is_crashed {
            let report = CrashReport::of(&played, |point| Play { crash: Some(point), ..self.play(&listed) }.perform());
            let key = if self.scenario.crash.is_some() { "crash" } else { "name" };
            failures.extend(report.failures(&format!("{at}/{key}")));
            notes.push(report.line());
        }
        if matches!(self.scenario.faults, Some(FaultPlan::Each(_))) {
            reached.extend(self.under_each_fault(&played, options, &mut failures, &mut notes));
        }
        ScenarioVerdict {
            name: self.scenario.name.clone(),
            measured: played.story.as_ref().map(Measured::of),
            trace: played.story.as_ref().map(|story| trace_lines(story, &redact)).unwrap_or_default(),
            notes,
            failures,
            written,
            live: None,
            reached,
        }
    }

    /// Compares what models were asked with the recording, or writes it into the recording.
    fn is_stale(
        &self,
        player: &RecordedPlayer,
        options: &TestOptions,
        failures: &mut Vec<Failure>,
        notes: &mut Vec<String>,
    ) {
        let (Some(recording), Some(path)) = (self.recording, &self.scenario.recording) else { return };
        let failure = |message: String| Failure {
            pointer: format!("{}/recording", self.at()),
            key: "recording",
            message,
            near: None,
        };
        failures.extend(outdated_requests::left_over(player).map(failure));
        let Some(differs) = outdated_requests::stale(recording, player) else { return };
        if options.snapshots == SnapshotMode::Write {
            let program = &self.set.loaded.program;
            let text = finished_recording::text(&finished_recording::with_requests(recording, player, program));
            match self.set.rewrite(path, &text) {
                Ok(()) => notes.push(format!("wrote what is asked now into {path}")),
                Err(why) => failures.push(failure(format!("the recording can't be written: {why}"))),
            }
        } else if options.by_position {
            notes.push("played by position: the models are asked otherwise than recorded".to_owned());
        } else {
            failures.push(failure(differs));
        }
    }

    /// Plays it once for each tool that it calls and each way in which all calls of that tool fail. Returns what these
    /// runs came to.
    fn under_each_fault(
        &self,
        base: &Played,
        options: &TestOptions,
        failures: &mut Vec<Failure>,
        notes: &mut Vec<String>,
    ) -> BTreeSet<CoveragePoint> {
        let mut reached = BTreeSet::new();
        let program = &self.set.loaded.program;
        let tools: BTreeSet<&str> = base.calls.iter().map(|call| call.action.as_str()).collect();
        let at = self.at();
        let (mut count, mut held) = (0, 0);
        let redact = Redaction::new(&program.project.redact);
        let mut snapshot = String::new();
        for (tool, word) in tools.into_iter().flat_map(|tool| ToolFailure::WORDS.map(|word| (tool, word))) {
            let Some(faults) = FaultSet::of_tool(tool, word) else { continue };
            let played = self.play(&faults).perform();
            reached.extend(self.reached(&played));
            count += 1;
            let mut found = Vec::new();
            match (&played.story, &self.scenario.under_faults) {
                (None, _) => found.extend(failures_of(&played.faults, &at)),
                (Some(story), Some(expect)) => {
                    found.extend(judge(expect, story, &format!("{at}/under_faults")));
                    snapshot.push_str(&format!("when {tool} fails by {word}:\n{}", snapshot::text(story, &redact)));
                }
                (Some(story), None) => {
                    let never = Expectations { never: self.scenario.expect.never.clone(), ..Expectations::default() };
                    found.extend(judge(&never, story, &format!("{at}/expect")));
                    let ends = story.result.termination.filter(|ending| why_not(program, *ending).is_none());
                    if ends.is_none() {
                        let message = "the run does not end or wait in a way that the document can have".to_owned();
                        found.push(Failure { pointer: format!("{at}/faults"), key: "faults", message, near: None });
                    }
                }
            }
            held += usize::from(found.is_empty());
            failures.extend(found.into_iter().map(|failure| Failure {
                message: format!("when `{tool}` fails by `{word}`: {}", failure.message),
                near: None,
                ..failure
            }));
        }
        if let Some(path) = self.scenario.under_faults.as_ref().and_then(|expect| expect.snapshot.as_ref()) {
            // One file has the traces of all of them.
            match snapshot::compare(&self.set.folder, path, &snapshot, options.snapshots) {
                Ok(None) => {}
                Ok(Some(written)) => notes.push(format!("wrote {}", written.path.display())),
                Err(message) => {
                    let pointer = format!("{at}/under_faults/snapshot");
                    failures.push(Failure { pointer, key: "snapshot", message, near: None });
                }
            }
        }
        notes.push(format!("{}: {held} hold", plural(count, "fault")));
        reached
    }

    /// The decisions about a call of unknown outcome that no call waited for. Without listed faults, they may be for a play with crashes.
    fn kept_in_vain(&self, played: &Played, failures: &mut Vec<Failure>, notes: &mut Vec<String>) {
        for index in &played.kept {
            if matches!(self.scenario.faults, Some(FaultPlan::Listed(_))) {
                let message = "this decision is left over: no call waits for it whose outcome is unknown. Write \
                    `\"crash\": \"everywhere\"` if it is for one that a crash leaves open";
                let pointer = format!("{}/decisions/{index}", self.at());
                failures.push(Failure { pointer, key: "run", message: message.to_owned(), near: None });
            } else {
                notes.push(format!("decision {} is not used without a crash", index + 1));
            }
        }
    }

    /// The calls that nothing answers for: each tool once.
    fn not_played(&self, played: &Played) -> Vec<Failure> {
        let mut failures: Vec<Failure> = Vec::new();
        let mut named: Vec<&str> = Vec::new();
        for call in played.calls.iter().filter(|call| call.is_missing) {
            if named.contains(&call.action.as_str()) {
                continue;
            }
            named.push(&call.action);
            let message = format!(
                "`{}` would really be called, with {}: give it an entry under `tools`",
                call.action,
                shown(&call.input)
            );
            failures.push(Failure { pointer: format!("{}/name", self.at()), key: "offline", message, near: None });
        }
        failures
    }

    /// Replies that are left over, and those that ran out.
    fn script_left(&self, played: &Played, story: &RunStory) -> Vec<Failure> {
        let is_flow = self.set.loaded.program.is_flow();
        let used = |part: Option<&String>| story.replies.get(&part.cloned()).copied().unwrap_or_default();
        let own = |name: &String| self.script.loops.contains_key(name);
        // The steps of a workflow that have no part of their own take `replies`.
        let steps =
            story.replies.iter().filter_map(|(part, used)| part.as_ref().filter(|name| !own(name)).map(|_| *used));
        let main = if is_flow { steps.max().unwrap_or_default() } else { used(None) };
        let mut failures = Vec::new();
        let at = self.at();
        let mut part = |list: &[Value], used: u64, place: PartPlace| {
            let used = usize::try_from(used).unwrap_or(usize::MAX);
            if let Some(left) = list.len().checked_sub(used).filter(|left| *left > 0) {
                let replies = if left == 1 { "reply is" } else { "replies are" };
                let pointer = if place.is_listed { format!("{}/{used}", place.pointer) } else { place.pointer };
                let asked = plural(used, "time");
                let message = format!("{left} {replies} left over{}: the model is asked {asked}", place.of);
                failures.push(Failure { pointer, key: "replies", message, near: None });
            }
        };
        let here = self.scenario.replies.is_some();
        let pointer = if here { format!("{at}/replies") } else { format!("{at}/script") };
        part(&self.script.replies, main, PartPlace { pointer, is_listed: here, of: String::new() });
        for (name, list) in &self.script.loops {
            let of = format!(" for the loop `{name}`");
            part(
                list,
                used(Some(name)),
                PartPlace { is_listed: self.scenario.loops.contains_key(name), of, ..self.place("loops", name) },
            );
        }
        for (name, list) in &self.models {
            let used = played.questions.get(name).copied().unwrap_or_default();
            let used = u64::try_from(used).unwrap_or(u64::MAX);
            let of = format!(" for the action `{name}`");
            part(
                list,
                used,
                PartPlace { is_listed: self.scenario.models.contains_key(name), of, ..self.place("models", name) },
            );
        }
        let asked_in_vain = "script has no more replies";
        for call in &played.calls {
            if matches!(&call.result, Some(ToolResult::Failed(fault)) if fault.class == asked_in_vain) {
                let PartPlace { pointer, .. } = self.place("models", &call.action);
                let message = format!("the model of `{}` is asked for more replies than there are", call.action);
                failures.push(Failure { pointer, key: "replies", message, near: None });
            }
        }
        for part in &story.ran_out {
            let (pointer, of) = match part {
                Some(name) => (self.place("loops", name).pointer, format!(" for the loop `{name}`")),
                None if here => (format!("{at}/replies"), String::new()),
                None => (format!("{at}/name"), String::new()),
            };
            let message = format!("the replies ran out{of}: the model is asked for one more");
            failures.push(Failure { pointer, key: "replies", message, near: None });
        }
        failures
    }

    /// The place of a list of replies: in the scenario, or else in its file.
    fn place(&self, list: &str, name: &str) -> PartPlace {
        let of_scenario = match list {
            "loops" => self.scenario.loops.contains_key(name),
            _ => self.scenario.models.contains_key(name),
        };
        let of_file = match list {
            "loops" => self.set.file.loops.contains_key(name),
            _ => self.set.file.models.contains_key(name),
        };
        let pointer = match (of_scenario, of_file) {
            (true, _) => format!("{}/{list}/{}", self.at(), token(name)),
            (false, true) => format!("/{list}/{}", token(name)),
            (false, false) => format!("{}/name", self.at()),
        };
        PartPlace { pointer, is_listed: false, of: String::new() }
    }
}

/// The place of a list of replies.
struct PartPlace {
    pointer: String,
    /// Whether the replies themselves are written there.
    is_listed: bool,
    /// Whose they are, for a sentence.
    of: String,
}
