//! `docs/as-a-step.md` is true: its shell and its Python are run, its command lines are taken.

use std::process::Command;

use serde_json::json;

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think};
use crate::serve::client::{Serving, place, scripted};

const PYTHON: &str = "/usr/bin/python3";

fn blocks(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/as-a-step.md")).unwrap();
    let fence = format!("```{language}\n");
    let parts = page.split(&fence).skip(1).map(|rest| rest.split_once("```").unwrap().0.to_owned());
    parts.collect()
}

fn python(place: &Place, script: &str) -> Option<String> {
    if !std::path::Path::new(PYTHON).exists() {
        eprintln!("SKIPPED: the Python of docs/as-a-step.md was not run: there is no {PYTHON}");
        return None;
    }
    place.file("step.py", script);
    let output = Command::new(PYTHON).arg("step.py").current_dir(place.path()).env_clear().output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_shell_step_ends_with_the_code_of_its_run_and_may_be_called_again() {
    let shell = blocks("sh").remove(0);
    let ask = think("__pause_for_human__", json!({ "question": "?" }));
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_loopctl")).parent().unwrap();
    for (replies, code, said) in
        [(vec![complete(json!("ok"))], 0, "answered"), (vec![ask], 3, "waits"), (vec![], 1, "")]
    {
        let place = place(json!({}), &replies);
        let mut document = crate::common::document(&json!({}));
        document["input"] = json!({ "type": "object", "properties": { "ticket_id": { "type": "string" } } });
        place.json("triage.json", &document);
        for _ in 0..2 {
            let mut command = Command::new("/bin/sh");
            command.args(["-eu", "-c", &shell]).current_dir(place.path()).env_clear();
            command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).env("TICKET", "TK-1").env("STEP_ID", "7");
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(String::from_utf8_lossy(&output.stdout).contains(said), "{output:?}");
            let result = std::fs::read(place.path().join("result.json")).unwrap();
            let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
            assert_eq!(result["run_id"], "triage-7");
        }
    }
}

#[test]
fn every_command_line_of_the_page_and_of_the_unit_is_taken() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/loopctl.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let mut lines: Vec<Vec<String>> = Vec::new();
    for block in blocks("yaml") {
        for line in block.lines().map(str::trim) {
            if let Some(list) = line.strip_prefix("args: ") {
                lines.push(serde_json::from_str(list).unwrap());
            }
            let line = line.strip_prefix("- run: ").unwrap_or(line);
            if let Some(rest) = line.strip_prefix("loopctl ") {
                lines.push(rest.split(" > ").next().unwrap().split(' ').map(str::to_owned).collect());
            }
        }
    }
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/loopctl ")).unwrap();
    lines.push(start.split(' ').map(str::to_owned).collect());
    assert!(lines.len() >= 5, "{lines:?}");
    let place = Place::new();
    for line in lines {
        // With `--help` at the end all before it is read, and nothing is done.
        let args: Vec<&str> = line.iter().map(String::as_str).chain(["--help"]).collect();
        let ran = place.call(&args);
        assert_eq!(ran.code, 0, "{line:?}\n{}", ran.stderr);
    }
    assert_eq!(place.call(&["run", "x.json", "--no-such", "--help"]).code, 2, "what is not known is refused there");
}

#[test]
fn the_yaml_of_the_page_is_yaml() {
    let place = Place::new();
    let texts = serde_json::to_string(&blocks("yaml")).unwrap();
    place.file("texts.json", texts);
    let script = "import json\ntry:\n    import yaml\nexcept ImportError:\n    print('SKIPPED: the YAML was not read: no PyYAML')\n\
                  else:\n    print(sum(isinstance(yaml.safe_load(text), dict) for text in json.load(open('texts.json'))))\n";
    let Some(output) = python(&place, script) else { return };
    if output.starts_with("SKIPPED") {
        eprintln!("{output}");
    } else {
        assert_eq!(output.trim(), "3");
    }
}

#[test]
fn the_python_of_the_page_runs_a_loop_once_and_hands_its_callback_on() {
    let hook = Server::with(|_, _| Answer::json("{}"));
    let place = place(json!({}), &[]);
    place.file("hook.key", "s3cret");
    scripted(&place, &[complete(json!("ok"))], json!({ "serve": { "callback_secret": "file:hook.key" } }));
    let server = Serving::start(&place, &[]);
    let pieces = blocks("python");
    let base = format!("http://{}", server.address);
    // AWS is not here: what is handed to it is printed.
    let aws = "import sys, types\nclass States:\n    class exceptions:\n        TaskTimedOut = InvalidToken = KeyError\n    \
               def send_task_success(self, **given): print('success', given['taskToken'], given['output'])\n\
               sys.modules['boto3'] = types.SimpleNamespace(client=lambda name: States())\n";
    let head = format!("{aws}{}\n{}\n{}\n", pieces[0], pieces[1], pieces[3]);
    let first = format!(
        "{head}print(run('{base}', 'test', {{}}, 'k1'), run('{base}', 'test', {{}}, 'k1'))\n\
         os.environ.update(LOOPCTL_URL='{base}', CALLBACK_URL='{}/done')\n\
         event = {{'loop': 'test', 'input': {{}}, 'task_token': 'a/b+c='}}\n\
         print(start_loop(event, None)['agent_run_id'] == start_loop(event, None)['agent_run_id'])\n",
        hook.url()
    );
    let Some(output) = python(&place, &first) else { return };
    assert_eq!(output, "ok ok\nTrue\n");
    assert_eq!(server.get("/agents").json()["agents"].as_array().unwrap().len(), 2, "each key is one run");
    hook.wait_for(1);
    let post = hook.requests().remove(0);
    assert!(post.path.starts_with("/done?task=a%2Fb%2Bc%3D"), "{}", post.path);
    let event = json!({ "body": post.text(), "headers": { "x-hyphen-signature": post.header("x-hyphen-signature") },
        "queryStringParameters": { "task": "a/b+c=" } });
    place.json("event.json", &event);
    let second = format!(
        "{head}event = json.load(open('event.json'))\nos.environ['CALLBACK_SECRET'] = 's3cret'\n\
         print(loop_ended(event, None))\nevent['body'] += ' '\nprint(loop_ended(event, None))\n\
         body = json.dumps({{'event': 'agent_run_paused', 'payload': {{}}}})\n\
         tag = 'sha256=' + hmac.new(b's3cret', body.encode(), hashlib.sha256).hexdigest()\n\
         print(loop_ended({{**event, 'body': body, 'headers': {{'x-hyphen-signature': tag}}}}, None))\n"
    );
    let output = python(&place, &second).unwrap();
    assert_eq!(output, "success a/b+c= \"ok\"\n{'statusCode': 200}\n{'statusCode': 401}\n{'statusCode': 200}\n");
}

#[test]
fn the_python_of_the_page_shows_a_posted_pause_and_decides_once() {
    let hook = Server::with(|_, _| Answer::json("{}"));
    let place = place(json!({}), &[]);
    place.file("hook.key", "s3cret");
    let replies = [
        think("__pause_for_human__", json!({ "question": "Which account?" })),
        think("act", json!({ "what": "pay" })),
        complete(json!("ok")),
    ];
    let tool = json!({ "type": "action", "name": "act", "requires_approval": true });
    place.json("loop.json", &crate::common::document(&json!({ "tools": [tool] })));
    // The address of the server is known when it has started: a proxy's is known before.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let serve = json!({ "callback_secret": "file:hook.key", "public_url": format!("http://{free}") });
    scripted(&place, &replies, json!({ "serve": serve }));
    let server = Serving::start_at(&free.to_string(), &place, &[]);
    let run = server.execute("", json!({ "loop": "test", "callback_url": hook.url() })).json();
    let bot = blocks("python")[2].clone();
    for (number, shown, decision) in [
        (0, "Which account? [] ['answer']", "'answer': 'the first'"),
        (1, "act {\"what\": \"pay\"} [] ['approve', 'deny', 'edit']", "'deny': True"),
    ] {
        hook.wait_for(number + 1);
        place.file("envelope.json", &hook.requests()[number].body);
        let script = format!(
            "{bot}\nfor text, concerns, choices, answer in questions(json.load(open('envelope.json'))):\n    \
             print(text, concerns, choices)\n    print(decide(answer, {{{decision}}}), decide(answer, {{{decision}}}))\n"
        );
        let Some(output) = python(&place, &script) else { return };
        assert_eq!(output, format!("{shown}\nTrue False\n"));
    }
    hook.wait_for(3);
    let end = hook.requests()[2].json();
    assert_eq!((&end["event"], &end["payload"]["agent_run_id"]), (&json!("agent_run_completed"), &run["agent_run_id"]));
}
