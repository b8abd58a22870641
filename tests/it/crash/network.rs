//! R4: the n-th request over the network fails, to the model or to a tool: the run continues or ends with a
//! code, and never panics.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, Ran, complete, is_sampled, think, web};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Reset,
    Closed,
    CutInTheMiddle,
    NoAnswer,
    Nonsense,
    ServerError,
}

const FAULTS: [Fault; 6] =
    [Fault::Reset, Fault::Closed, Fault::CutInTheMiddle, Fault::NoAnswer, Fault::Nonsense, Fault::ServerError];
/// The requests of a run without a fault: to the model and the tool in turn, the last one to the model.
const REQUESTS: usize = 5;

/// The server's answer to a request, by how many of the same kind succeeded before.
fn server(fault: Option<(usize, Fault)>) -> Server {
    let answered = std::sync::Mutex::new(0);
    let never = Gate::default();
    Server::with(move |number, request| {
        let good = if request.path.starts_with("/v1") {
            let mut answered = answered.lock().unwrap();
            if fault.is_none_or(|(at, _)| at != number) {
                *answered += 1;
            }
            let reply = if *answered > 2 { complete(json!("done")) } else { think("read", json!({ "n": *answered })) };
            Answer::openai(&reply.to_string())
        } else {
            Answer::json(&json!({ "read": number }))
        };
        match fault {
            Some((at, fault)) if at == number => match fault {
                Fault::Reset => Answer::reset(),
                Fault::Closed => Answer::closed(),
                Fault::CutInTheMiddle => good.cut(),
                Fault::NoAnswer => good.behind(&never),
                Fault::Nonsense => Answer::raw("\u{1}\u{2}no protocol\r\n\r\n"),
                Fault::ServerError => Answer::json("{}").status(503),
            },
            _ => good,
        }
    })
}

fn run(url: &str, attempts: u32, timeout_ms: u64) -> (Place, Ran) {
    let place = Place::on_disk();
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test",
        "actions": [web("read", &format!("{url}/read"), json!({ "timeout_ms": 1_000 }))],
        "properties": { "mode": "react", "objective": "x", "timeout_ms": timeout_ms,
            "tools": [{ "type": "action", "name": "read" }],
            "retry": { "attempts": attempts, "base_ms": 1, "max_ms": 2 } } }),
    );
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let args = ["run", "loop.json", "--run-id", "r", "--output", "json", "--model", "test-model"];
    let ran = place.call_with(&args, &[("OPENAI_BASE_URL", &format!("{url}/v1")), ("OPENAI_API_KEY", "key-of-test")]);
    assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
    (place, ran)
}

#[test]
fn without_a_fault_the_run_makes_its_five_requests() {
    let server = server(None);
    let (_, ran) = run(&server.url(), 1, 60_000);
    assert_eq!((ran.code, server.requests().len()), (0, REQUESTS), "{ran:#?}");
}

#[test]
fn the_n_th_failing_call_is_retried_or_reported_to_the_model() {
    for (kind, fault) in FAULTS.into_iter().enumerate() {
        for at in (0..REQUESTS).filter(|at| is_sampled(at + kind)) {
            let is_models = at % 2 == 0;
            if is_models && fault == Fault::NoAnswer {
                continue; // a model may take long: the time limit of the run ends it, see below
            }
            let server = server(Some((at, fault)));
            let (_, ran) = run(&server.url(), 3, 60_000);
            assert_eq!(ran.code, 0, "{fault:?} at {at}: {ran:#?}");
            let result = ran.json();
            let failed = result["trace"].as_array().expect("a trace").iter().filter(|entry| entry["success"] == false);
            let retried = result["metadata"]["model_retries"].as_u64();
            assert_eq!(
                (failed.count(), retried),
                if is_models { (0, Some(1)) } else { (1, Some(0)) },
                "{fault:?} at {at}"
            );
        }
    }
}

#[test]
fn the_n_th_failing_call_of_a_model_that_is_asked_once_ends_the_run_with_a_code() {
    for (kind, fault) in FAULTS.into_iter().enumerate() {
        for at in [0, 2, 4].into_iter().filter(|at| is_sampled(at + kind)) {
            let server = server(Some((at, fault)));
            // Long enough for the steps before the silence, also on a busy machine.
            let timeout_ms = if fault == Fault::NoAnswer { 2_000 } else { 60_000 };
            let (place, ran) = run(&server.url(), 1, timeout_ms);
            assert_eq!(ran.code, 1, "{fault:?} at {at}: {ran:#?}");
            let result = ran.json();
            let code = result["error"]["code"].as_str().expect("a code").to_owned();
            let known = ["model_unreachable", "model_protocol", "timeout"];
            assert!(
                known.contains(&code.as_str()) && result["error"]["retryable"] == true,
                "{fault:?} at {at}: {result:#}"
            );
            // The results until then are stored, and can be read.
            let trace = place.call(&["trace", "r", "--format", "json"]);
            assert_eq!(trace.json()["trace"].as_array().map(Vec::len), Some(at / 2), "{fault:?} at {at}: {trace:#?}");
        }
    }
}

#[test]
fn a_port_without_a_server_and_a_server_without_tls_are_reported() {
    // No program of a test listens there: a port that was free a moment ago may be another test's by now.
    let closed = "http://127.0.0.1:1".to_owned();
    let plain = server(None);
    for url in [closed, plain.url().replace("http:", "https:")] {
        let (_, ran) = run(&url, 2, 60_000);
        let result: Value = ran.json();
        assert_eq!((ran.code, &result["error"]["code"]), (1, &json!("model_unreachable")), "{url}: {ran:#?}");
    }
    assert!(plain.requests().iter().all(|request| !request.path.starts_with("/v1")), "nothing is sent in the clear");
}
