//! Targets of `notify` that are mail, against a small server of mail: what it hears, what is tried again, and what no text can
//! do to the head of a message. Most need the cargo feature `email`: `just email`.
#![cfg_attr(not(feature = "email"), allow(dead_code, unused_imports))]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::common::{Place, Ran, with};
use crate::run::workflows::{definition, place};
use crate::serve::client::{Serving, scripted};
use crate::serve::workflows::{self as served, tools};

/// What a server does with a connection.
#[derive(Clone, Copy)]
enum MailAnswer {
    Takes,
    /// Answers the recipients with this.
    Recipient(&'static str),
    /// Closes the connection when it has read a line of the message.
    Closes,
    /// Refuses the message with this, and repeats it.
    Repeats(&'static str),
    /// Takes the message, and says nothing to the end of the conversation.
    HangsAtQuit,
    /// Says nothing.
    Hangs,
    /// Says something that has no end.
    Floods,
}

/// A server that takes mail in clear text on the loopback, and keeps the messages.
struct SmtpServer {
    port: u16,
    messages: Arc<Mutex<Vec<String>>>,
    logins: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
}

impl SmtpServer {
    /// Does this with each connection; takes the message of those after.
    fn new(answers: &[MailAnswer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self { port, messages: Arc::default(), logins: Arc::default(), connections: Arc::default() };
        let (kept, known) = (Arc::clone(&server.messages), Arc::clone(&server.logins));
        let (counted, answers) = (Arc::clone(&server.connections), answers.to_vec());
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                *counted.lock().unwrap() += 1;
                let answer = answers.get(number).copied().unwrap_or(MailAnswer::Takes);
                let (kept, known) = (Arc::clone(&kept), Arc::clone(&known));
                std::thread::spawn(move || serve(stream.unwrap(), answer, &kept, &known));
            }
        });
        server
    }

    fn messages(&self) -> Vec<String> {
        self.messages.lock().unwrap().clone()
    }

    fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

/// One connection. It ends when the other side does.
fn serve(
    mut stream: TcpStream,
    does: MailAnswer,
    messages: &Mutex<Vec<String>>,
    logins: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    match does {
        MailAnswer::Hangs => return lines.next().map(drop),
        MailAnswer::Floods => loop {
            stream.write_all(&[b'2'; 4096]).ok()?;
        },
        _ => stream.write_all(b"220 mail.example.com\r\n").ok()?,
    }
    loop {
        let line = lines.next()?.ok()?;
        let answer = match line.split(' ').next()?.to_ascii_uppercase().as_str() {
            "EHLO" => "250-mail.example.com\r\n250-AUTH PLAIN\r\n250 8BITMIME\r\n".to_owned(),
            "AUTH" => {
                logins.lock().unwrap().push(line);
                "235 ok\r\n".to_owned()
            }
            "RCPT" if let MailAnswer::Recipient(answer) = does => answer.to_owned(),
            "DATA" => {
                stream.write_all(b"354 go on\r\n").ok()?;
                let mut message = String::new();
                loop {
                    let line = lines.next()?.ok()?;
                    if matches!(does, MailAnswer::Closes) {
                        messages.lock().unwrap().push("closed".to_owned());
                        return None;
                    }
                    if line == "." {
                        break;
                    }
                    message.push_str(&line);
                    message.push('\n');
                }
                messages.lock().unwrap().push(message.clone());
                match does {
                    MailAnswer::Repeats(code) => format!("{code} not this: {}\r\n", plain(&message).replace('\n', " ")),
                    _ => "250 taken\r\n".to_owned(),
                }
            }
            "QUIT" if matches!(does, MailAnswer::HangsAtQuit) => return lines.next().map(drop),
            "QUIT" => "221 bye\r\n".to_owned(),
            _ => "250 ok\r\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

fn target(server: &SmtpServer, more: Value) -> Value {
    with(
        json!({ "kind": "email", "smtp": format!("smtp://127.0.0.1:{}", server.port),
            "from": "Claims <claims@example.com>", "to": ["ops@example.com", "desk@example.com"],
            "username": "claims", "password": "orgconfig:word" }),
        more,
    )
}

fn project(server: &SmtpServer, more: Value) -> Value {
    json!({ "allow": { "private_addresses": true }, "orgconfig": { "word": "file:word.txt" },
        "notify": { "ops": target(server, more) } })
}

/// A place whose workflow sends a text by mail.
fn with_mail(server: &SmtpServer, more: Value) -> Place {
    let place = place();
    place.json("loopctl.json", &project(server, more));
    place.file("word.txt", "s3cret-word-of-the-mail");
    let retry = json!({ "attempts": 3, "base_ms": 1, "max_ms": 2 });
    let send = json!({ "id": "send", "type": "notify", "retry": retry, "outputKey": "sent",
        "properties": { "to": "ops", "text": "{{input.id}} wurde bezahlt: größer\r\nBcc: evil@example.com\r.\r\n.\nthe end" } });
    definition(&place, json!({ "actions": [send], "output": "@sent" }));
    place
}

fn run(place: &Place) -> Ran {
    place.run(&["--run-id", "r", "--input", "id=C-7\r\nX-Evil: 1"]).0
}

/// The head of a message, with its folded lines.
fn head(message: &str) -> Vec<String> {
    let head = message.split("\n\n").next().unwrap().replace("\n ", " ");
    head.lines().map(str::to_owned).collect()
}

fn value(message: &str, name: &str) -> String {
    let value = head(message).iter().find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned));
    value.unwrap_or_else(|| panic!("no {name}: {message}"))
}

/// The text of a message that is ASCII: as it is, or quoted-printable.
fn plain(message: &str) -> String {
    let body = message.split_once("\n\n").unwrap().1;
    if value(message, "Content-Transfer-Encoding") != "quoted-printable" {
        return body.to_owned();
    }
    let body = body.replace("=\n", "");
    let mut parts = body.split('=');
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        text.push(char::from(u8::from_str_radix(&part[..2], 16).unwrap()));
        text.push_str(&part[2..]);
    }
    text
}

#[cfg(feature = "email")]
#[test]
fn a_text_is_one_message_to_all_and_no_line_of_it_is_a_header() {
    let server = SmtpServer::new(&[]);
    let place = with_mail(&server, json!({}));
    let ran = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let messages = server.messages();
    assert_eq!(messages.len(), 1);
    let message = &messages[0];
    assert_eq!(value(message, "From"), "Claims <claims@example.com>");
    assert_eq!(value(message, "To"), "ops@example.com, desk@example.com");
    assert_eq!(value(message, "Subject"), "C-7");
    assert_eq!(value(message, "Auto-Submitted"), "auto-generated");
    assert!(value(message, "Message-ID").ends_with("@example.com>"), "{message}");
    let head = head(message);
    assert!(!head.iter().any(|line| line.starts_with("Bcc") || line.starts_with("X-Evil")), "{head:?}");
    // A line of one dot does not end it, however its ends are written.
    assert!(plain(message).contains("\nBcc: evil@example.com\n..\n..\nthe end"), "{}", plain(message));
    let login = server.logins.lock().unwrap().clone();
    assert_eq!(login.len(), 1, "{login:?}");
    let shown = format!("{}{}", ran.stdout, place.call(&["trace", "r", "--format", "json"]).stdout);
    assert!(shown.contains("taken") && !shown.contains("s3cret-word"), "{shown}");
}

#[cfg(feature = "email")]
#[test]
fn what_may_pass_is_sent_again_as_the_same_message_and_what_may_not_is_not() {
    for (does, connections, code) in [
        (MailAnswer::Recipient("451 later\r\n"), 2, 0),
        (MailAnswer::Closes, 2, 0),
        (MailAnswer::Repeats("452"), 2, 0),
        // It has the message: nothing is sent again.
        (MailAnswer::HangsAtQuit, 1, 0),
        (MailAnswer::Recipient("550 no such user\r\n"), 1, 1),
        (MailAnswer::Repeats("554"), 1, 1),
    ] {
        let server = SmtpServer::new(&[does]);
        let place = with_mail(&server, json!({}));
        let ran = run(&place);
        assert_eq!((ran.code, server.connections()), (code, connections), "{ran:#?}");
        let whole = server.messages().into_iter().filter(|message| message != "closed");
        let ids: std::collections::BTreeSet<String> = whole.map(|message| value(&message, "Message-ID")).collect();
        assert!(ids.len() <= 1, "{ids:?}");
        if code == 1 {
            let trace = place.call(&["trace", "r"]).stdout;
            assert!(trace.contains("smtp 55") && trace.contains("refused"), "{trace}");
        }
    }
    // The id is that of the run and the step.
    let id = |run_id: &str| {
        let server = SmtpServer::new(&[]);
        let ran = with_mail(&server, json!({})).run(&["--run-id", run_id, "--input", "id=C-7"]).0;
        assert_eq!(ran.code, 0, "{ran:#?}");
        value(&server.messages()[0], "Message-ID")
    };
    assert!(id("r") == id("r") && id("r") != id("s"));
}

#[cfg(feature = "email")]
#[test]
fn a_server_that_hangs_or_says_no_end_fails_the_step() {
    for (does, why) in [(MailAnswer::Hangs, "timed out"), (MailAnswer::Floods, "more than 65536 bytes")] {
        let server = SmtpServer::new(&[does]);
        let place = with_mail(&server, json!({}));
        let send = json!({ "id": "send", "type": "notify", "retry": { "attempts": 1 }, "timeout_ms": 2000,
            "properties": { "to": "ops", "text": "Paid." } });
        definition(&place, json!({ "actions": [send] }));
        let ran = run(&place);
        assert_eq!(ran.code, 1, "{ran:#?}");
        let trace = place.call(&["trace", "r"]).stdout;
        assert!(trace.contains(why), "{why}: {trace}");
    }
}

#[cfg(feature = "email")]
#[test]
fn the_rules_for_hosts_hold() {
    let server = SmtpServer::new(&[]);
    let place = with_mail(&server, json!({}));
    let project = std::fs::read_to_string(place.path().join("loopctl.json")).unwrap();
    for (allow, code, why) in [
        (r#""private_addresses": false"#, 2, "is private, local or reserved"),
        (r#""private_addresses": true, "hosts": ["mail.example.com"]"#, 2, "is not in the project's `allow.hosts`"),
    ] {
        place.file("loopctl.json", project.replace(r#""private_addresses": true"#, allow));
        let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", "r", "--input", "id=C-7"]);
        let trace = place.call(&["trace", "r"]).stdout;
        assert!(ran.code == code && format!("{}{trace}", ran.stderr).contains(why), "{allow}: {ran:#?} {trace}");
    }
    assert_eq!(server.connections(), 0);
}

#[cfg(feature = "email")]
#[test]
fn a_question_is_asked_by_mail_once_with_its_link_and_a_refusal_repeats_no_link() {
    let (tools, server) = (tools(), SmtpServer::new(&[MailAnswer::Repeats("451"), MailAnswer::Closes]));
    let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Pay?", "ask": ["ops"] } });
    let place = served::place(&tools, json!({ "actions": [ask] }));
    place.file("hook.key", "s3cret-of-the-hook\n");
    place.file("word.txt", "s3cret-word-of-the-mail");
    let address = "https://loops.example.com/desk";
    let serve = json!({ "serve": { "callback_secret": "file:hook.key", "public_url": address } });
    scripted(&place, &[], with(project(&server, json!({})), serve));
    let serving = Serving::start(&place, &[]);
    let run = serving.post("/workflows/pay/execute", &json!({ "input": {} })).json();
    let id = run["run_id"].as_str().unwrap_or_else(|| panic!("{run:#}"));
    let status = loop {
        let status = serving.get(&format!("/agents/{id}/status")).json();
        let post = &status["result"]["asked"][0];
        assert!(!post.to_string().contains("token="), "{post}");
        if post["posted_at"].is_string() {
            break status;
        }
        crate::common::wait_poll_interval();
    };
    assert_eq!(status["result"]["asked"][0]["tries"], 3, "{status:#}");
    let messages = server.messages();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert_eq!(value(&messages[0], "Message-ID"), value(&messages[2], "Message-ID"));
    let text = plain(&messages[2]);
    assert_eq!(value(&messages[2], "Subject"), format!("pay asks at ok, run {id}"));
    let link = text.lines().find_map(|line| line.strip_prefix("answer: ")).unwrap_or_else(|| panic!("{text}"));
    let target = link.trim().strip_prefix(address).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(serving.get(target).status, 200, "{target}");
    let token = target.split_once("token=").unwrap().1;
    let answered = serving.post(&format!("/agents/{id}/answer"), &json!({ "token": token, "approve": true }));
    assert_eq!(answered.status, 202, "{answered:?}");
    let trace = serving.get(&format!("/agents/{id}/trace")).json().to_string();
    assert!(!trace.contains("token="), "{trace}");
}

#[cfg(not(feature = "email"))]
#[test]
fn a_build_without_mail_says_so_before_anything_is_sent() {
    let server = SmtpServer::new(&[]);
    let place = with_mail(&server, json!({}));
    for args in [&["check", "loop.json"][..], &["run", "loop.json", "--run-id", "r", "--input", "id=C-7"]] {
        let ran = place.call(args);
        assert!(ran.code != 0 && ran.stderr.contains("build it with its cargo feature `email`"), "{args:?}: {ran:#?}");
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn what_is_wrong_with_a_target_of_mail_is_found_before_a_run() {
    let server = SmtpServer::new(&[]);
    for (more, said) in [
        (json!({ "smtp": "mail.example.com" }), "no address of a server of mail"),
        (json!({ "smtp": "smtp://claims:hunter2-and-more@mail.example.com" }), "no address of a server of mail"),
        (json!({ "to": [] }), "an empty `to` reaches nobody"),
        (json!({ "to": vec!["ops@example.com"; 51] }), "a message goes to at most 50"),
        (json!({ "to": ["ops@example.com\r\nBcc: evil@example.com"] }), "is no address of mail"),
        (json!({ "to": ["a@example.com, b@example.com"] }), "is no address of mail"),
        (json!({ "to": ["{{input.to}}"] }), "is no address of mail"),
        (json!({ "from": null }), "the target `ops` needs `from`"),
        (json!({ "username": "{{input.user}}" }), "is no name at a server"),
        (json!({ "password": "hunter2-and-more" }), "`password` is a secret"),
        (json!({ "password": null }), "the target `ops` needs `password`"),
        (json!({ "password": "orgconfig:nothing" }), "nothing"),
        (json!({ "url": "https://hooks.example.com/x" }), "a target of this kind takes no `url`"),
    ] {
        for command in ["check", "run"] {
            let ran = with_mail(&server, more.clone()).call(&[command, "loop.json"]);
            assert!(ran.code != 0 && ran.stderr.contains(said), "{command} {said}: {ran:#?}");
            // The line of the document is shown, as it is with each fault; no sentence repeats it.
            let mut sentences = ran.stderr.lines().filter(|line| !line.contains(" | "));
            assert!(!sentences.any(|line| line.contains("hunter2")), "{said}: {ran:#?}");
        }
    }
    assert_eq!(server.connections(), 0);
}
