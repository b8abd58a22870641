//! D8: readers on every worker while workers die. Each reader goes on at another worker with the last id that it has, and
//! gets each event once.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::Value;

use crate::cluster::harness::database::Store;
use crate::cluster::harness::worker::read_all;
use crate::cluster::harness::{Cluster, Play};
use crate::serve::client::{parse, stream};

/// Reads events of a run behind the last id, until the stream ends or its worker dies; says when it has asked for them.
fn read(worker: SocketAddr, run: &str, last: Option<&str>, asked: &Sender<()>) -> Option<Vec<(String, Value)>> {
    let mut connection = TcpStream::connect(worker).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
    write!(connection, "GET /agents/{run}/events HTTP/1.1\r\nhost: {worker}\r\nconnection: close\r\n{last}\r\n")
        .ok()?;
    // Nobody waits for it any more after the first kill.
    let _ = asked.send(());
    let reply = parse(&read_all(&mut connection))?;
    (reply.status == 200).then(|| stream(&String::from_utf8_lossy(&reply.body)))
}

/// All events of a run, as a reader gets them that is cut off again and again, and how often it was.
fn follow(
    workers: &Mutex<Vec<SocketAddr>>,
    first: usize,
    run: &str,
    asked: &Sender<()>,
) -> (Vec<(String, Value)>, usize) {
    let mut events: Vec<(String, Value)> = Vec::new();
    for turn in 0.. {
        let worker = {
            let workers = workers.lock().unwrap();
            workers[(first + turn) % workers.len()]
        };
        // An event without an id says that the stream failed.
        let last = events.last().map(|(id, _)| id.clone());
        let more = read(worker, run, last.as_deref(), asked).unwrap_or_default();
        events.extend(more.into_iter().filter(|(_, event)| event["event"] != "stream_failed"));
        if events.last().is_some_and(|(_, event)| event["event"] == "result") {
            return (events, turn);
        }
    }
    unreachable!()
}

fn play(name: &str, play: Play, kills: usize) {
    let Some(store) = Store::shared(name) else { return };
    let mut cluster = Cluster::start(play, store.clone(), &store.url, 10);
    // No run ends before all readers are there and a worker died.
    cluster.world.hold(true);
    cluster.load();
    let (asked, are_there) = channel();
    let addresses = Mutex::new(cluster.workers.iter().map(|worker| worker.address).collect::<Vec<_>>());
    let runs = cluster.runs();
    let read: BTreeMap<usize, (Vec<(String, Value)>, usize)> = std::thread::scope(|scope| {
        let readers: Vec<_> = runs
            .iter()
            .map(|(number, run)| {
                let (addresses, asked) = (&addresses, asked.clone());
                (*number, scope.spawn(move || follow(addresses, *number, run, &asked)))
            })
            .collect();
        assert_eq!(are_there.iter().take(runs.len()).count(), runs.len());
        for kill in 0..kills {
            if kill > 0 && !cluster.goes_on(play.runs * play.calls / (kills + 1)) {
                break;
            }
            let worker = cluster.pick(play.workers);
            cluster.replace(worker);
            addresses.lock().unwrap()[worker] = cluster.workers[worker].address;
            cluster.world.hold(false);
        }
        readers.into_iter().map(|(number, reader)| (number, reader.join().unwrap())).collect()
    });
    let mut cuts = 0;
    for (number, run) in &runs {
        let (events, cut) = &read[number];
        let (whole, _) = follow(&addresses, 0, run, &asked);
        assert_eq!(events, &whole, "a reader of run {number} that was cut off {cut} times, {}", cluster.seeded());
        cuts += cut;
    }
    assert!(cuts > 0, "no reader was cut off");
    eprintln!("{name}: {} readers were cut off {cuts} times", runs.len());
    cluster.judge(name).sound(1);
}

#[test]
fn readers_whose_workers_die_get_each_event_once() {
    let short = Play { workers: 3, slots: 16, runs: 12, calls: 10, model_ms: 60, tool_ms: 10, has_once: false };
    play("readers_whose_workers_die_get_each_event_once", short, 2);
}

#[test]
#[ignore = "nightly: 300 readers and 30 kills"]
fn three_hundred_readers_get_each_event_once() {
    let long = Play { workers: 3, slots: 100, runs: 300, calls: 60, model_ms: 200, tool_ms: 10, has_once: false };
    play("three_hundred_readers_get_each_event_once", long, 30);
}
