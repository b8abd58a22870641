//! Workflows are played in worlds of their own: for every seed, what a workflow gives is what it means, whatever the order
//! of the outcomes, the crashes and the decisions, and whatever `max_concurrency` says.

mod calls;
mod documents;
mod human;
mod model;
mod outside;
mod times;
mod world;

use std::collections::BTreeMap;

use loopctl::Status;
use loopctl::engine::flow::progress::{Current, ItemStatus, ItemsState, StepFrame};
use serde_json::{Value, json};

use crate::common::cases;
use crate::simulation::chance::Chance;
use documents::{Purpose, made};
use model::{Listed, Model};
use outside::Outside;
use world::{Played, World};

/// How many documents the seeds share.
const DOCUMENTS: u64 = 512;

/// The input of a workflow: items with lists of items in them, three deep.
fn input(chance: &mut Chance) -> Value {
    fn items(chance: &mut Chance, depth: u32) -> Value {
        let count = chance.below(if depth == 0 { 9 } else { 4 });
        let item = |chance: &mut Chance| match depth {
            0 | 1 if !chance.one_in(8) => json!({ "n": chance.below(9), "list": items(chance, depth + 1) }),
            _ => json!({ "n": chance.below(9) }),
        };
        (0..count).map(|_| item(chance)).collect()
    }
    json!({ "n": chance.below(9), "list": items(chance, 1), "items": items(chance, 0) })
}

/// What a workflow means.
fn meaning<'m>(document: &Value, model: &mut Model<'m>) -> Listed {
    model.list(document["definition"]["actions"].as_array().unwrap(), "", &[], u64::MAX)
}

/// What a workflow reached that its events do not say.
#[derive(Clone, Copy)]
struct Reached {
    /// How many items spent all that they may.
    over_budget: usize,
    /// How many cases of choices ran.
    cases: usize,
}

/// Holds what came of a workflow against what it means.
fn compared(played: &Played, document: &Value, input: &Value, outside: Outside) -> Reached {
    let mut model = Model::new(outside, input, played);
    let listed = meaning(document, &mut model);
    let said = || format!("{document:#}\n{input}\n{:?}", played.ending);
    let over_budget = model.faults.values().filter(|code| *code == "budget").count();
    let reached = Reached { over_budget, cases: model.cases };
    if !listed.failed {
        assert_eq!(played.ending.status, Status::Completed, "{}", said());
        let answer = &played.ending.answer.as_ref().unwrap().answer;
        assert_eq!(without_errors(answer), Value::Object(listed.keys), "{}", said());
        return reached;
    }
    assert_eq!(played.ending.status, Status::Failed, "{}", said());
    let error = played.ending.error.as_ref().unwrap();
    let at = error.step.as_ref().unwrap();
    assert!(model.faults.contains_key(at), "{at} does not fail: {:?}\n{}", model.faults, said());
    each_open_loop(&played.state.as_flow().unwrap().progress.root, &mut |items| holds_when_stopped(items, &model, at));
    reached
}

/// What failed items said of the reason is not compared: where a loop inside stopped, it is one of several.
fn without_errors(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_entry = members.contains_key("index") && members.contains_key("status");
            let kept = members.iter().filter(|(key, _)| !(is_entry && *key == "error"));
            Value::Object(kept.map(|(key, value)| (key.clone(), without_errors(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_errors).collect(),
        other => other.clone(),
    }
}

/// A loop that stopped: the items that had ended gave what they give alone, and the one that is named is the lowest of
/// those that failed.
fn holds_when_stopped(items: &ItemsState, model: &Model<'_>, at: &str) {
    for (index, status) in &items.ended {
        let entry = &model.entries[&format!("{}.{index}", items.at)];
        if *status != ItemStatus::Cancelled {
            assert_eq!(json!(status), entry["status"], "{}.{index}", items.at);
        }
        if let Some(text) = items.collected.get(index) {
            assert_eq!(without_errors(&serde_json::from_str(text).unwrap()), entry["output"], "{}.{index}", items.at);
        }
    }
    if let (true, Some(lowest)) = (at.starts_with(&format!("{}.", items.at)), items.faults.keys().next()) {
        assert!(at.starts_with(&format!("{}.{lowest}.", items.at)), "{at} is not the lowest: {lowest}");
    }
}

fn each_open_loop(frame: &StepFrame, visit: &mut dyn FnMut(&ItemsState)) {
    if let Current::Items(items) = &frame.current {
        visit(items);
        items.open.values().chain(items.unfinished.values()).for_each(|frame| each_open_loop(frame, visit));
    }
}

/// Plays a seed: what the workflow gives in a world of trouble is what it means, and what it gives with `max_concurrency`
/// 1 where nothing goes wrong. Returns what happened.
fn play(seed: u64) -> BTreeMap<&'static str, u64> {
    let mut chance = Chance::new(seed ^ 0x5eed);
    let purpose = if seed.is_multiple_of(4) { Purpose::Stops } else { Purpose::All };
    let number = seed % DOCUMENTS;
    let (together, alone) = (made(number, purpose, false), made(number, purpose, true));
    let input = input(&mut chance);
    let outside = Outside { seed, fails: chance.pick(&[0, 40, 12]), healed: false };
    let trouble = chance.pick(&[3, 8, 20]);
    let mut world = World::new(&together.program, outside, seed, trouble);
    if purpose == Purpose::Stops {
        world = world.healing();
    }
    let played = world.play(&input);
    let Reached { over_budget, cases } =
        compared(&played, &together.document, &input, Outside { healed: played.healed, ..outside });
    let quiet = World::new(&alone.program, outside, seed, 0).play(&input);
    compared(&quiet, &alone.document, &input, outside);
    if played.lost.is_empty() && played.late.is_empty() && quiet.late.is_empty() && !played.healed {
        let answer = |played: &Played| played.ending.answer.as_ref().map(|answer| without_errors(&answer.answer));
        assert_eq!(answer(&played), answer(&quiet));
    }
    let mut seen = played.seen;
    let late = played.late.len();
    for (what, count) in
        [("items over their time", late), ("items over their budget", over_budget), ("cases of choices", cases)]
    {
        *seen.entry(what).or_default() += count as u64;
    }
    *seen.entry(if played.ending.status == Status::Completed { "completed" } else { "failed" }).or_default() += 1;
    seen
}

/// That the worlds reach what they are there for.
fn reaches_all(seen: &BTreeMap<String, u64>, worlds: u64) {
    for (what, one_in) in [
        ("completed", 3),
        ("failed", 20),
        ("deaths", 2),
        ("stops", 20),
        ("steps left", 40),
        ("limits raised", 20),
        ("questions of runs", 5),
        ("calls of unknown outcome", 6),
        ("forms expired", 60),
        ("approvals expired", 30),
        ("waits that are over", 30),
        ("waits that were ended", 30),
        ("decisions beside", 10),
        ("cases of choices", 2),
        ("items over their time", 30),
        ("items over their budget", 150),
        ("budgets raised", 150),
        ("failed steps again", 100),
    ] {
        let times = seen.get(what).copied().unwrap_or(0);
        assert!(times * one_in >= worlds, "{what} happened {times} times only: {seen:?}");
    }
}

/// The workflows of each commit: among so few, these come to everything.
const EACH_COMMIT: std::ops::Range<u64> = 750..900;

#[test]
fn a_hundred_and_fifty_workflows_give_what_they_mean() {
    let seen = crate::simulation::in_all(EACH_COMMIT, play);
    reaches_all(&seen, 150);
}

#[test]
#[ignore = "nightly: 100,000 seeds"]
fn a_hundred_thousand_workflows_give_what_they_mean() {
    let seen = crate::simulation::in_all(0..100_000, play);
    println!("{seen:#?}");
    reaches_all(&seen, 100_000);
}

/// What the items of the only loop of a workflow gave.
fn gathered(played: &Played) -> Vec<Value> {
    let answer = played.ending.answer.as_ref().map(|answer| &answer.answer["all0"]);
    let entries = answer.and_then(Value::as_array).expect("it gathers");
    entries.iter().map(without_errors).collect()
}

/// Plays a workflow of one loop with two inputs, in two worlds; hands on what the items gave. Worlds in which the outcome
/// of a call was lost are left out.
fn both(seed: u64, fails: u64, inputs: [&Value; 2]) -> Option<[Vec<Value>; 2]> {
    let made = made(seed % DOCUMENTS, Purpose::Shuffled, false);
    let outside = Outside { seed, fails, healed: false };
    let [one, other] =
        [0, 1].map(|world| World::new(&made.program, outside, seed ^ world << 40, 20).play(inputs[world as usize]));
    (one.lost.is_empty() && other.lost.is_empty()).then(|| [gathered(&one), gathered(&other)])
}

#[test]
fn shuffled_items_have_their_results_shuffled_alike() {
    let (seeds, mut compared) = (u64::from(cases(8)), 0);
    for seed in 0..seeds {
        let mut chance = Chance::new(seed);
        let first = input(&mut chance);
        let items = first["items"].as_array().unwrap();
        let mut order: Vec<usize> = (0..items.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, chance.below(last as u64 + 1) as usize);
        }
        let mut second = first.clone();
        second["items"] = order.iter().map(|index| items[*index].clone()).collect();
        let Some([one, other]) = both(seed, 12, [&first, &second]) else { continue };
        for (place, index) in order.iter().enumerate() {
            let mut expected = one[*index].clone();
            expected["index"] = json!(place);
            assert_eq!(other[place], expected, "seed {seed}");
            compared += 1;
        }
    }
    assert!(compared > seeds * 3 / 2, "{compared} items compared too little");
}

#[test]
fn an_item_that_fails_changes_its_own_entry_only() {
    let (seeds, mut failed) = (u64::from(cases(8)), 0);
    for seed in 0..seeds {
        let mut chance = Chance::new(seed);
        let first = input(&mut chance);
        let count = first["items"].as_array().unwrap().len();
        if count == 0 {
            continue;
        }
        // An item without a number and a list: paths into it lead nowhere.
        let (index, mut second) = (chance.below(count as u64) as usize, first.clone());
        second["items"][index] = json!({});
        let Some([one, other]) = both(seed, 0, [&first, &second]) else { continue };
        failed += u64::from(one[index]["status"] != "failed" && other[index]["status"] == "failed");
        for (place, (one, other)) in one.iter().zip(&other).enumerate().filter(|(place, _)| *place != index) {
            assert_eq!(one, other, "seed {seed}, item {place}");
        }
    }
    assert!(failed > seeds / 10, "{failed} items failed: too few");
}
